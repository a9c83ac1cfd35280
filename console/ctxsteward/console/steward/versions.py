"""Versions of a profile: ``ctxsteward steward show``, ``log`` and ``drift``.

A comparison of two versions, or of a challenger with the version in force, has drift report, differences and patch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import click
from rich.console import Console
from ruamel.yaml import YAML

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.steward.drift.report import difference, keyed, report
from ctxsteward.steward.release.changelog import changelog_text, named_approvers
from ctxsteward.steward.release.promotion import assess
from ctxsteward.store.profiles.stored_promotion import UNREADABLE

from ..terminal.failures import FOUND, STEWARD, need
from ..terminal.output import print_json, print_result
from ..terminal.tables import grid, say
from .context import StewardContext
from .records import ProfileOptions, about_a_profile, complete_versions

MAX_PATCH_SHOWN = 40


def changelog_rows(place: StewardContext, limit: int | None) -> list[dict[str, Any]]:
    """Changelog entries, newest first, each with its promotion: levels, people, canary and addresses of the reports."""
    rows = []
    for entry in place.versions.told(1 if limit is None else max(1, place.head - limit + 1)):
        promotion = None if entry.promotion is None else {**entry.promotion}
        if promotion is not None:
            promotion.pop("schema_version", None)
        rows.append({**entry.model_dump(mode="json"), "promotion": promotion})
    return rows[::-1]


def show_versions(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        kinds = Counter(change["kind"] for change in row["changes"])
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "no change"
        restored = f", restores {row['restores']}" if row["restores"] is not None else ""
        say(console, f"{row['version']}  {row['when']}  {row['who']}: {row['why']}")
        say(console, f"   {counts}{restored}; {basis_text(row)}")
    if not rows:
        console.print("no version yet")


def basis_text(row: Mapping[str, Any]) -> str:
    """Drift and approvals of a commit, in words."""
    promotion = row["promotion"]
    if promotion is None:
        return "the first version" if row["version"] == 1 else "a rollback" if row["restores"] else "committed by hand"
    people = ", ".join(who for who, _ in named_approvers(promotion))
    canary = f", canary for {promotion['canary']['share']:.0%}" if "canary" in promotion else ""
    unreadable = promotion.get(UNREADABLE, ())
    lost = f"; cannot be read: {', '.join(unreadable)}" if unreadable else ""
    agreed = f"approved by {people}" if people else "needed nobody"
    return f"drift {promotion.get('level', 'unknown')}, {agreed}{canary}{lost}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """One comparison."""

    what: str
    """``version 3 → 4``, ``request 12ab… against version 4``."""
    before: int
    after: int | None
    """None for a challenger that waits for people."""
    request: str | None = None
    report: DriftReport
    old: ProfileDocument | None
    new: ProfileDocument

    def document(self) -> dict[str, Any]:
        """The comparison as JSON, with the patch (RFC 6902) and its inverse."""
        old, new = keyed(self.old or ProfileDocument(name=self.new.name)), keyed(self.new)
        return {
            "before": self.before,
            "after": self.after,
            "request": self.request,
            "level": self.report.level,
            "drift": self.report.model_dump(mode="json"),
            "changes": list(changes(self.old, self.new)),
            "patch": list(difference(old, new)),
            "inverse": list(difference(new, old)),
        }


def compare_versions(place: StewardContext, before: int, after: int) -> VersionComparison:
    """Compare two versions of a profile."""
    old, new = place.versions.at(before).profile, place.versions.at(after).profile
    drifted = report(old, new, place.settings().drift)
    return VersionComparison(
        what=f"version {before} → {after}", before=before, after=after, report=drifted, old=old, new=new
    )


def compare_newest(place: StewardContext) -> VersionComparison:
    """Compare what waits for people, the newest first, with the head; else the head with the version before it."""
    head, versions, when = place.head, place.versions, place.here.when
    if not head:
        raise InputError(f"{place.store.uri}: profile {place.profile!r} has no version to compare")
    request = next(reversed(place.pending()), None)
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
    """Yield a line for each difference: ``- ``, ``+ `` or ``~ ``, key, text."""
    before, after = texts(old), texts(new)
    for key, text in before.items():
        if key not in after:
            yield f"- {key}: {text}"
    for key, text in after.items():
        if key not in before:
            yield f"+ {key}: {text}"
        elif before[key] != text:
            yield f"~ {key}: {before[key]} → {text}"


def texts(document: ProfileDocument | None) -> dict[str, str]:
    """All texts of a profile by key; a record's begins with ``meta.``."""
    if document is None:
        return {}
    entries = {f"{block}.{e.id}": _entry_text(e) for block in BLOCKS for e in getattr(document, block)}
    return entries | {f"meta.{record.id}": record.text for record in document.meta}


