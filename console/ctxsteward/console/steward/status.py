"""``ctxsteward steward status``: how the steward of a profile stands, for people, for JSON, and as one HTML page.

The page begins with the lines in force and those that wait, each with its evidence, as `steward review` says it; plots
come last. ``steward run --html`` writes it after a night (`write_page`).

``ctxsteward steward digest`` tells a week (ISO 8601, UTC) in sentences: what came into force, what was taken out and
why, what waits, what was rejected, and which errors came up in most transcripts. What waits is what waits now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from markupsafe import Markup
from rich.console import Console

from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.profile_changes import ChangelogEntry
from ctxsteward.schemas.recommendation import Status
from ctxsteward.steward import NightChain, NightReport, status as read_status
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.night.history import ALERT_NIGHTS, Night, alerts_of, rates_of
from ctxsteward.steward.release.assignment import running
from ctxsteward.steward.release.changelog import markdown_text

from ..pages.charts import Bar, Series, bars, counted, lines
from ..pages.frame import render
from ..terminal import tables
from ..terminal.output import print_json, print_result
from .context import StewardContext, source_name
from .questions import question_lines, questions, quoted
from .records import LedgerView, ProfileOptions, about_a_profile, reason_text, records_at, whose
from .versions import OUTCOMES, basis_text, changelog_rows, texts

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
            row["night"],
            row["outcome"],
            str(row["version"] or "-"),
            str(counts.get("due", 0)),
            str(counts.get("absorbed", 0)),
            str(sum(row["quarantined"].values())),
            _rate_text(row, "used"),
            _rate_text(row, "obeyed"),
            row["drift"] or "-",
            row["gate"] or "-",
        )
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
    "active",
    "vetted",
    "candidate",
    "superseded",
    "expired",
    "quarantined",
    "rejected",
)
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
    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a line of the slice rests on, by its text."""
    questions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Id of each record that waits, and what is asked of it, line by line."""


def write_page(path: str, place: StewardContext, report: NightReport | None) -> None:
    """Write the page of a profile, after a night or without one."""
    Path(path).write_text(page(figures(place, report)), encoding="utf-8", newline="\n")


def figures(place: StewardContext, report: NightReport | None) -> Figures:
    """Everything that the page shows, read from the store."""
    head = place.versions.head()
    with records_at(place, keep=report is None or not report.dry_run) as found:
        records = tuple(found.by_id.values())
        asked = questions(place, found).questions
        quotes = {one.text: quotes_of(found, one.id) for one in (head.profile.meta if head else ())}
        uses = found.ledger.uses.of_records()
    meta = head.profile.meta if head else ()
    number = head.number if head else 0
    return Figures(
        profile=place.profile,
        tenant=place.tenant,
        when=place.here.when,
        version=number or None,
        nights=tuple(NightChain(place.store, place.tenant, place.profile).history(MAX_NIGHTS)),
        drifts=tuple(_drifts(place, number)),
        records=records,
        slice=tuple((record.text, ", ".join(record.sources), record.approved) for record in meta),
        versions=tuple(changelog_rows(place, MAX_VERSIONS)),
        waiting=tuple(one.id for one in place.approvals.pending(when=place.here.when, head=number)),
        report=report,
        uses=uses,
        quotes=quotes,
        questions=tuple((one.record.id, tuple(question_lines(one))) for one in asked),
    )


def page(told: Figures) -> str:
    """The page; the same bytes for the same figures."""
    version = f"version {told.version} in force" if told.version else "nothing in force yet"
    refused = told.report.quarantined if told.report is not None else ()
    return render(
        "steward.html.j2",
        title=f"Steward of {told.profile}",
        about=f"tenant {told.tenant}, {version}, {len(told.nights)} nights shown; made {told.when}",
        requests=[(id, commands_for(id, ("approve", "reject"))) for id in told.waiting],
        questions=[(asked, commands_for(id, tuple(DECISIONS))) for id, asked in told.questions],
        report=told.report,
        outcome=OUTCOMES[told.report.outcome] if told.report is not None else "",
        refused=[(one.name, source_name(one.source), one.reason) for one in refused],
        alerts=_alerts(told),
        plots=list(_plots(told)),
        slice=[
            (text, sources, "approved by a person" if approved else "", told.quotes.get(text, ()))
            for text, sources, approved in told.slice
        ],
        records=_records(told),
        versions=_versions(told),
    )


DECISIONS: Mapping[str, str] = {
    "approve": "",
    "reject": ' --reason "…"',
    "edit": ' --text "…"',
    "later": "",
}
"""What a person can decide of a record, and what the command asks for with it."""


def commands_for(id: str, decisions: Sequence[str]) -> list[str]:
    """Commands that decide, to be copied."""
    return [f"ctxsteward steward review --{each} {id}{DECISIONS[each]} --as NAME" for each in decisions]


def quotes_of(records: LedgerView, id: str) -> tuple[str, ...]:
    """The evidence of a record in force, quoted; nothing for a line that a person wrote."""
    found = records.by_id.get(id)
    return () if found is None else tuple(quoted(span, found) for span in records.spans(found))


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


# -- a week -------------------------------------------------------------------------------------------------------

MAX_ERRORS = 5
_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_BY_ID = re.compile(r"^(?:night|request) \S+?(?:, |$)")
"""How the reason of a commit begins that names a night or a request by its id."""


def week_of(text: str | None, today: str) -> date:
    """The Monday of a week such as ``2026-W48``; None: of the week of today. Raises `InputError`."""
    if text is None:
        day = date.fromisoformat(today)
        return day - timedelta(days=day.weekday())
    found = _WEEK.fullmatch(text)
    try:
        return date.fromisocalendar(int(found[1]), int(found[2]), 1) if found else date.fromisoformat("")
    except ValueError:
        raise InputError(f"--week {text[:40]}: no such week; write one such as 2026-W48") from None


def digest_document(place: StewardContext, records: LedgerView, monday: date) -> dict[str, Any]:
    """What happened to a profile in one week, and what waits now."""
    start = datetime.combine(monday, datetime.min.time(), UTC).timestamp()
    stop = start + timedelta(weeks=1).total_seconds()
    asked = questions(place, records).questions
    commits = [told.entry for told in place.versions.told() if start <= instant(told.entry.when) < stop]
    errors = records.ledger.recurring(start, stop)[:MAX_ERRORS]
    year, week, _ = monday.isocalendar()
    return {
        "profile": place.profile,
        "week": f"{year}-W{week:02}",
        "first": str(monday),
        "last": str(monday + timedelta(days=6)),
        "in_force": [row for entry in commits for row in _in_force(place, entry)],
        "taken_out": [row for entry in commits for row in _taken_out(place, records, entry)],
        "requests": len(place.approvals.pending(when=place.here.when, head=place.head)),
        "waiting": [{"text": one.record.text, "why": one.waits} for one in asked],
        "rejected": sorted(_rejected(place, records, start, stop), key=lambda row: (row["when"], row["text"])),
        "errors": [{"text": records.by_id[id].text, "transcripts": n} for id, n in errors if id in records.by_id],
    }


def _both(place: StewardContext, entry: ChangelogEntry) -> tuple[dict[str, str], dict[str, str]]:
    """Texts before and after a commit, by key."""
    before = place.versions.at(entry.version - 1).profile if entry.version > 1 else None
    return texts(before), texts(place.versions.at(entry.version).profile)


def _in_force(place: StewardContext, entry: ChangelogEntry) -> Iterator[dict[str, Any]]:
    before, after = _both(place, entry)
    if entry.version == 1:
        yield {"version": 1, "when": entry.when, "who": entry.who, "text": None, "entries": len(after)}
        return
    for key, text in after.items():
        if before.get(key) != text:
            told = {"version": entry.version, "when": entry.when, "who": entry.who, "text": text}
            yield told | {"entry": None if key.startswith("meta.") else key, "instead_of": before.get(key)}


def _taken_out(place: StewardContext, records: LedgerView, entry: ChangelogEntry) -> Iterator[dict[str, Any]]:
    before, after = _both(place, entry)
    for key, text in before.items():
        if key not in after:
            why = _why_out(records, entry, key)
            yield {"version": entry.version, "when": entry.when, "who": entry.who, "text": text, "why": why}


def _why_out(records: LedgerView, entry: ChangelogEntry, key: str) -> str:
    reason = _BY_ID.sub("", entry.why)
    told = f": {reason}" if reason else ""
    if entry.restores is not None:
        return f"{entry.who} brought version {entry.restores} back{told}"
    block, _, id = key.partition(".")
    if block != "meta":
        return f"it was proposed so{told}"
    record = records.by_id.get(id)
    if record is None:
        return "what it rested on is there no more"
    return "others are worth more" if record.status == "active" else reason_text(record)


def _rejected(place: StewardContext, records: LedgerView, start: float, stop: float) -> Iterator[dict[str, Any]]:
    for id, refused in place.record_reviews.rejections().items():
        record = records.by_id.get(id)
        if record is not None and record.status == "rejected" and start <= instant(refused.when) < stop:
            yield {"text": record.text, "who": refused.who, "when": refused.when, "why": refused.note}
    for request in place.approvals.requests(when=place.here.when, head=place.head):
        for each in request.verdicts:
            if each.verdict == "reject" and start <= instant(each.when) < stop:
                what = request.note or f"a change of {request.author}'s after version {request.parent}"
                yield {"text": what, "who": each.who, "when": each.when, "why": each.note}


def digest_text(found: Mapping[str, Any]) -> str:
    """The digest as Markdown, in sentences."""
    lines = [
        f"# Week {found['week']} of {markdown_text(found['profile'])}",
        "",
        f"From {found['first']} to {found['last']}.",
        "",
    ]
    waits = len(found["waiting"]) + found["requests"]
    for heading, told, none in (
        ("What came into force", map(_came, found["in_force"]), "Nothing came into force."),
        ("What was taken out", map(_went, found["taken_out"]), "Nothing was taken out."),
        (f"What waits for people: {waits:,}", _waits(found), "Nothing waits."),
        ("What was rejected", map(_refused, found["rejected"]), "Nothing was rejected."),
        (
            "Errors that came up most in its transcripts",
            map(_came_up, found["errors"]),
            "None of which a remedy was seen.",
        ),
    ):
        rows = [f"- {markdown_text(one)}" for one in told]
        lines += [f"## {heading}", "", *(rows or [none]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _came(row: Mapping[str, Any]) -> str:
    if row["text"] is None:
        return f"On {row['when'][:10]}, version 1 by {row['who']}: the first, with {row['entries']:,} entries"
    what = f"{row['entry']} says “{row['text']}”" if row["entry"] else f"“{row['text']}”"
    instead = f" instead of “{row['instead_of']}”" if row["instead_of"] else ""
    return f"On {row['when'][:10]}, in version {row['version']} by {row['who']}: {what}{instead}"


def _went(row: Mapping[str, Any]) -> str:
    return f"On {row['when'][:10]}, in version {row['version']}: “{row['text']}”, because {row['why']}."


def _waits(found: Mapping[str, Any]) -> Iterator[str]:
    if found["requests"]:
        whole = "A change waits" if found["requests"] == 1 else f"{found['requests']:,} changes wait"
        yield f"{whole} for approval as a whole."
    yield from (f"“{row['text']}” {row['why']}" for row in found["waiting"])


def _refused(row: Mapping[str, Any]) -> str:
    why = f"“{row['why']}”" if row["why"] else "no reason was given"
    return f"On {row['when'][:10]} {row['who']} rejected “{row['text']}”: {why}"


def _came_up(row: Mapping[str, Any]) -> str:
    many = "transcript" if row["transcripts"] == 1 else "transcripts"
    return f"In {row['transcripts']:,} {many}: “{row['text']}”"


def write_digest(path: str, place: StewardContext, monday: date, *, keep: bool = True) -> None:
    """Write the digest of a week."""
    with records_at(place, keep=keep) as records:
        text = digest_text(digest_document(place, records, monday))
    Path(path).write_text(text, encoding="utf-8", newline="\n")


@click.command()
@click.option("--week", metavar="WEEK", help="Such as 2026-W48; default: the week of today, so far.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write it there, as Markdown.")
@about_a_profile()
def digest(week: str | None, out: str | None, where: ProfileOptions, as_json: bool) -> None:
    """Tell a week in sentences: what came into force, what was taken out and why, what waits, what was rejected.

    Also which tool errors came up in most transcripts of that week, of those whose remedy was seen.
    """
    with where.open() as place:
        monday = week_of(week, place.here.today)
        with records_at(place) as records:
            found = digest_document(place, records, monday)
    if out is not None:
        Path(out).write_text(digest_text(found), encoding="utf-8", newline="\n")
    if as_json:
        print_json(found)
    elif out is None:
        click.echo(digest_text(found), nl=False)
