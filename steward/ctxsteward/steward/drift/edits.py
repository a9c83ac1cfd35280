"""Decide whether the new text of a locked line is still the same rule.

`entries` calls `otherwise` for an edit of a locked line. A list of dangerous phrases would miss other wordings. So
every difference must be *explained*: function words, synonyms, inflections, misspellings (`corrected`), another order
of a list or of phrases, sentences about something else. The unexplained rest decides: first `marks` (strength,
exceptions, scope, figures, order), then content words (a replaced thing, a missing part, a narrower case, two things
exchanged). Each check takes the statement before and after and returns the first `RuleChange`, or None. One or two
unexplained verbs are left to reviewers, who see every edit of a locked line anyway.

Linear in the text, except for the alignment of two sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from ctxsteward.language.operators import Token, keys_of, sentences_of
from ctxsteward.language.statement import ContentWord, Statement, class_of, is_kin_of, read_statement
from ctxsteward.language.words import term_stem

from .marks import RuleChange, figured, loosened, marked, reordered, weakened, widened

LOST = 0.34
"""Share of a locked line's content words that may be missing unexplained."""
CLAUSE_LOST = 0.67
"""Share of a clause's content words that must be missing for the clause to count as removed."""
TYPO = 5
"""Shortest word whose misspellings are corrected, in letters."""


def unexplained(before: Statement, after: Statement) -> tuple[list[ContentWord], list[ContentWord]]:
    """Return removed and added words, without words whose other form is on the other side."""
    old, new = before.keys, after.keys
    gone = [word for word in before.words if word.key not in new and not is_kin_of(word.key, new)]
    come = [word for word in after.words if word.key not in old and not is_kin_of(word.key, old)]
    return gone, come


@lru_cache(maxsize=1 << 14)
def corrected(text: str, line: str) -> str:
    """Correct words of a text that are misspellings of a line's words.

    >>> corrected("Refunds go witohut a signature.", "No refund without a signature.")
    'Refunds go without a signature.'
    """
    known = set(_LATIN.findall(line.lower()))
    candidates = sorted(word for word in known if len(word) >= TYPO)

    def spelled(match: re.Match[str]) -> str:
        word = match.group().lower()
        if len(word) < TYPO - 1 or word in known or not word.isalpha():
            return match.group()
        return next((other for other in candidates if _is_slip(word, other)), match.group())

    return _LATIN.sub(spelled, text)


_LATIN = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")


