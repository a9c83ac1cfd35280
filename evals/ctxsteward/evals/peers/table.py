"""The peers' block of `docs/benchmarks.md`, written by the command that measured it, between its markers."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..recall import MarkedBlock, with_block
from .judge import Inputs, PeerFigures

NAME = "peers"
EVERYTHING = "everything"
UNSCORED = "-"


class Column(NamedTuple):
    """A figure of each sender."""

    title: str
    value: Callable[[PeerFigures, PeerFigures], float | None]
    """Of a sender, beside everything; None: not scored."""
    shown: str
    best: Callable[[Sequence[float]], float] | None = None
    """Which of a column's values wins; None: nothing is to be won."""


def _bill(name: str, per: str, percent: bool = False) -> Callable[[PeerFigures, PeerFigures], float | None]:
    def value(one: PeerFigures, all: PeerFigures) -> float | None:
        if one.bill is None:
            return None
        amount: float = getattr(one.bill, name)
        if not per:
            return amount / getattr(all.bill, name) if all.bill is not None else None
        whole: int = getattr(one.bill, per)
        return (100 if percent else 1) * amount / max(1, whole)

    return value


def _canary(place: int) -> Callable[[PeerFigures, PeerFigures], float | None]:
    return lambda one, _: None if one.canaries is None else one.canaries[place]


def _recall(place: int) -> Callable[[PeerFigures, PeerFigures], float | None]:
    return lambda one, _: None if one.recall is None else one.recall[place]


def _call_ms(place: int) -> Callable[[PeerFigures, PeerFigures], float | None]:
    return lambda one, _: None if one.call_ms is None else one.call_ms[place]


COLUMNS = (
    Column("raw to everything", _bill("tokens", ""), "{:.2f}", min),
    Column("cache-priced to everything", _bill("priced", ""), "{:.2f}", min),
    Column("over budget, %", _bill("over_budget", "calls", percent=True), "{:.1f}", min),
    Column("refused, %", _bill("invalid", "calls", percent=True), "{:.1f}", min),
    Column("task shown, %", _bill("task_shown", "runs", percent=True), "{:.0f}", max),
    Column("task reachable, %", _bill("task_reachable", "runs", percent=True), "{:.0f}", max),
    Column("canaries shown, %", _canary(0), "{:.0f}", max),
    Column("reachable, %", _canary(1), "{:.0f}", max),
    Column("an hour later, %", _canary(2), "{:.0f}", max),
    Column("window to budget", _canary(3), "{:.1f}"),
    Column("recall, %", _recall(0), "{:.1f}", max),
    Column("window to budget", _recall(1), "{:.1f}"),
)


def columns(inputs: Inputs) -> tuple[Column, ...]:
    """All figures, with CPU at each length of history."""
    sizes = [len(said) - 2 * inputs.timed_calls for said in inputs.timed]
    timed = (Column(f"ms at {size:,}", _call_ms(place), "{:.2f}", min) for place, size in enumerate(sizes))
    return (*COLUMNS, *timed)


def peers_block(measured: Sequence[PeerFigures], inputs: Inputs, seconds: float) -> MarkedBlock:
    """The table, what it was measured on, and who was measured how."""
    return MarkedBlock(NAME, tuple(_lines(measured, inputs, seconds)))


def _lines(measured: Sequence[PeerFigures], inputs: Inputs, seconds: float) -> Iterator[str]:
    calls = sum(len(run.calls) for run in inputs.runs)
    canaries = sum(len(case.canaries) for case in inputs.scenarios)
    questions = sum(len(talk.questions) for talk in inputs.talks)
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
    """A row a sender; what won a column is bold."""
    yield f"| sent by | {' | '.join(column.title for column in shown)} |"
    yield "|---|" + "---:|" * len(shown)
    everything = next((one for one in measured if one.name == EVERYTHING), PeerFigures(name=EVERYTHING))
    won = [_won(measured, everything, column) for column in shown]
    for one in measured:
        cells = [
            _cell(column.value(one, everything), column.shown, best if one is not everything else None)
            for column, best in zip(shown, won, strict=True)
        ]
        yield f"| {one.name} | {' | '.join(cells)} |"


def _won(measured: Sequence[PeerFigures], everything: PeerFigures, column: Column) -> str | None:
    """The best value as it is shown, so that what looks equal wins alike."""
    if column.best is None:
        return None
    values = [value for one in measured if one is not everything
              and (value := column.value(one, everything)) is not None]  # fmt: skip
    return column.shown.format(column.best(values)) if values else None


def _cell(value: float | None, shown: str, best: str | None) -> str:
    if value is None:
        return UNSCORED
    text = shown.format(value)
    return f"**{text}**" if text == best else text


def write_table(path: Path, block: MarkedBlock) -> None:
    """Put the block between the document's markers and touch nothing else."""
    path.write_text(with_block(path.read_text(encoding="utf-8"), block), encoding="utf-8", newline="\n")
