"""How much stands behind a claim: who said it how often, counted so that repeating oneself counts once.

Within one person's own scope each session counts once, in a wider one each principal; speakers that nobody knows count
as one principal together, because they may be one. A session that was shown the record lends it nothing. Only what a
person said counts towards a gate; an error that a fix recovered counts by events.

Source: Wilson 1927 (score interval); the state design (k independent principals).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..observation import Strength
from .seen import Seen

Z95 = 1.959963984540054
_UNKNOWN = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """What stands behind one claim."""

    events: int
    sessions: int
    principals: int
    """Independent ones; in one person's own scope, sessions."""
    strict: int
    """Independent ones that used a strict cue; as the next two."""
    scored: int
    said: int
    """Any cue."""
    recovered: int
    """Events in which a fix worked."""
    from_tool: bool
    """Nothing but what a tool returned."""


def lending(seen: Sequence[Seen], names: Collection[str]) -> list[Seen]:
    """Those whose session was not shown a record of one of these ids."""
    return [one for one in seen if one.shown.isdisjoint(names)]


def backing(seen: Sequence[Seen], *, own: bool) -> Backing:
    """Count what stands behind a claim."""
    return Backing(
        events=len({one.place for one in seen}),
        sessions=len({one.origin.session for one in seen}),
        principals=_independent(seen, own=own),
        strict=_independent(_said(seen, "strict"), own=own),
        scored=_independent(_said(seen, "scored"), own=own),
        said=_independent(_said(seen), own=own),
        recovered=len({one.place for one in seen if one.observation.strength == "recovered"}),
        from_tool=all(one.is_told_by_tool for one in seen),
    )


def wilson_lower95(confirming: int, contradicting: int) -> float:
    """Lower end of the 95 % interval of the share of confirming ones.

    >>> [round(wilson_lower95(n, 0), 3) for n in (0, 1, 3, 10)]
    [0.0, 0.207, 0.439, 0.722]
    """
    n = confirming + contradicting
    if n == 0:
        return 0.0
    p, z2 = confirming / n, Z95 * Z95
    centre = p + z2 / (2 * n)
    spread = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, min(1.0, (centre - spread) / (1 + z2 / n)))


def _said(seen: Sequence[Seen], strength: Strength | None = None) -> list[Seen]:
    return [one for one in seen if one.is_said and strength in (None, one.observation.strength)]


def _independent(seen: Sequence[Seen], *, own: bool) -> int:
    if own:
        return len({one.origin.session for one in seen})
    return len({_UNKNOWN if one.is_anonymous else one.observation.principal for one in seen})
