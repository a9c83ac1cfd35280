"""The steward's page of one profile, as one HTML file: ``steward status --html``.

It has the lines in force and the records that wait, each with its evidence as in `steward review`, and then plots. The
same store gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.recommendation import Status
from ctxsteward.steward.drift.report import report as drift_report
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.night.alerts import ALERT_NIGHTS
from ctxsteward.steward.night.report import NightReport

from ..pages.charts import Bar, Series, bars, counted, lines
from ..pages.frame import render
from ..terminal.output import write_text
from .context import StewardContext
from .questions import question_lines, questions, quoted
from .records import LedgerView, reason_text, records_at
from .versions import basis_text, changelog_rows

MAX_NIGHTS, MAX_VERSIONS, MAX_RECORDS = 90, 30, 500
STATUSES: tuple[Status, ...] = ("active", "vetted", "candidate", "superseded", "expired", "quarantined", "rejected")


def write_page(path: str, place: StewardContext) -> None:
    """Write the page of a profile."""
    head = place.versions.head()
    meta, number = (head.profile.meta, head.number) if head else ((), 0)
    with records_at(place) as ledger:
        records = ledger.by_id
        text = page(
            profile=place.profile,
            tenant=place.tenant,
            when=place.here.when,
            version=number or None,
            nights=place.nights.reports(MAX_NIGHTS),
            drifts=list(_drifts(place, number)),
            records=list(records.values()),
            slice=[(line.text, ", ".join(line.sources), line.approved, _quotes(ledger, line.id)) for line in meta],
            requests=[request.id for request in place.pending()],
            questions=[
                (ask.record.id, list(question_lines(ask)), ask.is_acceptable)
                for ask in questions(place, ledger).questions
            ],
            versions=changelog_rows(place, MAX_VERSIONS),
            uses=ledger.ledger.uses.of_records(),
        )
    write_text(path, text)


def page(
    *,
    profile: str,
    tenant: str,
    when: str,
    version: int | None,
    nights: Sequence[NightReport],
    records: Sequence[MetaRecommendation],
    slice: Sequence[tuple[str, str, bool, Sequence[str]]] = (),
    requests: Sequence[str] = (),
    questions: Sequence[tuple[str, Sequence[str], bool]] = (),
    versions: Sequence[Mapping[str, Any]] = (),
    drifts: Sequence[tuple[int, float, float]] = (),
    uses: Mapping[str, RecordUse] | None = None,
) -> str:
    """The page; the same bytes for the same values.

    `slice` has text, sources, whether a person approved it, and quoted evidence of each line in force; `questions` the
    id of each record that waits, its lines, and whether its draft can be accepted; `drifts` version, changed share of
    the governed text, and of meta.
    """
    about = f"version {version} in force" if version else "nothing in force yet"
    return render(
        "steward.html.j2",
        title=f"Steward of {profile}",
        about=f"tenant {tenant}, {about}, {len(nights)} nights shown; made {when}",
        slice=slice,
        requests=[(id, commands_for(id, ("approve", "reject"))) for id in requests],
        questions=[
            (asked, commands_for(id, [each for each in DECISIONS if each != "accept" or is_acceptable]))
            for id, asked, is_acceptable in questions
        ],
        alerts=[(night.night, alert) for night in reversed(nights[-ALERT_NIGHTS:]) for alert in night.alerts],
        plots=list(_plots(nights, drifts, records)),
        records=_record_rows(records, uses or {}),
        versions=[(row["version"], row["when"], row["who"], row["why"], basis_text(row)) for row in versions],
    )


DECISIONS: Mapping[str, str] = {"approve": "", "accept": "", "reject": ' --reason "…"', "edit": ' --text "…"'}
"""Decisions about a record, each with what its command asks for."""


def commands_for(id: str, decisions: Sequence[str]) -> list[str]:
    """Commands that decide, to be copied."""
    return [f"ctxsteward steward review --{each} {id}{DECISIONS[each]} --as NAME" for each in decisions]


def _quotes(records: LedgerView, id: str) -> list[str]:
    """The evidence of a record in force, quoted; nothing for a line that a person wrote."""
    record = records.by_id.get(id)
    return [] if record is None else [quoted(span, record) for span in records.ledger.why(record.id)]


def _drifts(place: StewardContext, head: int) -> Iterator[tuple[int, float, float]]:
    """How much each of the newest versions changed."""
    versions, before = place.versions, None
    for number in range(max(1, head - MAX_VERSIONS), head + 1):
        now = versions.at(number).profile
        if before is not None:
            drifted = drift_report(before, now)
            yield number, drifted.delta, drifted.meta_delta
        before = now


def _plots(
    nights: Sequence[NightReport],
    drifts: Sequence[tuple[int, float, float]],
    records: Sequence[MetaRecommendation],
) -> Iterator[tuple[str, Markup]]:
    """Return the plots with data: a series needs two nights, or two versions with changes."""
    dates = [night.night for night in nights]
    if nights and nights[-1].stages:
        yields = [Bar(stage, (count,)) for stage, count in nights[-1].stages.items()]
        yield "Yield of each stage, last night", bars("Yield", yields)
    if len(drifts) > 1:
        numbers, governed, meta = zip(*drifts, strict=True)
        changed = [Series("governed text", governed), Series("meta", meta)]
        yield "Drift, version by version", lines("Drift", changed, list(map(str, numbers)))
    if len(nights) > 1:
        levels = Counter(night.drift.level if night.drift else "nothing staged" for night in nights)
        shown = [Bar(name, (levels[name],)) for name in ("INFO", "WARN", "BLOCK", "nothing staged") if levels[name]]
        yield "Drift over nights", bars("Nights by drift level", shown)
        rates = [night.rates for night in nights]
        series = [Series(name, tuple(rate.get(name) for rate in rates)) for name in ("anticipated", "used", "obeyed")]
        series = [rate for rate in series if sum(value is not None for value in rate.values) > 1]
        if series:
            yield "Hit rate over nights", lines("Hit rate", series, dates)
        new = tuple(float(night.stages.get("absorbed", 0)) for night in nights)
        yield (
            "New observations over nights",
            lines("New observations", [Series("new", new)], dates, top=max((*new, 1.0)), percent=False),
        )
    refused: Counter[str] = Counter()
    for night in nights:
        refused.update(night.refused)
    if refused:
        yield "Quarantine, by reason", bars("Quarantine", counted(refused))
    kinds = Counter((record.kind, record.status) for record in records)
    statuses = [status for status in STATUSES if any(status == found for _, found in kinds)]
    rows = [
        Bar(kind, tuple(kinds[kind, status] for status in statuses)) for kind in sorted({kind for kind, _ in kinds})
    ]
    if rows:
        yield "Records by kind and status", bars("Records", rows, statuses)


def _record_rows(records: Sequence[MetaRecommendation], uses: Mapping[str, RecordUse]) -> list[tuple[str, ...]]:
    """Rows of the table of records, each with what became of it in the sessions that were shown it."""
    ordered = sorted(records, key=lambda one: (STATUSES.index(one.status), one.kind, one.text))
    rows: list[tuple[str, ...]] = []
    for record in ordered[:MAX_RECORDS]:
        use = uses.get(record.id)
        used = "" if use is None else f"shown {use.shown:,}, fired {use.fired:,} of {use.judged:,}"
        if use is not None and (judged := use.complied + use.contradicted):
            used += f", obeyed {use.complied:,} of {judged:,}"
        rows.append((record.kind, record.status, record.text, reason_text(record), used))
    return rows
