"""What ``ctxsteward steward run`` prints of a night: what stages left, what is in force and why, what was held back.

The document is the `NightReport` with `records` (new and held, each with its spans), `changelog` (the entry of the
version that came into force, by key and address) and `exit_code`. Text of transcripts is made harmless for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward import NightReport
from ctxsteward.steward.release import entry_lines
from ctxsteward.store import ChangeSummary

from ..terminal import FOUND, tables
from .context import StewardContext
from .records import LedgerView, QuotedSpan, reason_text, whose

SHOWN_HELD = 8
SHOWN_OWN = 8
SHOWN_SPANS = 3
SPAN_CHARS = 160
OUTCOMES = {
    "unchanged": "nothing to change",
    "promoted": "a new version is in force",
    "canary": "a new version is in force for some sessions",
    "held": "a person must look",
    "rejected": "the checks stopped it",
    "rolled_back": "the canary failed; the version before is in force again",
    "busy": "another night is under way; this one did nothing",
}


MAX_LISTED = 200
"""Records of one list in a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecords:
    """Records after a night."""

    new: tuple[MetaRecommendation, ...] = ()
    """Active ones that were not active before."""
    held: tuple[MetaRecommendation, ...] = ()
    """Records that are not used; `reason_text` says why."""
    compared: bool = True
    """False: there are too many to say which are new."""
    spans: Mapping[str, Sequence[QuotedSpan]] = field(default_factory=dict)
    """What each rests on, by its id."""


def night_records(records: LedgerView, before: set[str] | None) -> NightRecords:
    """Records after a night, beside the ids that were active before it (None: too many to compare)."""
    new, held = [], []
    for record in records:
        if record.status == "active":
            if before is not None and record.id not in before:
                new.append(record)
        elif record.status != "superseded":
            held.append(record)
    for group in (new, held):
        group.sort(key=lambda record: (not record.scope.is_shared, record.kind, record.text, record.id))
        del group[MAX_LISTED:]
    spans = {record.id: records.spans(record) for record in (*new, *held)}
    return NightRecords(new=tuple(new), held=tuple(held), compared=before is not None, spans=spans)


def night_document(report: NightReport, seen: NightRecords, place: StewardContext) -> dict[str, Any]:
    """The night as JSON."""
    return report.model_dump(mode="json") | {
        "rates": report.rates,
        "records": {
            "compared": seen.compared,
            "new": [_told(record, seen) for record in seen.new],
            "held": [_told(record, seen) for record in seen.held],
        },
        "changelog": _entry(report, place),
        "exit_code": exit_code(report),
    }


def exit_code(report: NightReport) -> int:
    """The report's exit code; 1 also where all that was due was refused."""
    if report.exit_code == 0 and report.quarantined and not report.count("harvested") and not report.dry_run:
        return FOUND
    return report.exit_code


def show_night(
    console: Console, report: NightReport, seen: NightRecords, place: StewardContext, *, is_shipped: bool
) -> None:
    """The night as a page of text."""
    headline = (
        f"night {report.night} of {report.profile}: {report.outcome.replace('_', ' ')}, {OUTCOMES[report.outcome]}"
    )
    console.print(tables.shown(headline + (" (dry run: nothing is kept)" if report.dry_run else ""), style="bold"))
    if is_shipped:
        console.print("  on the shipped transcripts; name your own with --transcripts")
    for line in report.alerts:
        console.print(tables.shown(f"  alert: {line}"), style="yellow")
    if report.outcome == "busy":
        return
    if not report.count("due") and report.outcome == "unchanged":
        console.print(f"nothing new: no transcript is due, version {report.version or 'none'} stays in force")
        return
    console.print(_stages(report))
    for part in (_in_force(report, seen), _own(seen), _held(seen), _quarantined(report), _checks(report)):
        for line in part:
            console.print(line, soft_wrap=True)
    for line in _log(report, place):
        console.print(tables.shown(line), soft_wrap=True)


# -- parts --------------------------------------------------------------------------------------------------------


def _stages(report: NightReport) -> Any:
    table = tables.grid("stage", "left", "of the stage before", numbers=("left", "of the stage before"))
    for one in report.stages:
        share = "" if one.share is None or one.share > 1 else tables.percent(one.share)
        table.add_row(one.stage, f"{one.count:,}", share)
    return table