def _entry_text(entry: ProfileEntry) -> str:
    """Return the text and other fields of an entry, so that a change of any of them gives a line."""
    fields = {name: getattr(entry, name) for name in ("modality", "polarity", "value", "unit")}
    fields["locked"] = "yes" if entry.locked else None
    more = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
    return entry.text + (f" ({more})" if more else "")


@click.command()
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Most versions to show, newest first.")
@click.option("--markdown", is_flag=True, help="Print the profile's CHANGELOG.md.")
@about_a_profile(people=False)
def log(limit: int | None, markdown: bool, where: ProfileOptions, as_json: bool) -> None:
    """List the versions of a profile, newest first, with the evidence of each."""
    if markdown and as_json:
        raise click.UsageError("--markdown goes without --json")
    with where.open() as place:
        if markdown:
            click.echo(changelog_text(place.versions), nl=False)
            return
        rows = changelog_rows(place, limit)
    print_result(rows, show_versions, as_json=as_json)


def profile_yaml(document: ProfileDocument) -> str:
    """A profile as the YAML that `propose` and `run --profile` read."""

    def fields(entry: ProfileEntry | MetaRecord) -> Any:
        told = entry.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
        return told["text"] if list(told) == ["text"] else told

    tree: dict[str, Any] = {"name": document.name}
    for block in (*BLOCKS, "meta"):
        entries = {entry.id: fields(entry) for entry in getattr(document, block)}
        tree |= {block: entries} if entries else {}
    writer, out = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style, writer.allow_unicode, writer.width = False, True, 4_096
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(tree, out)
    return out.getvalue()


@click.command()
@click.argument("version", type=click.IntRange(1), metavar="[V]", required=False, shell_complete=complete_versions)
@about_a_profile(people=False)
def show(version: int | None, where: ProfileOptions, as_json: bool) -> None:
    """Print what is in force, or version V, as a YAML file: edit it, and `steward propose` it."""
    with where.open() as place:
        document = (place.versions.newest() if version is None else place.versions.at(version)).profile
    print_json(document.model_dump(mode="json")) if as_json else click.echo(profile_yaml(document), nl=False)


@click.command()
@click.argument("before", type=click.IntRange(1), metavar="[A]", required=False, shell_complete=complete_versions)
@click.argument("after", type=click.IntRange(1), metavar="[B]", required=False, shell_complete=complete_versions)
@about_a_profile()
@click.pass_context
def drift(ctx: click.Context, before: int | None, after: int | None, where: ProfileOptions, as_json: bool) -> None:
    """Compare versions A and B; without them, compare what waits for people with what is in force, else the last
    commit.

    The output shows drift, the differences key by key, and the patch (RFC 6902); the JSON also has its inverse.
    Exit code 1: a finding is a WARN or a BLOCK.
    """
    if (before is None) != (after is None):
        raise click.UsageError("give both versions, or none", ctx)
    with where.open() as place:
        if before is not None and after is not None:
            comparison = compare_versions(place, before, after)
        else:
            comparison = compare_newest(place)
    need(STEWARD[:1], "a patch")
    document = comparison.document()
    print_result(document, lambda console, _: _show(console, comparison, document), as_json=as_json)
    if comparison.report.level != "INFO":
        ctx.exit(FOUND)


def _show(console: Console, comparison: VersionComparison, document: Mapping[str, Any]) -> None:
    drifted = comparison.report
    say(console, f"{comparison.what}: {drifted.level}", "bold")
    console.print(f"changed {drifted.delta:.1%}, gone {drifted.removed:.1%}, of meta {drifted.meta_delta:.1%}")
    if drifted.cumulative is not None:
        since = drifted.cumulative
        base = f"since version {since.base}, the last that a person answers for or the window's first"
        say(console, f"{base}: {since.level}, changed {since.delta:.1%} in {since.versions} versions")
    for line in document["changes"]:
        say(console, line)
    if drifted.findings:
        rows = (
            (each.level, each.kind, f"{each.block}.{each.key}" if each.key else each.block or "-", each.text)
            for each in drifted.findings
        )
        console.print(grid("level", "finding", "key", "what was found", rows=rows))
    operations = document["patch"]
    if operations:
        console.print("patch (RFC 6902):")
    for operation in operations[:MAX_PATCH_SHOWN]:
        say(console, f"  {json.dumps(operation, ensure_ascii=False)}")
    if len(operations) > MAX_PATCH_SHOWN:
        console.print(f"  and {len(operations) - MAX_PATCH_SHOWN} more; --json has all, and the inverse")
