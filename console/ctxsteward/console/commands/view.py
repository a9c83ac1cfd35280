"""``ctxsteward view``: show the prompts of model calls, as a grid in the terminal or as a folder of pages.

Each of the grid's 200 cells is 1/200 of the tokens that the prompt may take, coloured by source (with a letter instead
on a terminal without colours); a legend lists each source's tokens. ``context --grid SESSION`` shows the newest call.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..pages.inspector import CallView, inspect_call
from ..pages.site import Site
from ..pages.timeline import priced_call
from ..terminal.options import common, price_option
from ..terminal.output import note, print_json, table_console, unicode_console
from ..terminal.stores import open_stored, stored_session
from ..terminal.tables import say, shown

COLUMNS, ROWS = 20, 10
LOOKS = {
    "tools": ("T", "#8d6e63"),
    "system": ("P", "#33658a"),
    "static": ("S", "#5fa8d3"),
    "meta": ("M", "#14808a"),
    "task": ("K", "#c2573a"),
    "bullets": ("B", "#7a5195"),
    "verbatim": ("C", "#9fb3c8"),
    "recall": ("R", "#e0a030"),
    "live": ("L", "#5aa469"),
    "notes": ("N", "#b56576"),
}
"""Letter and colour of each source; the pages use the same colours."""
NAMES = {
    "tools": "tool schemas",
    "system": "persona, policies",
    "static": "rails, surface",
    "meta": "recommendations",
    "verbatim": "closed turns",
    "live": "live turn",
}


@click.command()
@click.argument("sessions", metavar="[SESSION]...", nargs=-1)
@click.option("--static", "folder", type=click.Path(path_type=Path), metavar="OUT", help="Folder to write pages into.")
@click.option("--grid", "as_grid", is_flag=True, help="Show a call as a grid of its sources.")
@click.option("--call", "number", type=click.IntRange(min=1), metavar="N", help="Call to show; default: the newest.")
@click.option(
    "--calls",
    default="40",
    show_default=True,
    metavar="N|all",
    help="With --static: newest calls of a session that get their own page.",
)
@price_option
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --static: add a page of eval results (`evals run --history`).",
)
@common
def view(
    sessions: tuple[str, ...],
    folder: Path | None,
    as_grid: bool,
    number: int | None,
    calls: str,
    price: float | None,
    history: Path | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Show what the model was shown: a grid of one call, or with --static a folder of pages about SESSIONs.

    The folder opens from disk (OUT/index.html) and loads nothing from elsewhere. It shows each call against budget
    and threshold, the timeline with cache, cost, compactions and prefix breaks, the changes from call to call, the
    losses, and every original. Without SESSION it covers all sessions of the tenant. --json prints the grid, text
    included.
    """
    if folder is None:
        if len(sessions) != 1:
            raise click.UsageError("name one SESSION, or write pages of several with --static OUT")
        if history is not None:
            raise click.UsageError("--history goes with --static OUT")
        print_call(sessions[0], number, price, as_json=as_json, store=store, tenant=tenant)
        return
    if as_grid or number is not None:
        raise click.UsageError("--static and --grid or --call: take one of them")
    if calls != "all" and not (calls.isascii() and calls.isdecimal() and 0 < int(calls) < 10**9):
        raise click.UsageError(f"--calls {calls:.20}: neither a number from 1 nor `all`")
    if history is not None and not history.is_file():
        raise click.UsageError(
            f"--history {history}: no such file; `ctxsteward evals run all --history {history}` writes it"
        )
    with open_stored(store, tenant) as opened:
        for id in sessions:
            stored_session(opened, id, tenant)
        if not sessions and not opened.sessions(tenant=tenant):
            raise click.UsageError(
                f"{opened.uri}: it holds no sessions of tenant {tenant!r}; build or replay one first"
            )
        site = Site(
            store=opened, tenant=tenant, sessions=tuple(dict.fromkeys(sessions)) or None, history=history, price=price
        )
        pages = site.write(folder, calls=None if calls == "all" else int(calls))
    if as_json:
        print_json({"folder": str(folder), "index": str(folder / "index.html"), "pages": pages})
    else:
        note(f"{pages:,} pages; open {folder / 'index.html'}")


def print_call(
    session: str, number: int | None, price: float | None, *, as_json: bool, store: str, tenant: str
) -> None:
    """Print one call of a session as a grid, or as JSON."""
    with open_stored(store, tenant) as opened:
        stored_session(opened, session, tenant)
        shown_call = inspect_call(opened, session, number or 0, tenant=tenant)
    if as_json:
        print_json(shown_call.model_dump(mode="json"))
    else:
        _print(table_console(), shown_call, price)


def _print(console: Console, shown_call: CallView, price: float | None) -> None:
    call, priced = shown_call.call, priced_call(shown_call.call, price)
    cost = f"{priced.priced_tokens:,.0f} plain tokens" + ("" if priced.dollars is None else f", ${priced.dollars:.5f}")
    console.print(shown(f"{shown_call.session}: call {call.number} of {shown_call.count}, {call.model or 'no model'}"))
    beside = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    beside.add_row(Text("\n").join(_rows(console, shown_call)), _legend(console, shown_call))
    console.print(beside)
    say(
        console,
        f"prompt {call.prompt_tokens:,} of {call.limit_tokens:,} tokens, compacted once it exceeds "
        f"{call.threshold_tokens:,}; cache read {priced.read_tokens:,}, written {priced.written_tokens:,}; {cost}",
    )
    for made in call.compactions:
        say(
            console,
            f"compacted by this call: {made.pre_tokens:,} tokens became {made.post_tokens:,}, {made.losses} losses",
        )


def _rows(console: Console, shown_call: CallView) -> Iterator[Text]:
    """Yield the rows of cells; each source with tokens gets at least one cell while the grid has room."""
    cells: list[tuple[str, str]] = []
    most = max(shown_call.call.limit_tokens, shown_call.call.prompt_tokens) or 1
    is_coloured = console.is_terminal and console.color_system is not None and unicode_console(console)
    used = 0
    for source, tokens in shown_call.call.sources:
        used += tokens
        letter, colour = LOOKS[source]
        upto = min(COLUMNS * ROWS, round(COLUMNS * ROWS * used / most))
        upto = max(upto, min(len(cells) + (tokens > 0), COLUMNS * ROWS))
        cells += [("■" if is_coloured else letter, colour)] * (upto - len(cells))
    cells += [("·" if unicode_console(console) else ".", "dim")] * (COLUMNS * ROWS - len(cells))
    for start in range(0, COLUMNS * ROWS, COLUMNS):
        row = Text()
        for at, (sign, colour) in enumerate(cells[start : start + COLUMNS]):
            row.append(f" {sign}" if at else sign, style=colour)
        yield row


def _legend(console: Console, shown_call: CallView) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    for justify in ("left", "left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    most = shown_call.call.limit_tokens or 1
    for source, tokens in shown_call.call.sources:
        if tokens:
            letter, colour = LOOKS[source]
            sign = Text(f"■ {letter}" if unicode_console(console) else letter, style=colour)
            table.add_row(sign, NAMES.get(source, source), f"{tokens:,}", f"{100 * tokens / most:.0f} %")
    free = max(0, most - shown_call.call.prompt_tokens)
    table.add_row("·" if unicode_console(console) else ".", "free", f"{free:,}", f"{100 * free / most:.0f} %")
    return table
