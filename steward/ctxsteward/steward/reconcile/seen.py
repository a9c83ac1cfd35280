"""One observation as the ledger holds it: what was claimed, by whom, in which session, with its spans.

The order of observations is that of their times, then of their sources (numbers in names by value), then of their
messages; one without a time comes before all that have one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.envelope.keys import AddressKey, address_of
from ctxsteward.envelope.slices import canonical

from ..artifacts.artifact import Artifact
from ..artifacts.form import observation_fields
from ..artifacts.spans import Pointed, pointed
from ..observation import Observation
from .claims import Origin

_PART = re.compile(r"\d+|\D+")


class Moment(NamedTuple):
    """When an observation was made; comparable."""

    seconds: float
    """Unix time; -inf: not told."""
    source: tuple[tuple[int, str], ...]
    ordinal: tuple[int, ...]
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One observation in its session."""

    id: str
    """HMAC of what it says and where: the same however often a transcript is harvested."""
    observation: Observation
    origin: Origin
    spans: tuple[Pointed, ...]
    shown: frozenset[str] = frozenset()
    """Records that its session was shown."""

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody knows who said it."""
        return self.observation.principal == self.origin.session

    @property
    def is_said(self) -> bool:
        """Whether a person, or the operator, said it: the claim itself, not what stands around it."""
        return self.spans[0].trust in ("operator", "user")

    @property
    def is_told_by_tool(self) -> bool:
        return self.spans[0].trust in ("tool_internal", "tool_external")

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Where the claim stands: what several harvesters find in one place was said once."""
        return (self.origin.session, *self.spans[0][:3])

    @property
    def ts(self) -> str | None:
        return self.observation.ts or self.spans[0].ts

    @property
    def moment(self) -> Moment:
        return Moment(instant(self.ts), _natural(self.origin.source), _ordinal(self.spans[0].ref), self.id)


def seen_in(artifact: Artifact, key: AddressKey) -> tuple[Seen, ...]:
    """The observations of an artifact."""
    origin = Origin(artifact.source, artifact.session, artifact.project)
    shown = frozenset(artifact.shown)
    found = []
    for observation, spans in zip(artifact.observations, pointed(artifact, key), strict=True):
        data = canonical([*origin, observation_fields(observation)])
        id_ = address_of(key, "", "observation", data)[:32]
        found.append(Seen(id=id_, observation=observation, origin=origin, spans=spans, shown=shown))
    return tuple(found)


@lru_cache(maxsize=4096)
def instant(ts: str | None) -> float:
    """Unix time of an ISO 8601 time; UTC where it names no zone; -inf for none.

    >>> instant("1970-01-02T00:00:00+01:00"), instant(None)
    (82800.0, -inf)
    """
    if ts is None:
        return float("-inf")
    try:
        told = datetime.fromisoformat(ts)
    except ValueError:
        return float("-inf")
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=4096)
def _natural(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part[:15]), part) if part.isdecimal() else (-1, part) for part in _PART.findall(name))


def _ordinal(ref: str) -> tuple[int, ...]:
    return tuple(int(number) for number in ref.removeprefix("§").split(".") if number.isdecimal())
