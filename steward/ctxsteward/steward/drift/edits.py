"""What an edit makes of a locked line: the same, or another rule; and what other statements do to it.

Lists of dangerous phrases do not travel: somebody else says it otherwise. So this goes the other way round. Whatever
differs has to be *explained*: function words, synonyms, inflections, misspellings, another order of a list or of
phrases, sentences about something else. What is left decides: strength, exceptions, scope, figures, who does what to
whom, a thing in another's place, a narrower or wider case, a part that is gone are another rule (`otherwise`); a
verb or two that cannot be explained are left to reviewers, whom every edit of a locked line has anyway.

A statement elsewhere is compared with each locked line that it shares its subject with (`beside`): `same` where all
that it says is said there, `against` where a sign, a strength, a figure differs, else `unclear`, which asks people.

Source: the closed classes are those of Quirk et al. 1985 (quantifiers, modal verbs, subordinators); strengths are
ordered as RFC 2119 orders them. Linear in the text but for the alignment of two sentences.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from ctxsteward.language.numbers import NUMBER_WORDS, UNITS
from ctxsteward.language.terms import term_stem
from ctxsteward.schemas.drift import DriftKind

from .clauses import DENIES, Clause, clauses
from .figures import MEASURED, changed_figure, figure_text, figures, without_figures
from .polarity import polarity_changes
from .tokens import ADDS, EXCEPTS, LIGHT, ONLY, SAME, SOME, WEAKER, WIDENS, Token, plain, sentences_of, tokens

LOST = 0.34
"""Share of a locked line's content words that may be gone unexplained."""
CLAUSE_LOST = 0.67
"""The same of one clause: it is gone as a whole."""
KIN = 5
"""Letters that two forms of one word begin with."""
TYPO = 5
"""Letters of a word that may be misspelled."""
SUBJECT = 0.5
"""Share of the smaller side's content that makes a statement one about a line's subject."""


class RuleChange(NamedTuple):
    """How an edit makes another rule of a line."""

    kind: DriftKind
    why: str
    before: str = ""
    after: str = ""


class ContentWord(NamedTuple):
    """One content word."""

    key: str
    nominal: bool
    """It names a thing rather than says what is done."""
    place: int
    """Its index among the text's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A text as it is compared."""

    text: str
    tokens: tuple[Token, ...]
    """Figures, their units and bounds are left out: `figures` compares them."""
    words: tuple[ContentWord, ...]
    spoken: frozenset[str]
    """Every word as it is written, operators as they are known, and the Chinese words of the closed classes."""

    keys: frozenset[str]
    """Of its words."""
    beginnings: frozenset[str]
    """How they begin: two forms of one word begin alike."""


def otherwise(line: str, text: str) -> RuleChange | None:
    """The first thing by which a text says something else than the locked line that it stands for; None: nothing."""
    old, new = list(sentences_of(line)), list(sentences_of(text))
    kept = {_plainly(sentence) for sentence in old} & {_plainly(sentence) for sentence in new}
    old, new = ([s for s in each if _plainly(s) not in kept] for each in (old, new))
    subject = read(" ".join(sentences_of(line))).keys
    apart = [sentence for sentence in new if not _about(sentence, subject)]
    new = [sentence for sentence in new if sentence not in apart]
    found = next((each for sentence in apart if (each := _loosened(sentence))), None)
    if found or not (old or new):
        return found
    before, after = read(" ".join(old)), read(" ".join(new) if old else " ".join(sentences_of(text)))
    if not old:  # said of the same matter, beside what stood
        return next((each for sentence in new if (each := _loosened(sentence) or _figured(line, sentence))), None)
    return (
        _figured(" ".join(old), " ".join(new))
        or _marked(before, after)
        or _widened(old, new)
        or _weakened(old, new)
        or _reordered(old, new)
        or _replaced(before, after)
        or _gone(old, before, after)
        or _narrowed(before, after)
        or _exchanged(before, after)
    )


