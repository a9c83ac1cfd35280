"""Versions and nights of a profile: ``ctxsteward steward log``, ``diff`` and ``drift``, and what ``run`` prints.

A comparison is of two versions, or of a challenger with what is in force: the drift report, what differs, the patch.

Of a night ``run`` prints what stages left, what is in force and why, what was held back. The document is the
`NightReport` with `records` (new and held, each with its spans), `changelog` (the entry of the version that came into
force, by key and address) and `exit_code`. Text of transcripts is made harmless for a terminal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console

from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.steward import NightChain, NightReport
from ctxsteward.steward.drift.report import ProfilePatches, difference, keyed, report
from ctxsteward.steward.night.history import line as night_line
from ctxsteward.steward.release.changelog import changelog_text, entry_lines, named_approvers
from ctxsteward.steward.release.promotion import assess
from ctxsteward.store.profiles.stored_promotion import UNREADABLE
from ctxsteward.store.profiles.versions import ChangeSummary

from ..terminal import tables
from ..terminal.failures import FOUND, STEWARD, need
from ..terminal.output import print_json, print_result, table_console
from .context import StewardContext
from .records import LedgerView, ProfileOptions, QuotedSpan, about_a_profile, complete_versions, reason_text, whose


def changelog_rows(place: StewardContext, limit: int | None) -> list[dict[str, Any]]:
    """Changelog entries, each with what its commit rested on."""
    head = place.head
    start = 1 if limit is None else max(1, head - limit + 1)
    rows = [
        {**told.entry.model_dump(mode="json"), "promotion": _plain_promotion(told.promotion)}
        for told in place.versions.told(start)
    ]
    return rows[::-1]


def night_rows(place: StewardContext, limit: int | None) -> list[dict[str, Any]]:
    """Nights, a line each."""
    history = NightChain(place.store, place.tenant, place.profile).history(limit)
    return [night_line(number, night).model_dump(mode="json") for number, night in history][::-1]


def show_versions(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        kinds = Counter(change["kind"] for change in row["changes"])
        told = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "no change"
        restored = f", restores {row['restores']}" if row["restores"] is not None else ""
        console.print(tables.shown(f"{row['version']}  {row['when']}  {row['who']}: {row['why']}"), soft_wrap=True)
        console.print(tables.shown(f"   {told}{restored}; {basis_text(row)}"), soft_wrap=True)
    if not rows:
        console.print("no version yet")


def show_nights(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    numbers = ("number", "due", "harvested", "new")
    table = tables.grid("night", "number", "outcome", "version", "due", "harvested", "new", "drift", numbers=numbers)
    for row in rows:
        counts = row["counts"]
        table.add_row(
            row["night"],
            str(row["number"]),
            row["outcome"],
            str(row["version"] or "-"),
            f"{counts.get('due', 0):,}",
            f"{counts.get('harvested', 0):,}",
            f"{counts.get('absorbed', 0):,}",
            row["drift"] or "-",
        )
    console.print(table if rows else "no night yet")


def basis_text(row: Mapping[str, Any]) -> str:
    """Drift and approvals of a commit, in words."""
    promotion = row["promotion"]
    if promotion is None:
        return "the first version" if row["version"] == 1 else "a rollback" if row["restores"] else "committed by hand"
    people = ", ".join(who for who, _ in named_approvers(promotion))
    canary = f", canary for {promotion['canary']['share']:.0%}" if "canary" in promotion else ""
    spoiled = promotion.get(UNREADABLE, ())
    lost = f"; cannot be read: {', '.join(spoiled)}" if spoiled else ""
    agreed = f"approved by {people}" if people else "needed nobody"
    return f"drift {promotion.get('level', 'unknown')}, {agreed}{canary}{lost}"


def _plain_promotion(promotion: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Levels, people, canary and addresses of the reports."""
    return None if promotion is None else {name: value for name, value in promotion.items() if name != "schema_version"}


