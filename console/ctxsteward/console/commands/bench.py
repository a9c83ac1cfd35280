"""``ctxsteward evals bench``: the benchmarks, their bars, and the table of the docs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ctxsteward.evals.bench import BENCHES, BenchmarkRow, line_of, run

from ..terminal import common, completer, print_json


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completer(tuple(BENCHES)))
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Public transcripts, for some of them.")
@click.option(
    "--write", type=click.Path(path_type=Path), metavar="FILE",
    help="Put the table between the markers of this Markdown.",
)  # fmt: skip
@common
def bench(
    names: tuple[str, ...], data: Path | None, write: Path | None, as_json: bool, store: str, tenant: str
) -> None:
    """Run the benchmarks with these names, or all of them, which takes minutes.

    All input is seeded, or from --data. Nothing is stored.
    """
    rows = run(names, data, write, (lambda row: print_json(asdict(row))) if as_json else _echo)
    if any(row.ok is False for row in rows):
        raise SystemExit(1)


def _echo(row: BenchmarkRow) -> None:
    click.echo(line_of(row))
