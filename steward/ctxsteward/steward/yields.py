"""Yields that are out of the ordinary: a stage that gave nothing, or much more than it does on other nights.

What a night reads is new each night (due, harvested, absorbed), what it knows grows (reconciled, admitted, fitted). A
reading stage that gave nothing though something was due raises an alert, unless all of it was none of the steward's
business (another profile's sessions, open ones, its own); so does a night with nothing due where nights have; a knowing
stage, where the night before had something. Three times the median of the last `ALERT_NIGHTS`
nights that read anything is too much, for every stage; fewer than three such nights judge nothing. Transcripts
that tell no time at all raise one, too, for what they say never fades.
Source: the layered-envelope design (zero yield, or three times the median, raises an alert).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from .nights import Night

READING = ("harvested", "absorbed")
KNOWING = ("reconciled", "admitted", "fitted")
JUDGED = ("due", *READING, *KNOWING)
"""Stages whose yields are watched; the others are yes or no."""
MOST_RATIO = 3.0
READABLE = "readable"
"""Beside the stages: how many of those due were the steward's to read."""
FEWEST_NIGHTS = 3
UNDATED, DATED_BY_FILE = "undated", "dated_by_file"
"""Beside the stages: transcripts that tell no time, and those whose file alone does."""
ALERT_NIGHTS = 7
"""Nights that a yield is judged against."""


def alerts(counts: Mapping[str, int], earlier: Sequence[Night]) -> tuple[str, ...]:
    """A line for each stage that is out of the ordinary; `earlier` nights, oldest first.

    >>> alerts({"due": 5, "harvested": 0}, [])
    ('harvested: nothing, though 5 were due',)
    """
    return tuple(_alerts(counts, [night.counts for night in earlier[-ALERT_NIGHTS:]]))


def dated_counts(dated: Mapping[str, int]) -> dict[str, int]:
    """What a night counts of where times are from (`replayed.Dated`); nothing where all tell their own."""
    counts = {UNDATED: dated.get("undated", 0), DATED_BY_FILE: dated.get("file", 0)}
    return {name: count for name, count in counts.items() if count}


def alerts_of(nights: Sequence[Night]) -> list[tuple[str, ...]]:
    """The alerts of each of these nights, oldest first, by those before it."""
    return [alerts(night.counts, nights[:at]) for at, night in enumerate(nights)]


def _alerts(counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    reading = [one for one in earlier if _readable(one)]
    for stage in JUDGED:
        count = counts.get(stage)
        if count is None:
            continue
        if count == 0:
            yield from _nothing(stage, counts, earlier)
        elif len(reading) >= FEWEST_NIGHTS:
            usual = statistics.median(one.get(stage, 0) for one in reading)
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
        usual = statistics.median(one.get(stage, 0) for one in earlier)
        if usual:
            yield f"due: nothing, though nights have {usual:,.0f}"


def _readable(counts: Mapping[str, int]) -> int:
    return counts.get(READABLE, counts.get("due", 0))
