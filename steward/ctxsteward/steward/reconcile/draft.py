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

A draft: a component of claims as one record, before anybody has judged it.

All that depends on its observations alone is decided here: id, words, evidence, support, trust. Status, rivals and ages
come later (`admission`). The id is that of its first claim in time, so that later evidence keeps it; ids of all its
claims are its `names`.

Words: of the strongest cue, rather seen at this tool than at a sibling, said most often, scored highest, then the first
in order. Evidence: up to eight spans, of as many principals and sessions as there are. Sensitivity is the greatest,
trust the least of the evidence. All of it is drawn from what was gathered of the observations (`gathered`), so a draft
whose observations grow is drawn again without the old ones; what it quotes is read only where it quotes others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxsteward.schemas.recommendation import MAX_EVIDENCE, TRUST, RecommendationKind

from ..harvest.tools.siblings import EXTRACTOR as SIBLINGS
from ..observation import Observation
from .claims import ClaimAudience
from .indexed_observation import IndexedObservation, ObservationBrief, ObservationTime
from .support import ClaimSupport, VoiceCounts, backing

_STRENGTHS = ("strict", "recovered", "scored", "broad")
_SENSITIVITIES = ("none", "personal", "sensitive")
_APART = 2 * MAX_EVIDENCE - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSummary:
    """Of all observations that support a draft, those that speak for the others."""

    claim: str
    """That of the first."""
    first: ObservationBrief
    last: ObservationBrief
    told: tuple[ObservationBrief, ObservationBrief] | None
    """First and last of those that tell a time."""
    single: ObservationBrief | None
    """The first whose slot holds one value."""
    score: float
    sensitivity: str
    is_from_tool: bool
    """Nothing but what a tool returned."""
    choosable: tuple[ObservationBrief, ...]
    """What evidence may be chosen from; the strongest first, and of equals the first in time."""


class PhraseCount(NamedTuple):
    """One text."""

    times: int
    best: ObservationBrief

    @property
    def worth(self) -> tuple[object, ...]:
        """Of all phrases the least one is shown."""
        return (rank(self.best), -self.times, -self.best.score, self.best.text)


Phrases = Mapping[str, PhraseCount]
"""By text."""


def summarize_draft(members: Sequence[tuple[str, ObservationBrief]]) -> DraftSummary:
    """Gather observations, at least one, each with its claim."""
    if len(members) == 1:
        return _alone(*members[0])
    by_time = sorted(((one.moment, claim, one) for claim, one in members), key=lambda each: each[0])
    claim = by_time[0][1]
    seen = [one for _, _, one in by_time]
    first, last, told = seen[0], seen[-1], [one for one in seen if one.ts is not None]
    return DraftSummary(
        claim=claim, first=first, last=last, told=(told[0], told[-1]) if told else None,
        single=next((one for one in seen if one.is_single), None), score=max(one.score for one in seen),
        sensitivity=max((one.sensitivity for one in seen), key=_SENSITIVITIES.index),
        is_from_tool=all(one.is_told_by_tool for one in seen),
        choosable=choosable(sorted(seen, key=lambda one: _STRENGTHS.index(one.strength))),
    )  # fmt: skip


def _alone(claim: str, only: ObservationBrief) -> DraftSummary:
    """Of one observation, as most are."""
    return DraftSummary(
        claim=claim, first=only, last=only, told=None if only.ts is None else (only, only),
        single=only if only.is_single else None, score=only.score, sensitivity=only.sensitivity,
        is_from_tool=only.is_told_by_tool, choosable=(only,),
    )  # fmt: skip