# -- reading ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def read(text: str) -> ParsedText:
    """The content words of a text, in order."""
    form = plain(without_figures(text))
    found = tokens(form)
    spoken = {token.key for token in found} | set(re.findall(r"[a-z]+", form))
    spoken |= {word for word in _ZH_CLOSED if word in form}
    words = tuple(_words(found))
    keys = frozenset(word.key for word in words)
    beginnings = frozenset(key[: KIN - 1] for key in keys)
    return ParsedText(text=text, tokens=found, words=words, spoken=frozenset(spoken), keys=keys, beginnings=beginnings)


_ZH_CLOSED = frozenset(word for word in EXCEPTS | SOME | WEAKER if not word.isascii())


def _words(found: Sequence[Token]) -> Iterator[ContentWord]:
    for place, token in enumerate(found):
        if token.kind == "word" and token.key not in LIGHT:
            yield ContentWord(class_of(token.key), _is_nominal(found, place), place)


def _is_nominal(found: Sequence[Token], place: int) -> bool:
    before = found[place - 1] if place else None
    if not found[place].key.isascii():
        return True
    following = found[place + 1] if place + 1 < len(found) else None
    if before is None or before.kind in ("hard", "soft"):
        return following is None or following.kind not in ("small", "figure")
    if before.key == "to":
        return following is not None and following.kind == "word"  # "to original payment methods", "to cancel the"
    if before.operator is not None:
        return before.key == "no" or (before.operator.sign > 0 and before.operator.modality is None)  # "all passengers"
    return before.key not in _BEFORE_VERBS


_BEFORE_VERBS = frozenset("you we they i he she it who please and or".split())  # noqa: SIM905


def class_of(key: str) -> str:
    """The word that stands for all that mean the same."""
    return SAME.get(key, key)


def _plainly(sentence: str) -> tuple[str, ...]:
    return tuple(token.key for token in tokens(sentence) if token.kind not in ("hard", "soft"))


def _about(sentence: str, subject: Collection[str]) -> bool:
    """Whether a sentence shares its content with a subject: one word will do."""
    return any(word.key in subject or _kin_of(word.key, subject) for word in read(sentence).words)


# -- by marks: exceptions, scope, strength, figures ------------------------------------------------------------


def _loosened(sentence: str) -> RuleChange | None:
    """A sentence that was added and takes something back: it permits, waives or excepts."""
    excepts = any(_excepts(tokens(sentence), place) for place in range(len(tokens(sentence))))
    if excepts or any(_strength(clause) < 2 for clause in clauses(sentence) if not clause.condition):
        return RuleChange("contradiction", "a sentence was added that takes some of it back", "", sentence)
    return None


def _figured(before: str, after: str) -> RuleChange | None:
    pair = changed_figure(before, after)
    if pair is not None:
        return RuleChange(
            "number_change", "a figure in the text differs", *(figure_text(figure) or "" for figure in pair)
        )
    if _side(before) != _side(after) and _side(after):
        return RuleChange("number_change", "a time counts to another side", _side(before), _side(after))
    old, new = _counted(before), _counted(after)
    thing = next((thing for thing in old if thing in new and old[thing] != new[thing]), None)
    if thing is None:
        return None
    return RuleChange("number_change", f"another figure counts {thing!r}", str(old[thing]), str(new[thing]))


def _side(text: str) -> str:
    """To which side a time counts: "14 days before", "within 14 days", "14 days after", 14天内; empty: not said."""
    form = without_figures(text)
    if re.search(r"0\s*(?:business |working )?(?:before|earlier|prior|[以之]?前)", form):
        return "before"
    if any(figure.bound == "upper" for figure in figures(text)):
        return ""
    return "after" if re.search(r"0\s*[以之]?后", form) and not re.search(r"0\s*[以之]?后[^，。,.]*内", form) else ""


