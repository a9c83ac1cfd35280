"""How the steward of a profile stands, for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console

from ctxsteward.steward.night.history import status as read_status
from ctxsteward.steward.release.assignment import running

from .. import tables
from ..output import print_result
from ..pages.steward import write_page
from .context import StewardContext
from .options import ProfileOptions, about_a_profile
from .sample import source_name

AFTER_NIGHTS = "no night yet; begin with `ctxsteward steward run`"


def status_document(place: StewardContext, limit: int) -> dict[str, Any]:
    """`StewardStatus`, with what waits for people and the canary that is under way."""
    found = read_status(place.store, place.tenant, place.profile, now_seconds=place.here.clock(), limit=limit)
    approvals, head = place.approvals, place.versions.head()
    waiting = approvals.pending(when=place.here.when, head=head.number if head else 0)
    canary = running(place.store, head, profile=place.profile, tenant=place.tenant) if head else None
    return found.model_dump(mode="json") | {
        "waiting": [request.id for request in waiting],
        "canary": dict(canary) if canary else None,
    }


def show_status(console: Console, found: Mapping[str, Any]) -> None:
    version = f"version {found['version']} in force" if found["version"] else "nothing in force"
    console.print(tables.shown(f"{found['profile']}: {version}, {found['records']} records in its slice", style="bold"))
    if found["running"]:
        late = "; its lease has run out" if found["lapsed"] else ""
        console.print(tables.shown(f"a night is under way: {found['running']}{late}"))
    if found["canary"]:
        canary = found["canary"]
        console.print(f"canary: {canary['share']:.0%} of sessions; the others have version {canary['champion']}")
    for request in found["waiting"]:
        console.print(tables.shown(f"waits for a person: request {request}; see `ctxsteward steward review`"))
    if not found["nights"]:
        console.print(AFTER_NIGHTS)
        return
    console.print(_last_nights(found))
    for row in found["last"]:
        for alert in row["alerts"]:
            console.print(tables.shown(f"alert, night {row['night']}: {alert}"))
    console.print(_source_table(found))


def _last_nights(found: Mapping[str, Any]) -> Any:
    numbers = ("version", "due", "new", "refused", "used", "obeyed")
    table = tables.grid(
        "night", "outcome", "version", "due", "new", "refused", "used", "obeyed", "drift", "gate", numbers=numbers
    )
    table.padding = (0, 0)  # ten columns, and nights of six digits, in eighty characters
    for row in found["last"]:
        counts = row["counts"]
        table.add_row(
            row["night"], row["outcome"], str(row["version"] or "-"), str(counts.get("due", 0)),
            str(counts.get("absorbed", 0)), str(sum(row["quarantined"].values())),
            _rate_text(row, "used"), _rate_text(row, "obeyed"), row["drift"] or "-", row["gate"] or "-",
        )  # fmt: skip
    return table


def _rate_text(row: Mapping[str, Any], rate: str) -> str:
    return f"{row['rates'][rate]:.0%}" if rate in row["rates"] else "-"


def _source_table(found: Mapping[str, Any]) -> Any:
    table = tables.grid("source", "read up to", "remembered", numbers=("remembered",))
    for row in found["sources"]:
        high = row["high_seconds"]
        when = "-" if high is None else datetime.fromtimestamp(high, UTC).isoformat(timespec="seconds")
        table.add_row(tables.shown(source_name(row["source"])), when, f"{row['marks']:,}")
    return table


@click.command()
@click.option("--limit", type=click.IntRange(0, 366), default=7, show_default=True, help="Nights to show.")
@click.option("--html", type=click.Path(), metavar="FILE", help="Write it as a page of its own, with plots.")
@about_a_profile()
def status(limit: int, html: str | None, where: ProfileOptions, as_json: bool) -> None:
    """Say how the steward of a profile stands."""
    with where.open() as place:
        found = status_document(place, limit)
        if html is not None:
            write_page(html, place, None)
    print_result(found, show_status, as_json=as_json)
