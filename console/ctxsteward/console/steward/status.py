"""``ctxsteward steward status``: how the steward of a profile stands, for people, for JSON, and as one HTML page.

The page has figures, plots and the records in force; ``steward run --html`` writes it after a night (`write_page`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from markupsafe import Markup
from rich.console import Console

from ctxsteward.schemas import MetaRecommendation, Status
from ctxsteward.steward import NightChain, NightReport, status as read_status
from ctxsteward.steward.drift import report
from ctxsteward.steward.harvest import RecordUse
from ctxsteward.steward.night import ALERT_NIGHTS, Night, alerts_of, rates_of
from ctxsteward.steward.release import running

from ..pages import Bar, Series, bars, counted, lines, render
from ..terminal import print_result, tables
from .context import StewardContext, source_name
from .options import ProfileOptions, about_a_profile
from .records import reason_text, records_at, whose
from .report import OUTCOMES
from .versions import basis_text, changelog_rows

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


# -- the page -----------------------------------------------------------------------------------------------------


MAX_NIGHTS, MAX_VERSIONS, MAX_RECORDS = 90, 30, 500
STATUSES: tuple[Status, ...] = (
    "active", "vetted", "candidate", "superseded", "expired", "quarantined", "rejected",
)  # fmt: skip
YIELDS = ("due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "promoted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the page shows."""

    profile: str
    tenant: str
    when: str
    version: int | None
    nights: tuple[tuple[int, Night], ...]
    drifts: tuple[tuple[int, float, float], ...]
    """Version, changed share of the governed text, of the meta records."""
    records: tuple[MetaRecommendation, ...]
    slice: tuple[tuple[str, str, bool], ...]
    """Text, sources, approved."""
    versions: tuple[dict[str, object], ...]
    waiting: tuple[str, ...]
    report: NightReport | None
    uses: Mapping[str, RecordUse] = field(default_factory=dict)
    """By id of the record."""


def write_page(path: str, place: StewardContext, report: NightReport | None) -> None:
    """Write the page of a profile, after a night or without one."""
    Path(path).write_text(page(figures(place, report)), encoding="utf-8", newline="\n")


def figures(place: StewardContext, report: NightReport | None) -> Figures:
    """Everything that the page shows, read from the store."""
    head = place.versions.head()
    with records_at(place, keep=report is None or not report.dry_run) as found:
        records = tuple(found)
        uses = found.ledger.uses.of_records()
    meta = head.profile.meta if head else ()
    number = head.number if head else 0
    return Figures(
        profile=place.profile, tenant=place.tenant, when=place.here.when, version=number or None,
        nights=tuple(NightChain(place.store, place.tenant, place.profile).history(MAX_NIGHTS)),
        drifts=tuple(_drifts(place, number)), records=records,
        slice=tuple((record.text, ", ".join(record.sources), record.approved) for record in meta),
        versions=tuple(changelog_rows(place, MAX_VERSIONS)),
        waiting=tuple(one.id for one in place.approvals.pending(when=place.here.when, head=number)), report=report,
        uses=uses,
    )  # fmt: skip


def page(told: Figures) -> str:
    """The page; the same bytes for the same figures."""
    version = f"version {told.version} in force" if told.version else "nothing in force yet"
    refused = told.report.quarantined if told.report is not None else ()
    return render(
        "steward.html.j2",
        title=f"Steward of {told.profile}",
        about=f"tenant {told.tenant}, {version}, {len(told.nights)} nights shown; made {told.when}",
        waiting=told.waiting,
        report=told.report,
        outcome=OUTCOMES[told.report.outcome] if told.report is not None else "",
        refused=[(one.name, source_name(one.source), one.reason) for one in refused],
        alerts=_alerts(told),
        plots=list(_plots(told)),
        slice=[(text, sources, "yes" if approved else "") for text, sources, approved in told.slice],
        records=_records(told),
        versions=_versions(told),
    )


