"""``python -m ctxsteward.evals.bench``: run benchmarks, print a table; exit 1 where a bar is missed.

``--write docs/benchmarks.md`` puts the table between that file's two markers as well; rows of benchmarks that were not
asked for stay as they are there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from ctxsteward.schemas import InputError

from ..documents import block_of, check_markers, markers, write_blocks
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
from .benchmark_row import BenchmarkRow

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
    "harness": unit_costs.harness_turns,
    "flips": flips.run,
    "steward": steward.run,
    "telemetry": telemetry.run,
    "runs": cascade_runs.run,
    "models": model_calls.run,
}

NAME = "bench"
_VERDICTS = {True: "ok", False: "missed", None: ""}


def run(
    names: Sequence[str], data: Path | None, write: Path | None, show: Callable[[BenchmarkRow], object]
) -> list[BenchmarkRow]:
    """The rows of the named benchmarks, or of all, which then stand in the document; `InputError` for bad names.

    What is wrong with the request is said before anything is measured.
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
            show(figure)
            rows.append(figure)
        if names and len(rows) == before:
            raise InputError(
                f"{name}: nothing was measured; {'is all in --data?' if data else 'give it --data FOLDER'}"
            )
    if write is not None:
        write_blocks(write, {NAME: bench_block(block_of(write.read_text(encoding="utf-8"), NAME), rows)})
    return rows


def line_of(found: BenchmarkRow) -> str:
    """A row as a terminal shows it."""
    verdict = {True: "ok", False: "MISSED", None: ""}[found.ok]
    return f"{found.bench:<12} {found.what:<78} {found.value:>14} {found.bar:>8} {verdict}".rstrip()


def bench_block(before: str, rows: Sequence[BenchmarkRow]) -> Iterator[str]:
    """These rows as a table, and those that stood there before of benchmarks that did not run."""
    ran = {row.bench for row in rows}
    kept = [line for line in before.splitlines() if (name := _bench_of(line)) in BENCHES and name not in ran]
    kept += [f"| {r.bench} | {r.what.strip()} | {r.value} | {r.bar} | {_VERDICTS[r.ok]} |" for r in rows]
    yield f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
    yield from ("", "| benchmark | row | figure | held to | |", "|---|---|---:|---:|---|")
    yield from sorted(kept, key=lambda line: [*BENCHES].index(_bench_of(line)))


def _bench_of(line: str) -> str:
    return line.removeprefix("| ").partition(" |")[0]


def main(argv: list[str] | None = None) -> int:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--data", type=Path, help="folder of public transcripts")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help=f"Markdown with {' and '.join(markers(NAME))}: table goes between"
    )
    options = parser.parse_args(argv)

    def show(found: BenchmarkRow) -> None:
        print(json.dumps(asdict(found), ensure_ascii=False) if options.json else line_of(found), flush=True)

    try:
        rows = run(options.names, options.data, options.write, show)
    except InputError as error:
        parser.error(str(error))
    return int(any(found.ok is False for found in rows))


if __name__ == "__main__":
    sys.exit(main())
