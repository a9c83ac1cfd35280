"""``ctxsteward steward status``: how the steward of a profile stands, for people, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console

from ctxsteward.steward.release.assignment import running
from ctxsteward.store.profiles.versions import WriterLease

from ..terminal.output import print_result
from ..terminal.tables import grid, say
from .context import StewardContext, source_name
from .page import write_page
from .records import ProfileOptions, about_a_profile


def status_document(place: StewardContext, limit: int) -> dict[str, Any]:
    """The steward's status as JSON, read in a few requests; times are Unix seconds."""
    head, newest, now_seconds = place.versions.head(), place.nights.head(), place.here.clock()
    canary = running(place.store, head, profile=place.profile, tenant=place.tenant) if head else None
    lease = WriterLease(place.store, place.profile, place.tenant, owner="status", clock=lambda: now_seconds).holder()
    marks = [mark for _, mark in sorted(newest.marks.items())] if newest else []
    last = place.nights.reports(limit) if limit else []
    names = ("source", "high_seconds", "floor_seconds")
    return {
        "tenant": place.tenant,
        "profile": place.profile,
        "version": head.number if head else None,
        "records": len(head.profile.meta) if head else 0,
        "nights": newest.number if newest else 0,
        "last": [night.model_dump(mode="json") for night in reversed(last)],
        "sources": [{name: mark[name] for name in names} | {"marks": len(mark["marks"])} for mark in marks],
        "running": lease.owner if lease else None,
        "lapsed": lease is not None and lease.expires_seconds <= now_seconds,
        "waiting": [request.id for request in place.pending()],
        "canary": dict(canary) if canary else None,
    }


def show_status(console: Console, status: Mapping[str, Any]) -> None:
    version = f"version {status['version']} in force" if status["version"] else "nothing in force"
    say(console, f"{status['profile']}: {version}, {status['records']} records in its slice", "bold")
    if status["running"]:
        late = "; its lease has run out" if status["lapsed"] else ""
        say(console, f"a night is under way: {status['running']}{late}")
    if status["canary"]:
        canary = status["canary"]
        console.print(f"canary: {canary['share']:.0%} of sessions; the others have version {canary['champion']}")
    for request in status["waiting"]:
        say(console, f"waits for a person: request {request}; see `ctxsteward steward review`")
    if not status["nights"]:
        console.print("no night yet; begin with `ctxsteward steward run`")
        return
    nights = (
        (
            night["night"],
            night["outcome"],
            str(night["version"] or "-"),
            str(night["stages"].get("due", 0)),
            str(night["stages"].get("absorbed", 0)),
            str(sum(night["refused"].values())),
            *(f"{night['rates'][rate]:.0%}" if rate in night["rates"] else "-" for rate in ("used", "obeyed")),
            *(night[check]["level"] if night[check] else "-" for check in ("drift", "gate")),
        )
        for night in status["last"]
    )
    numbers = ("version", "due", "new", "refused", "used", "obeyed")
    table = grid("night", "outcome", *numbers, "drift", "gate", rows=nights, numbers=numbers)
    table.padding = (0, 0)  # ten columns, and nights of six digits, in eighty characters
    console.print(table)
    for night in status["last"]:
        for alert in night["alerts"]:
            say(console, f"alert, night {night['night']}: {alert}")
    sources = [
        (
            source_name(row["source"]),
            "-"
            if (until := row["high_seconds"]) is None
            else datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds"),
            f"{row['marks']:,}",
        )
        for row in status["sources"]
    ]
    console.print(grid("source", "read up to", "remembered", rows=sources, numbers=("remembered",)))


@click.command()
@click.option("--limit", type=click.IntRange(0, 366), default=7, show_default=True, help="Most nights to show.")
@click.option("--html", type=click.Path(), metavar="FILE", help="Write a self-contained page with plots.")
@about_a_profile()
def status(limit: int, html: str | None, where: ProfileOptions, as_json: bool) -> None:
    """Show the state of a profile's steward."""
    with where.open() as place:
        document = status_document(place, limit)
        if html is not None:
            write_page(html, place)
    print_result(document, show_status, as_json=as_json)
