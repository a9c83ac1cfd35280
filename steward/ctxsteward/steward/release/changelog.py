"""CHANGELOG.md of a profile, generated from its chain: who committed what, when and why; stable bytes.

Entries of persona, policies, rails and surface go by key, meta records by the first digits of their address: the page
holds nothing that users said. It reads one link a version and no record. Newest first.

Raises what `ProfileVersions.told` raises. Source: keepachangelog.com (order and headings).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxsteward.schemas import Change
from ctxsteward.store import ChangeSummary, ProfileVersions

CHANGE_KINDS = ("added", "changed", "removed", "moved")
_ADDRESS_DIGITS = 12
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>#|"})


def changelog_text(versions: ProfileVersions) -> str:
    """The whole page, ending in a newline."""
    told = list(versions.told())
    head = [f"# Changelog of profile {_plain(versions.name)}", ""]
    body = [line for each in reversed(told) for line in entry_lines(each)]
    return "\n".join(head + (body or ["Nothing has been committed yet.", ""])).rstrip("\n") + "\n"


def entry_lines(told: ChangeSummary) -> Iterator[str]:
    """The lines of one version."""
    entry = told.entry
    yield f"## Version {entry.version} ({_plain(entry.when)})"
    yield ""
    yield f"- by {_plain(entry.who)}: {_plain(entry.why)}"
    if entry.restores is not None:
        yield f"- restores version {entry.restores}"
    yield from _rested_on(told.promotion)
    yield f"- commit `{entry.commit_id[:_ADDRESS_DIGITS]}`, writer epoch {entry.epoch}"
    for kind in CHANGE_KINDS:
        changes = [change for change in entry.changes if change.kind == kind]
        if changes:
            yield from ("", f"### {kind.capitalize()}", "", *map(_change_line, changes))
    yield ""


def _rested_on(promotion: Mapping[str, Any] | None) -> Iterator[str]:
    if promotion is None:
        return
    yield f"- drift {promotion['level']}"
    people = [f"{_plain(each['who'])} ({_plain(each['when'])})" for each in promotion.get("approvals", ())]
    yield f"- approved by {', '.join(people)}" if people else "- needed nobody's approval"
    if "canary" in promotion:
        yield f"- canary for {promotion['canary']['share']:.0%} of sessions"
    for name in ("drift", "gate", "patch"):
        if name in promotion:
            yield f"- {name} report `{promotion[name]['blob'][:_ADDRESS_DIGITS]}`".replace("patch report", "patch")


def _change_line(change: Change) -> str:
    where = f"{change.block}.{change.key}" if change.key is not None else change.block
    addresses = [each[:_ADDRESS_DIGITS] for each in dict.fromkeys((change.before, change.after)) if each]
    return f"- {_plain(where)} `{' → '.join(addresses)}`"


def _plain(text: str) -> str:
    """Text with the marks of Markdown escaped."""
    return text.translate(_SPECIAL)