def _in_force(report: NightReport, seen: NightRecords) -> Iterator[Any]:
    """What the slice gains and loses, each with the spans it rests on."""
    if not report.changes:
        return
    landed = report.outcome in ("promoted", "canary")
    would = "Would change for everybody" if report.dry_run or not landed else "Changed for everybody"
    yield tables.shown(f"{would}{f', version {report.version}' if landed and report.version else ''}:", style="bold")
    by_text = {one.text: one for one in seen.new if one.scope.is_shared}
    for line in report.changes:
        yield tables.shown(f"  {line}")
        known = by_text.get(line[2:].rpartition(" [")[0])
        if known is not None:
            yield from _spans(seen.spans[known.id])


def _own(seen: NightRecords) -> Iterator[Any]:
    own = [one for one in seen.new if not one.scope.is_shared]
    if own:
        yield tables.shown(f"New for one person, project or session alone: {len(own):,}", style="bold")
    for one in own[:SHOWN_OWN]:
        yield tables.shown(f"  {whose(one)}: {one.text}  ({one.kind}; {one.id})")
    if len(own) > SHOWN_OWN:
        yield f"  and {len(own) - SHOWN_OWN:,} more; --json lists them"


def _held(seen: NightRecords) -> Iterator[Any]:
    if seen.held:
        yield tables.shown(f"Held back: {len(seen.held):,}", style="bold")
    for one in seen.held[:SHOWN_HELD]:
        yield tables.shown(f"  {one.status}: {one.text}  ({reason_text(one)}; {one.id})")
    if len(seen.held) > SHOWN_HELD:
        yield f"  and {len(seen.held) - SHOWN_HELD:,} more; `ctxsteward steward review --all` lists them"


def _quarantined(report: NightReport) -> Iterator[Any]:
    if report.quarantined:
        yield tables.shown("In quarantine:", style="bold")
    for one in report.quarantined[:SHOWN_HELD]:
        yield tables.shown(f"  {one.name}: {one.reason.replace('_', ' ')}; `ctxsteward steward quarantine` says why")
    if len(report.quarantined) > SHOWN_HELD:
        yield f"  and {len(report.quarantined) - SHOWN_HELD:,} more"
    if report.skipped:
        left = ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in report.skipped.items())
        yield tables.shown(f"Left out: {left}")
    if by_file := report.dated.get("file", 0):
        yield f"Times of {by_file:,} transcripts are their files': give messages a `ts`, or `started` in the metadata"


def _checks(report: NightReport) -> Iterator[Any]:
    for name, check in (("drift", report.drift), ("gate", report.gate), ("canary", report.canary)):
        if check is not None:
            why = f": {'; '.join(check.why)}" if check.why else ""
            yield tables.shown(f"{name} {check.level}{why}")
    if report.waiting:
        yield f"{report.waiting:,} waits for a person; see `ctxsteward steward review`"


def _landed(report: NightReport, place: StewardContext) -> ChangeSummary | None:
    """What is told of the version that came into force; None: none did."""
    if report.outcome not in ("promoted", "canary") or report.dry_run or report.version is None:
        return None
    return next(iter(place.versions.told(report.version)), None)


def _log(report: NightReport, place: StewardContext) -> Iterator[str]:
    told = _landed(report, place)
    if told is None:
        return
    yield "Changelog:"
    yield from (f"  {line}".rstrip() for line in entry_lines(told) if line)


def _spans(spans: Sequence[QuotedSpan]) -> Iterator[Any]:
    for span in spans[:SHOWN_SPANS]:
        one = span.evidence
        yield tables.shown(f"      {one.session}{one.ref} {one.trust}: {_quoted(span.text)}", style="dim")
    if len(spans) > SHOWN_SPANS:
        yield f"      and {len(spans) - SHOWN_SPANS} more spans"


def _quoted(text: str | None) -> str:
    if text is None:
        return "(forgotten)"
    line = " ".join(text.split())
    return f"“{line if len(line) <= SPAN_CHARS else line[: SPAN_CHARS - 1] + '…'}”"


# -- JSON ---------------------------------------------------------------------------------------------------------


def _told(record: MetaRecommendation, seen: NightRecords) -> dict[str, Any]:
    return {
        "id": record.id, "kind": record.kind, "status": record.status, "for": whose(record), "text": record.text,
        "reasons": list(record.reasons), "why": reason_text(record),
        "spans": [
            {name: getattr(span.evidence, name) for name in ("session", "ref", "trust")} | {"text": span.text}
            for span in seen.spans[record.id]
        ],
    }  # fmt: skip


def _entry(report: NightReport, place: StewardContext) -> dict[str, Any] | None:
    told = _landed(report, place)
    return None if told is None else told.entry.model_dump(mode="json")
