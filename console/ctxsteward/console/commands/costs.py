"""``ctxsteward costs``: profit and loss of each compaction of a session."""

from __future__ import annotations

from typing import Any

import click

from ctxsteward.envelope import past_calls
from ctxsteward.envelope.tokens.models import dollars_of

from ..pages.cut_costs import CutCost
from ..pages.timeline import Timeline, timeline_page
from ..terminal.options import common, price_option
from ..terminal.output import print_json, table_console
from ..terminal.stores import open_stored, stored_session
from ..terminal.tables import grid, say

COLUMNS = (
    "call",
    "broke in",
    "removed",
    "rewritten",
    "at once",
    "even at call",
    "predicted",
    "recall",
    "saved",
    "paid back at",
)


@click.command()
@click.argument("session")
@price_option
@common
def costs(session: str, price: float | None, as_json: bool, store: str, tenant: str) -> None:
    """Show what each compaction of SESSION cost and saved, compared with sending the messages it removed.

    A compaction makes later prompts shorter, and makes the provider cache everything behind it again. Amounts are
    prompt tokens at full price: the cost at once, the saving predicted for the calls that followed, what recalled
    messages cost in them, and the saving less recall. Dollars use the model's published price, or --price. No model is
    called.
    """
    with open_stored(store, tenant) as opened:
        stored_session(opened, session, tenant)
        calls = past_calls(opened, session, tenant=tenant)
    if price is None and calls:
        price = dollars_of(calls[-1].model, 1e6)
    shown = timeline_page(session, calls, price=price, size=max(1, len(calls)))
    cuts = [call.cut for call in shown.calls if call.cut]
    if as_json:
        print_json(_document(shown, cuts))
        return
    console = table_console()
    rows = [
        (
            f"{cut.call:,}",
            cut.broke_at or "-",
            f"{cut.removed_tokens:,}",
            f"{cut.rewritten_tokens:,}",
            f"{cut.rewritten:,.0f}",
            "never" if cut.break_even_call is None else f"{cut.break_even_call:,}",
            f"{cut.predicted:,.0f}",
            f"{cut.recall:,.0f}",
            f"{cut.saved:,.0f}",
            "not yet" if cut.paid_back_call is None else f"{cut.paid_back_call:,}",
        )
        for cut in cuts
    ]
    if rows:
        console.print(grid(*COLUMNS, rows=rows, numbers=[name for name in COLUMNS if name != "broke in"]))
    totals = shown.totals
    dollars = "" if price is None else f" ($ {totals.dollars:,.4f} and $ {totals.saved * price / 1e6:,.4f})"
    say(
        console,
        f"{session}: {totals.calls:,} calls, {len(cuts):,} compactions; paid {totals.priced_tokens:,.0f}, saved "
        f"{totals.saved:,.0f} prompt tokens at full price{dollars}",
    )


def _document(shown: Timeline, cuts: list[CutCost]) -> dict[str, Any]:
    return {
        "session": shown.session,
        "calls": shown.totals.calls,
        "priced_tokens": shown.totals.priced_tokens,
        "saved": shown.totals.saved,
        "dollars": shown.totals.dollars,
        "cuts": [cut.model_dump(mode="json") for cut in cuts],
    }
