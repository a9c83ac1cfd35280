"""``ctxsteward evals``: what the product is held to, measured on your data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import common, completer
from ..output import print_json, progress, table_console
from .evals_bench import bench
from .evals_cost import cost
from .evals_run import list_suites, run

if TYPE_CHECKING:
    from ctxsteward.evals.recall import Row

MOST_BUDGET_TOKENS = 1_000_000


def strategy_names() -> tuple[str, ...]:
    from ctxsteward.evals.selectors import STRATEGIES

    return tuple(STRATEGIES)


@click.group(short_help="Long-horizon suites held to gates; recall and cost on your data.")
def evals() -> None:
    """Hold what envelopes show, and what they cost, to numbers."""


for _command in (list_suites, run, cost, bench):
    evals.add_command(_command)


@evals.command(short_help="Is the evidence for each question in the envelope?")
@click.argument("data", type=click.Path())
@click.option("--budgets", default="500,900,2000,4000", show_default=True, metavar="N,…", help="Tokens for recall.")
@click.option(
    "--strategy", default="heuristic", show_default=True, metavar="NAME", shell_complete=completer(strategy_names),
    help="How originals are ranked: recency, heuristic, semantic, hybrid.",
)  # fmt: skip
@click.option("--defaults", is_flag=True, help="The budgets are of the whole window, recall has its default share.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put all tables between the markers of this Markdown.")
@common
def recall(
    data: str, budgets: str, strategy: str, defaults: bool, write: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Measure recall on DATA, a LoCoMo file with questions.

    For each question: the share of the turns that answer it which the envelope shows word for word, at several
    budgets: of recall alone, or with --defaults of the window. Nothing is stored. --write measures every
    strategy and every variant, which takes minutes.
    """
    from ctxsteward.evals.recall import measure
    from ctxsteward.evals.recall_tables import check_markers, write_tables
    from ctxsteward.evals.selectors import STRATEGIES
    from ctxsteward.schemas import InputError

    budgets_tokens = _budgets(budgets)
    if strategy not in STRATEGIES:
        raise InputError(f"--strategy {strategy}: no such strategy; one of: {', '.join(STRATEGIES)}")
    if write is not None:
        check_markers(Path(write))
    with progress("recall", shown=not as_json) as tell:
        if write is not None:
            write_tables(Path(write), Path(data), budgets_tokens, tell)
            return
        rows = measure(data, selector=STRATEGIES[strategy], budgets_tokens=budgets_tokens, defaults=defaults, tell=tell)
    if as_json:
        for row in rows:
            print_json({"suite": "recall", "strategy": strategy, "defaults": defaults, **row._asdict()})
    else:
        _print_table(rows)


def _budgets(text: str) -> tuple[int, ...]:
    from ctxsteward.schemas import InputError

    parts = [part.strip() for part in text.split(",")]
    if not all(
        part.isascii() and part.isdecimal() and len(part) < 8 and 0 < int(part) <= MOST_BUDGET_TOKENS for part in parts
    ):
        raise InputError(
            f"--budgets {text:.60}: not numbers of tokens from 1 to {MOST_BUDGET_TOKENS:,}, such as 500,900"
        )
    return tuple(map(int, parts))


def _print_table(rows: list[Row]) -> None:
    from ..tables import grid

    budgets = [f"{row.budget_tokens:,}" for row in rows]
    table = grid(f"{rows[0].questions:,} questions", *budgets, numbers=budgets)
    table.add_row("evidence shown, %", *(f"{row.mean:.1f}" for row in rows))
    table.add_row("all of it shown, %", *(f"{row.all_shown:.1f}" for row in rows))
    table.add_row("reachable, %", *(f"{row.reachable:.1f}" for row in rows))
    for name in rows[0].by_category:
        table.add_row(f"shown, {name}, %", *(f"{row.by_category[name]:.1f}" for row in rows))
    table.add_row("tokens recalled", *(f"{row.context_tokens_mean:,.0f}" for row in rows))
    table.add_row("ranking p50, ms of CPU", *(f"{row.select_ms_p50:.2f}" for row in rows))
    table_console().print(table)
