"""The peers' block of `docs/benchmarks.md`, written by the command that measured it, between its markers."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .. import documents
from .judge import Inputs, PeerFigures

NAME = "peers"
EVERYTHING = "everything"
UNSCORED = "-"


class Column(NamedTuple):
    """A figure of each sender."""

    title: str
    figure: str
    shown: str
    best: Callable[[Sequence[float]], float] | None = None
    """Which of a column's values wins; None: nothing is to be won."""
    per: str = ""
    """The figure it is a share of, in percent; ``everything``: it is a ratio to everything's."""

    def value(self, one: PeerFigures, everything: PeerFigures) -> float | None:
        """Of a sender, beside everything; None: not scored."""
        amount = one.figures.get(self.figure)
        if amount is None or not self.per:
            return amount
        if self.per == EVERYTHING:
            whole = everything.figures.get(self.figure)
            return None if whole is None else amount / whole
        return 100 * amount / max(1, one.figures[self.per])


COLUMNS = (
    Column("raw to everything", "tokens", "{:.2f}", min, EVERYTHING),
    Column("cache-priced to everything", "priced", "{:.2f}", min, EVERYTHING),
    Column("over budget, %", "over_budget", "{:.1f}", min, "calls"),
    Column("refused, %", "invalid", "{:.1f}", min, "calls"),
    Column("task shown, %", "task_shown", "{:.0f}", max, "runs"),
    Column("task reachable, %", "task_reachable", "{:.0f}", max, "runs"),
    Column("canaries shown, %", "canaries shown", "{:.0f}", max),
    Column("reachable, %", "reachable", "{:.0f}", max),
    Column("an hour later, %", "later", "{:.0f}", max),
    Column("window to budget", "canaries fill", "{:.1f}"),
    Column("recall, %", "recall", "{:.1f}", max),
    Column("window to budget", "recall fill", "{:.1f}"),
)


def columns(inputs: Inputs) -> tuple[Column, ...]:
    """All figures, with CPU at each length of history."""
    timed = (f"ms at {size:,}" for size in inputs.timed_sizes)
    return (*COLUMNS, *(Column(title, title, "{:.2f}", min) for title in timed))


def peers_block(measured: Sequence[PeerFigures], inputs: Inputs, seconds: float) -> Iterator[str]:
    """The table, what it was measured on, and who was measured how."""
    calls = sum(len(run.seen) for run in inputs.runs)
    canaries = sum(len(case.canaries) for case in inputs.scenarios)
    questions = sum(len(asked) for _, asked in inputs.talks)
    yield (
        f"One run, {seconds / 60:.0f} minutes. Python {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores. {len(inputs.runs):,} agent runs, {calls:,} calls; {canaries:,} canaries in "
        f"{len(inputs.scenarios)} scenarios; {questions:,} questions about {len(inputs.talks)} conversations. "
        "Bold: the best of a column, everything itself apart."
    )
    yield ""
    yield from table(measured, columns(inputs))
    yield ""
    for one in measured:
        version = f" {one.about.version}" if one.about.version else ""
        yield f"- {one.name}{version}: {one.about.note}"
        yield from (f"  - {what} not scored: {why}" for what, why in one.unscored.items())


def table(measured: Sequence[PeerFigures], shown: Sequence[Column]) -> Iterator[str]:
    """A row a sender; what won a column, as it is shown, is bold, so that what looks equal wins alike."""
    everything = next((one for one in measured if one.name == EVERYTHING), PeerFigures(name=EVERYTHING))
    cells = {one.name: [one.name] for one in measured}
    for column in shown:
        values = {one.name: column.value(one, everything) for one in measured}
        rivals = [value for name, value in values.items() if name != EVERYTHING and value is not None]
        best = column.shown.format(column.best(rivals)) if column.best and rivals else None
        for name, value in values.items():
            text = UNSCORED if value is None else column.shown.format(value)
            cells[name].append(f"**{text}**" if text == best and name != EVERYTHING else text)
    yield from documents.table(["sent by", *(column.title for column in shown)], cells.values())
