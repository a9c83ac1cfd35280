"""``ctxsteward evals discriminate``: suites × subjects, which gates turn red for whom."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from ctxsteward.evals.discrimination import (
    NAME,
    SCENARIOS,
    GateColours,
    discriminated,
    discrimination_block,
    findings,
)
from ctxsteward.evals.documents import check_markers, write_blocks
from ctxsteward.evals.subjects import BASELINES, OURS, SUBJECTS, subject_named
from ctxsteward.evals.suites import NAMES, suite_named

from ..terminal import common, completer, grid, note, print_json, progress, table_console

MARKS = {"green": "✓", "red": "✗", "unscored": "·"}
STYLES = {"green": "green", "red": "bold red", "unscored": "dim"}


@click.command()
@click.argument("suites", nargs=-1, shell_complete=completer(NAMES))
@click.option(
    "--subject", "subjects", multiple=True, metavar="NAME", shell_complete=completer(SUBJECTS),
    help="Who is judged; repeatable. Default: ours and all baselines.",
)  # fmt: skip
@click.option("--scenarios", type=click.IntRange(1, 1_000), default=SCENARIOS, show_default=True, metavar="N")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Processes; default: one a core.")
@click.option(
    "--write", type=click.Path(path_type=Path), metavar="FILE",
    help=f"Markdown with <!-- {NAME} --> and <!-- /{NAME} -->, between which the table is put.",
)  # fmt: skip
@common
def discriminate(
    suites: tuple[str, ...], subjects: tuple[str, ...], scenarios: int, workers: int | None, write: Path | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Play SUITES (default: all) with several subjects, and tell which gates turn red for whom.

    A gate that is red for nobody cannot fail, or nobody needs it. Exit 0 whatever the colours are.
    """
    names = [suite_named(name).name for name in suites or NAMES]
    judged = list(dict.fromkeys(subjects or (OURS, *BASELINES)))
    for subject in judged:
        subject_named(subject)
    if write is not None:
        check_markers(write, NAME)
    with progress("evals", shown=not as_json) as tell:
        rows = list(
            discriminated(names, judged, scenarios=scenarios, workers=workers or os.cpu_count() or 1, tell=tell)
        )
    if write is not None:
        write_blocks(write, {NAME: discrimination_block(rows, judged, scenarios)})
    if as_json:
        for row in rows:
            print_json({"suite": row.suite, "metric": row.metric, "rule": row.rule, "colours": row.colours,
                        "values": row.values})  # fmt: skip
        return
    table_console().print(_table(rows, judged))
    note(", ".join(f"{number} {name}" for number, name in enumerate(judged, 1)))
    for line in findings(rows):
        note(line.removeprefix("- "))


def _table(rows: list[GateColours], subjects: list[str]) -> Table:
    """A row a gate below its suite, a column a subject under its number."""
    table = grid("gate", *(str(number) for number, _ in enumerate(subjects, 1)))
    suite = ""
    for row in rows:
        if row.suite != suite:
            suite = row.suite
            table.add_row(Text(suite, style="bold"))
        cells = (Text(MARKS[row.colours[name]], style=STYLES[row.colours[name]]) for name in subjects)
        table.add_row(f"  {row.metric} {row.rule}", *cells)
    return table
