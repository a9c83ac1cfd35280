"""How much stands behind a claim: who said it how often, counted so that repeating oneself counts once.

Within one person's own scope each session counts once, in a wider one each principal, whichever way the name is
written (`principals.skeleton`); speakers that nobody knows count as one principal together, because they may be one. A
session that was shown the record lends it nothing. Only what a person said counts towards a gate; of a fix that
recovered an error both are counted, how often it did in runs that succeeded, and for how many principals.

Source: Wilson 1927 (score interval); the state design (k independent principals).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..observations import KINDS
from .indexed_observation import ObservationBrief

Z95 = 1.959963984540054


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
    votes: int
    """Of these, ones whose word suffices for others: of a kind that claims nothing of the world (`KINDS`)."""
    confirmed: int
    """Of these, ones in whose session an internal tool's answer says the same."""
    recovered: int
    """Events in which a fix worked, in runs that succeeded."""
    helped: int
    """Independent ones for whom it worked."""
    obeyed_succeeded: int
    """Of a fix: events in which what it says was done, in runs that succeeded."""
    obeyed_failed: int
    """The same in runs that failed."""
    from_tool: bool
    """Nothing but what a tool returned."""


def supporting(
    members: Iterable[tuple[str, ObservationBrief]], echoes: Collection[str] = ()
) -> list[tuple[str, ObservationBrief]]:
    """Those, each with its claim, that lend a record support; `echoes`: ids of those whose sessions were shown it.

    Where people said it, what only a tool or the assistant said lends nothing.
    """
    lending = [(claim, one) for claim, one in members if one.id not in echoes]
    if lending and KINDS[lending[0][1].kind].is_template:
        return lending
    return [(claim, one) for claim, one in lending if one.is_said] or lending


def backing(seen: Collection[ObservationBrief], *, own: bool, advice: str = "") -> ClaimSupport:
    """What stands behind a claim that these support; `own`: in one person's own scope; `advice`: the words of a fix."""
    heard = [(one.session if own else one.voice, one) for one in seen]
    said = [(who, one.strength) for who, one in heard if one.is_said]
    votes = {who for who, one in heard if one.is_said and KINDS[one.kind].votes_suffice}
    worked = [(who, one.place) for who, one in heard if one.strength == "recovered"]
    return ClaimSupport(
        events=len({one.place for one in seen}),
        sessions=len({one.session for one in seen}),
        principals=len({who for who, _ in heard}),
        strict=len({who for who, strength in said if strength == "strict"}),
        scored=len({who for who, strength in said if strength == "scored"}),
        said=len({who for who, _ in said}),
        votes=len(votes),
        confirmed=len({who for who, one in heard if one.is_said and one.is_confirmed}),
        recovered=len({place for _, place in worked}),
        helped=len({who for who, _ in worked}),
        obeyed_succeeded=len({one.place for one in seen if (one.strength, one.text) == ("recovered", advice)}),
        obeyed_failed=len({one.place for one in seen if (one.strength, one.text) == ("failed", advice)}),
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
