"""``ctxsteward evals compare``: two runs of suites, paired by scenario.

Raises `InputError` for files that hold no results, and for runs that did not ask the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ctxsteward.evals.result_comparison import ResultComparison, compare_runs
from ctxsteward.evals.result_formats import compared_runs, comparison, figure_cells, gate_change, summary
from ctxsteward.evals.suites import NAMES, suite_named
from ctxsteward.schemas import EvalResult, InputError

from ..terminal import common, completer, grid, note, print_json, shown, table_console

COLOURS = {"better": "green", "worse": "bold red", "": ""}


def comparison_table(compared: ResultComparison) -> Table:
    """A row a figure."""
    numbers = ("before", "after", "differs", "p")
    table = grid(compared.suite, "before", "after", "differs", "95 %", "p", "", numbers=numbers)
    for cells in map(figure_cells, compared.figures):
        *values, between, p, surely = cells
        table.add_row(*values, between.replace(" to ", "…"), p, shown(surely, style=COLOURS[surely]))
    return table


def comparison_json(compared: ResultComparison) -> dict[str, Any]:
    """One suite as JSON values."""

    def run(result: EvalResult) -> dict[str, Any]:
        told = ("product", "revision", "when", "scenarios", "reproduce")
        return {name: getattr(result, name) for name in told}

    figures = [{name: getattr(figure, name) for name in figure.__slots__} for figure in compared.figures]
    return {
        "suite": compared.suite, "split": compared.split, "before": run(compared.before), "after": run(compared.after),
        "scenario_ids": compared.scenario_ids, "meant": [one._asdict() for one in compared.meant], "figures": figures,
        "gates": [gate._asdict() for gate in compared.gates],
    }  # fmt: skip


def _metric_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    names = {metric.name for name in NAMES for metric in suite_named(name).metrics}
    return sorted(name for name in names if name.startswith(incomplete))


def _settings(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Settings of the newest result in the first file."""
    file = ctx.params.get("before") or next(iter(ctx.args), "")  # click leaves arguments where an option is unfinished
    try:
        *_, line = Path(file).read_text(encoding="utf-8").splitlines()
        names = json.loads(line)["setup"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--suite", metavar="NAME", shell_complete=completer(NAMES), help="Only this suite.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", shell_complete=_metric_names,
    help="Only this figure; repeatable.",
)  # fmt: skip
@click.option(
    "--meant", multiple=True, metavar="SETTING", shell_complete=_settings,
    help="A setting that is meant to differ, such as budgets.dynamic_tokens; repeatable.",
)  # fmt: skip
@click.option(
    "--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write the comparison as Markdown as well."
)
@common
def compare(
    before: str, after: str, suite: str | None, metrics: tuple[str, ...], meant: tuple[str, ...],
    markdown: Path | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Compare two runs, figure by figure, over the scenarios that both played.

    BEFORE and AFTER are files of results: what `evals run --json` printed, or a history. The newest result of each
    suite counts; FILE@WHICH takes that of a revision, or of a time that begins so.

    The runs must have asked the same: split, budgets, model, summarizer. Product and revision may differ.
    """
    if suite is not None:
        suite_named(suite)
    compared = compare_runs(before, after, suite=suite, metrics=metrics, meant=meant)
    if markdown is not None:
        _write(markdown, compared)
    if as_json:
        for one in compared:
            print_json(comparison_json(one))
        return

    console = table_console()
    for one in compared:
        console.print(comparison_table(one))
        for line in (*compared_runs(one), *map(gate_change, one.gates)):
            console.print(shown(f"  {line}"))
    note(summary(compared))


def _write(path: Path, compared: Sequence[ResultComparison]) -> None:
    try:
        path.write_text(comparison(compared), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"--markdown {path}: cannot be written ({error.strerror})") from error
