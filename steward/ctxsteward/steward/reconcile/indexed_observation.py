"""One observation as the ledger holds it: what was claimed, by whom, in which session, with its spans.

The order of observations is that of their times, then of their messages, then of their words; one without a time comes
before all that have one. Names of files and sessions say nothing about time, so they decide nothing: with other names,
or read in another order, the same value is the newest. Of two that tell the same time in two sessions neither is known
to be newer; the order between them is arbitrary and always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.schemas import RecommendationKind, Trust, instant
from ctxsteward.store import AddressKey, address_of, canonical, skeleton

from ..artifacts import Artifact, EvidenceSpan, evidence_spans, observation_fields
from ..observations import KINDS, Observation, Strength
from .claims import ObservationOrigin


class ObservationTime(NamedTuple):
    """When an observation was made; comparable."""

    seconds: float
    """Unix time; -inf: not told."""
    ordinal: tuple[int, ...]
    text: str
    source: str
    """Where all before is equal, two say the same: names decide nothing then, and keys do not either."""
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedObservation:
    """One observation in its session."""

    id: str
    """HMAC of what it says and where: the same however often a transcript is harvested."""
    observation: Observation
    origin: ObservationOrigin
    spans: tuple[EvidenceSpan, ...]
    shown: frozenset[str] = frozenset()
    """Records that its session was shown."""

    @property
    def is_said(self) -> bool:
        """Whether a person, or the operator, said it: the claim itself, not what stands around it."""
        return self.spans[0].trust in ("operator", "user")

    @property
    def brief(self) -> ObservationBrief:
        """All of it that a draft weighs."""
        observation, span = self.observation, self.spans[0]
        ts = observation.ts or span.ts
        return ObservationBrief(
            id=self.id, seconds=instant(ts), source=self.origin.source, session=self.origin.session, ref=span.ref,
            start=span.start, stop=span.stop, trust=span.trust, principal=observation.principal,
            voice=voice_of(observation.principal, self.origin.session), kind=observation.kind,
            strength=observation.strength, extractor=observation.extractor, text=observation.text,
            score=observation.score, ts=ts, sensitivity=observation.sensitivity,
            is_single=observation.slot.cardinality == "one", is_shown=bool(self.shown),
            is_confirmed=any(place.relation == "confirms" for place in observation.places),
            is_denied=not KINDS[observation.kind].is_template
            and any(place.relation == "contradicts" for place in observation.places),
            run=observation.run or "",
        )  # fmt: skip


class ObservationBrief(NamedTuple):
    """What a draft weighs of an observation; the few that it quotes are read whole."""

    id: str
    seconds: float
    """Unix time; -inf: not told."""
    source: str
    session: str
    ref: str
    """Of its first span; so are the next three."""
    start: int
    stop: int
    trust: Trust
    principal: str
    voice: str
    """What the principal counts as among many (`voice_of`)."""
    kind: RecommendationKind
    strength: Strength
    extractor: str
    text: str
    score: float
    ts: str | None
    sensitivity: str
    is_single: bool
    """Its slot holds one value."""
    is_shown: bool
    """Whether its session was shown any records."""
    is_confirmed: bool
    """Whether an internal tool's answer in its session says the same."""
    is_denied: bool
    """Whether one says otherwise."""
    run: str = ""
    """The task of its run, and what the run had done by then (`Observation.run`); empty: not told."""

    @property
    def is_said(self) -> bool:
        """Whether a person, or the operator, said it: the claim itself, not what stands around it."""
        return self.trust in ("operator", "user")

    @property
    def is_told_by_tool(self) -> bool:
        return self.trust in ("tool_internal", "tool_external")

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Where the claim stands: what several harvesters find in one place was said once."""
        return (self.session, self.ref, self.start, self.stop)

    @property
    def moment(self) -> ObservationTime:
        return ObservationTime(self.seconds, _ordinal(self.ref), self.text, self.source, self.id)


def seen_in(artifact: Artifact, key: AddressKey) -> tuple[IndexedObservation, ...]:
    """The observations of an artifact."""
    origin = ObservationOrigin(artifact.source, artifact.session, artifact.project)
    shown = frozenset(artifact.shown)
    lead = canonical([*origin])[:-1]
    found = []
    for observation, spans in zip(artifact.observations, evidence_spans(artifact, key), strict=True):
        told = canonical(observation_fields(observation))
        id_ = address_of(key, "", "observation", b"%b,%b]" % (lead, told))[:32]
        found.append(IndexedObservation(id=id_, observation=observation, origin=origin, spans=spans, shown=shown))
    return tuple(found)


def voice_of(principal: str, session: str) -> str:
    """What a principal counts as among many: names that look alike are one, and so are all that nobody knows."""
    return "" if principal == session else skeleton(principal)


@lru_cache(maxsize=4096)
def _ordinal(ref: str) -> tuple[int, ...]:
    return tuple(int(number) for number in ref.removeprefix("§").split(".") if number.isdecimal())