def _plots(told: Figures) -> Iterator[tuple[str, Markup]]:
    """What there is to see: a series begins with two nights, or two versions that changed something."""
    nights = [night for _, night in told.nights]
    dates = [night.night for night in nights]
    counts = nights[-1].counts if nights else {}
    if told.report is not None and told.report.stages:
        counts = {one.stage: one.count for one in told.report.stages}
    if counts:
        yield "Yield of each stage, last night", bars("Yield", [Bar(s, (counts[s],)) for s in YIELDS if s in counts])
    if len(told.drifts) > 1:
        governed, meta = (tuple(shares[at] for shares in told.drifts) for at in (1, 2))
        changed = [Series("governed text", governed), Series("meta", meta)]
        yield "Drift, version by version", lines("Drift", changed, [str(number) for number, *_ in told.drifts])
    if len(nights) > 1:
        yield "Drift over nights", bars("Nights by drift level", _levels(nights))
        rates = [rate for rate in _rates(nights) if sum(value is not None for value in rate.values) > 1]
        if rates:
            yield "Hit rate over nights", lines("Hit rate", rates, dates)
        yield "New observations over nights", _grown(nights, dates)
    if refused := _quarantined(nights):
        yield "Quarantine, by reason", bars("Quarantine", counted(refused))
    kinds = Counter((one.kind, one.status) for one in told.records)
    known = [status for status in STATUSES if any(status == found for _, found in kinds)]
    rows = [Bar(kind, tuple(kinds[kind, status] for status in known)) for kind in sorted({kind for kind, _ in kinds})]
    if rows:
        yield "Records by kind and status", bars("Records", rows, known)


def _levels(nights: Sequence[Night]) -> list[Bar]:
    found = Counter(night.drift or "nothing staged" for night in nights)
    return [Bar(level, (found[level],)) for level in ("INFO", "WARN", "BLOCK", "nothing staged") if found[level]]


def _rates(nights: Sequence[Night]) -> Iterator[Series]:
    rates = [rates_of(night.counts) for night in nights]
    for name in ("anticipated", "used", "obeyed"):
        yield Series(name, tuple(one.get(name) for one in rates))


def _grown(nights: Sequence[Night], dates: Sequence[str]) -> Markup:
    values = tuple(float(night.counts.get("absorbed", 0)) for night in nights)
    return lines("New observations", [Series("new", values)], dates, top=max((*values, 1.0)), percent=False)


def _quarantined(nights: Iterable[Night]) -> Counter[str]:
    total: Counter[str] = Counter()
    for night in nights:
        total.update(night.quarantined)
    return total


def _drifts(place: StewardContext, head: int) -> Iterator[tuple[int, float, float]]:
    """How much each of the newest versions changed."""
    versions, before = place.versions, None
    for number in range(max(1, head - MAX_VERSIONS), head + 1):
        now = versions.at(number).profile
        if before is not None:
            found = report(before, now)
            yield number, found.delta, found.meta_delta
        before = now


def _alerts(told: Figures) -> list[tuple[str, str]]:
    """Yields of the last nights that were out of the ordinary, the newest first; tonight's are told with it."""
    nights = [night for _, night in told.nights]
    odd = list(zip(nights, alerts_of(nights), strict=True))[-ALERT_NIGHTS:]
    tonight = told.report.run if told.report is not None else None
    return [(night.night, line) for night, lines in reversed(odd) for line in lines if night.run != tonight]


def _records(told: Figures) -> list[tuple[str, ...]]:
    order = {status: at for at, status in enumerate(STATUSES)}
    chosen = sorted(told.records, key=lambda one: (order[one.status], not one.scope.is_shared, one.kind, one.text))
    return [
        (one.kind, one.status, whose(one), one.text, reason_text(one), _used(told.uses.get(one.id)))
        for one in chosen[:MAX_RECORDS]
    ]


def _used(hit: RecordUse | None) -> str:
    """What became of a record in the sessions that were shown it."""
    if hit is None:
        return ""
    judged = hit.complied + hit.contradicted
    obeyed = f", obeyed {hit.complied:,} of {judged:,}" if judged else ""
    return f"shown {hit.shown:,}, fired {hit.fired:,} of {hit.judged:,}{obeyed}"


def _versions(told: Figures) -> list[tuple[str, ...]]:
    return [
        (str(row["version"]), str(row["when"]), str(row["who"]), str(row["why"]), basis_text(row))
        for row in told.versions
    ]


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
