"""``ctxsteward runs``: what the runs of cascades in a store cost beside sending everything, each or by cascade."""

from __future__ import annotations

import json
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import click

from ctxsteward.envelope import Store
from ctxsteward.envelope.cascade.past import LEDGER_SUFFIX

from ..terminal.options import common, price_option
from ..terminal.output import print_json, table_console
from ..terminal.stores import check_tenant, open_stored
from ..terminal.tables import grid

MEANS = ("calls", "everything_tokens", "sent_tokens", "everything_priced", "sent_priced")


@click.command()
@click.option("--by", type=click.Choice(["cascade"]), help="One row for each cascade, with the mean of its runs.")
@price_option
@common
def runs(by: str | None, price: float | None, as_json: bool, store: str, tenant: str) -> None:
    """List the runs that `ctxsteward run` played: prompt tokens of sending everything, and sent.

    The ratio is of cache-priced tokens, under the prices of the run. No model is called.
    """
    with open_stored(store, tenant) as opened:
        check_tenant(opened, tenant)
        rows = list(_played(opened, tenant))
    shown = [_row(row["run"], [row], price) for row in rows]
    if by is not None:
        cascades = dict.fromkeys(row["cascade"] for row in rows)
        shown = [_row(name, [row for row in rows if row["cascade"] == name], price) for name in cascades]
    if as_json:
        print_json({"runs": shown})
        return
    cells = [
        (
            row["name"],
            f"{row['runs']:,}",
            *(f"{row[name]:,.0f}" for name in ("calls", "everything_tokens", "sent_tokens")),
            f"{100 * row['saved']:.1f} %",
            f"{row['priced_ratio']:.2f}",
            *([f"{row['dollars_saved']:.4f}"] if price is not None else []),
        )
        for row in shown
    ]
    columns = ("runs", "calls", "everything", "sent", "saved", "ratio", *(("$ saved",) if price is not None else ()))
    table_console().print(grid(by or "run", *columns, rows=cells, numbers=columns))


def _played(store: Store, tenant: str) -> Iterable[dict[str, Any]]:
    """Yield each priced run with its cascade; sub-cascades are part of the run that played them."""
    for session in store.sessions(tenant=tenant):
        notes = store.at(tenant, session).state.notes if session.endswith(LEDGER_SUFFIX) else {}
        if "efficiency" in notes:
            cascade = json.loads(notes["begun"])["cascade"]
            yield {"run": session.removesuffix(LEDGER_SUFFIX), "cascade": cascade, **json.loads(notes["efficiency"])}


def _row(name: str, rows: list[dict[str, Any]], price: float | None) -> dict[str, Any]:
    """Return the mean of these runs."""
    mean = {field: round(fmean(row[field] for row in rows), 1) for field in MEANS}
    found: dict[str, Any] = {
        "name": name,
        "runs": len(rows),
        **mean,
        "saved": round(1 - mean["sent_tokens"] / mean["everything_tokens"], 4),
        "priced_ratio": round(mean["sent_priced"] / mean["everything_priced"], 4),
    }
    if price is not None:
        found["dollars_saved"] = round((mean["everything_priced"] - mean["sent_priced"]) * price / 1e6, 6)
    return found
