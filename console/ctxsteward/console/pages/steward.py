"""The report of a profile's steward as one HTML file: figures, plots and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from ctxsteward.schemas.recommendation import MetaRecommendation, Status
from ctxsteward.steward.drift import report
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.night.history import ALERT_NIGHTS, Night, NightChain, alerts_of
from ctxsteward.steward.night.report import NightReport, rates_of

from ..steward.context import StewardContext
from ..steward.records import reason_text, records_at, whose
from ..steward.report import OUTCOMES
from ..steward.sample import source_name
from ..steward.versions import basis_text
from ..steward.versions import changelog_rows as version_rows
from . import render
from .charts import Bar, Series, bars, counted, lines

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
        versions=tuple(version_rows(place, MAX_VERSIONS)),
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
    nights = [night for _, night in told.nights]
    dates = [night.night for night in nights]
    counts = nights[-1].counts if nights else {}
    if told.report is not None and told.report.stages:
        counts = {one.stage: one.count for one in told.report.stages}
    yield "Yield of each stage, last night", bars("Yield", [Bar(s, (counts[s],)) for s in YIELDS if s in counts])
    governed, meta = (tuple(shares[at] for shares in told.drifts) for at in (1, 2))
    changed = [Series("governed text", governed), Series("meta", meta)]
    yield "Drift, version by version", lines("Drift", changed, [str(number) for number, *_ in told.drifts])
    yield "Drift over nights", bars("Nights by drift level", _levels(nights))
    yield "Hit rate over nights", lines("Hit rate", list(_rates(nights)), dates)
    yield "New observations over nights", _grown(nights, dates)
    yield "Quarantine, by reason", bars("Quarantine", counted(_quarantined(nights)))
    kinds = Counter((one.kind, one.status) for one in told.records)
    known = [status for status in STATUSES if any(status == found for _, found in kinds)]
    rows = [Bar(kind, tuple(kinds[kind, status] for status in known)) for kind in sorted({kind for kind, _ in kinds})]
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
