"""Generate a profile's CHANGELOG.md from its chain: author, time, reason and changes of each version, in stable bytes.

Entries of persona, policies, rails and surface are quoted, because they are the operator's own text. Meta records are
named by the first digits of their address, so that the page holds no words of users. Newest first.

Raises what `ProfileVersions.told` raises. Source: keepachangelog.com (order and headings).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxsteward.schemas.profile import BLOCKS
from ctxsteward.schemas.profile_changes import Change, ChangelogEntry
from ctxsteward.store.profiles.stored_promotion import UNREADABLE
from ctxsteward.store.profiles.versions import ProfileVersions

CHANGE_KINDS = ("added", "changed", "removed", "moved")
_ADDRESS_DIGITS = 12
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>#|"})


def changelog_text(versions: ProfileVersions) -> str:
    """Return the whole page, ending in a newline."""
    entries = list(versions.told())
    head = [f"# Changelog of profile {markdown_text(versions.name)}", ""]
    body = [line for entry in reversed(entries) for line in entry_lines(entry, _texts(versions, entry))]
    return "\n".join(head + (body or ["Nothing has been committed yet.", ""])).rstrip("\n") + "\n"


def _texts(versions: ProfileVersions, entry: ChangelogEntry) -> list[dict[str, str]]:
    """Return the texts of entries before and after a version, by ``block.key``; empty if no entry changed."""
    numbers = (entry.parent, entry.version) if any(change.key for change in entry.changes) else ()
    profiles = (versions.at(number).profile for number in numbers if number)
    return [
        {f"{block}.{line.id}": line.text for block in BLOCKS for line in getattr(profile, block)}
        for profile in profiles
    ]


def entry_lines(entry: ChangelogEntry, texts: Sequence[Mapping[str, str]] = ()) -> Iterator[str]:
    """Yield the lines of one version: author and reason, changes, approvers, and addresses to look up."""
    promotion = entry.promotion
    yield f"## Version {entry.version} ({markdown_text(entry.when)})"
    yield ""
    restored = f" It is version {entry.restores} again." if entry.restores is not None else ""
    yield f"By {markdown_text(entry.who)}: {markdown_text(entry.why)}.{restored}"
    yield ""
    for kind in CHANGE_KINDS:
        changes = [change for change in entry.changes if change.kind == kind]
        records = [change for change in changes if change.key is None]
        if records:
            what = f"{len(records)} records" if len(records) > 1 else "A record"
            yield f"- {what} that everybody is shown {_was(kind, len(records))}: {', '.join(map(_at, records))}."
        for change in changes:
            if change.key is not None:
                name = f"{change.block}.{change.key}"
                said = dict.fromkeys(f"“{markdown_text(text[name])}”" for text in texts if name in text)
                yield f"- `{name}` {_was(kind)}: {', '.join(filter(None, (' → '.join(said), _at(change))))}."
    if not entry.changes:
        yield "- Nothing was changed."
    yield ""
    agreement = f"{_agreement(promotion)} " if promotion is not None else ""
    reports = [
        f"{what} {_short(promotion[name]['blob'])}"
        for name, what in (("drift", "drift report"), ("gate", "gate report"), ("patch", "patch"))
        if promotion is not None and name in promotion
    ]
    evidence = [*reports, f"commit {_short(entry.commit_id)}", f"writer epoch {entry.epoch}"]
    yield f"{agreement}To look up: {', '.join(evidence)}."
    yield ""


def _was(kind: str, count: int = 1) -> str:
    return f"{'were' if count > 1 else 'was'} {kind}"


def _agreement(promotion: Mapping[str, Any]) -> str:
    """Return a sentence about a version's drift from the one before it and its approvers."""
    people = [f"{markdown_text(who)} ({markdown_text(when)})" for who, when in named_approvers(promotion)]
    agreed = f"it was approved by {', '.join(people)}" if people else "nobody had to approve it"
    canary = f", and {promotion['canary']['share']:.0%} of sessions had it first" if "canary" in promotion else ""
    spoiled = promotion.get(UNREADABLE, ())
    lost = f" These parts cannot be read: {', '.join(map(markdown_text, spoiled))}." if spoiled else ""
    return f"Drift is {promotion.get('level', 'unknown')}; {agreed}{canary}.{lost}"


def named_approvers(promotion: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return who approved a version and when, unchecked (`ProfileVersions.approval_checks` checks it).

    >>> named_approvers({"approvals": [{"who": "ada", "when": "2026-11-22", "link": 2}, "bo"]})
    [('ada', '2026-11-22'), ('(unreadable)', '')]
    """
    if not {"approvals", "promotion"}.isdisjoint(promotion.get(UNREADABLE, ())):
        return [("(unreadable)", "")]
    return [
        (each["who"], str(each.get("when", "")))
        if isinstance(each, Mapping) and isinstance(each.get("who"), str)
        else ("(unreadable)", "")
        for each in promotion.get("approvals", ())
    ]


def _at(change: Change) -> str:
    """Return the addresses of the content before and after a change."""
    return " → ".join(_short(each) for each in dict.fromkeys((change.before, change.after)) if each)


def _short(address: str) -> str:
    return f"`{address[:_ADDRESS_DIGITS]}`"


def markdown_text(text: str) -> str:
    """Escape the special characters of Markdown."""
    return text.translate(_SPECIAL)