def join_summaries(one: DraftSummary, other: DraftSummary) -> DraftSummary:
    """What gathering the observations of both at once gives."""
    told = [*(one.told or ()), *(other.told or ())]
    singles = [each for each in (one.single, other.single) if each is not None]
    early = min((one, other), key=lambda each: each.first.moment)
    return DraftSummary(
        claim=early.claim, first=early.first, last=max((one.last, other.last), key=_moment),
        told=(min(told, key=_moment), max(told, key=_moment)) if told else None,
        single=min(singles, key=_moment, default=None), score=max(one.score, other.score),
        sensitivity=max(one.sensitivity, other.sensitivity, key=_SENSITIVITIES.index),
        is_from_tool=one.is_from_tool and other.is_from_tool,
        choosable=choosable(sorted((*one.choosable, *other.choosable), key=_turn)),
    )  # fmt: skip


def choosable(ordered: Iterable[ObservationBrief]) -> tuple[ObservationBrief, ...]:
    """Those of which evidence may be chosen, whatever else is chosen from; in their order.

    Choosing from a superset of these, out of the same observations, chooses the same.
    """
    kept: list[ObservationBrief] = []
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


def phrases(seen: Iterable[ObservationBrief]) -> dict[str, PhraseCount]:
    """Every text of these."""
    found: dict[str, PhraseCount] = {}
    for one in seen:
        before = found.get(one.text)
        found[one.text] = PhraseCount(1, one) if before is None else join_phrases(before, PhraseCount(1, one))
    return found


def join_phrases(one: PhraseCount, other: PhraseCount) -> PhraseCount:
    """Both phrases of one text."""
    first, second = ((rank(each.best), -each.best.score) for each in (one, other))
    is_first = first < second or (first == second and one.best.moment < other.best.moment)
    return PhraseCount(one.times + other.times, one.best if is_first else other.best)


def rank(one: ObservationBrief) -> int:
    """How strongly it was said, the least first: by a person, with a strict cue, at this tool and not at a sibling."""
    return (0 if one.is_said else 100) + 10 * _STRENGTHS.index(one.strength) + (one.extractor == SIBLINGS)


def _turn(one: ObservationBrief) -> tuple[int, ObservationTime]:
    return (_STRENGTHS.index(one.strength), one.moment)


def _moment(one: ObservationBrief) -> ObservationTime:
    return one.moment


class FixAdvice(NamedTuple):
    """What a fix of a tool error is about, and what it says to do."""

    trigger: str | None
    action: str | None


