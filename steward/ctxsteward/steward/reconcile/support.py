"""How much stands behind a claim: who said it how often, counted so that repeating oneself counts once.

Within one person's own scope each session counts once, in a wider one each principal, whichever way the name is
written (`principals.skeleton`); speakers that nobody knows count as one principal together, because they may be one. A
session that was shown the record lends it nothing. Only what a person said counts towards a gate; of a fix that
recovered an error both are counted, how often it did and for how many principals.

Counts are of sets of *voices*: a place, a session or a principal, with how it was heard. What more comes counts what
it adds to the set.

Source: Wilson 1927 (score interval); the state design (k independent principals).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.store.names import skeleton

from ..kinds import KINDS
from .indexed_observation import ObservationBrief

Z95 = 1.959963984540054
_UNKNOWN = ""

Voice = tuple[object, ...]
"""A place, a session, or the skeleton of a principal's name."""


class VoiceCounts(NamedTuple):
    """How many voices were heard how; what stands at place n is counted by bit n."""

    events: int = 0
    recovered: int = 0
    sessions: int = 0
    principals: int = 0
    strict: int = 0
    scored: int = 0
    said: int = 0
    helped: int = 0


_EVENT, _RECOVERED, _SESSION, _PRINCIPAL, _STRICT, _SCORED, _SAID, _HELPED = (
    1 << at for at in range(len(VoiceCounts._fields))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSupport:
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
    helped: int
    """Independent ones for whom it worked."""
    from_tool: bool
    """Nothing but what a tool returned."""


def supporting(
    members: Collection[tuple[str, ObservationBrief]], names: Collection[str]
) -> list[tuple[str, ObservationBrief]]:
    """Those, each with its claim, that lend a record support that may have been shown under one of these ids.

    Where people said it, what only a tool or the assistant said lends nothing.
    """
    lending = [(claim, one) for claim, one in members if not one.shown or one.shown.isdisjoint(names)]
    if lending and KINDS[lending[0][1].kind].is_template:
        return lending
    return [(claim, one) for claim, one in lending if one.is_said] or lending


def voices(seen: Iterable[ObservationBrief], *, own: bool) -> dict[Voice, int]:
    """Who was heard, and how, as bits of `VoiceCounts`."""
    found: dict[Voice, int] = {}
    for one in seen:
        said = _SAID | _CUES.get(one.strength, 0) if one.is_said else 0
        recovered, helped = (_RECOVERED, _HELPED) if one.strength == "recovered" else (0, 0)
        session, speaker = (one.session,), (one.session,)
        if not own:
            speaker = ("", voice_of(one.principal, one.session))  # type: ignore[assignment]
        found[one.place] = found.get(one.place, 0) | _EVENT | recovered
        found[session] = found.get(session, 0) | _SESSION
        found[speaker] = found.get(speaker, 0) | _PRINCIPAL | said | helped
    return found


def voice_of(principal: str, session: str) -> str:
    """What a principal counts as among many: names that look alike are one, and so are all that nobody knows."""
    return _UNKNOWN if principal == session else skeleton(principal)


def counted(found: Mapping[Voice, int]) -> VoiceCounts:
    """How many voices were heard how."""
    counts = [0] * len(_BITS)
    for heard, many in Counter(found.values()).items():
        for at in _AT[heard]:
            counts[at] += many
    return VoiceCounts._make(counts)


def backing(counts: VoiceCounts, *, is_from_tool: bool) -> ClaimSupport:
    """What stands behind a claim."""
    return ClaimSupport(**counts._asdict(), from_tool=is_from_tool)


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


_CUES = {"strict": _STRICT, "scored": _SCORED}
_BITS = (_EVENT, _RECOVERED, _SESSION, _PRINCIPAL, _STRICT, _SCORED, _SAID, _HELPED)
_AT = tuple(tuple(at for at, bit in enumerate(_BITS) if heard & bit) for heard in range(1 << len(_BITS)))
"""Of how a voice was heard, the places in `VoiceCounts`."""
