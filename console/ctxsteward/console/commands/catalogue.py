"""``ctxsteward evals list``, ``subjects``, ``discriminate``: what is played, who is judged, what tells them apart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
from ctxsteward.evals.intervals import promise_detects
from ctxsteward.evals.subjects import BASELINES, OURS, SUBJECTS, described, subject_named
from ctxsteward.evals.suites import NAMES, shipped_gates, suite_named

from ..terminal import common, completer, grid, note, print_json, progress, shown, table_console


def describe_suites() -> list[dict[str, Any]]:
    """Each suite with its figures and shipped gates, as JSON values."""
    gates = shipped_gates()
    return [
        {
            "suite": name,
            "about": suite_named(name).about,
            "scenarios": suite_named(name).scenarios,
            "promise_detects": promise_detects(suite_named(name).scenarios),
            "metrics": {metric.name: metric.about for metric in suite_named(name).metrics},
            "gates": {metric: [str(gate) for gate in each] for metric, each in gates.get(name, {}).items()},
        }
        for name in NAMES
    ]


def suites_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A row a figure, below its suite."""
    table = grid("suite, figures", "gate")
    for row in rows:
        rare = f"a promise notices a fault of {100 * row['promise_detects']:.0f} % of such"
        table.add_row(Text(f"{row['suite']}  ({row['scenarios']} scenarios: {rare})", style="bold"), "")
        table.add_row(shown(f"  {row['about']}", style="dim"), "")
        for name, about in row["metrics"].items():
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
            table.add_row(shown(f"    {about}", style="dim"), "")
    return table


@click.command("list")
@common
def list_suites(as_json: bool, store: str, tenant: str) -> None:
    """List the suites with their figures and the shipped gates."""
    rows = describe_suites()
    if as_json:
        for row in rows:
            print_json(row)
    else:
        table_console().print(suites_table(rows))


@click.command("subjects")
@common
def list_subjects(as_json: bool, store: str, tenant: str) -> None:
    """List the context strategies that suites can judge, and how to name one of your own."""
    rows = described()
    if as_json:
        for name, about in rows:
            print_json({"subject": name, "about": about})
        return
    table = grid("subject", "what it does")
    for name, about in rows:
        table.add_row(name, shown(about))
    table_console().print(table)


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
    for row in (row for row in rows if row.is_asked):
        if row.suite != suite:
            suite = row.suite
            table.add_row(Text(suite, style="bold"))
        cells = (Text(MARKS[row.colours[name]], style=STYLES[row.colours[name]]) for name in subjects)
        table.add_row(f"  {row.metric} {row.rule}", *cells)
    return table
