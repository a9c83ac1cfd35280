"""``ctxsteward evals cost`` and ``recall``: what prompts cost, and what recall shows, on data of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from ctxsteward.envelope.tokens import Prices, model_info
from ctxsteward.evals.asked_chats import Half, is_chat_folder, measure_chats, read_chats, write_chats_table
from ctxsteward.evals.cost import (
    NAME,
    OURS,
    OURS_WITHOUT_RECALL,
    CostRow,
    cost_block,
    grouped,
    measure,
    missed_bars,
    policy_builders,
    title,
)
from ctxsteward.evals.documents import check_markers, write_blocks
from ctxsteward.evals.recall import BLOCKS, RecallRow, measure as measure_recall, write_tables as write_recall_tables
from ctxsteward.evals.selectors import rankings_on
from ctxsteward.schemas import InputError

from ..terminal import (
    FOUND,
    budget_option,
    common,
    completer,
    grid,
    model_option,
    note,
    print_json,
    progress,
    read_builder,
    table_console,
)

WRITTEN_BUDGETS = ("dynamic_tokens=900", "dynamic_tokens=4000", "dynamic_tokens=16000")


@click.command()
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@model_option("Whose tokens and cache count.")
@budget_option("A field of Budgets, such as dynamic_tokens=4000; repeatable.")
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

    Ours as it is by default and without recall, and under each policy by price; masking tool results never,
    at every step, at every tenth; a window of five steps; and the cheapest masking schedules there were, known
    in hindsight. Nothing is stored. --write measures at 900, 4,000 and 16,000 tokens, unless --budget says
    otherwise.
    """

    prices = _prices(model, cached_price, write_price, cache_block)
    if write is not None:
        check_markers(Path(write), NAME)
    budget_sets = [(one,) for one in WRITTEN_BUDGETS] if write is not None and not budgets else [budgets]
    with progress("cost", shown=not as_json) as tell:
        measured = dict(_measure(data, model, chosen, prices, tell) for chosen in budget_sets)
    if write is not None:
        write_blocks(Path(write), {NAME: cost_block(measured, prices)})
    for dynamic_tokens, rows in measured.items():
        if as_json:
            for row in rows:
                print_json({"suite": "cost", "dynamic_tokens": dynamic_tokens, **row._asdict()})
        elif write is None:
            _print_tables(dynamic_tokens, rows)
    missed = [text for rows in measured.values() for text in missed_bars(rows)] if gate else []
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


def _measure(
    data: Sequence[str], model: str, budgets: Sequence[str], prices: Prices, tell: Callable[[str], None]
) -> tuple[int, list[CostRow]]:
    """The dynamic budget, and the rows at it."""
    builder = read_builder(model, budgets)
    builders = {OURS: builder, OURS_WITHOUT_RECALL: read_builder(model, (*budgets, "recall_fraction=0"))}
    builders |= policy_builders(builder, prices)
    return builder.budgets.dynamic_tokens, measure(data, builders, prices=prices, tell=tell)


def _print_tables(dynamic_tokens: int, measured: Sequence[CostRow]) -> None:
    columns: dict[str, Callable[[CostRow], str]] = {
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
    for rows in grouped(measured).values():
        table = grid("", *columns, numbers=list(columns))
        for row in rows:
            table.add_row(row.strategy, *(show(row) for show in columns.values()))
        console.print(title(rows, dynamic_tokens))
        console.print(table)
    console.print(
        "raw, priced: tokens to sending everything, plain and with the cached prefix at its price;\n"
        "best: priced, to the best masking in hindsight; cached: tokens that the cache served;\n"
        "cuts: compactions; over: calls over budget; bad: calls a provider would refuse;\n"
        "task: runs that keep their task at every call, shown or by reference"
    )


STRATEGIES = rankings_on("talk")
MOST_BUDGET_TOKENS = 1_000_000


@click.command()
@click.argument("data", type=click.Path())
@click.option("--budgets", default="500,900,2000,4000", show_default=True, metavar="N,…", help="Tokens for recall.")
@click.option(
    "--strategy",
    default="heuristic",
    show_default=True,
    metavar="NAME",
    shell_complete=completer(tuple(STRATEGIES)),
    help="How originals are ranked: recency, heuristic, semantic, hybrid.",
)
@click.option("--defaults", is_flag=True, help="The budgets are of the whole window, recall has its default share.")
@click.option("--held-out", is_flag=True, help="Of a folder of chats: the half that nothing was tuned by.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put all tables between the markers of this Markdown.")
@common
def recall(
    data: str,
    budgets: str,
    strategy: str,
    defaults: bool,
    held_out: bool,
    write: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Measure recall on DATA: a LoCoMo file with questions, or a folder of chats with probing questions (BEAM).

    For each question: the share of the turns that answer it which the envelope shows word for word, at several
    budgets: of recall alone, or with --defaults of the window. Nothing is stored. --write measures every
    strategy and every variant, which takes minutes. Of a folder, ours stands beside rankings that need no
    judgement and the most that fits; its second half is played with --held-out alone, and by --write.
    """

    budgets_tokens = _budgets(budgets)
    if is_chat_folder(Path(data)):
        _recall_chats(Path(data), budgets_tokens, write, held_out=held_out, as_json=as_json)
        return
    if held_out:
        raise InputError("--held-out: only a folder of chats has a half that is held out")
    if strategy not in STRATEGIES:
        raise InputError(f"--strategy {strategy}: no such strategy; one of: {'; '.join(STRATEGIES)}")
    ranking = STRATEGIES[strategy]
    defaults = defaults or ranking.defaults
    if write is not None:
        check_markers(Path(write), *BLOCKS)
    with progress("recall", shown=not as_json) as tell:
        if write is not None:
            write_recall_tables(Path(write), Path(data), budgets_tokens, tell)
            return
        rows = measure_recall(data, selector=ranking.make, budgets_tokens=budgets_tokens, defaults=defaults, tell=tell)
    if as_json:
        for row in rows:
            print_json({"suite": "recall", "strategy": strategy, "defaults": defaults, **row._asdict()})
    else:
        _print_table(rows)


def _recall_chats(
    folder: Path, budgets_tokens: tuple[int, ...], write: str | None, *, held_out: bool, as_json: bool
) -> None:
    with progress("recall", shown=not as_json) as tell:
        if write is not None:
            write_chats_table(Path(write), folder, tell)
            return
        half: Half = "held-out" if held_out else "development"
        if held_out:
            click.echo("ctxsteward: the held-out half; whoever tunes by it has none left", err=True)
        chats = read_chats(folder, half)
        rows = {
            name: measure_chats(
                chats, ranking.make, budgets_tokens=budgets_tokens, defaults=ranking.defaults, tell=tell
            )
            for name, ranking in rankings_on("chats").items()
        }
    if as_json:
        for name, found in rows.items():
            for row in found:
                print_json({"suite": "recall", "half": half, "strategy": name, **row._asdict()})
        return
    columns = [f"{role}, {size:,}" for role in ("user", "assistant") for size in budgets_tokens]
    whole, passages = (
        grid(f"{half} half, {what}", *columns, numbers=columns)
        for what in ("evidence shown, %", "by the passage that answers, %")
    )
    for name, found in rows.items():
        whole.add_row(name, *(f"{row.user:.1f}" for row in found), *(f"{row.assistant:.1f}" for row in found))
        shares = (*(row.user_passages for row in found), *(row.assistant_passages for row in found))
        passages.add_row(name, *(f"{share:.1f}" for share in shares))
    table_console().print(whole)
    table_console().print(passages)


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
