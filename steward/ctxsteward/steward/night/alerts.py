"""Stages of a night whose count is out of the ordinary, a line each.

That is: nothing read though something was due, nothing known though the night before had something, three times the
median of the last `ALERT_NIGHTS` nights that read anything (at least three), and transcripts without any time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from .chain import Night

READING = ("harvested", "absorbed")
KNOWING = ("reconciled", "admitted", "fitted")
JUDGED = ("due", *READING, *KNOWING)
"""Stages whose yields are watched; the others are yes or no."""
MOST_RATIO = 3.0
READABLE = "readable"
"""Counted beside the stages: how many of those due were the steward's to read."""
FEWEST_NIGHTS = 3
UNDATED, DATED_BY_FILE = "undated", "dated_by_file"
"""Counted beside the stages: transcripts without any time, and those of which only the file has one."""
ALERT_NIGHTS = 7
"""Nights that a yield is judged against."""


def alerts(counts: Mapping[str, int], earlier: Sequence[Night]) -> tuple[str, ...]:
    """A line for each stage that is out of the ordinary; `earlier` nights, oldest first.

    >>> alerts({"due": 5, "harvested": 0}, [])
    ('harvested: nothing, though 5 were due',)
    """
    return tuple(_alerts(counts, [night.counts for night in earlier[-ALERT_NIGHTS:]]))


def dated_counts(dated: Mapping[str, int]) -> dict[str, int]:
    """What a night counts of where times are from (`transcript.Dated`); nothing where all have their own."""
    counts = {UNDATED: dated.get("undated", 0), DATED_BY_FILE: dated.get("file", 0)}
    return {name: count for name, count in counts.items() if count}


def alerts_of(nights: Sequence[Night]) -> list[tuple[str, ...]]:
    """The alerts of each of these nights, oldest first, by those before it."""
    return [alerts(night.counts, nights[:at]) for at, night in enumerate(nights)]


def _alerts(counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    reading = [night for night in earlier if _readable(night)]
    for stage in JUDGED:
        count = counts.get(stage)
        if count is None:
            continue
        if count == 0:
            yield from _nothing(stage, counts, earlier)
        elif len(reading) >= FEWEST_NIGHTS:
            usual = statistics.median(night.get(stage, 0) for night in reading)
            if count >= MOST_RATIO * max(usual, 1):
                yield f"{stage}: {count:,}, {count / max(usual, 1):.1f} × the median of {len(reading)} nights"
    yield from _times(counts)


def _times(counts: Mapping[str, int]) -> Iterator[str]:
    if undated := counts.get(UNDATED, 0):
        yield f"times: {undated:,} transcripts tell none, so what they say never fades; give messages a `ts`"


def _nothing(stage: str, counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    due = _readable(counts)
    before = earlier[-1].get(stage, 0) if earlier else 0
    if stage in READING and due:
        yield f"{stage}: nothing, though {due:,} were due"
    elif stage in KNOWING and before:
        yield f"{stage}: nothing, though the night before had {before:,}"
    elif stage == "due" and len(earlier) >= FEWEST_NIGHTS:
        usual = statistics.median(night.get(stage, 0) for night in earlier)
        if usual:
            yield f"due: nothing, though nights have {usual:,.0f}"


def _readable(counts: Mapping[str, int]) -> int:
    return counts.get(READABLE, counts.get("due", 0))
