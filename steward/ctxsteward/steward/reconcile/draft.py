"""A draft: a component of claims as one record, before anybody has judged it.

All that depends on its observations alone is decided here: id, words, evidence, support, trust. Status, rivals and ages
come later (`admission`). The id is that of its first claim in time, so that later evidence keeps it; ids of all its
claims are its `names`.

Words: of the strongest cue, rather seen at this tool than at a sibling, said most often (of a fix: done more often in
runs that succeeded than in runs that failed), scored highest, then the first in order. Evidence: up to eight spans, of
as many principals and sessions as there are; of a fix, of runs that succeeded and of runs that failed. Sensitivity is
the greatest, trust the least of the evidence.

`summarize_draft` weighs all observations by what the ledger keeps in short of them; `draw_draft` is then given the few
that it quotes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from ctxsteward.schemas import MAX_EVIDENCE, TRUST, RecommendationKind

from ..harvest.tools import SIBLINGS_EXTRACTOR
from ..observations import Observation
from .claims import ClaimAudience
from .indexed_observation import IndexedObservation, ObservationBrief, ObservationTime
from .support import ClaimSupport, backing

_STRENGTHS = ("strict", "recovered", "scored", "accepted", "broad", "failed")
_SENSITIVITIES = ("none", "personal", "sensitive")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSummary:
    """What observations make of a draft, before those that it quotes are read."""

    claim: str
    """That of the first in time."""
    kind: RecommendationKind
    first: str | None
    """When it was said first, as told; None: nobody told a time."""
    last: str | None
    moment: ObservationTime
    """Of its newest observation."""
    score: float
    sensitivity: str
    backing: ClaimSupport
    spoken: str
    """Id of the observation whose words it has."""
    holder: str
    """Whose slot and value."""
    chosen: tuple[str, ...]
    """Its evidence."""

    @property
    def quoted(self) -> frozenset[str]:
        return frozenset((self.spoken, self.holder, *self.chosen))


def summarize_draft(members: Iterable[tuple[str, ObservationBrief]], *, own: bool) -> DraftSummary:
    """Weigh observations, at least one, each with its claim; `own`: in one person's own scope."""
    ordered = sorted(((one.moment, claim, one) for claim, one in members), key=itemgetter(0))
    seen = [one for _, _, one in ordered]
    dated = [one.ts for one in seen if one.ts is not None]
    spoken = _spoken(seen)
    holder = spoken if spoken.is_single else next((one for one in seen if one.is_single), spoken)
    return DraftSummary(
        claim=ordered[0][1], kind=seen[0].kind, first=dated[0] if dated else None, last=dated[-1] if dated else None,
        moment=ordered[-1][0], score=max(one.score for one in seen),
        sensitivity=max((one.sensitivity for one in seen), key=_SENSITIVITIES.index),
        backing=backing(seen, own=own, advice=spoken.text),
        spoken=spoken.id, holder=holder.id, chosen=tuple(one.id for one in _chosen(seen, spoken)),
    )  # fmt: skip


def _spoken(seen: Sequence[ObservationBrief]) -> ObservationBrief:
    """Whose words are shown, of observations in their order."""
    if len(seen) == 1:
        return seen[0]
    ranks = [_rank(one) for one in seen]
    least, times = min(ranks), Counter(one.text for one in seen if one.strength != "failed")
    strongest = [one for one, rank in zip(seen, ranks, strict=True) if rank == least]
    failed = Counter(one.text for one in seen if one.strength == "failed")
    return min(strongest, key=lambda one: (failed[one.text] - times[one.text], -one.score, one.text))


def _rank(one: ObservationBrief) -> int:
    """How strongly it was said, the least first: by a person, with a strict cue, at this tool and not at a sibling."""
    return (0 if one.is_said else 100) + 10 * _STRENGTHS.index(one.strength) + (one.extractor == SIBLINGS_EXTRACTOR)


def _chosen(seen: Sequence[ObservationBrief], spoken: ObservationBrief) -> list[ObservationBrief]:
    """The representative, then by turns of principals and sessions; of equals the strongest, then the first in time."""
    chosen = [spoken]
    waiting = sorted((one for one in seen if one.id != spoken.id), key=lambda one: _STRENGTHS.index(one.strength))
    principals, sessions = Counter((spoken.principal,)), Counter((spoken.session,))
    while waiting and len(chosen) < MAX_EVIDENCE:
        one = waiting.pop(_next(waiting, principals, sessions))
        chosen.append(one)
        principals[one.principal] += 1
        sessions[one.session] += 1
    return chosen


def _next(waiting: Sequence[ObservationBrief], principals: Mapping[str, int], sessions: Mapping[str, int]) -> int:
    """Whose principal, then session, was heard least often; of equals the first."""
    best, least = 0, (MAX_EVIDENCE, MAX_EVIDENCE)
    for at, one in enumerate(waiting):
        heard = principals[one.principal], sessions[one.session]
        if heard < least:
            best, least = at, heard
            if heard == (0, 0):
                break
    return best


def draw_draft(
    found: DraftSummary,
    seen: Mapping[str, IndexedObservation],
    names: Iterable[str],
    audience: ClaimAudience,
    group: str,
) -> Draft:
    """The record that observations make; `seen` has those that it quotes, `names` are ids of all its claims."""
    evidence = tuple(_evidence([seen[id_] for id_ in found.chosen]))
    spoken = seen[found.spoken].observation
    said = _said(spoken, seen[found.holder].observation, evidence)
    return Draft(
        id=found.claim, names=tuple(sorted(names)), kind=found.kind, audience=audience, group=group,
        said=said | {"sensitivity": found.sensitivity}, evidence=evidence, backing=found.backing, score=found.score,
        first=found.first, last=found.last, moment=found.moment, answers=spoken.answers,
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


def span_fields(
    source: str, session: str, ref: str, span: Iterable[int], address: str, role: str, trust: str, principal: str,
    ts: str | None, relation: str,
) -> dict[str, Any]:  # fmt: skip
    """One piece of evidence, as fields of a record."""
    return {
        "source": source, "session": session, "ref": ref, "span": tuple(span), "span_address": address, "role": role,
        "trust": trust, "principal": principal, "ts": ts, "relation": relation,
    }  # fmt: skip
