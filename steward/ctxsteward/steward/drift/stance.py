"""What a statement that stands elsewhere says of a locked line: the same, the opposite, or what only people can tell.

`entries` asks it of new sentences of a profile, `rules` of the text of records. A statement is compared with each
locked line that it shares its subject with: `same` where all that it says is said there, `against` where a sign, a
strength or a figure differs, else `unclear`, which asks people.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Literal

from ctxsteward.language import (
    MEASURED,
    Statement,
    clauses,
    figures,
    is_kin_of,
    of_oneself,
    read_statement,
    sentences_of,
)

from .contents import corrected, replaced_thing, unexplained
from .edits import otherwise
from .polarity import polarity_changes

SUBJECT = 0.5
"""Share of the smaller side's content that makes a statement one about a line's subject."""
Stance = Literal["apart", "same", "unclear", "against"]


def stance(line: str, statement: str, rarity: Mapping[str, float] | None = None) -> Stance:
    """What a statement that stands elsewhere says of a locked line; `rarity` weighs words, 1 where it has none.

    A statement that names another thing in the line's place is `unclear` at worst: it may be a rule of its own.
    """
    if not near(line, statement):
        return "apart"
    stances: list[Stance] = [
        _said_of(piece, said, rarity or {}) for piece in _pieces_of(line) for said in sentences_of(statement)
    ]
    return max(stances, key=_STANCES.index, default="apart")


def near(line: str, statement: str) -> bool:
    """Whether a statement may be one about a line: cheap, and true of whatever `stance` does not call apart."""
    return _near(" ".join(sentences_of(line)), " ".join(sentences_of(statement)))


def _near(line: str, statement: str) -> bool:
    rule, said = read_statement(line), read_statement(statement)
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
    counts = Counter(key for text in texts for key in read_statement(" ".join(sentences_of(text))).keys)
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
    rule, other = read_statement(piece), read_statement(said)
    shared = {key for key in other.keys if is_kin_of(key, rule.keys)}
    if not _touches(rule, other, shared, rarity):
        return "apart"
    differs = otherwise(piece, said)
    if of_oneself(said):
        return "against" if differs is not None and differs.kind == "number_change" else "apart"
    if any(turn.kind == "flip" for turn in polarity_changes(sentences_of(piece), (said,))):
        return "against"
    if differs is None and not unexplained(rule, other)[1]:
        return "same"
    if _opposed(piece, said) and replaced_thing(rule, other) is None:
        return "against"
    if differs is None:
        return "unclear"
    if differs.kind in _GAINSAYS and replaced_thing(rule, other) is None:
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


def _touches(rule: Statement, other: Statement, shared: Collection[str], rarity: Mapping[str, float]) -> bool:
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
