"""The report as one HTML file: figures, plots and words of a profile's steward, nothing loaded from anywhere.

Whatever came out of a transcript is escaped, and the page's own policy forbids scripts and every request. Light and
dark follow the reader's setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ..charts import STYLE, Bar, Series, bars, counted, lines
from .records import reason_text, records_at, whose
from .report import OUTCOMES, source_name
from .versions import basis_text
from .versions import changelog_rows as version_rows

if TYPE_CHECKING:
    from ctxsteward.schemas.recommendation import MetaRecommendation, Status
    from ctxsteward.steward.harvest.usage import RecordUse
    from ctxsteward.steward.night.history import Night
    from ctxsteward.steward.night.report import NightReport

    from .context import StewardContext

MAX_NIGHTS, MAX_VERSIONS, MAX_RECORDS = 90, 30, 500
STATUSES: tuple[Status, ...] = (
    "active", "vetted", "candidate", "superseded", "expired", "quarantined", "rejected",
)  # fmt: skip
YIELDS = ("due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "promoted")

PAGE_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--text:#24292f;--dim:#57606a;--line:#d8dee4;--card:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--text:#e6edf3;--dim:#9da7b3;--line:#30363d;--card:#161b22}}
body{margin:0 auto;padding:24px;max-width:1040px;background:var(--paper);color:var(--text);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}
.dim,.none{color:var(--dim)}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 16px;overflow-x:auto}
.card h2{margin-top:0}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--dim);font-weight:600}td.n,th.n{text-align:right}code{font:12px ui-monospace,Menlo,Consolas,monospace}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


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
    from ctxsteward.steward.night.history import NightChain

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
    title = f"Steward of {told.profile}"
    body = "\n".join(part for part in _body(told) if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{escape(title)}</title>'
        f"<style>{PAGE_STYLE}{STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


# -- parts --------------------------------------------------------------------------------------------------------


def _body(told: Figures) -> Iterator[str]:
    version = f"version {told.version} in force" if told.version else "nothing in force yet"
    about = f"tenant {told.tenant}, {version}, {len(told.nights)} nights shown; made {told.when}"
    yield f'<p class="dim">{escape(about)}</p>'
    if told.waiting:
        yield f"<p><strong>{len(told.waiting)} wait for a person:</strong> {escape(', '.join(told.waiting))}</p>"
    if told.report is not None:
        yield from _tonight(told.report)
    yield from _alerts(told)
    yield '<div class="cards">'
    for heading, drawn in _plots(told):
        yield f'<section class="card"><h2>{heading}</h2>{drawn}</section>'
    yield "</div>"
    yield section("In force for everybody", table(("text", "sources", "approved"), _slice(told)))
    yield section("Records", table(("kind", "status", "for", "text", "why", "use"), _records(told)))
    yield section("Versions", table(("version", "when", "who", "why", "rested on"), _versions(told)))


def _plots(told: Figures) -> Iterator[tuple[str, str]]:
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
    from ctxsteward.steward.night.report import rates_of

    rates = [rates_of(night.counts) for night in nights]
    for name in ("anticipated", "used", "obeyed"):
        yield Series(name, tuple(one.get(name) for one in rates))


def _grown(nights: Sequence[Night], dates: Sequence[str]) -> str:
    values = tuple(float(night.counts.get("absorbed", 0)) for night in nights)
    return lines("New observations", [Series("new", values)], dates, top=max((*values, 1.0)), percent=False)


def _quarantined(nights: Iterable[Night]) -> Counter[str]:
    total: Counter[str] = Counter()
    for night in nights:
        total.update(night.quarantined)
    return total


def _drifts(place: StewardContext, head: int) -> Iterator[tuple[int, float, float]]:
    """How much each of the newest versions changed."""
    from ctxsteward.steward.drift import report

    versions, before = place.versions, None
    for number in range(max(1, head - MAX_VERSIONS), head + 1):
        now = versions.at(number).profile
        if before is not None:
            found = report(before, now)
            yield number, found.delta, found.meta_delta
        before = now


def _alerts(told: Figures) -> Iterator[str]:
    """Yields of the last nights that were out of the ordinary, the newest first; tonight's are told with it."""
    from ctxsteward.steward.night.history import ALERT_NIGHTS, alerts_of

    nights = [night for _, night in told.nights]
    odd = list(zip(nights, alerts_of(nights), strict=True))[-ALERT_NIGHTS:]
    tonight = told.report.run if told.report is not None else None
    rows = [(night.night, line) for night, lines in reversed(odd) for line in lines if night.run != tonight]
    if rows:
        yield section("Yields out of the ordinary", table(("night", "alert"), rows))


def _tonight(report: NightReport) -> Iterator[str]:
    dry = " (dry run)" if report.dry_run else ""
    outcome = escape(report.outcome.replace("_", " "))
    yield f"<p><strong>Night {escape(report.night)}{dry}: {outcome}</strong>, {OUTCOMES[report.outcome]}.</p>"
    for line in report.alerts:
        yield f"<p>alert: {escape(line)}</p>"
    if report.changes:
        yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in report.changes) + "</ul>"
    refused = [(one.name, source_name(one.source), one.reason) for one in report.quarantined]
    yield section("In quarantine tonight", table(("transcript", "source", "reason"), refused)) if refused else ""


def _slice(told: Figures) -> list[tuple[str, ...]]:
    return [(text, sources, "yes" if approved else "") for text, sources, approved in told.slice]


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


def section(heading: str, content: str) -> str:
    """A heading and what stands below it; the content is HTML."""
    return f"<h2>{escape(heading)}</h2>\n{content}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, escaped: bool = False) -> str:
    """A table; cells are texts, or HTML where they are `escaped` already."""
    if not rows:
        return '<p class="none">none</p>'
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    cells = [[cell if escaped else escape(cell) for cell in row] for row in rows]
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
