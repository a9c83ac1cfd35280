"""``python -m ctxsteward.evals.bench``: run benchmarks, print a table; exit 1 where a bar is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from . import Row, canaries, cold, imports, transcripts, warm

BENCHES: dict[str, Callable[[Path | None], Iterator[Row]]] = {
    module.NAME: module.run for module in (imports, warm, cold, transcripts, canaries)
}


def main(argv: list[str] | None = None) -> int:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--data", type=Path, help="folder of public transcripts")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; one of: {', '.join(BENCHES)}")
    missed = 0
    for name in options.names or BENCHES:
        for found in BENCHES[name](options.data):
            missed += found.ok is False
            print(json.dumps(asdict(found), ensure_ascii=False) if options.json else _line(found), flush=True)
    return 1 if missed else 0


def _line(found: Row) -> str:
    verdict = {True: "ok", False: "MISSED", None: ""}[found.ok]
    return f"{found.bench:<12} {found.what:<78} {found.value:>14} {found.bar:>8} {verdict}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