def _counted(text: str) -> dict[str, list[int]]:
    """What whole numbers stand right before a word, by that word: "three gift cards"."""
    found: dict[str, list[int]] = {}
    for number, word in pairwise(tokens(text)):
        count = int(number.key) if number.key.isdecimal() and number.key.isascii() else NUMBER_WORDS.get(number.key)
        if count is not None and word.kind == "word" and word.key.isascii() and word.key not in UNITS:
            found.setdefault(word.key, []).append(count)
    return {word: sorted(counts) for word, counts in found.items()}


def _excepts(found: Sequence[Token], place: int) -> bool:
    """Whether a token opens an exception; "save", "aside" and "apart" do with a word behind."""
    key = found[place].key
    following = found[place + 1].key if place + 1 < len(found) else ""
    return key.split(" ")[0] in EXCEPTS or (key in ("save", "asid", "apart") and following in _SAVE_FOR)


_SAVE_FOR = ("for", "from", "where", "when", "if", "in")


def _excepted(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """An exception that was added, and is not what stood there as a condition."""
    chinese = sorted(word for word in (after.spoken - before.spoken) & EXCEPTS if not word.isascii() and word != "除非")
    if chinese:
        return RuleChange("modality_change", "an exception was added", "", chinese[0])
    for place, token in enumerate(after.tokens):
        if _excepts(after.tokens, place):
            end = next((n for n, t in enumerate(after.tokens) if n > place and t.kind in ("hard", "soft")), None)
            said = [word for word in after.words if word.place > place and (end is None or word.place < end)]
            if any(not _kin_of(word.key, before.keys) for word in said) or not (said or token.key in before.spoken):
                return RuleChange("modality_change", "an exception was added", "", token.key)
    return None


def _marked(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """Exceptions and quantifiers that have come, and an "only" that is gone."""
    if found := _excepted(before, after):
        return found
    old, come = before.spoken, after.spoken - before.spoken
    for words, why in ((SOME, "it holds for some only"), (ADDS, "it holds for more than it did")):
        told_new = sorted(come & words)
        if told_new and not old & words and not (told_new == ["还"] and _denied(after)):
            return RuleChange("modality_change", why, "", told_new[0])
    if "if" in old & after.spoken and "any" in old - after.spoken and come & {"all", "every"}:
        return RuleChange("modality_change", "a condition holds for fewer", "any", "all")
    if old & ONLY and not after.spoken & ONLY and not (_denied(after) and not _denied(before)):
        return RuleChange("modality_change", "a restriction was dropped", sorted(old & ONLY)[0], "")
    return _negated(before, after)


def _denied(reading: ParsedText) -> bool:
    """Whether something is denied or forbidden outside a condition."""
    for token in reading.tokens:
        if token.operator is not None and token.operator.opens and token.operator.sign > 0:
            return False
        if token.operator is not None and token.operator.sign < 0:
            return True
    return False


def _negated(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """Nothing but a negation has come or gone, wherever it stands."""
    old, new = ([token.key for token in tokens(each.text) if token.key not in DENIES] for each in (before, after))
    counts = [sum(token.key in DENIES for token in tokens(each.text)) for each in (before, after)]
    if old == new and counts[0] != counts[1]:
        return RuleChange("polarity_flip", "a negation came or went")
    return None


def _widened(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """A permission that holds for all, where none did."""
    was, now = (
        {key for sentence in each for clause in clauses(sentence) if _permits(clause) for key in clause.spoken & WIDENS}
        for each in (old, new)
    )
    if was or not now:
        return None
    return RuleChange("modality_change", "it holds for more than it did", "", sorted(now)[0])


def _permits(clause: Clause) -> bool:
    return clause.sign > 0 and not clause.condition and _strength(clause) <= 1


def _reordered(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """What had to come first comes second: "A before B" is "B before A" now."""
    for one in (first for sentence in old if (first := _before_what(sentence)) is not None):
        for other in (first for sentence in new if (first := _before_what(sentence)) is not None):
            straight = len(one[0] & other[0]) + len(one[1] & other[1])
            crossed = len(one[0] & other[1]) + len(one[1] & other[0])
            if one[2:] == other[2:] and crossed > straight:
                return RuleChange("contradiction", "what came first comes second")
    return None


def _before_what(sentence: str) -> tuple[frozenset[str], frozenset[str], int, frozenset[str]] | None:
    """Of "A before B": what A and B are about, the sign of A, and "before"; None: no sentence of one such pair."""
    found = clauses(sentence)
    second = [clause for clause in found if clause.condition and clause.order]
    first = [clause for clause in found if not clause.condition]
    said = read(sentence).spoken & _BEFORE
    return (first[0].content, second[0].content, first[0].sign, said) if len(first) == len(second) == 1 else None


_BEFORE = frozenset(("before", "prior to", "until", "之前", "以前", "前", "之后", "以后", "后"))


def _weakened(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """Fewer demands, or weaker ones."""
    before, after = (sorted(_strengths(sentences)) for sentences in (old, new))
    for limit in (0, 1, 1.5, 2):
        was, now = (sum(each <= limit for each in strengths) for strengths in (before, after))
        if now > was and sum(each > limit for each in after) < sum(each > limit for each in before):
            return RuleChange("modality_change", "it demands less")
    return None


def _strengths(sentences: Sequence[str]) -> Iterator[float]:
    for sentence in sentences:
        for clause in clauses(sentence):
            if not clause.condition:
                yield _strength(clause)


def _strength(clause: Clause) -> float:
    """0 waived, 1 permitted, 1.5 wished, 2 recommended, 3 demanded, forbidden or said plainly."""
    if clause.waived:
        return 0
    if clause.spoken & WEAKER:
        return 1.5
    if clause.modality == "may":
        restricted = clause.only or read(clause.sentence).spoken & ONLY
        return 3 if clause.spoken & DENIES or restricted else 1
    return 2 if clause.modality == "should" else 3


# -- by content: things exchanged, gone, come ------------------------------------------------------------------


def _unexplained(before: ParsedText, after: ParsedText) -> tuple[list[ContentWord], list[ContentWord]]:
    """Words that have gone and come, without other forms of each other."""
    old, new = before.keys, after.keys
    gone = [word for word in before.words if word.key not in new and not _kin_of(word.key, new)]
    come = [word for word in after.words if word.key not in old and not _kin_of(word.key, old)]
    return gone, come


def _kin_of(word: str, others: Collection[str]) -> bool:
    return word in others or any(_kin(word, other) for other in others)


def _kin(one: str, other: str) -> bool:
    """Whether two stems are forms of one word: "cancel" and "cancellation"."""
    short, long = sorted((one, other), key=len)
    if not (short.isascii() and short.isalpha() and len(short) >= KIN - 1) or long.endswith(("less", "free")):
        return False
    return long.startswith(short) or (len(short) > KIN and one[: KIN + 1] == other[: KIN + 1])


@lru_cache(maxsize=1 << 14)
def corrected(text: str, line: str) -> str:
    """A text with the words that are misspellings of words of a line as the line has them.

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
    """Whether one is the other with two neighbouring letters exchanged, or one letter left out or too many."""
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


def _replaced(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """A thing in another's place."""
    gone, come = _unexplained(before, after)
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


def _ends_run(reading: ParsedText, word: ContentWord) -> bool:
    following = reading.tokens[word.place + 1] if word.place + 1 < len(reading.tokens) else None
    return following is None or following.kind in ("hard", "soft")


def _gone(old: Sequence[str], before: ParsedText, after: ParsedText) -> RuleChange | None:
    """Too much of it, or one clause of it as a whole."""
    gone, _ = _unexplained(before, after)
    if len(gone) > LOST * len(before.words):
        return RuleChange("removed", "too much of what it says is gone", _told(gone), "")
    went = {word.key for word in gone}
    for sentence in old:
        for part in _pieces(read(sentence)):
            lost = [word for word in part if word.key in went]
            if len(part) > 1 and len(lost) >= CLAUSE_LOST * len(part):
                return RuleChange("removed", "a part of it is gone", _told(lost), "")
    return None


def _pieces(sentence: ParsedText) -> Iterator[list[ContentWord]]:
    start = 0
    for place, token in [*enumerate(sentence.tokens), (len(sentence.tokens), None)]:
        if token is None or token.kind in ("hard", "soft") or (token.operator is not None and token.operator.opens):
            yield [word for word in sentence.words if start <= word.place < place]
            start = place


def _narrowed(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """Nothing is gone, and a case was added to which it is bound."""
    gone, come = _unexplained(before, after)
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
        if any(token.key in _RESTRICTS or _opens(token) for token in opening):
            return RuleChange("reworded", "it is bound to another case", "", _told(come))
    return None


def _opens(token: Token) -> bool:
    return token.operator is not None and token.operator.opens != "" and token.operator.sign > 0


def _new_condition(before: ParsedText, after: ParsedText) -> str:
    """What opens a condition that is none of what was said before; empty: there is none."""
    if any(token.operator is not None and token.operator.opens == "if" for token in before.tokens):
        return ""
    for place, token in enumerate(after.tokens):
        if token.operator is None or token.operator.opens != "if" or token.key in ("after", "once"):
            continue
        end = next((n for n, t in enumerate(after.tokens) if n > place and t.kind in ("hard", "soft")), None)
        said = [word for word in after.words if word.place > place and (end is None or word.place < end)]
        if not any(_kin_of(word.key, before.keys) for word in said):
            return token.key
    return ""


_RESTRICTS = frozenset(
    term_stem(word)
    for word in """
    for in on at from outside inside within during by who whose which that of under among between with
    """.split()  # noqa: SIM905
)


def _exchanged(before: ParsedText, after: ParsedText) -> RuleChange | None:
    """Two words that have changed places, and nothing else has: who does what to whom. In a list it says nothing."""
    old, new = ([token for token in each.tokens if token.kind not in ("hard", "soft")] for each in (before, after))
    if len(old) != len(new):
        return None
    moved = [index for index, pair in enumerate(zip(old, new, strict=True)) if not _same_key(*pair)]
    if len(moved) != 2:
        return None
    one, other = moved
    if not (_same_key(old[one], new[other]) and _same_key(old[other], new[one])):
        return None
    if old[one].kind != "word" or all(_is_listing(token) for token in _between(before.tokens, old[one], old[other])):
        return None
    return RuleChange("contradiction", "two things have changed places", old[one].key, old[other].key)


def _same_key(one: Token, other: Token) -> bool:
    return class_of(one.key) == class_of(other.key)


def _between(found: Sequence[Token], one: Token, other: Token) -> Sequence[Token]:
    return found[found.index(one) + 1 : found.index(other)]


def _is_listing(token: Token) -> bool:
    """Whether a token may stand between two members of a list: marks, "and", other members."""
    return token.kind in ("soft", "word") or token.key in ("and", "or", "nor", "a", "an", "the", "其", "和", "或")


def _told(words: Sequence[ContentWord]) -> str:
    keys = [word.key for word in words]
    return ("" if keys and not keys[0].isascii() else " ").join(keys)[:80]


# -- a statement elsewhere -------------------------------------------------------------------------------------

Stance = Literal["apart", "same", "unclear", "against"]


def stance(line: str, statement: str, rarity: Mapping[str, float] | None = None) -> Stance:
    """What a statement that stands elsewhere says of a locked line; `rarity` weighs words, 1 where it has none.

    A statement that names another thing in the line's place is `unclear` at worst: it may be a rule of its own.
    """
    if not near(line, statement):
        return "apart"
    found: list[Stance] = [
        _said_of(piece, said, rarity or {}) for piece in _pieces_of(line) for said in sentences_of(statement)
    ]
    return max(found, key=_STANCES.index, default="apart")


def near(line: str, statement: str) -> bool:
    """Whether a statement may be one about a line: cheap, and true of whatever `stance` does not call apart."""
    return _near(" ".join(sentences_of(line)), " ".join(sentences_of(statement)))


def _near(line: str, statement: str) -> bool:
    rule, said = read(line), read(statement)
    shared = len(rule.beginnings & said.beginnings)
    return shared > 1 or (shared == 1 and (len(said.keys) < 2 or not _measures(line).isdisjoint(_measures(statement))))


def restates(line: str, sentence: str) -> bool:
    """Whether a sentence says what a locked line, or a sentence of it, says."""
    return near(line, sentence) and any(_said_of(piece, sentence, {}) == "same" for piece in _pieces_of(line))


_STANCES: tuple[Stance, ...] = ("apart", "same", "unclear", "against")
_GAINSAYS = frozenset(("polarity_flip", "number_change", "modality_change", "contradiction"))


def rarity_of(lines: Iterable[str]) -> dict[str, float]:
    """How much sharing a word says among these lines: 1 for a word of one line, near 0 for a word of all."""
    texts = list(lines)
    counts = Counter(key for text in texts for key in read(" ".join(sentences_of(text))).keys)
    whole = math.log(1 + len(texts))
    return {key: (math.log((1 + len(texts)) / count) / whole) if whole else 1.0 for key, count in counts.items()}


@lru_cache(maxsize=1 << 12)
def _pieces_of(line: str) -> tuple[str, ...]:
    """The sentences of a line, and the whole where it has several."""
    found = sentences_of(line)
    return found if len(found) < 2 else (*found, " ".join(found))


def _said_of(piece: str, said: str, rarity: Mapping[str, float]) -> Stance:
    if not _near(piece, said):
        return "apart"
    said = corrected(said, piece)
    rule, other = read(piece), read(said)
    shared = {key for key in other.keys if _kin_of(key, rule.keys)}
    if not _touches(rule, other, shared, rarity):
        return "apart"
    differs = otherwise(piece, said)
    if of_oneself(said):
        return "against" if differs is not None and differs.kind == "number_change" else "apart"
    if any(turn.kind == "flip" for turn in polarity_changes(sentences_of(piece), (said,))):
        return "against"
    if differs is None and not _unexplained(rule, other)[1]:
        return "same"
    if _opposed(piece, said) and _replaced(rule, other) is None:
        return "against"
    if differs is None:
        return "unclear"
    if differs.kind in _GAINSAYS and _replaced(rule, other) is None:
        return "against"
    return "unclear"


def _opposed(piece: str, said: str) -> bool:
    """Whether clauses about the same have different signs, and neither sentence makes a condition."""
    mine, theirs = clauses(piece), clauses(said)
    if any(clause.condition for clause in (*mine, *theirs)):
        return False
    return any(
        one.sign != other.sign and len(shared) >= max(2, SUBJECT * min(len(one.content), len(other.content)))
        for one in mine
        for other in theirs
        for shared in [one.content & other.content]
    )


def of_oneself(sentence: str) -> bool:
    """Whether somebody tells what they did or have, not what may or must be."""
    found = read(sentence)
    return bool(found.spoken & _ONESELF) and all(clause.modality is None for clause in clauses(sentence))


_ONESELF = frozenset(("i", "my", "me", "we", "our", "us", "我", "我们"))


def _touches(rule: ParsedText, other: ParsedText, shared: Collection[str], rarity: Mapping[str, float]) -> bool:
    """Whether two share their subject: half of what the shorter one is about, in words that are not in every line.

    A time or a sum in both counts as a word.
    """

    def weight(keys: Iterable[str]) -> float:
        return sum(rarity.get(key, 1.0) for key in keys)

    smaller = min(weight(rule.keys), weight(other.keys))
    if len(rule.keys) < 2:
        return False  # "Please hold on."
    measured = bool(_measures(rule.text) & _measures(other.text))  # both say how long, or how much
    enough = 1 if len(other.keys) < 2 else 2
    return len(shared) + measured >= enough and weight(shared) + measured >= SUBJECT * (smaller + measured)


def _measures(text: str) -> set[str]:
    return {figure.unit for figure in figures(text) if figure.unit in MEASURED}
