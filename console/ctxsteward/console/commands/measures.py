"""``ctxsteward evals cost`` and ``recall``: what prompts cost, and what recall shows, on data of your own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ctxsteward.envelope import Prices, model_info
from ctxsteward.evals.asked_chats import Half, is_chat_folder, measure_chats, read_chats
from ctxsteward.evals.cost import (
    AGENT,
    OURS,
    OURS_WITHOUT_RECALL,
    CostRow,
    agent_builder,
    grouped,
    measure,
    missed_bars,
    title,
)
from ctxsteward.evals.rankings import RANKINGS
from ctxsteward.evals.recall import RecallRow, measure as measure_recall
from ctxsteward.schemas import InputError

from ..terminal.failures import FOUND
from ..terminal.options import budget_option, completer, json_option, model_option, read_builder
from ..terminal.output import note, print_json, progress, table_console
from ..terminal.tables import grid

COST_COLUMNS: dict[str, Callable[[CostRow], str]] = {
    "raw": lambda row: f"{row.raw_ratio:.2f}",
    "priced": lambda row: f"{row.priced_ratio:.2f}",
    "cached": lambda row: f"{row.prefix_reuse:.0%}",
    "cuts": lambda row: f"{row.compactions:,}",
    "over": lambda row: f"{row.over_budget:.0%}",
    "bad": lambda row: f"{row.invalid:.0%}",
    "task": lambda row: f"{row.task_reachable:.0%}",
}
COST_LEGEND = (
    "raw, priced: tokens to sending everything, plain and with the cached prefix at its price;\n"
    "cached: tokens that the cache served; cuts: compactions; over: calls over budget;\n"
    "bad: calls a provider would refuse; task: runs that keep their task at every call, shown or by reference"
)


@click.command()
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@model_option("Whose tokens and cache count.")
@budget_option("A field of Budgets, such as dynamic_tokens=4000; repeatable.")
@click.option("--cached-price", type=float, default=0.1, show_default=True, help="Of a token that the cache served.")
@click.option(
    "--write-price", type=float, default=1.0, show_default=True, help="Of one that it did not; Anthropic 1.25."
)
@click.option("--cache-block", type=int, metavar="TOKENS", help="The shortest cached prefix; default: the model's.")
@click.option("--gate", is_flag=True, help="Exit 1 where our default does not hold its bars.")
@json_option
def cost(
    data: tuple[str, ...],
    model: str,
    budgets: tuple[str, ...],
    cached_price: float,
    write_price: float,
    cache_block: int | None,
    gate: bool,
    as_json: bool,
) -> int:
    """Measure prompt tokens on DATA: files of agent runs, in any format that is read, or folders of them.

    Ours as it is by default, without recall, and for tool loops, beside sending everything. Nothing is stored.
    """

    builder = read_builder(model, budgets)
    if cache_block is not None and cache_block < 0:
        raise InputError(f"--cache-block {cache_block}: expected 0 or more tokens")
    block = model_info(model).cache_block_tokens if cache_block is None else cache_block
    prices = Prices(cached=cached_price, write=write_price, block_tokens=block)
    builders = {OURS: builder, OURS_WITHOUT_RECALL: read_builder(model, (*budgets, "recall_fraction=0"))}
    builders[AGENT] = agent_builder(builder)
    with progress("cost", shown=not as_json) as tell:
        rows = measure(data, builders, prices=prices, tell=tell)
    dynamic_tokens = builder.budgets.dynamic_tokens
    if as_json:
        for row in rows:
            print_json({"suite": "cost", "dynamic_tokens": dynamic_tokens, **row._asdict()})
    else:
        console = table_console()
        for group in grouped(rows).values():
            cells = ((row.strategy, *(show(row) for show in COST_COLUMNS.values())) for row in group)
            console.print(title(group, dynamic_tokens))
            console.print(grid("", *COST_COLUMNS, rows=cells, numbers=list(COST_COLUMNS)))
        console.print(COST_LEGEND)
    missed = missed_bars(rows) if gate else []
    for text in missed:
        note(f"gate: {text}")
    return FOUND if missed else 0


MOST_BUDGET_TOKENS = 1_000_000


@click.command()
@click.argument("data", type=click.Path())
@click.option("--budgets", default="500,900,2000,4000", show_default=True, metavar="N,…", help="Tokens for recall.")
@click.option(
    "--strategy",
    default="heuristic",
    show_default=True,
    metavar="NAME",
    shell_complete=completer(tuple(RANKINGS)),
    help=f"How originals are ranked: {', '.join(RANKINGS)}.",
)
@click.option("--defaults", is_flag=True, help="The budgets are of the whole window, recall has its default share.")
@click.option("--held-out", is_flag=True, help="Of a folder of chats: the half that nothing was tuned by.")
@json_option
def recall(data: str, budgets: str, strategy: str, defaults: bool, held_out: bool, as_json: bool) -> None:
    """Measure recall on DATA: a LoCoMo file with questions, or a folder of chats with probing questions (BEAM).

    For each question: the share of the turns that answer it which the envelope shows word for word, at several
    budgets: of recall alone, or with --defaults of the window. `oracle` is the most that fits. Nothing is stored. Of
    a folder the second half of the chats is played with --held-out alone.
    """
    parts = [part.strip() for part in budgets.split(",")]
    if not all(re.fullmatch("[0-9]{1,7}", part) and 0 < int(part) <= MOST_BUDGET_TOKENS for part in parts):
        raise InputError(
            f"--budgets {budgets:.60}: not numbers of tokens from 1 to {MOST_BUDGET_TOKENS:,}, such as 500,900"
        )
    budgets_tokens = tuple(map(int, parts))
    if strategy not in RANKINGS:
        raise InputError(f"--strategy {strategy}: no such strategy; one of: {'; '.join(RANKINGS)}")
    ranking, is_folder = RANKINGS[strategy], is_chat_folder(Path(data))
    if held_out and not is_folder:
        raise InputError("--held-out: only a folder of chats has a half that is held out")
    options: dict[str, Any] = {"selector": ranking, "budgets_tokens": budgets_tokens, "defaults": defaults}
    head = {"suite": "recall", "strategy": strategy, "defaults": defaults}
    if not is_folder:
        with progress("recall", shown=not as_json) as tell:
            rows = measure_recall(data, **options, tell=tell)
        if as_json:
            for row in rows:
                print_json({**head, **row._asdict()})
        else:
            table_console().print(_recall_table(rows))
        return
    half: Half = "held-out" if held_out else "development"
    if held_out:
        click.echo("ctxsteward: the held-out half; whoever tunes by it has none left", err=True)
    with progress("recall", shown=not as_json) as tell:
        chats = measure_chats(read_chats(Path(data), half), **options, tell=tell)
    if as_json:
        for chat in chats:
            print_json({**head, "half": half, **chat._asdict()})
        return
    columns = [f"{chat.budget_tokens:,}" for chat in chats]
    lines = []
    for role in ("user", "assistant"):
        lines.append((f"{role} messages, whole", *(f"{getattr(chat, role):.1f}" for chat in chats)))
        passages = (f"{getattr(chat, f'{role}_passages'):.1f}" for chat in chats)
        lines.append((f"{role} passages that answer", *passages))
    table_console().print(grid(f"{half} half, evidence shown, %", *columns, rows=lines, numbers=columns))


def _recall_table(rows: list[RecallRow]) -> Table:
    budgets = [f"{row.budget_tokens:,}" for row in rows]
    lines: list[tuple[str, Callable[[RecallRow], str]]] = [
        ("evidence shown, %", lambda row: f"{row.mean:.1f}"),
        ("all of it shown, %", lambda row: f"{row.all_shown:.1f}"),
        ("reachable, %", lambda row: f"{row.reachable:.1f}"),
        *((f"shown, {name}, %", lambda row, name=name: f"{row.by_category[name]:.1f}") for name in rows[0].by_category),
        ("tokens recalled", lambda row: f"{row.context_tokens_mean:,.0f}"),
        ("ranking p50, ms of CPU", lambda row: f"{row.select_ms_p50:.2f}"),
    ]
    cells = [(name, *map(show, rows)) for name, show in lines]
    return grid(f"{rows[0].questions:,} questions", *budgets, rows=cells, numbers=budgets)
