"""Report unusual counts of a night's stages, a line for each.

A count is unusual if nothing was read though something was due, if nothing was reconciled, admitted or fitted though
the night before had something, or if it is three times the median of the last `ALERT_NIGHTS` nights that read anything
(at least three). Transcripts without any time are reported, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chain import Night

READING = ("harvested", "absorbed")
KNOWING = ("reconciled", "admitted", "fitted")
JUDGED = ("due", *READING, *KNOWING)
"""Stages whose counts are checked; the other stages are yes or no."""
MOST_RATIO = 3.0
READABLE = "readable"
"""Name of the count of due transcripts that the steward may read."""
FEWEST_NIGHTS = 3
UNDATED, DATED_BY_FILE = "undated", "dated_by_file"
"""Names of the counts of transcripts without any time, and of transcripts whose only time is their file's."""
ALERT_NIGHTS = 7
"""Earlier nights with which counts are compared."""


def alerts(counts: Mapping[str, int], earlier: Sequence[Night]) -> tuple[str, ...]:
    """Return a line for each unusual count; `earlier` nights are sorted, oldest first.

    >>> alerts({"due": 5, "harvested": 0}, [])
    ('harvested: nothing, though 5 were due',)
    """
    before = [night.counts for night in earlier[-ALERT_NIGHTS:]]
    reading = [each for each in before if _readable(each)]
    lines: list[str] = []
    for stage in JUDGED:
        count = counts.get(stage)
        if count == 0:
            lines += _nothing(stage, _readable(counts), before)
        elif count is not None and len(reading) >= FEWEST_NIGHTS:
            usual = max(statistics.median(each.get(stage, 0) for each in reading), 1)
            if count >= MOST_RATIO * usual:
                lines.append(f"{stage}: {count:,}, {count / usual:.1f} × the median of {len(reading)} nights")
    if undated := counts.get(UNDATED, 0):
        lines.append(f"times: {undated:,} transcripts have none, so their records never fade; give messages a `ts`")
    return tuple(lines)


def _nothing(stage: str, due: int, before: Sequence[Mapping[str, int]]) -> Iterator[str]:
    last = before[-1].get(stage, 0) if before else 0
    if stage in READING and due:
        yield f"{stage}: nothing, though {due:,} were due"
    elif stage in KNOWING and last:
        yield f"{stage}: nothing, though the night before had {last:,}"
    elif stage == "due" and len(before) >= FEWEST_NIGHTS:
        usual = statistics.median(each.get(stage, 0) for each in before)
        if usual:
            yield f"due: nothing, though nights have {usual:,.0f}"


def _readable(counts: Mapping[str, int]) -> int:
    return counts.get(READABLE, counts.get("due", 0))


def dated_counts(dated: Mapping[str, int]) -> dict[str, int]:
    """Count transcripts without times of their own, by the source of their time (`transcript.Dated`)."""
    counts = {UNDATED: dated.get("undated", 0), DATED_BY_FILE: dated.get("file", 0)}
    return {name: count for name, count in counts.items() if count}
