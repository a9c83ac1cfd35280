"""``ctxsteward evals survival``: measure how many early statements windows still show, against simple strategies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

import click

from ctxsteward.evals.canaries import Half
from ctxsteward.evals.survival.measure import KINDS, Kind, measure
from ctxsteward.evals.survival.play import OURS, SurvivalRow
from ctxsteward.schemas import InputError

from ..terminal.options import completer, json_option
from ..terminal.output import note, print_json, progress, table_console
from ..terminal.tables import grid

HALVES: tuple[Half, ...] = get_args(Half)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Chats with probing questions (BEAM).")
@click.option(
    "--half",
    default="dev",
    show_default=True,
    metavar="NAME",
    shell_complete=completer(HALVES),
    help="dev, or held_out: the half to look at only once.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME",
    shell_complete=completer(KINDS),
    help=f"Repeatable: {', '.join(KINDS)}; default: all that the data allows.",
)
@click.option("--chats", type=int, metavar="N", help="Most chats to read.")
@json_option
def survival(data: Path | None, half: str, kinds: tuple[str, ...], chats: int | None, as_json: bool) -> None:
    """Measure what the window shows at the end of long talks, with no question asked and recall off.

    chats: the user statements that a chat's questions need. rules: lasting rules, each said once, 300 messages
    before the end. updates: facts that get new values, at 10 and 20 % of the talk's size. dense: statements in
    close order, then idle talk.

    Baselines that choose whole sentences, and an oracle, are measured in the same run. Two chats and all kinds take
    2 to 3 minutes. Nothing is stored.
    """
    if half not in HALVES:
        raise InputError(f"--half {half:.60}: no such half; one of: {', '.join(HALVES)}")
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--kind {kind:.60}: no such kind; one of: {', '.join(KINDS)}")
    if chats is not None and chats < 1:
        raise InputError(f"--chats {chats}: expected 1 or more")
    if data is None and ("chats" in kinds or chats is not None):
        raise InputError(f"{'--chats' if chats is not None else '--kind chats'} needs --data: a folder of BEAM chats")
    if data is not None and not data.is_dir():
        raise InputError(
            f"--data {data}: {'a file' if data.exists() else 'no such folder'}; name a folder of BEAM chats"
        )
    chosen = tuple(cast(Kind, kind) for kind in dict.fromkeys(kinds)) or KINDS[0 if data else 1 :]
    if data is None and not kinds:
        note("no --data: chats are left out, and rules stand in small talk")
    if half == "held_out":
        note("the held-out half; whoever tunes by it has none left")
    with progress("survival", shown=not as_json) as tell:
        rows = measure(chosen, half=half, data=data, chats=chats, tell=tell)
    if as_json:
        for row in rows:
            print_json({"suite": "survival", "half": half, **row._asdict()})
        return
    console = table_console()
    for kind in chosen:
        of_kind = [row for row in rows if row.kind == kind]
        budgets = [
            f"{row.budget:.0%}" if row.budget < 1 else f"{row.budget:,.0f}" for row in of_kind if row.strategy == OURS
        ]
        figures = "shown, % / stale" if of_kind[0].updates else "shown, %"
        title = f"{kind}, {half}: {of_kind[0].statements} statements {figures}"
        console.print(grid(title, *budgets, rows=_strategies(of_kind), numbers=budgets))
        console.print(grid("our builds", *budgets, rows=_builds(of_kind), numbers=budgets))
    if any(row.updates for row in rows):
        console.print("stale: older values that stand without the newest")


def _strategies(rows: Sequence[SurvivalRow]) -> list[list[str]]:
    """Return a table row for each strategy, from the rows of one kind."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        stale = f" / {row.stale_alone}" if row.updates else ""
        lines.setdefault(row.strategy, [row.strategy]).append(f"{100 * row.shown / row.statements:.1f}{stale}")
    return list(lines.values())


def _builds(rows: Sequence[SurvivalRow]) -> list[list[str]]:
    """Return table rows about our builds, from the rows of one kind."""
    ours = [row for row in rows if row.strategy == OURS]
    return [
        ["compactions per user turn", *(f"{row.compactions / row.user_turns:.2f}" for row in ours)],
        [
            "dynamic filled after each, %",
            *(f"{100 * row.filled_after_passes / max(1, row.compactions):.0f}" for row in ours),
        ],
        ["dynamic filled at the end, %", *(f"{100 * row.filled_at_end / row.talks:.0f}" for row in ours)],
        ["CPU of a build, ms", *(f"{row.cpu_ms / row.builds:.1f}" for row in ours)],
    ]
