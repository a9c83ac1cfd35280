"""The clauses of a text: for each its content, for or against, the strength of the demand, condition or not.

The drift checks of the steward compare rules clause by clause. A clause's sign is the product of its operators' signs,
so "must not refuse" is for, and "never" and "refrain from" are against. A condition ("unless …", "if … not") is a
clause with its own sign. "Never A without B" and "A only with B" mean the same with both signs reversed, so `agree`
treats them as equal.

Content is compared as a set: stems in English, character pairs in Chinese.
Source: hand-made rules after the reading of negation scope in Morante and Daelemans 2009 (cue, then scope to the end
of the clause).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from ctxsteward.schemas.profile import Modality

from .operators import PREFIXES, Opens, Operator, Token, sentences_of, tokens
from .words import lists, term_stem

_NEAR = 3
"""A comma begins a new clause if an operator follows within this many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One demand or one condition."""

    sentence: str
    """The sentence that contains the clause."""
    content: frozenset[str]
    sign: Literal[1, -1]
    modality: Modality | None
    """Modality of the first operator that has one; None for a plain statement."""
    condition: bool
    order: bool
    """Whether the clause is a condition of time: "before …", "until …"."""
    only: bool
    spoken: frozenset[str]
    """Keys of all tokens of the clause."""
    waived: bool
    """Whether the clause takes a demand back: "need not", "no … is required", 无需."""


@lru_cache(maxsize=1 << 13)
def clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a text that have content."""
    return tuple(clause for sentence in sentences_of(text) for clause in _clauses(sentence))


def _clauses(sentence: str) -> Iterator[Clause]:
    for part, opened in _parts(tokens(sentence)):
        content = _content(part)
        if content:
            yield Clause(
                sentence=sentence,
                content=content,
                sign=sign_of(part),
                modality=_modality(part),
                condition=bool(opened),
                order=opened in ("before", "past"),
                only=any(token.key in _ONLY for token in part),
                spoken=frozenset(token.key for token in part),
                waived=_is_waived(part),
            )


_ONLY = ("only", "solely", "nobody but", "no one but", "none but", "nobody other than", "只", "仅", "只有")
_TOPICS = ("对", "关", "针")
"""First characters of 对于, 关于, 针对."""
_PRONOUNS = ("it", "them", "this", "these", "so")


def sign_of(part: Sequence[Token]) -> Literal[1, -1]:
    """Return 1 for a clause that is for its content, -1 for one against it. "Neither … nor" counts once."""
    sign: Literal[1, -1] = 1
    negated = False
    for token in part:
        if token.operator is None or token.operator.sign > 0 or (token.key == "nor" and (negated or len(part) < 3)):
            continue
        sign = -1 if sign > 0 else 1
        negated = True
    return sign


_NEEDED = frozenset(lists("operators").phrases("needed"))


def _is_waived(part: Sequence[Token]) -> bool:
    keys = [token.key for token in part]
    if "need" in keys[:-1] and keys[keys.index("need") + 1] == "not":
        return True
    if any(token.operator is not None and token.operator[:2] == (-1, "may") for token in part):
        return True
    denied = next((index for index, key in enumerate(keys) if key in DENIES), None)
    return denied is not None and any(key in _NEEDED for key in keys[denied + 1 :])


DENIES = frozenset(("not", "no", "nobody", "no one", "none", "never", "nothing"))


def _modality(part: Sequence[Token]) -> Modality | None:
    found = [token.operator.modality for token in part if token.operator and token.operator.modality]
    return found[0] if found else None


def _parts(sentence: Sequence[Token]) -> Iterator[tuple[list[Token], Opens]]:
    """Cut the sentence into clauses. Yield each with the kind of condition it is, or ""."""
    cut = _ClauseSpan()
    for index, token in enumerate(sentence):
        opens: Opens = token.operator.opens if token.operator else ""
        if _ends(sentence, index, cut):
            yield from cut.close(token, opens)
        cut.take(token)
        if token.key in _PRONOUNS and index and sentence[index - 1].operator and cut.before:
            yield from cut.referred()  # "if it harms anybody, refuse it": the condition is what is refused
    yield from cut.close(None, "")


class _ClauseSpan:
    """The clause being read, and the condition before it."""

    def __init__(self) -> None:
        self.part: list[Token] = []
        self.opened: Opens = ""
        self.listed = False
        self.first = True
        self.before: list[Token] | None = None
        self._carried: list[Token] = []

    def take(self, token: Token) -> None:
        self.listed = self.listed or token.kind == "soft"
        if token.kind not in ("hard", "soft"):
            self.part.append(token)

    def close(self, ending: Token | None, opens: Opens) -> Iterator[tuple[list[Token], Opens]]:
        """End the clause before the token `ending`; `opens` is the kind of condition that the next clause is."""
        closed: Opens = "past" if opens == "past" else self.opened
        empty = not any(each.kind in ("word", "figure") for each in self.part)
        soft = ending is not None and ending.kind == "soft"
        if empty and not closed and (opens or (soft and all(each.kind == "operator" for each in self.part))):
            self._carried += self.part  # "不得在未经同意的情况下保存": the negation is for the text after the condition
        else:
            yield self.part, closed
        self.before = self.part if closed and not empty else None
        self.first = self.first and not self.part
        self.opened, self.listed = opens if opens != "past" else "", False
        self.part = [] if self.opened else self._carried
        self._carried = self._carried if self.opened else []

    def referred(self) -> Iterator[tuple[list[Token], Opens]]:
        """Yield the clause with the content of the condition before it, to which its pronoun refers."""
        yield [*self.part, *(token for token in self.before or () if token.kind != "operator")], ""
        self.part, self.before = [], None


