"""The output of ``ctxsteward steward run``: stages, the version in force and its reasons, records that are held.

The JSON document is the `NightReport` with `records` (new and held, each with its spans), `changelog` (the entry of the
new version, by key and address) and `exit_code`. Text of transcripts is escaped for terminals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward import NightReport
from ctxsteward.steward.release.changelog import entry_lines
from ctxsteward.store.profiles.versions import ProfileVersions

from ..terminal.tables import grid, percent, say
from .records import LedgerView, reason_text, record_fields

SHOWN_RECORDS, SHOWN_SPANS, SHOWN_NAMES, SPAN_CHARS = 8, 3, 3, 160
MAX_LISTED = 200
"""Records of one list in a report."""
OUTCOMES = {
    "unchanged": "nothing to change",
    "promoted": "a new version is in force",
    "canary": "a new version is in force for some sessions",
    "held": "a person must look",
    "rejected": "the checks stopped it",
    "rolled_back": "the canary failed; the version before is in force again",
    "busy": "another night is under way; this one did nothing",
}


def with_records(report: NightReport, records: LedgerView, before: set[str] | None) -> NightReport:
    """Add the new and held records; `None` for the ids active before means that there are too many to compare."""
    every = sorted(records, key=lambda record: (record.kind, record.text, record.id))
    active = [record for record in every if record.status == "active"]
    new = [record for record in active if before is not None and record.id not in before][:MAX_LISTED]
    held = [record for record in every if record.status not in ("active", "superseded")][:MAX_LISTED]
    quotes = {record.id: tuple(quote.text for quote in records.ledger.why(record.id)) for record in (*new, *held)}
    return report.model_copy(
        update={"is_compared": before is not None, "new": tuple(new), "held": tuple(held), "quotes": quotes}
    )


def with_changelog(report: NightReport, versions: ProfileVersions) -> NightReport:
    """Add the changelog entry of the version that came into force, if one did."""
    if not report.has_landed or report.dry_run or report.version is None:
        return report
    return report.model_copy(update={"landed": next(iter(versions.told(report.version)), None)})


def night_document(report: NightReport) -> dict[str, Any]:
    """The night as JSON."""
    return report.model_dump(mode="json") | {
        "records": {
            "compared": report.is_compared,
            "new": [_record_document(record, report) for record in report.new],
            "held": [_record_document(record, report) for record in report.held],
        },
        "changelog": None if report.landed is None else report.landed.model_dump(mode="json"),
        "exit_code": report.exit_code,
        "findings": [finding.model_dump(mode="json") for finding in report.findings],
    }


def _record_document(record: MetaRecommendation, report: NightReport) -> dict[str, Any]:
    spans = zip(record.evidence, report.quotes[record.id], strict=True)
    return record_fields(record) | {
        "spans": [
            {"session": span.session, "ref": span.ref, "trust": span.trust, "text": text} for span, text in spans
        ],
    }


def show_night(console: Console, report: NightReport, *, is_shipped: bool) -> None:
    """Print the night as a page of text."""
    for finding in report.findings:
        say(console, f"finding: {finding.text}")
    outcome = f"{report.outcome.replace('_', ' ')}, {OUTCOMES[report.outcome]}"
    dry = " (dry run: nothing is kept)" if report.dry_run else ""
    say(console, f"night {report.night} of {report.profile}: {outcome}{dry}", "bold")
    if names := sorted({refused.name for refused in report.quarantined}):
        due = report.stages.get("due", len(names))
        shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
        why = "`ctxsteward steward quarantine` says why"
        say(console, f"{len(names):,} of {due:,} files could not be read: {shown}; {why}", "yellow")
    if is_shipped:
        console.print("  on the shipped transcripts; name your own with --transcripts")
    for alert in report.alerts:
        say(console, f"  alert: {alert}", "yellow")
    if report.outcome == "busy":
        return
    if not report.stages.get("due") and report.outcome == "unchanged":
        console.print(f"nothing new: no transcript is due, version {report.version or 'none'} stays in force")
        return
    befores = (0, *report.stages.values())
    rows = (
        (stage, f"{count:,}", percent(count / before) if 0 < before >= count else "")
        for (stage, count), before in zip(report.stages.items(), befores, strict=False)
    )
    console.print(grid("stage", "left", "of the stage before", rows=rows, numbers=("left", "of the stage before")))
    for lines in (_changed(report), _listed(report), _refused(report), _checks(report)):
        for line, style in lines:
            say(console, line, style)
    if report.landed is not None:
        say(console, "Changelog:")
        for line in filter(None, entry_lines(report.landed)):
            say(console, f"  {line}".rstrip())


Lines = Iterator[tuple[str, str]]
"""Lines for a person, each with its style."""


def _changed(report: NightReport) -> Lines:
    """Yield the lines that the slice gains and loses, each with its evidence."""
    would = "Changed for everybody" if report.has_landed and not report.dry_run else "Would change for everybody"
    if report.changes:
        yield f"{would}{f', version {report.version}' if report.has_landed and report.version else ''}:", "bold"
    by_text = {record.text: record for record in report.new}
    for line in report.changes:
        yield f"  {line}", ""
        record = by_text.get(line[2:].rpartition(" [")[0])
        spans = () if record is None else tuple(zip(record.evidence, report.quotes[record.id], strict=True))
        for at, quote in spans[:SHOWN_SPANS]:
            text = "(forgotten)" if quote is None else " ".join(quote.split())
            cut = text if len(text) <= SPAN_CHARS else text[: SPAN_CHARS - 1] + "…"
            yield f"      {at.session}{at.ref} {at.trust}: {cut if quote is None else f'“{cut}”'}", "dim"
        if len(spans) > SHOWN_SPANS:
            yield f"      and {len(spans) - SHOWN_SPANS} more spans", ""


def _listed(report: NightReport) -> Lines:
    """Records that were held back."""
    if report.held:
        yield f"Held back: {len(report.held):,}", "bold"
    for record in report.held[:SHOWN_RECORDS]:
        yield f"  {record.status}: {record.text}  ({reason_text(record)}; {record.id})", ""
    if len(report.held) > SHOWN_RECORDS:
        more = len(report.held) - SHOWN_RECORDS
        yield f"  and {more:,} more; `ctxsteward steward review --all` lists them", ""


def _refused(report: NightReport) -> Lines:
    """Transcripts that were quarantined or left out, and where times are from."""
    if report.quarantined:
        yield "In quarantine:", "bold"
    for refused in report.quarantined[:SHOWN_RECORDS]:
        reason = refused.reason.replace("_", " ")
        yield f"  {refused.name}: {reason}", ""
    if len(report.quarantined) > SHOWN_RECORDS:
        yield f"  and {len(report.quarantined) - SHOWN_RECORDS:,} more", ""
    if report.skipped:
        left = ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in report.skipped.items())
        yield f"Left out: {left}", ""
    if by_file := report.dated.get("file", 0):
        fix = "give messages a `ts`, or `started` in the metadata"
        yield f"Times of {by_file:,} transcripts are their files': {fix}", ""


def _checks(report: NightReport) -> Lines:
    """Drift, evals and canary, and what waits for people."""
    for name, check in report.checks.items():
        why = f": {'; '.join(check.why)}" if check.why else ""
        yield f"{name} {check.level}{why}", ""
    if report.drafted:
        changes = "change of the profile is" if report.drafted == 1 else "changes of the profile are"
        yield f"{report.drafted:,} {changes} drafted; see `ctxsteward steward review`", ""
    if report.waiting:
        yield f"{report.waiting:,} waits for a person; see `ctxsteward steward review`", ""
