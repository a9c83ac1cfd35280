"""Time, memory and other figures beside the bars that they are held to; exit 1 where a bar is missed.

    python -m benchmarks.bench [NAME...] [--data FOLDER] [--write benchmarks/figures.md]

A benchmark is a function that yields rows; `BENCHES` has them by name. A figure is a ratio of two measurements of one
run, or a median of several; times are CPU time unless a row says wall. FOLDER holds the public transcripts
(``tau_bench_airline``, ``swe_agent``, ``locomo``).

``--write benchmarks/figures.md`` puts rows that are held to a bar, and those that pages quote, between that file's
two markers as well; rows of benchmarks that were not asked for stay as they are there.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ctxsteward.evals.documents import block_of, check_markers, write_blocks
from ctxsteward.schemas import InputError

from . import (
    cascade_runs,
    flips,
    model_calls,
    outage,
    steward,
    telemetry,
    transcripts,
    unit_costs,
    warm,
)
from .report import script
from .rows import BenchmarkRow

BENCHES: dict[str, Callable[[Path | None], Iterator[BenchmarkRow]]] = {
    "import": unit_costs.import_cost,
    "warm": warm.run,
    "cold": warm.run_cold,
    "first": unit_costs.first_sessions,
    "journal": outage.acknowledged,
    "store": unit_costs.shared_stores,
    "outage": outage.run,
    "audit": unit_costs.audits,
    "selection": unit_costs.rankings,
    "cards": unit_costs.cards,
    "transcripts": transcripts.run,
    "flips": flips.run,
    "steward": steward.run,
    "telemetry": telemetry.run,
    "runs": cascade_runs.run,
    "models": model_calls.run,
}

NAME = "bench"
QUOTED = frozenset(
    (
        "a user turn that recalls at 500 messages, p50",
        "append in a folder, p50 of 200 turns",
        "build in a folder, p50 of 200 turns",
        "append in PostgreSQL, p50 of 200 turns",
        "build in PostgreSQL, p50 of 200 turns",
        "CPU of the full night, 10,000 transcripts",
        "of the full night, its batches: reading, harvest, artifacts, a transcript",
        "the demo's incident, file store: metrics and a span add",
        "held out, beside it: 281 flips, blocked",
        "held out, beside it: 148 harmless edits, blocked",
        "research, 15 turns: tokens of sending everything, in 15 calls",
        "loop_until, 10 tries: tokens of sending everything, in 30 calls",
        "5 soundings: tokens of sending everything, in 50 calls",
    )
)
"""Rows without a bar that other pages quote, or that introduce the rows below them."""
_VERDICTS = {True: "ok", False: "missed", None: ""}


def run(names: Sequence[str], data: Path | None, write: Path | None) -> list[BenchmarkRow]:
    """Measure the named benchmarks, or all, print their rows, and write them into the document; raises `InputError`.

    The request is checked before anything is measured.
    """
    for name in names:
        if name not in BENCHES:
            raise InputError(f"{name:.60}: no such benchmark; one of: {', '.join(BENCHES)}")
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: no such folder; name one of public transcripts, or leave it out")
    if write is not None:
        check_markers(write, NAME)
    rows: list[BenchmarkRow] = []
    for name in names or BENCHES:
        before = len(rows)
        for figure in BENCHES[name](data):
            print(line_of(figure), flush=True)
            rows.append(figure)
        if names and len(rows) == before:
            raise InputError(
                f"{name}: nothing was measured; {'is all in --data?' if data else 'give it --data FOLDER'}"
            )
    if write is not None:
        write_blocks(write, {NAME: bench_block(block_of(write.read_text(encoding="utf-8"), NAME), rows)})
    return rows


def line_of(found: BenchmarkRow) -> str:
    """Return a row as a terminal shows it."""
    verdict = {True: "ok", False: "MISSED", None: ""}[found.ok]
    return f"{found.bench:<12} {found.what:<78} {found.value:>14} {found.bar:>8} {verdict}".rstrip()


def bench_block(before: str, rows: Sequence[BenchmarkRow]) -> Iterator[str]:
    """Yield the rows that have a bar or are quoted, and keep the rows of benchmarks that did not run."""
    ran = {row.bench for row in rows}
    kept = [line for line in before.splitlines() if (name := _bench_of(line)) in BENCHES and name not in ran]
    kept += [
        f"| {r.bench} | {r.what.strip()} | {r.value} | {r.bar} | {_VERDICTS[r.ok]} |"
        for r in rows
        if r.bar or r.what.strip() in QUOTED
    ]
    yield f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
    yield from ("", "| benchmark | row | figure | held to | |", "|---|---|---:|---:|---|")
    yield from sorted(kept, key=lambda line: [*BENCHES].index(_bench_of(line)))


def _bench_of(line: str) -> str:
    return line.removeprefix("| ").partition(" |")[0]


def main(argv: list[str] | None = None) -> int:
    """Run the named benchmarks, or all; exit 1 if a bar is missed."""
    parser = script(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--data", type=Path, help="folder of public transcripts")
    options = parser.parse_args(argv)
    try:
        rows = run(options.names, options.data, options.write)
    except InputError as error:
        parser.error(str(error))
    return int(any(row.ok is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
