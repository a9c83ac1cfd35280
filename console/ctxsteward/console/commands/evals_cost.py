"""``ctxsteward evals cost``: what a context policy costs on agent runs, beside baselines and hindsight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..failures import FOUND
from ..options import DEFAULT_MODEL, budget_names, common, read_builder
from ..output import note, print_json, progress, table_console

if TYPE_CHECKING:
    from ctxsteward.evals.cost import Row
    from ctxsteward.evals.cost_prompts import Prices
    from ctxsteward.evals.cost_tables import Measured

WRITTEN_BUDGETS = ("dynamic_tokens=900", "dynamic_tokens=4000")


@click.command(short_help="What do prompts cost on these agent runs, raw and cache-priced?")
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@click.option("--model", default=DEFAULT_MODEL, show_default=True, metavar="NAME", help="Whose tokens and cache count.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="KEY=NUMBER",
    shell_complete=lambda ctx, parameter, text: [f"{name}=" for name in budget_names() if name.startswith(text)],
    help="A field of Budgets, such as dynamic_tokens=4000; repeatable.",
)
@click.option("--cached-price", type=float, default=0.1, show_default=True, help="Of a token that the cache served.")
@click.option(
    "--write-price", type=float, default=1.0, show_default=True, help="Of one that it did not; Anthropic 1.25."
)
@click.option("--cache-block", type=int, metavar="TOKENS", help="The shortest cached prefix; default: the model's.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put the tables between the markers of this Markdown.")
@click.option("--gate", is_flag=True, help="Exit 1 where our default does not hold its bars.")
@common
def cost(
    data: tuple[str, ...],
    model: str,
    budgets: tuple[str, ...],
    cached_price: float,
    write_price: float,
    cache_block: int | None,
    write: str | None,
    gate: bool,
    as_json: bool,
    store: str,
    tenant: str,
) -> int:
    """Measure prompt tokens on DATA: files of agent runs, in any format that is read, or folders of them.

    Ours as it is by default and without recall; masking tool results never, at every step, at every tenth;
    a window of five steps; and the cheapest masking schedule there was, known in hindsight. Nothing is
    stored. --write measures at 900 and at 4,000 tokens, unless --budget says otherwise.
    """
    from ctxsteward.evals.cost import missed_bars
    from ctxsteward.evals.cost_tables import NAME, write_tables
    from ctxsteward.evals.recall_tables import check_markers

    prices = _prices(model, cached_price, write_price, cache_block)
    if write is not None:
        check_markers(Path(write), (NAME,))
    wanted = [(one,) for one in WRITTEN_BUDGETS] if write is not None and not budgets else [budgets]
    with progress("cost", shown=not as_json) as tell:
        measured = [_measure(data, model, chosen, prices, tell) for chosen in wanted]
    if write is not None:
        write_tables(Path(write), measured, prices)
    for one in measured:
        if as_json:
            for row in one.rows:
                print_json({"suite": "cost", "dynamic_tokens": one.dynamic_tokens, **row._asdict()})
        elif write is None:
            _print_tables(one)
    missed = [text for one in measured for text in missed_bars(one.rows)] if gate else []
    for text in missed:
        note(f"gate: {text}")
    return FOUND if missed else 0


def _prices(model: str, cached: float, write: float, block: int | None) -> Prices:
    from ctxsteward.envelope.models import model_info
    from ctxsteward.evals.cost_prompts import Prices
    from ctxsteward.schemas import InputError

    read_builder(model, ())  # an unknown model says so with its nearest names
    if block is not None and block < 0:
        raise InputError(f"--cache-block {block}: expected 0 or more tokens")
    return Prices(
        cached=cached, write=write, block_tokens=model_info(model).cache_block_tokens if block is None else block
    )


def _measure(
    data: Sequence[str], model: str, budgets: Sequence[str], prices: Prices, tell: Callable[[str], None]
) -> Measured:
    from ctxsteward.evals.cost import OURS, OURS_WITHOUT_RECALL, measure
    from ctxsteward.evals.cost_tables import Measured

    builder = read_builder(model, budgets)
    builders = {OURS: builder, OURS_WITHOUT_RECALL: read_builder(model, (*budgets, "recall_fraction=0"))}
    return Measured(builder.budgets.dynamic_tokens, measure(data, builders, prices=prices, tell=tell))


def _print_tables(measured: Measured) -> None:
    from ctxsteward.evals.cost_tables import grouped, title

    from ..tables import grid

    columns: dict[str, Callable[[Row], str]] = {
        "raw": lambda row: f"{row.raw_ratio:.2f}",
        "priced": lambda row: f"{row.priced_ratio:.2f}",
        "best": lambda row: f"{row.hindsight_ratio:.2f}",
        "cached": lambda row: f"{row.prefix_reuse:.0%}",
        "cuts": lambda row: f"{row.compactions:,}",
        "over": lambda row: f"{row.over_budget:.0%}",
        "bad": lambda row: f"{row.invalid:.0%}",
        "task": lambda row: f"{row.task_reachable:.0%}",
    }
    console = table_console()
    for rows in grouped(measured.rows).values():
        table = grid("", *columns, numbers=list(columns))
        for row in rows:
            table.add_row(row.strategy, *(show(row) for show in columns.values()))
        console.print(title(rows, measured.dynamic_tokens))
        console.print(table)
    console.print("raw, priced: tokens to sending everything, plain and with the cached prefix at its price;\n"
                  "best: priced, to the best masking in hindsight; cached: tokens that the cache served;\n"
                  "cuts: compactions; over: calls over budget; bad: calls a provider would refuse;\n"
                  "task: runs that keep their task at every call, shown or by reference")  # fmt: skip
