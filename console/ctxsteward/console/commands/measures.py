"""``ctxsteward evals cost`` and ``recall``: what prompts cost, and what recall shows, on data of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

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

    prices = _prices(model, cached_price, write_price, cache_block)
    builder = read_builder(model, budgets)
    builders = {OURS: builder, OURS_WITHOUT_RECALL: read_builder(model, (*budgets, "recall_fraction=0"))}
    builders[AGENT] = agent_builder(builder)
    with progress("cost", shown=not as_json) as tell:
        rows = measure(data, builders, prices=prices, tell=tell)
    dynamic_tokens = builder.budgets.dynamic_tokens
    if as_json:
        for row in rows:
            print_json({"suite": "cost", "dynamic_tokens": dynamic_tokens, **row._asdict()})
    else:
        _print_tables(dynamic_tokens, rows)
    missed = missed_bars(rows) if gate else []
    for text in missed:
        note(f"gate: {text}")
    return FOUND if missed else 0


def _prices(model: str, cached: float, write: float, block: int | None) -> Prices:
    read_builder(model, ())  # an unknown model says so with its nearest names
    if block is not None and block < 0:
        raise InputError(f"--cache-block {block}: expected 0 or more tokens")
    return Prices(
        cached=cached, write=write, block_tokens=model_info(model).cache_block_tokens if block is None else block
    )


def _print_tables(dynamic_tokens: int, measured: Sequence[CostRow]) -> None:
    columns: dict[str, Callable[[CostRow], str]] = {
        "raw": lambda row: f"{row.raw_ratio:.2f}",
        "priced": lambda row: f"{row.priced_ratio:.2f}",
        "cached": lambda row: f"{row.prefix_reuse:.0%}",
        "cuts": lambda row: f"{row.compactions:,}",
        "over": lambda row: f"{row.over_budget:.0%}",
        "bad": lambda row: f"{row.invalid:.0%}",
        "task": lambda row: f"{row.task_reachable:.0%}",
    }
    console = table_console()
    for rows in grouped(measured).values():
        table = grid("", *columns, numbers=list(columns))
        for row in rows:
            table.add_row(row.strategy, *(show(row) for show in columns.values()))
        console.print(title(rows, dynamic_tokens))
        console.print(table)
    console.print(
        "raw, priced: tokens to sending everything, plain and with the cached prefix at its price;\n"
        "cached: tokens that the cache served; cuts: compactions; over: calls over budget;\n"
        "bad: calls a provider would refuse; task: runs that keep their task at every call, shown or by reference"
    )


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
    budgets_tokens = _budgets(budgets)
    if strategy not in RANKINGS:
        raise InputError(f"--strategy {strategy}: no such strategy; one of: {'; '.join(RANKINGS)}")
    ranking, is_folder = RANKINGS[strategy], is_chat_folder(Path(data))
    if held_out and not is_folder:
        raise InputError("--held-out: only a folder of chats has a half that is held out")
    options: dict[str, Any] = {"selector": ranking, "budgets_tokens": budgets_tokens, "defaults": defaults}
    told = {"suite": "recall", "strategy": strategy, "defaults": defaults}
    if not is_folder:
        with progress("recall", shown=not as_json) as tell:
            rows = measure_recall(data, **options, tell=tell)
        if as_json:
            for row in rows:
                print_json({**told, **row._asdict()})
        else:
            _print_table(rows)
        return
    half: Half = "held-out" if held_out else "development"
    if held_out:
        click.echo("ctxsteward: the held-out half; whoever tunes by it has none left", err=True)
    with progress("recall", shown=not as_json) as tell:
        chats = measure_chats(read_chats(Path(data), half), **options, tell=tell)
    if as_json:
        for chat in chats:
            print_json({**told, "half": half, **chat._asdict()})
        return
    columns = [f"{chat.budget_tokens:,}" for chat in chats]
    table = grid(f"{half} half, evidence shown, %", *columns, numbers=columns)
    for role in ("user", "assistant"):
        table.add_row(f"{role} messages, whole", *(f"{getattr(chat, role):.1f}" for chat in chats))
        table.add_row(f"{role} passages that answer", *(f"{getattr(chat, f'{role}_passages'):.1f}" for chat in chats))
    table_console().print(table)


def _budgets(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(
        part.isascii() and part.isdecimal() and len(part) < 8 and 0 < int(part) <= MOST_BUDGET_TOKENS for part in parts
    ):
        raise InputError(
            f"--budgets {text:.60}: not numbers of tokens from 1 to {MOST_BUDGET_TOKENS:,}, such as 500,900"
        )
    return tuple(map(int, parts))


def _print_table(rows: list[RecallRow]) -> None:
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
