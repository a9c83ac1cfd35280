"""Tool sequences: which tools follow each other, how often that ends in an error, and how its session went.

Diagnostics for people: no record is made of them. One table a transcript; tables add up in any order. A gram is 2 to
`MAX_GRAM` names of tools in the order in which they were called; calls without an answer are left out. Names that no
tool's author would choose (`tool_calls.is_tool`) count as ``(other)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..replayed import Replayed
from .tool_calls import is_tool, steps

MIN_GRAM = 2
MAX_GRAM = 4
OTHER = "(other)"
Gram = tuple[str, ...]


class Run(NamedTuple):
    """How often a sequence was seen."""

    times: int = 0
    sessions: int = 0
    failures: int = 0
    """Times that its last call came back with an error."""
    solved: int = 0
    """Sessions with it that solved their task."""
    unsolved: int = 0
    """Sessions with it that did not; the rest do not say."""


@dataclass(frozen=True, slots=True)
class SequenceTable:
    """Sequences and how often each was seen."""

    runs: Mapping[Gram, Run] = field(default_factory=dict)

    def __add__(self, other: SequenceTable) -> SequenceTable:
        return merged((self, other))

    def frequent(self, limit: int = 20, *, min_sessions: int = 2) -> tuple[tuple[Gram, Run], ...]:
        """The most frequent ones; of equal ones the longer, then by name."""
        rows = [row for row in self.runs.items() if row[1].sessions >= min_sessions]
        return tuple(sorted(rows, key=lambda row: (-row[1].times, -len(row[0]), row[0]))[:limit])


def sequences(replayed: Replayed) -> SequenceTable:
    """The sequences of one transcript; linear in its calls."""
    calls = [step for step in steps(replayed) if step.answer is not None]
    names = [step.tool if is_tool(step.tool) else OTHER for step in calls]
    counts: dict[Gram, list[int]] = {}
    for stop in range(MIN_GRAM, len(calls) + 1):
        failed = calls[stop - 1].failure is not None
        for size in range(MIN_GRAM, min(MAX_GRAM, stop) + 1):
            count = counts.setdefault(tuple(names[stop - size : stop]), [0, 0])
            count[0] += 1
            count[1] += failed
    solved, unsolved = int(replayed.succeeded is True), int(replayed.succeeded is False)
    return SequenceTable({gram: Run(times, 1, failed, solved, unsolved) for gram, (times, failed) in counts.items()})


def merged(tables: Iterable[SequenceTable]) -> SequenceTable:
    """The sum of tables, in any order."""
    runs: dict[Gram, Run] = {}
    for table in tables:
        for gram, run in table.runs.items():
            runs[gram] = Run(*map(sum, zip(runs.get(gram, Run()), run, strict=True)))
    return SequenceTable(runs)