NO_ADVICE = FixAdvice(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record without its judgement."""

    id: str
    names: tuple[str, ...]
    """Ids of all its claims, sorted."""
    kind: RecommendationKind
    audience: ClaimAudience
    group: str
    """Records of one group cannot all hold; empty: it has no rivals."""
    said: dict[str, Any]
    """Fields of a record that its words decide."""
    evidence: tuple[dict[str, Any], ...]
    backing: ClaimSupport
    score: float
    first: str | None
    last: str | None
    moment: ObservationTime
    """Of its newest observation."""
    answers: str | None = None
    """The question that its words answer: an index key, never shown."""

    @property
    def advice(self) -> FixAdvice:
        return FixAdvice(self.said.get("trigger"), self.said.get("action"))


class QuotedIds(NamedTuple):
    """Ids of the observations that a draft quotes."""

    spoken: str
    """Whose words it has."""
    holder: str
    """Whose slot and value."""
    chosen: tuple[str, ...]
    """Its evidence."""

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((self.spoken, self.holder, *self.chosen))


class QuotedWords(NamedTuple):
    """What those that are quoted give to a draft."""

    said: dict[str, Any]
    evidence: tuple[dict[str, Any], ...]
    answers: str | None


def quoting(found: DraftSummary, spoken: ObservationBrief) -> QuotedIds:
    """Whom to quote beside the one whose words the draft has."""
    holder = spoken if spoken.is_single else found.single or spoken
    return QuotedIds(spoken.id, holder.id, tuple(one.id for one in _chosen(found.choosable, spoken)))


def words(quoted: QuotedIds, found: Mapping[str, IndexedObservation]) -> QuotedWords:
    """Quote these, which are among the observations `found`."""
    evidence = tuple(_evidence([found[id_] for id_ in quoted.chosen]))
    spoken = found[quoted.spoken].observation
    return QuotedWords(_said(spoken, found[quoted.holder].observation, evidence), evidence, spoken.answers)


def draw_draft(
    found: DraftSummary, counts: VoiceCounts, told: QuotedWords, names: Iterable[str], audience: ClaimAudience,
    group: str,
) -> Draft:  # fmt: skip
    """The record that observations make, out of what was gathered of them; `names` are ids of all its claims."""
    return Draft(
        id=found.claim, names=tuple(sorted(names)), kind=found.first.kind, audience=audience, group=group,
        said=told.said | {"sensitivity": found.sensitivity}, evidence=told.evidence,
        backing=backing(counts, is_from_tool=found.is_from_tool), score=found.score,
        first=found.told[0].ts if found.told else None, last=found.told[1].ts if found.told else None,
        moment=found.last.moment, answers=told.answers,
    )  # fmt: skip


def _said(observation: Observation, holder: Observation, evidence: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """In the words of one observation, with the slot and value of one whose slot holds one value."""
    name, _, version = observation.extractor.partition("/")
    return {
        "slot": holder.slot.model_dump(),
        "tool": observation.tool,
        "text": observation.text,
        "value": holder.value,
        "unit": holder.unit,
        "polarity": observation.polarity,
        "modality": observation.modality,
        "trigger": observation.trigger,
        "action": observation.action,
        "trust": max((one["trust"] for one in evidence), key=TRUST.index),
        "extractor": {"name": name or "unnamed", "version": version or "0"},
    }


def _chosen(choosable: Sequence[ObservationBrief], spoken: ObservationBrief) -> list[ObservationBrief]:
    """The representative, then by turns of principals and sessions."""
    chosen = [spoken]
    waiting = [one for one in choosable if one.id != spoken.id]
    principals, sessions = Counter((spoken.principal,)), Counter((spoken.session,))
    while waiting and len(chosen) < MAX_EVIDENCE:
        one = waiting.pop(_next(waiting, principals, sessions))
        chosen.append(one)
        principals[one.principal] += 1
        sessions[one.session] += 1
    return chosen


def _evidence(chosen: Sequence[IndexedObservation]) -> list[dict[str, Any]]:
    """The first spans of all of them; what is left over goes to their context."""
    first = [(one, 0) for one in chosen]
    rest = [(one, at) for one in chosen for at in range(1, len(one.spans))]
    found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for one, at in (*first, *rest):
        source, session, _ = one.origin
        ref, start, stop, address, role, trust, principal, ts, relation = one.spans[at]
        place = (session, ref, start, stop)
        if place not in found:
            found[place] = span_fields(
                source, session, ref, (start, stop), address, role, trust, principal, ts, relation
            )  # fmt: skip
    return list(found.values())[:MAX_EVIDENCE]


def _next(waiting: Sequence[ObservationBrief], principals: Mapping[str, int], sessions: Mapping[str, int]) -> int:
    """Whose principal, then session, was heard least often; of equals the first, which are the strongest in time."""
    best, least = 0, (MAX_EVIDENCE, MAX_EVIDENCE)
    for at, one in enumerate(waiting):
        heard = principals[one.principal], sessions[one.session]
        if heard < least:
            best, least = at, heard
            if heard == (0, 0):
                break
    return best


def span_fields(
    source: str, session: str, ref: str, span: Iterable[int], address: str, role: str, trust: str, principal: str,
    ts: str | None, relation: str,
) -> dict[str, Any]:  # fmt: skip
    """One piece of evidence, as fields of a record."""
    return {
        "source": source, "session": session, "ref": ref, "span": tuple(span), "span_address": address, "role": role,
        "trust": trust, "principal": principal, "ts": ts, "relation": relation,
    }  # fmt: skip
