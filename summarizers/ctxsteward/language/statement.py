"""A statement, read for comparison: its content words, every word it uses, its operators.

The drift checks of the steward compare two statements. The tokens of a `Statement` leave out figures, their units and
bounds, because `figures` compares those. `clauses.clauses` of the same text gives clauses with polarity and modality.
All three are cached, so a text is read once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .clauses import clauses
from .figures import without_figures
from .operators import EXCEPTS, LIGHT, SAME, SOME, WEAKER, Token, plain, tokens

KIN = 5
"""Two stems with more than this many leading letters in common are forms of one word (`_kin`)."""


class ContentWord(NamedTuple):
    """One content word of a text."""

    key: str
    nominal: bool
    """Whether the word names a thing, and not an action."""
    place: int
    """Index of the word among the text's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The parts of a text that a comparison reads."""

    text: str
    tokens: tuple[Token, ...]
    """Tokens without figures, their units and bounds, which `figures` compares."""
    words: tuple[ContentWord, ...]
    spoken: frozenset[str]
    """Every word as written, every token by its key, and the Chinese words of the closed classes."""

    keys: frozenset[str]
    """Keys of the content words."""
    beginnings: frozenset[str]
    """First `KIN` - 1 letters of those keys, because two forms of one word begin alike."""


@lru_cache(maxsize=1 << 14)
def read_statement(text: str) -> Statement:
    """Read a text for comparison. The result is cached."""
    form = plain(without_figures(text))
    found = tokens(form)
    spoken = {token.key for token in found} | set(re.findall(r"[a-z]+", form))
    spoken |= {word for word in _ZH_CLOSED if word in form}
    words = tuple(_words(found))
    keys = frozenset(word.key for word in words)
    beginnings = frozenset(key[: KIN - 1] for key in keys)
    return Statement(text=text, tokens=found, words=words, spoken=frozenset(spoken), keys=keys, beginnings=beginnings)


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
    """Return the word that represents all words of the same meaning."""
    return SAME.get(key, key)


def is_kin_of(word: str, others: Collection[str]) -> bool:
    """Return whether `others` contains this word or another form of it."""
    return word in others or any(_kin(word, other) for other in others)


def _kin(one: str, other: str) -> bool:
    """Return whether two stems are forms of one word, as "cancel" and "cancellation" are."""
    short, long = sorted((one, other), key=len)
    if not (short.isascii() and short.isalpha() and len(short) >= KIN - 1) or long.endswith(("less", "free")):
        return False
    return long.startswith(short) or (len(short) > KIN and one[: KIN + 1] == other[: KIN + 1])


def of_oneself(sentence: str) -> bool:
    """Return whether speakers report what they did or have, and not what may or must be."""
    found = read_statement(sentence)
    return bool(found.spoken & _ONESELF) and all(clause.modality is None for clause in clauses(sentence))


_ONESELF = frozenset(("i", "my", "me", "we", "our", "us", "我", "我们"))
