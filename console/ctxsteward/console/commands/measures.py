"""``ctxsteward evals recall``: measure how much evidence for questions recall shows, on data of your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ctxsteward.evals.asked_chats import Half, is_chat_folder, measure_chats, read_chats
from ctxsteward.evals.rankings import RANKINGS
from ctxsteward.evals.recall import RecallRow, measure as measure_recall
from ctxsteward.schemas import InputError

from ..terminal.options import completer, json_option, read_budgets_tokens
from ..terminal.output import print_json, progress, table_console
from ..terminal.tables import grid


@click.command()
@click.argument("data", type=click.Path())
@click.option("--budgets", default="500,900,2000,4000", show_default=True, metavar="N,…", help="Tokens for recall.")
@click.option(
    "--strategy",
    default="heuristic",
    show_default=True,
    metavar="NAME",
    shell_complete=completer(tuple(RANKINGS)),
    help=f"How to rank originals: {', '.join(RANKINGS)}.",
)
@click.option("--defaults", is_flag=True, help="Apply each budget to the whole window; recall gets its default share.")
@click.option("--held-out", is_flag=True, help="For a folder of chats: use the half that no tuning has seen.")
@json_option
def recall(data: str, budgets: str, strategy: str, defaults: bool, held_out: bool, as_json: bool) -> None:
    """Measure recall on DATA: a LoCoMo file with questions, or a folder of chats with probing questions (BEAM).

    For each question and budget: the share of the answering turns that the envelope shows word for word. Budgets
    apply to recall alone, or with --defaults to the whole window. `oracle` is the most that fits. Nothing is
    stored. In a folder, the second half of the chats is used only with --held-out.
    """
    budgets_tokens = read_budgets_tokens(budgets)
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