MAX_PATCH_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """One comparison."""

    what: str
    """``version 3 → 4``, ``request 12ab… against version 4``."""
    before: int
    after: int | None
    """None: what waits for people."""
    request: str | None = None
    report: DriftReport
    old: ProfileDocument | None
    new: ProfileDocument

    @property
    def lines(self) -> list[str]:
        """What differs, a line each: ``- ``, ``+ `` or ``~ ``, key, text."""
        return list(changes(self.old, self.new))

    @property
    def difference(self) -> ProfilePatches:
        return difference(keyed(self.old or ProfileDocument(name=self.new.name)), keyed(self.new))

    def document(self) -> dict[str, Any]:
        patches = self.difference
        return {
            "before": self.before,
            "after": self.after,
            "request": self.request,
            "level": self.report.level,
            "drift": self.report.model_dump(mode="json"),
            "changes": self.lines,
            "patch": list(patches.patch),
            "inverse": list(patches.inverse),
        }


def compare_versions(place: StewardContext, before: int, after: int) -> VersionComparison:
    """Two versions of a profile."""
    old, new = place.versions.at(before).profile, place.versions.at(after).profile
    found = report(old, new, place.settings().drift)
    return VersionComparison(
        what=f"version {before} → {after}", before=before, after=after, report=found, old=old, new=new
    )


def compare_newest(place: StewardContext) -> VersionComparison:
    """What waits for people, the newest first; else the last commit against the version before it."""
    head, versions, when = place.head, place.versions, place.here.when
    if not head:
        raise InputError(f"{place.store.uri}: profile {place.profile!r} has no version to compare")
    request = next(reversed(place.approvals.pending(when=when, head=head)), None)
    if request is not None:
        what, parent, new = f"request {request.id} against version {head}", head, place.approvals.challenger(request)
    else:
        parent, new = head - 1, versions.at(head).profile
        what = f"version {parent} → {head}" if parent else "version 1, the first"
    return VersionComparison(
        what=what,
        before=parent,
        after=None if request else head,
        request=request.id if request else None,
        report=assess(versions, new, parent=parent, when=when, limits=place.settings().drift),
        old=versions.at(parent).profile if parent else None,
        new=new,
    )


def changes(old: ProfileDocument | None, new: ProfileDocument) -> Iterator[str]:
    """Entries and records that differ, a line each."""
    before, after = texts(old), texts(new)
    for key, text in before.items():
        if key not in after:
            yield f"- {key}: {text}"
    for key, text in after.items():
        if key not in before:
            yield f"+ {key}: {text}"
        elif before[key] != text:
            yield f"~ {key}: {before[key]} → {text}"


def show_comparison(console: Console, found: VersionComparison) -> None:
    drift = found.report
    console.print(tables.shown(f"{found.what}: {drift.level}", style="bold"), soft_wrap=True)
    shares = f"changed {drift.delta:.1%}, gone {drift.removed:.1%}, of meta {drift.meta_delta:.1%}"
    console.print(shares)
    if drift.cumulative is not None:
        since = drift.cumulative
        since_text = f"since version {since.base}, the last that a person answers for or the window's first: "
        console.print(
            tables.shown(f"{since_text}{since.level}, changed {since.delta:.1%} in {since.versions} versions")
        )
    for line in found.lines:
        console.print(tables.shown(line), soft_wrap=True)
    _findings(console, found)
    _patch(console, found)


def _findings(console: Console, found: VersionComparison) -> None:
    if not found.report.findings:
        return
    table = tables.grid("level", "finding", "key", "what was found")
    for one in found.report.findings:
        key = f"{one.block}.{one.key}" if one.key else one.block or "-"
        table.add_row(one.level, one.kind, tables.shown(key), tables.shown(one.text))
    console.print(table)


def _patch(console: Console, found: VersionComparison) -> None:
    operations = found.difference.patch
    if operations:
        console.print("patch (RFC 6902):")
    for operation in operations[:MAX_PATCH_SHOWN]:
        console.print(tables.shown(f"  {json.dumps(operation, ensure_ascii=False)}"), soft_wrap=True)
    if len(operations) > MAX_PATCH_SHOWN:
        console.print(f"  and {len(operations) - MAX_PATCH_SHOWN} more; --json has all, and the inverse")


def texts(document: ProfileDocument | None) -> dict[str, str]:
    """All that it says, by key; a record's begins with ``meta.``."""
    if document is None:
        return {}
    entries = {f"{block}.{e.id}": _entry(e) for block in BLOCKS for e in getattr(document, block)}
    return entries | {f"meta.{record.id}": record.text for record in document.meta}


