"""``ctxsteward evals list`` and ``subjects``: what can be played, and who can be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ctxsteward.evals.intervals import promise_detects
from ctxsteward.evals.subjects import described
from ctxsteward.evals.suites import NAMES, shipped_gates, suite_named

from ..terminal import common, grid, print_json, shown, table_console


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
        for name in row["metrics"]:
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
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
