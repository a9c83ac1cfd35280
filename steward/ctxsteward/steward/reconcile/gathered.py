"""What a draft needs of its observations, however many they are: merged in any order, and but for sets a handful.

    Gathered    first and last in time, greatest score, and those that evidence may be chosen from
    voices      who was heard where, and how: a set, counted (`support`)
    phrases     each text that was said, how often, and by whom best

    gathered(a + b) == joined(gathered(a), gathered(b))         so a draft is the same however its observations came

Evidence is chosen by turns of principals and sessions, at most eight times. Of any number of observations few can ever
be chosen, whatever else comes (`choosable`): an observation cannot where, whichever seven were chosen, one that is
before it is not heard more often. That is so once eight of its pair of principal and session are before it, or eight
sessions of its principal, or eight principals of its session, or fifteen that share neither: each of seven rules out
two of those at most.

Source: kernels by sunflowers and matchings (Erdős and Rado 1960).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.schemas.recommendation import MAX_EVIDENCE

from ..harvest.tool_siblings import EXTRACTOR as SIBLINGS
from .seen import Brief, Moment

_STRENGTHS = ("strict", "recovered", "scored", "broad")
_SENSITIVITIES = ("none", "personal", "sensitive")
_APART = 2 * MAX_EVIDENCE - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Of all observations that support a draft, those that speak for the others."""

    claim: str
    """That of the first."""
    first: Brief
    last: Brief
    told: tuple[Brief, Brief] | None
    """First and last of those that tell a time."""
    single: Brief | None
    """The first whose slot holds one value."""
    score: float
    sensitivity: str
    is_from_tool: bool
    """Nothing but what a tool returned."""
    choosable: tuple[Brief, ...]
    """What evidence may be chosen from; the strongest first, and of equals the first in time."""


class Phrase(NamedTuple):
    """One text."""

    times: int
    best: Brief

    @property
    def worth(self) -> tuple[object, ...]:
        """Of all phrases the least one is shown."""
        return (rank(self.best), -self.times, -self.best.score, self.best.text)


Phrases = Mapping[str, Phrase]
"""By text."""


def gathered(members: Sequence[tuple[str, Brief]]) -> Gathered:
    """Gather observations, at least one, each with its claim."""
    if len(members) == 1:
        return _alone(*members[0])
    by_time = sorted(((one.moment, claim, one) for claim, one in members), key=lambda each: each[0])
    claim = by_time[0][1]
    seen = [one for _, _, one in by_time]
    first, last, told = seen[0], seen[-1], [one for one in seen if one.ts is not None]
    return Gathered(
        claim=claim, first=first, last=last, told=(told[0], told[-1]) if told else None,
        single=next((one for one in seen if one.is_single), None), score=max(one.score for one in seen),
        sensitivity=max((one.sensitivity for one in seen), key=_SENSITIVITIES.index),
        is_from_tool=all(one.is_told_by_tool for one in seen),
        choosable=choosable(sorted(seen, key=lambda one: _STRENGTHS.index(one.strength))),
    )  # fmt: skip


def _alone(claim: str, only: Brief) -> Gathered:
    """Of one observation, as most are."""
    return Gathered(
        claim=claim, first=only, last=only, told=None if only.ts is None else (only, only),
        single=only if only.is_single else None, score=only.score, sensitivity=only.sensitivity,
        is_from_tool=only.is_told_by_tool, choosable=(only,),
    )  # fmt: skip


def joined(one: Gathered, other: Gathered) -> Gathered:
    """What gathering the observations of both at once gives."""
    told = [*(one.told or ()), *(other.told or ())]
    singles = [each for each in (one.single, other.single) if each is not None]
    early = min((one, other), key=lambda each: each.first.moment)
    return Gathered(
        claim=early.claim, first=early.first, last=max((one.last, other.last), key=_moment),
        told=(min(told, key=_moment), max(told, key=_moment)) if told else None,
        single=min(singles, key=_moment, default=None), score=max(one.score, other.score),
        sensitivity=max(one.sensitivity, other.sensitivity, key=_SENSITIVITIES.index),
        is_from_tool=one.is_from_tool and other.is_from_tool,
        choosable=choosable(sorted((*one.choosable, *other.choosable), key=_turn)),
    )  # fmt: skip


def choosable(ordered: Iterable[Brief]) -> tuple[Brief, ...]:
    """Those of which evidence may be chosen, whatever else is chosen from; in their order.

    Choosing from a superset of these, out of the same observations, chooses the same.
    """
    kept: list[Brief] = []
    times: Counter[tuple[str, str]] = Counter()
    sessions: dict[str, int] = defaultdict(int)
    principals: dict[str, int] = defaultdict(int)
    apart: tuple[set[str], set[str]] = (set(), set())
    for one in ordered:
        who, where = one.principal, one.session
        heard = times[who, where]
        if heard >= MAX_EVIDENCE:
            continue
        if not heard:
            if sessions[who] >= MAX_EVIDENCE or principals[where] >= MAX_EVIDENCE:
                continue
            sessions[who] += 1
            principals[where] += 1
            if who not in apart[0] and where not in apart[1]:
                apart[0].add(who)
                apart[1].add(where)
        times[who, where] += 1
        kept.append(one)
        if len(apart[0]) == _APART:
            break
    return tuple(kept)


def phrases(seen: Iterable[Brief]) -> dict[str, Phrase]:
    """Every text of these."""
    found: dict[str, Phrase] = {}
    for one in seen:
        before = found.get(one.text)
        found[one.text] = Phrase(1, one) if before is None else together(before, Phrase(1, one))
    return found


def together(one: Phrase, other: Phrase) -> Phrase:
    """Both phrases of one text."""
    first, second = ((rank(each.best), -each.best.score) for each in (one, other))
    is_first = first < second or (first == second and one.best.moment < other.best.moment)
    return Phrase(one.times + other.times, one.best if is_first else other.best)


def rank(one: Brief) -> int:
    """How strongly it was said, the least first: by a person, with a strict cue, at this tool and not at a sibling."""
    return (0 if one.is_said else 100) + 10 * _STRENGTHS.index(one.strength) + (one.extractor == SIBLINGS)


def _turn(one: Brief) -> tuple[int, Moment]:
    return (_STRENGTHS.index(one.strength), one.moment)


def _moment(one: Brief) -> Moment:
    return one.moment
