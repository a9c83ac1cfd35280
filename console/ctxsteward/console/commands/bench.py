"""``ctxsteward evals bench``: the benchmarks, their bars, and the table of the docs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ctxsteward.evals.bench import BenchmarkRow
from ctxsteward.evals.bench.__main__ import BEGIN, BENCHES, END, with_table
from ctxsteward.schemas import InputError

from ..options import common, completer
from ..output import print_json


def bench_names() -> Sequence[str]:
    return tuple(_benches())


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completer(bench_names))
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
    benches = _benches()
    _check(names, tuple(benches), data, write)
    rows: list[BenchmarkRow] = []
    for name in names or benches:
        for row in benches[name](data):
            rows.append(row)
            if as_json:
                print_json(asdict(row))
            else:
                verdict = {True: "ok", False: "MISSED", None: ""}[row.ok]
                click.echo(f"{row.bench:<12} {row.what:<78} {row.value:>14} {row.bar:>8} {verdict}".rstrip())
    if write is not None:
        text = with_table(write.read_text(encoding="utf-8"), rows)
        write.write_text(text, encoding="utf-8", newline="\n")
    if any(row.ok is False for row in rows):
        raise SystemExit(1)


def _benches() -> dict[str, Callable[[Path | None], Iterator[BenchmarkRow]]]:
    return BENCHES


def _check(names: Sequence[str], known: Sequence[str], data: Path | None, write: Path | None) -> None:
    """Refuse what was asked wrongly before anything is measured."""
    for name in names:
        if name not in known:
            raise InputError(f"{name:.60}: no such benchmark; one of: {', '.join(known)}")
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: no such folder; name one of public transcripts, or leave it out")
    if write is not None:
        text = write.read_text(encoding="utf-8") if write.is_file() else ""
        if not 0 <= text.find(BEGIN) < text.find(END):
            raise InputError(f"--write {write}: no {BEGIN} followed by {END}; write them where the table belongs")
