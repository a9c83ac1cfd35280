"""A draft: a component of claims as one record, before anybody has judged it.

All that depends on its observations alone is decided here: id, words, evidence, support, trust. Status, rivals and ages
come later (`admission`). The id is that of its first claim in time, so that later evidence keeps it; ids of all its
claims are its `names`.

Words: of the strongest cue, rather seen at this tool than at a sibling, said most often, scored highest, then the first
in order. Evidence: up to eight spans, of as many principals and sessions as there are. Sensitivity is the greatest,
trust the least of the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ctxsteward.schemas.recommendation import MAX_EVIDENCE, TRUST, RecommendationKind

from ..harvest.tool_siblings import EXTRACTOR as SIBLINGS
from .claims import OWN, TEMPLATED, Audience
from .seen import Moment, Seen
from .support import Backing, backing, lending

_STRENGTHS = ("strict", "recovered", "scored", "broad")
_SENSITIVITIES = ("none", "personal", "sensitive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record without its judgement."""

    id: str
    names: tuple[str, ...]
    """Ids of all its claims, sorted."""
    kind: RecommendationKind
    audience: Audience
    group: str
    """Records of one group cannot all hold; empty: it has no rivals."""
    said: dict[str, Any]
    """Fields of a record that its words decide."""
    evidence: tuple[dict[str, Any], ...]
    backing: Backing
    score: float
    first: str | None
    last: str | None
    moment: Moment
    """Of its newest observation."""
    observations: tuple[str, ...]
    """Ids of those that support it, sorted."""


def draft(members: Sequence[tuple[str, Seen]], audience: Audience, group: str, names: Iterable[str]) -> Draft | None:
    """The record that these observations make, each with the id of its claim; None where nothing supports it.

    `names` are the ids under which the record may have been shown, in any scope.
    """
    known = {*names, *(claim for claim, _ in members)}
    claims = {seen.id: claim for claim, seen in members}
    seen = sorted(_standing(lending([seen for _, seen in members], known)), key=lambda one: one.moment)
    if not seen:
        return None
    told = [one for one in seen if one.ts is not None]
    spoken = _representative(seen)
    evidence = tuple(_evidence(seen, spoken))
    return Draft(
        id=claims[seen[0].id], names=tuple(sorted(set(claims.values()))), kind=seen[0].observation.kind,
        audience=audience, group=group, said=_said(spoken, seen, evidence), evidence=evidence,
        backing=backing(seen, own=audience.width in OWN), score=max(one.observation.score for one in seen),
        first=told[0].ts if told else None, last=told[-1].ts if told else None, moment=seen[-1].moment,
        observations=tuple(sorted(one.id for one in seen)),
    )  # fmt: skip


def _standing(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Where people said it, what only a tool or the assistant said lends nothing."""
    if seen and seen[0].observation.kind in TEMPLATED:
        return seen
    return [one for one in seen if one.is_said] or seen


def _representative(seen: Sequence[Seen]) -> Seen:
    if len(seen) == 1:
        return seen[0]
    often = Counter(one.observation.text for one in seen)

    def worth(one: Seen) -> tuple[object, ...]:
        observation = one.observation
        rank = (_STRENGTHS.index(observation.strength), observation.extractor == SIBLINGS)
        return (not one.is_said, rank, -often[observation.text], -observation.score, observation.text, one.moment)

    return min(seen, key=worth)


def _said(spoken: Seen, seen: Sequence[Seen], evidence: Sequence[dict[str, Any]]) -> dict[str, Any]:
    observation = spoken.observation
    holder = next(
        (one.observation for one in (spoken, *seen) if one.observation.slot.cardinality == "one"), observation
    )
    name, _, version = observation.extractor.partition("/")
    sensitivity = max((one.observation.sensitivity for one in seen), key=_SENSITIVITIES.index)
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
        "sensitivity": sensitivity,
        "trust": max((one["trust"] for one in evidence), key=TRUST.index),
        "extractor": {"name": name or "unnamed", "version": version or "0"},
    }


def _evidence(seen: Sequence[Seen], spoken: Seen) -> list[dict[str, Any]]:
    """The representative's first, then by turns of principals and sessions; what is left over goes to their context."""
    chosen = [spoken]
    waiting = [one for one in seen if one is not spoken]
    told: Counter[tuple[str, str]] = Counter({("principal", spoken.observation.principal): 1})
    told["session", spoken.origin.session] += 1
    while waiting and len(chosen) < MAX_EVIDENCE:
        best = min(waiting, key=lambda one: _repeats(one, told))
        waiting.remove(best)
        chosen.append(best)
        told["principal", best.observation.principal] += 1
        told["session", best.origin.session] += 1
    first = [(one, 0) for one in chosen]
    rest = [(one, at) for one in chosen for at in range(1, len(one.spans))]
    found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for one, at in (*first, *rest):
        span = one.spans[at]
        found.setdefault((one.origin.session, span.ref, span.start, span.stop), _span(one, at))
    return list(found.values())[:MAX_EVIDENCE]


def _repeats(one: Seen, told: Counter[tuple[str, str]]) -> tuple[int, int, int]:
    """Of equals the first in time is taken: that is their order."""
    principal, session = told["principal", one.observation.principal], told["session", one.origin.session]
    return (principal, session, _STRENGTHS.index(one.observation.strength))


def _span(one: Seen, at: int) -> dict[str, Any]:
    span = one.spans[at]
    return {
        "source": one.origin.source,
        "session": one.origin.session,
        "ref": span.ref,
        "span": (span.start, span.stop),
        "span_address": span.address,
        "role": span.role,
        "trust": span.trust,
        "principal": span.principal,
        "ts": span.ts,
        "relation": span.relation,
    }