def _is_slip(word: str, other: str) -> bool:
    """Whether two words differ by two exchanged neighbouring letters, or by one missing letter."""
    if word[0] != other[0] or abs(len(word) - len(other)) > 1:
        return False
    same = next((place for place, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return not (word + "s" == other or other + "s" == word)
    if len(word) == len(other):
        exchanged = word[:same] + word[same : same + 2][::-1] + word[same + 2 :]
        return exchanged == other
    short, long = sorted((word, other), key=len)
    return short == long[:same] + long[same + 1 :]


def replaced_thing(before: Statement, after: Statement) -> RuleChange | None:
    """Find a thing that was replaced by another."""
    gone, come = unexplained(before, after)
    counts = [Counter(word.key for word in reading.words) for reading in (before, after)]
    went = {word.key for word in gone} | {key for key in counts[0] - counts[1] if key in after.keys}
    came = {word.key for word in come} | {key for key in counts[1] - counts[0] if key in before.keys}
    matcher = SequenceMatcher(None, [w.key for w in before.words], [w.key for w in after.words], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        out = [word for word in before.words[a:b] if word.key in went]
        into = [word for word in after.words[c:d] if word.key in came]
        if tag != "replace" or not out or not into:
            continue
        if len(out) == len(into) == 1 and not out[0].key.isascii() and _ends_run(after, into[0]):
            continue  # the end of a compound: 简短, 简洁
        if any(word.nominal for word in out) and any(word.nominal for word in into):
            return RuleChange("reworded", "another thing stands in its place", _told(out), _told(into))
    return None


def _ends_run(reading: Statement, word: ContentWord) -> bool:
    """Whether no token of the same run follows a word."""
    following = reading.tokens[word.place + 1] if word.place + 1 < len(reading.tokens) else None
    return following is None or following.kind in ("hard", "soft")


def lost_part(old: Sequence[str], before: Statement, after: Statement) -> RuleChange | None:
    """Find that too many words are missing, or most words of one clause."""
    gone, _ = unexplained(before, after)
    if len(gone) > LOST * len(before.words):
        return RuleChange("removed", "too much of what it says is gone", _told(gone), "")
    went = {word.key for word in gone}
    for sentence in old:
        for part in _clause_words(read_statement(sentence)):
            lost = [word for word in part if word.key in went]
            if len(part) > 1 and len(lost) >= CLAUSE_LOST * len(part):
                return RuleChange("removed", "a part of it is gone", _told(lost), "")
    return None


def _clause_words(sentence: Statement) -> Iterator[list[ContentWord]]:
    """Yield the content words of each clause."""
    start = 0
    for place, token in [*enumerate(sentence.tokens), (len(sentence.tokens), None)]:
        if token is None or token.kind in ("hard", "soft") or (token.operator is not None and token.operator.opens):
            yield [word for word in sentence.words if start <= word.place < place]
            start = place


def narrowed(before: Statement, after: Statement) -> RuleChange | None:
    """Find an added condition that restricts the line, if no word is missing."""
    gone, come = unexplained(before, after)
    if not gone and (condition := _new_condition(before, after)):
        return RuleChange("reworded", "it is bound to another case", "", condition)
    if gone or not come:
        return None
    opening = after.tokens[: come[0].place]
    adjoin = len(come) > 1 and come[1].place == come[0].place + 1
    if not come[0].key.isascii() and adjoin and all(token.kind == "operator" for token in opening):  # another subject
        return RuleChange("reworded", "it is bound to another case", "", _told(come))
    for word in come:
        opening = after.tokens[max(0, word.place - 3) : word.place]
        for token in opening:
            opens_clause = token.operator is not None and token.operator.opens != "" and token.operator.sign > 0
            if opens_clause or token.key in _RESTRICTS:
                return RuleChange("reworded", "it is bound to another case", "", _told(come))
    return None


def _new_condition(before: Statement, after: Statement) -> str:
    """Return the word that opens a condition about something new, or an empty text."""
    if any(token.operator is not None and token.operator.opens == "if" for token in before.tokens):
        return ""
    for place, token in enumerate(after.tokens):
        if token.operator is None or token.operator.opens != "if" or token.key in ("after", "once"):
            continue
        end = next((n for n, t in enumerate(after.tokens) if n > place and t.kind in ("hard", "soft")), None)
        said = [word for word in after.words if word.place > place and (end is None or word.place < end)]
        if not any(is_kin_of(word.key, before.keys) for word in said):
            return token.key
    return ""


_RESTRICTS = frozenset(
    term_stem(word)
    for word in """
    for in on at from outside inside within during by who whose which that of under among between with
    """.split()  # noqa: SIM905
)


def exchanged(before: Statement, after: Statement) -> RuleChange | None:
    """Find two words that changed places while nothing else changed; in a list their order does not matter."""
    old, new = ([token for token in each.tokens if token.kind not in ("hard", "soft")] for each in (before, after))
    if len(old) != len(new):
        return None
    moved = [index for index, pair in enumerate(zip(old, new, strict=True)) if not _same_key(*pair)]
    if len(moved) != 2:
        return None
    one, other = moved
    if not (_same_key(old[one], new[other]) and _same_key(old[other], new[one])):
        return None
    between = before.tokens[before.tokens.index(old[one]) + 1 : before.tokens.index(old[other])]
    if old[one].kind != "word" or all(token.kind in ("soft", "word") or token.key in _LISTING for token in between):
        return None
    return RuleChange("contradiction", "two things have changed places", old[one].key, old[other].key)


def _same_key(one: Token, other: Token) -> bool:
    return class_of(one.key) == class_of(other.key)


_LISTING = frozenset(("and", "or", "nor", "a", "an", "the", "其", "和", "或"))
"""Words between two members of a list."""


def _told(words: Sequence[ContentWord]) -> str:
    keys = [word.key for word in words]
    return ("" if keys and not keys[0].isascii() else " ").join(keys)[:80]


def otherwise(line: str, text: str) -> RuleChange | None:
    """Return the first difference that makes a text another rule than a locked line, or None."""
    old, new = list(sentences_of(line)), list(sentences_of(text))
    kept = {keys_of(sentence) for sentence in old} & {keys_of(sentence) for sentence in new}
    old, new = ([s for s in each if keys_of(s) not in kept] for each in (old, new))
    subject = read_statement(" ".join(sentences_of(line))).keys
    apart = [  # sentences about something else share no content word with the line
        sentence
        for sentence in new
        if not any(word.key in subject or is_kin_of(word.key, subject) for word in read_statement(sentence).words)
    ]
    new = [sentence for sentence in new if sentence not in apart]
    loosening = next((each for sentence in apart if (each := loosened(sentence))), None)
    if loosening or not (old or new):
        return loosening
    before, after = (
        read_statement(" ".join(old)),
        read_statement(" ".join(new) if old else " ".join(sentences_of(text))),
    )
    if not old:  # all old sentences are there, and new ones about the same matter
        return next((each for sentence in new if (each := loosened(sentence) or figured(line, sentence))), None)
    return (
        figured(" ".join(old), " ".join(new))
        or marked(before, after)
        or widened(old, new)
        or weakened(old, new)
        or reordered(old, new)
        or replaced_thing(before, after)
        or lost_part(old, before, after)
        or narrowed(before, after)
        or exchanged(before, after)
    )
