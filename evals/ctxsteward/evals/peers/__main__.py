"""``python -m ctxsteward.evals.peers``: ours beside other libraries, on the same inputs, by the same judge.

Needs the peers' environment (``make peers`` builds it) and a folder of public transcripts. ``--write
docs/benchmarks.md`` puts the table between that file's markers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope.tokens import Counter, load_tokenizer
from ctxsteward.schemas import ContextError

from ..documents import check_markers, table, write_blocks
from ..prompt_cost import Sizer
from ..recall import RECALL_FRACTION
from ..subjects import PEERS, PEERS_PYTHON, AdapterProcess, EnvelopeSubject, NamedSubject, Subject, library_note
from .judge import RUNS, Inputs, PeerFigures, measure, read_inputs

NAME = "peers"
EVERYTHING = "everything"
UNSCORED = "-"


class PeerSetup(NamedTuple):
    """A subject as it is measured."""

    make: Callable[[], Subject]
    note: str


def peers(python: Path) -> dict[str, PeerSetup]:
    """Everybody who is measured, by name."""
    fractions = (("ours, recall 0.9", RECALL_FRACTION), ("ours, no recall", 0))
    return {
        EVERYTHING: PeerSetup(lambda: NamedSubject(EVERYTHING), "all messages"),
        "ours": PeerSetup(EnvelopeSubject, "defaults at this budget"),
        **{
            name: PeerSetup(
                partial(EnvelopeSubject, budgets={"recall_fraction": fraction}), f"`recall_fraction={fraction}`"
            )
            for name, fraction in fractions
        },
        **{name: PeerSetup(partial(AdapterProcess, name, python), library_note(name)) for name in PEERS},
    }


class Column(NamedTuple):
    """A figure of each subject."""

    title: str
    figure: str
    shown: str
    best: Callable[[Sequence[float]], float] | None = None
    """Which of a column's values wins; None: nothing is to be won."""
    per: str = ""
    """The figure it is a share of, in percent; ``everything``: it is a ratio to everything's."""

    def value(self, one: PeerFigures, everything: PeerFigures) -> float | None:
        """Of a subject, beside everything; None: not scored."""
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
    yield from figures_table(measured, columns(inputs))
    yield ""
    for one in measured:
        yield f"- {' '.join(filter(None, (one.name, one.version)))}: {one.note}"
        yield from (f"  - {what} not scored: {why}" for what, why in one.unscored.items())


def figures_table(measured: Sequence[PeerFigures], shown: Sequence[Column]) -> Iterator[str]:
    """A row a subject; what won a column, as it is shown, is bold, so that what looks equal wins alike."""
    everything = next((one for one in measured if one.name == EVERYTHING), PeerFigures(name=EVERYTHING))
    cells = {one.name: [one.name] for one in measured}
    for column in shown:
        values = {one.name: column.value(one, everything) for one in measured}
        rivals = [value for name, value in values.items() if name != EVERYTHING and value is not None]
        best = column.shown.format(column.best(rivals)) if column.best and rivals else None
        for name, value in values.items():
            text = UNSCORED if value is None else column.shown.format(value)
            cells[name].append(f"**{text}**" if text == best and name != EVERYTHING else text)
    yield from table(["sent by", *(column.title for column in shown)], cells.values())


# -- the command -----------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table; exit 2 on what cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.peers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of: {', '.join(peers(PEERS_PYTHON))}; default: all"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of public transcripts")
    parser.add_argument(
        "--python", type=Path, default=PEERS_PYTHON, help="of the peers' environment; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object a subject")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help=f"Markdown with <!-- {NAME} --> and <!-- /{NAME} -->"
    )
    options = parser.parse_args(argv)
    known = peers(options.python)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown subject {unknown[0]!r}; one of: {', '.join(known)}")
    missing = [name for name in RUNS if not (options.data / name).is_dir()]
    if missing:
        parser.error(f"--data {options.data}: no folder {missing[0]}; pass the folder of public transcripts")
    if not options.python.is_file():
        parser.error(f"--python {options.python}: no such file; run `make peers` first")
    try:
        if options.write:
            check_markers(options.write, NAME)
        _measure(options)
    except (ContextError, OSError) as error:
        parser.error(str(error))
    return 0


def _measure(options: argparse.Namespace) -> None:
    sizer = Sizer(Counter(load_tokenizer("o200k_base")))
    started = time.monotonic()
    _tell("reading inputs")
    inputs = read_inputs(options.data, sizer)
    known = peers(options.python)
    wanted = dict.fromkeys((EVERYTHING, *(options.names or known)))
    measured = [measure(name, known[name].make, inputs, sizer, note=known[name].note, tell=_tell) for name in wanted]
    if options.json:
        for one in measured:
            print(json.dumps(dataclasses.asdict(one), ensure_ascii=False))
    else:
        print("\n".join(figures_table(measured, columns(inputs))))
    if options.write:
        write_blocks(options.write, {NAME: peers_block(measured, inputs, time.monotonic() - started)})


def _tell(text: str) -> None:
    print(f"peers: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