def _ends(sentence: Sequence[Token], index: int, cut: _ClauseSpan) -> bool:
    token = sentence[index]
    if token.kind == "hard" or (token.operator is not None and token.operator.opens):
        return True
    if token.kind == "soft":
        return bool(cut.opened and cut.first) or _begins(sentence, index, cut)
    if token.key in ("and", "or", "或", "和", "且", "并"):
        return _operator_near(sentence, index + 1, 2)
    if token.operator is not None and (token.operator.modality == "must_not" or token.key in ("never", "always")):
        return _demanded(cut.part)  # a second demand without punctuation before it
    demands = token.operator is not None and token.operator.modality is not None and not token.key.isascii()
    return bool(cut.opened and cut.part and demands)  # 未经同意不得 …: no comma between


def _weighs(operator: Operator) -> bool:
    return operator.sign < 0 or operator.modality is not None


def _demanded(part: Sequence[Token]) -> bool:
    """Return whether a clause already has a demand: an operator with content after it."""
    demands = (index for index, token in enumerate(part) if token.operator and _weighs(token.operator))
    first = next(demands, len(part))
    return any(token.kind == "word" for token in part[first:])


def _begins(sentence: Sequence[Token], index: int, cut: _ClauseSpan) -> bool:
    """Return whether a new clause begins after this comma."""
    if sentence[index].key == "，":  # a topic set off by a comma belongs to the clause about it
        topic = bool(cut.part) and cut.part[0].key in _TOPICS
        return not topic and any(token.operator is not None for token in cut.part)
    following = sentence[index + 1] if index + 1 < len(sentence) else None
    if following is not None and following.key == "and" and not cut.listed:
        return True
    return _operator_near(sentence, index + 1, _NEAR)


def _operator_near(sentence: Sequence[Token], index: int, within: int) -> bool:
    for token in sentence[index : index + within]:
        if token.kind in ("hard", "soft"):
            return False
        if token.operator is not None and _weighs(token.operator):
            return True
    return False


def _content(part: Sequence[Token]) -> frozenset[str]:
    found = {token.key for token in part if token.kind in ("word", "figure") and token.key.isascii()}
    found |= {token.key for token in part if token.kind == "word" and not token.key.isascii() and len(token.key) > 1}
    pairs = [
        one.key + other.key
        for one, other in pairwise(part)
        if one.kind == other.kind == "word" and len(one.key) == len(other.key) == 1 and one.stop == other.start
    ]
    return frozenset(found.union(pairs))


def likeness(one: Clause, other: Clause) -> float:
    """Return shared content / all content of both, 0..1. A word and its opposite by prefix count as one shared word."""
    turned = len(_turned(one, other))
    shared = len(one.content & other.content) + turned
    return shared / (len(one.content | other.content) - turned)


def agree(pairs: Sequence[tuple[Clause, Clause]]) -> bool:
    """Return whether the aligned clauses of two sentences mean the same, for and against."""
    differing = [(one, other) for one, other in pairs if _differ(one, other)]
    if not differing or all(_twice_denied(one, other) or _twice_denied(other, one) for one, other in differing):
        return True
    if len(differing) < len(pairs) or len(pairs) < 2:
        return False
    exchanged = all(one.condition != other.condition for one, other in differing)
    if any(one.order or other.order for one, other in differing):
        return exchanged  # "A before B" equals "not B before A", never "not A before B"
    mixed = any(one.condition or other.condition for one, other in differing)
    return mixed and any(not (one.condition and other.condition) for one, other in differing)


def _differ(one: Clause, other: Clause) -> bool:
    """Return whether two clauses have different signs. "Unread" counts as "not read"."""
    return (one.sign != other.sign) != bool(len(_turned(one, other)) % 2)


def _turned(one: Clause, other: Clause) -> list[str]:
    """Return words of one clause whose opposite by prefix is in the other clause."""
    apart = one.content ^ other.content
    return [word for word in apart if any(_without(word, prefix) in apart for prefix in PREFIXES)]


def _without(word: str, prefix: str) -> str | None:
    return term_stem(word[len(prefix) :]) if word.startswith(prefix) and len(word) > len(prefix) + 2 else None


def _twice_denied(one: Clause, other: Clause) -> bool:
    """Return whether `other` says by two negations what `one` says by none: "cite", "never answer without citing"."""
    if one.sign < 0 or not (one.only or other.condition):
        return False
    around = clauses(other.sentence)
    return any(c.sign < 0 and not c.condition for c in around) and any(c.sign < 0 and c.condition for c in around)
