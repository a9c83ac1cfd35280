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

from . import BenchmarkRow, cards, cold, flips, journal, outage, steward, telemetry, transcripts, unit_costs, warm

BENCHES: dict[str, Callable[[Path | None], Iterator[BenchmarkRow]]] = {
    "import": unit_costs.import_cost,
    "warm": warm.run,
    "cold": cold.run,
    "first": unit_costs.first_sessions,
    "journal": journal.run,
    "outage": outage.run,
    "audit": unit_costs.audits,
    "selection": unit_costs.rankings,
    "cards": cards.run,
    "transcripts": transcripts.run,
    "harness": unit_costs.harness_turns,
    "flips": flips.run,
    "steward": steward.run,
    "telemetry": telemetry.run,
}

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"


def main(argv: list[str] | None = None) -> int:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--data", type=Path, help="folder of public transcripts")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help=f"Markdown with {BEGIN} and {END}: table goes between"
    )
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; one of: {', '.join(BENCHES)}")
    if options.write and not (options.write.is_file() and _marked(options.write.read_text(encoding="utf-8"))):
        parser.error(f"{options.write}: no {BEGIN} followed by {END}; write them where the table belongs")
    rows: list[BenchmarkRow] = []
    for name in options.names or BENCHES:
        for found in BENCHES[name](options.data):
            rows.append(found)
            print(json.dumps(asdict(found), ensure_ascii=False) if options.json else _line(found), flush=True)
    if options.write:
        text = with_table(options.write.read_text(encoding="utf-8"), rows)
        options.write.write_text(text, encoding="utf-8", newline="\n")
    return 1 if any(found.ok is False for found in rows) else 0


def _line(found: BenchmarkRow) -> str:
    verdict = {True: "ok", False: "MISSED", None: ""}[found.ok]
    return f"{found.bench:<12} {found.what:<78} {found.value:>14} {found.bar:>8} {verdict}".rstrip()


def with_table(text: str, rows: Sequence[BenchmarkRow]) -> str:
    """The text with these rows between its markers; what stood there of benchmarks that did not run stays."""
    verdicts = {True: "ok", False: "missed", None: ""}
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    before = [line for line in text[start:stop].splitlines() if _bench_of(line) in BENCHES]
    ran = {row.bench for row in rows}
    table = [line for line in before if _bench_of(line) not in ran]
    table += [f"| {r.bench} | {r.what.strip()} | {r.value} | {r.bar} | {verdicts[r.ok]} |" for r in rows]
    table.sort(key=lambda line: [*BENCHES].index(_bench_of(line)))
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
    head = ["| benchmark | row | figure | held to | |", "|---|---|---:|---:|---|"]
    return "\n".join([text[:start], machine, "", *head, *table, text[stop:]])


def _bench_of(line: str) -> str:
    return line.removeprefix("| ").partition(" |")[0]


def _marked(text: str) -> bool:
    return 0 <= text.find(BEGIN) < text.find(END)


if __name__ == "__main__":
    sys.exit(main())