def _entry(entry: ProfileEntry) -> str:
    """The text with whatever else is set, so that any change of it is a line."""
    fields = {name: getattr(entry, name) for name in ("modality", "polarity", "value", "unit")}
    told = {name: value for name, value in fields.items() if value is not None}
    if entry.locked:
        told["locked"] = "yes"
    more = ", ".join(f"{name} {value}" for name, value in told.items())
    return entry.text + (f" ({more})" if more else "")


@click.command()
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest.")
@click.option("--nights", is_flag=True, help="Nights instead of versions.")
@click.option("--markdown", is_flag=True, help="Print the profile's CHANGELOG.md.")
@about_a_profile(people=False)
def log(limit: int | None, nights: bool, markdown: bool, where: ProfileOptions, as_json: bool) -> None:
    """List the versions of a profile, newest first, with what each rested on; or its nights."""
    if markdown and (nights or as_json):
        raise click.UsageError("--markdown goes with neither --nights nor --json")
    with where.open() as place:
        if markdown:
            click.echo(changelog_text(place.versions), nl=False)
            return
        rows = night_rows(place, limit) if nights else changelog_rows(place, limit)
    print_result(rows, show_nights if nights else show_versions, as_json=as_json)


@click.command()
@click.argument("before", type=click.IntRange(1), metavar="A", shell_complete=complete_versions)
@click.argument("after", type=click.IntRange(1), metavar="B", shell_complete=complete_versions)
@about_a_profile(people=False)
def diff(before: int, after: int, where: ProfileOptions, as_json: bool) -> None:
    """Compare versions A and B key by key, with the patch (RFC 6902) and its inverse."""
    with where.open() as place:
        _print_comparison(compare_versions(place, before, after), as_json=as_json)


@click.command()
@click.argument("before", type=click.IntRange(1), metavar="[A]", required=False, shell_complete=complete_versions)
@click.argument("after", type=click.IntRange(1), metavar="[B]", required=False, shell_complete=complete_versions)
@about_a_profile()
@click.pass_context
def drift(ctx: click.Context, before: int | None, after: int | None, where: ProfileOptions, as_json: bool) -> None:
    """Report the drift from version A to B; without them, of what waits for people, else of the last commit.

    Exit code 1: a finding is a WARN or a BLOCK.
    """
    if (before is None) != (after is None):
        raise click.UsageError("give both versions, or none", ctx)
    with where.open() as place:
        if before is not None and after is not None:
            comparison = compare_versions(place, before, after)
        else:
            comparison = compare_newest(place)
    _print_comparison(comparison, as_json=as_json)
    if comparison.report.level != "INFO":
        ctx.exit(FOUND)


def _print_comparison(found: VersionComparison, *, as_json: bool) -> None:
    need(STEWARD[:1], "a patch")
    print_json(found.document()) if as_json else show_comparison(table_console(), found)


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
        "changelog": _landed_entry(report, place),
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
    for part in (
        _in_force(report, seen),
        _own(seen),
        _held(seen),
        _quarantined(report),
        _checks(report),
        _wording(report),
    ):
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


def _wording(report: NightReport) -> Iterator[Any]:
    """Calls, cost and refusals of a model's wordings."""
    if (told := report.wording) is not None:
        cost = f"{told.calls:,} calls, {told.tokens:,} tokens, ${told.dollars:.4f}"
        yield tables.shown(f"Words by {told.model}: {told.worded:,} of {told.asked:,} held, {told.kept:,} kept; {cost}")
        faults = [f"refused for {name}: {count:,}" for name, count in told.refused.items()]
        yield from (tables.shown(f"  {why}") for why in (*faults, *told.fell_back))


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
        "id": record.id,
        "kind": record.kind,
        "status": record.status,
        "for": whose(record),
        "text": record.text,
        "reasons": list(record.reasons),
        "why": reason_text(record),
        "spans": [
            {name: getattr(span.evidence, name) for name in ("session", "ref", "trust")} | {"text": span.text}
            for span in seen.spans[record.id]
        ],
    }


def _landed_entry(report: NightReport, place: StewardContext) -> dict[str, Any] | None:
    told = _landed(report, place)
    return None if told is None else told.entry.model_dump(mode="json")
