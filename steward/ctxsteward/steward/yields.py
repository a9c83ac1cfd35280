"""Yields that are out of the ordinary: a night that gave nothing, or much more than nights do.

A stage is judged against the median of earlier nights that read anything; fewer than three such nights judge nothing.
Source: the layered-envelope design (zero yield, or three times the median, raises an alert).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from .nights import Night

JUDGED = ("harvested", "absorbed", "admitted")
"""Stages whose yields are watched."""
MOST_RATIO = 3.0
FEWEST_NIGHTS = 3


def alerts(counts: Mapping[str, int], earlier: Sequence[Night]) -> tuple[str, ...]:
    """A line for each stage that is out of the ordinary.

    >>> alerts({"due": 5, "harvested": 0}, [])
    ('harvested: nothing, though 5 were due',)
    """
    return tuple(_alerts(counts, [night.counts for night in earlier if night.counts.get("due")]))


def _alerts(counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    due = counts.get("due", 0)
    for stage in JUDGED:
        count = counts.get(stage)
        if count is None or not due:
            continue
        if count == 0:
            yield f"{stage}: nothing, though {due:,} were due"
        elif len(earlier) >= FEWEST_NIGHTS:
            usual = statistics.median(one.get(stage, 0) for one in earlier)
            if count >= MOST_RATIO * usual:
                yield f"{stage}: {count:,}, {count / max(usual, 1):.1f} × the median of {len(earlier)} nights"
