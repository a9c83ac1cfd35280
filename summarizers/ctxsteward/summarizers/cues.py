"""Cues and shapes of sentences that state a rule, decide, update, wish or report an end, in English and Chinese.

`salience` weighs sentences by these cues. `updates` checks with them whether two wishes are about the same thing.

**Cues.** A cue is a phrase with a weight of 1 (weak: counts only with others), 2 or 3 (enough alone). ``*`` is a gap of
at most `GAP_WORDS` words (English) or `GAP_CHARS` characters (Chinese); a leading ``^`` requires the start of the
sentence or of a clause. English phrases are found by their first word, Chinese ones by their first character, so a
sentence without cues costs one dictionary look-up per word. The lists are `data/cues.toml` of `ctxsteward.language`.

**Shapes.** `moods` reads the shape of a short statement: a topic and its state in future ("The frame will be steel",
地板铺橡木), a choice ("we'll take the corner booth"), a result ("Postgres won"), a state that ends a task ("the gate
works again"). A match is a cue of its kind and is weighed together with the words. Questions and long sentences give no
cue; guesses and hearsay none of the kinds in `_REAL`. Patterns are `data/shapes.toml`; each is searched once, in
sentences of at most `LONGEST` characters.

**Deeds.** A task is still open, or over. A sentence that sets a goal or a task is `open`. A sentence that reports its
end is `over`: by a word for it ("tick that off", 搞定), or because it reports a deed ("ordered" after "order", 订了
after 订). The newer of two such sentences about the same thing counts, whether open or over. A mere mention settles
nothing. Things are compared by the roots of their words, so that "hire" and "hired" are equal; Chinese by its
characters.

>>> [cue.kind for _, cue in moods("The frame will be steel.", "the frame will be steel.")]
['decision']
>>> [cue.kind for _, cue in moods("Have you tried it?", "have you tried it?")]
[]
>>> roots({"order", "merged", "sold"}) == roots({"ordered", "merge", "sell"})
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, cast

from ctxsteward.language.words import STOP, lists

CueKind = Literal[
    "rule",
    "bound",
    "decision",
    "update",
    "revoke",
    "error",
    "open",
    "goal",
    "todo",
    "over",
    "again",
    "preference",
    "label",
    "event",
    "chatter",
]
GAP_WORDS = 7
GAP_CHARS = 14


class CuePhrase(NamedTuple):
    """One phrase: `first` is its first word or character, `rest` the parts that must follow."""

    kind: CueKind
    weight: int
    first: str
    rest: tuple[str, ...]
    at_start: bool


def _table(language: str) -> dict[str, tuple[CuePhrase, ...]]:
    """Return the cues of a language by their first word, or by their first character in Chinese."""
    found: dict[str, list[CuePhrase]] = {}
    for name in lists("cues").sections["phrases"]:
        tongue, _, label = name.partition(".")
        if tongue == language:
            kind, _, weight = label.partition(".")
            for phrase in lists("cues").phrases(name):
                cue = _cue(cast("CueKind", kind), int(weight), phrase)
                found.setdefault(cue.first if language == "en" else cue.first[0], []).append(cue)
    return {first: tuple(cues) for first, cues in found.items()}


def _cue(kind: CueKind, weight: int, phrase: str) -> CuePhrase:
    words = phrase.removeprefix("^")
    first, *rest = words.split() if phrase.isascii() else words.split("*")
    return CuePhrase(kind, weight, first, tuple(rest), phrase.startswith("^"))


ENGLISH, CHINESE = _table("en"), _table("zh")


def follows(words: list[tuple[int, str]], index: int, cue: CuePhrase) -> bool:
    """Return whether the rest of an English cue follows word `index`; words are (offset, lower-case word)."""
    at, gap = index + 1, 0
    for wanted in cue.rest:
        if wanted == "*":
            gap = GAP_WORDS
            continue
        stop = min(len(words), at + gap + 1)
        while at < stop and words[at][1] != wanted:
            at += 1
        if at >= stop:
            return False
        at, gap = at + 1, 0
    return True


def follows_chinese(text: str, start: int, cue: CuePhrase) -> bool:
    """Return whether a Chinese cue begins at `start` of the text."""
    if not text.startswith(cue.first, start):
        return False
    at = start + len(cue.first)
    for part in cue.rest:
        found = text.find(part, at, at + GAP_CHARS + len(part))
        if found < 0:
            return False
        at = found + len(part)
    return True


LONGEST = 100
"""Most characters of a sentence that is read for its shape; longer sentences are prose."""

_UNREAL = lists("shapes").pattern("unreal")
_ZH_UNREAL = lists("shapes").pattern("zh_unreal")
"""Words of a guess, a wish or hearsay."""


def moods(text: str, low: str) -> Iterator[tuple[int, CuePhrase]]:
    """Yield the cues that a sentence gives by its shape, with their offsets; `low` is the sentence in lower case."""
    if not text or len(text) > LONGEST or text.rstrip("\"'”’ ").endswith(("?", "？")):
        return
    if not (text[0].isalpha() or text[0] in "\"'(“‘《「0123456789") or any(mark in text for mark in _CODE):
        return
    if text.isascii() or not _HAN.search(text):
        unreal, language = _UNREAL.search(low), "en"
    else:
        unreal, language = _ZH_UNREAL.search(low), "zh"
    for cue, opening, inside in _compiled(language):
        if unreal and cue.kind in _REAL:
            continue
        if match := (opening.match(low) or inside.search(low)):
            yield match.start(), cue


@lru_cache(maxsize=2)
def _compiled(language: str) -> tuple[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]], ...]:
    """Compile for each kind the shapes of whole sentences, and the shapes within one, on first use.

    Shapes of a kind share their anchors, so at most places of a sentence a look at the next character is enough.
    """
    found: list[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]]] = []
    for name in lists("shapes").sections["patterns"]:
        if not name.startswith(f"{language}."):
            continue
        _, kind, weight = name.split(".")
        cue, shapes = CuePhrase(cast("CueKind", kind), int(weight), "", (), False), lists("shapes").lines(name)
        opening = [shape[1:] for shape in shapes if shape.startswith("^")]
        words = [shape[2:] for shape in shapes if shape.startswith(r"\b")]
        others = [shape for shape in shapes if not shape.startswith(("^", r"\b"))]
        inside = [rf"\b(?:{'|'.join(words)})"] * bool(words) + others
        found.append((cue, re.compile("|".join(opening) or "(?!)"), re.compile("|".join(inside) or "(?!)")))
    return tuple(found)


_CODE = ("=", "{", "}", "|", ";", "://", "DEBUG", "INFO", "WARN")
"""Signs of a line of code, of a table or of a log."""
_REAL = frozenset(("decision", "update", "goal", "todo"))
"""Kinds of cue that a guess does not give."""


Stand = Literal["", "open", "over"]

_LISTS = lists("words")
_IRREGULAR = {past: base for base, *pasts in _LISTS.classes("irregular") for past in pasts}
_SAME = frozenset(_LISTS.words("same_past"))
"""Verbs whose past is spelt like their infinitive."""
_PERFECT = re.compile(
    r"\b(?:is|are|was|were|been|got|get|have|has|had|just|already|finally|now|we|i|ve|s)\b"
    rf"(?:\s+[\w'’-]+){{0,6}}?\s+(?P<done>[a-z]+ed|{'|'.join(sorted((*_IRREGULAR, *_SAME)))})\b"
)
_PAST = re.compile(rf"\b(?P<done>[a-z]{{2,}}ed|{'|'.join(sorted((*_IRREGULAR, *_SAME)))})\b")
_NOT_DONE = _LISTS.pattern("not_done")
_UNDONE = re.compile(r"\b(?:not|never|needs?|to|be|again|yet|if|when|once|until)\b|n't\b")
_SOME_DAY = re.compile(r"\b(?:if|when|once|until|unless|before|after|soon as|whether)\b[^,.;:]*$")
_ZH_DONE = re.compile(r"([\u3400-\u9fff]{1,2})(?:了|啦|过)")
SHORT_CHARS = 90
"""Up to this length a bare past form is news ("backup tested, all fine"); a longer sentence is a narrative."""
FRAME = frozenset(_LISTS.words("frame"))
"""Words about the state of a thing, which do not name it."""


def roots(words: Iterable[str]) -> frozenset[str]:
    """Return the roots of words, without words that only frame a wish."""
    return frozenset(root(word) for word in words) - _FRAME_ROOTS


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """Return a word without its inflections; a Chinese word unchanged.

    >>> [root(word) for word in ("plan", "planned", "hire", "hired", "copies", "copied")]
    ['plan', 'plan', 'hir', 'hir', 'copy', 'copy']
    """
    if not word.isascii():
        return word
    word = _IRREGULAR.get(word, word)
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)] + instead
            break
    word = word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_FRAME_ROOTS = frozenset(root(word) for word in FRAME)
_WORD = re.compile(r"[a-z][a-z'’-]*[a-z]")
_FUNCTION = STOP - frozenset(_LISTS.words("of_change"))
"""Words that name nothing. Verbs of change are not among them, because a task may be to change something."""
_ZH_FRAME = _LISTS.pattern("zh_frame")
"""Chinese words about the state of a thing."""
_HAN = re.compile("[\u3400-\u9fff]")


@lru_cache(maxsize=4096)
def thing(text: str) -> frozenset[str]:
    """Return the subject of a wish: roots of its content words, and the characters of Chinese."""
    found = roots(word.removesuffix("'s") for word in _WORD.findall(text.lower()) if word not in _FUNCTION)
    return found if text.isascii() else found | frozenset(_HAN.findall(_ZH_FRAME.sub(" ", text)))


def about_the_same(old: frozenset[str], new: frozenset[str], share: float = 0.75, *, rare: bool = False) -> bool:
    """Return whether a newer wish is about the older one's thing: it names nearly all of it, or only parts of it.

    If both share a word that hardly any other statement has (`rare`), one word of two is enough.
    """
    both = old & new
    least = min(len(old), 2 if all(word.isascii() for word in both) else 3) - rare
    return len(both) >= max(1, least) and (len(both) >= share * min(len(old), len(new)) or both == new)


def _unsaid(low: str, match: re.Match[str]) -> bool:
    """Return whether the words around a deed say that it was not done, or not yet."""
    return bool(_UNDONE.search(low, match.start(), match.end()) or _SOME_DAY.search(low[: match.start()]))


def deeds(low: str) -> frozenset[str]:
    """Return the roots of deeds that a lower-case sentence reports ("has been merged"); in Chinese those before 了."""
    done = {root(m["done"]) for m in _PERFECT.finditer(low) if not _unsaid(low, m)}
    if len(low) <= SHORT_CHARS and not _NOT_DONE.search(low):  # "backup tested and it restores fine"
        done.update(root(match["done"]) for match in _PAST.finditer(low))
    start = low.split(" ", 1)[0].strip(":,.")
    if (start.endswith("ed") and len(start) > 4) or start in _IRREGULAR:
        done.add(root(start))
    if not low.isascii():
        done.update(char for match in _ZH_DONE.finditer(low) for char in match[1])
    return frozenset(done)
