"""A change that a person proposes to the version in force: a profile file, or one entry.

    of_file    takes persona, policies, rails, surface and people's records from the file, and keeps the records that
               nights have learned
    of_entry   adds or replaces one entry of the version in force

A record in the file cites its sources. If a source does not resolve in the store's sessions or the harvested messages,
there is a finding, and the record is left out unless the author vouches for it. Then another person must approve it,
like every change by a person. A record that is in force already is not checked again.

`bootstrap` makes a chain from a file; if there is a chain already, the file must equal the version in force.

All functions but `bootstrap` are pure. Raises `InputError`, `Unapproved`, and the errors of `ProfileVersions`.
Source: the layered-envelope design (governed slices, provenance); the state design (meta records cite their sources;
users' text is only in the vault, so the author of a proposal words an entry).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.schemas import Finding, InputError, Unapproved
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, ProfileEntry, is_claim_id

from .pointers import Resolves, Sessions, resolver
from .text import Profile
from .version_codec import Version

Fits = Callable[[tuple[MetaRecord, ...]], bool]
"""Return whether these records fit into the slice."""


UNRESOLVED, NOT_IN_FORCE = "meta_source_unresolved", "meta_record_not_in_force"
NO_ROOM = "meta_record_without_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A profile document that would come into force."""

    document: ProfileDocument
    parent: int
    """Number of the version that it changes; 0 if there is none."""
    findings: tuple[Finding, ...] = ()
    """Findings about records that were left out, or for which a person vouches."""


class BootstrapResult(NamedTuple):
    """The version in force after `bootstrap`, whether it was written, and the findings."""

    version: Version
    written: bool
    findings: tuple[Finding, ...]


def of_file(
    wanted: ProfileDocument,
    head: ProfileDocument | None,
    resolves: Resolves,
    vouched: Collection[str] = (),
    fits: Fits = lambda records: True,
) -> Proposal:
    """Propose a file's text for the version in force; `vouched` are ids of records that stay without valid sources.

    If people's changed records do not fit together with learned ones, learned ones are dropped, the least one first.
    """
    unknown = sorted(set(vouched) - {record.id for record in by_people(wanted)})
    if unknown:
        raise InputError(f"meta.{unknown[0]:.80}: the file has no such record to vouch for; name one of its `meta`")
    before = head or ProfileDocument(name=wanted.name)
    known = {record.id: record for record in before.meta}
    findings: list[Finding] = []
    written: list[MetaRecord] = []
    for record in wanted.meta:
        if is_claim_id(record.id):
            standing = known.get(record.id)  # a learned record comes from the version in force, not from the file
            if standing is None or standing.text != record.text:
                text = f"record {record.id} has the id of a harvested one and is not in force so"
                text += "; it is left out: rename it"
                findings.append(Finding(kind=NOT_IN_FORCE, field="meta", text=text))
        elif known.get(record.id) == record:
            written.append(record)
        else:
            is_vouched = record.id in vouched
            lacking = ", ".join(pointer for pointer in record.sources if not resolves(pointer))
            if lacking:
                ends = "it stays because it is vouched for"
                if not is_vouched:
                    ends = "it is left out; vouch for it, or name what it rests on"
                text = f"record {record.id}: {lacking} cannot be resolved; {ends}"
                findings.append(Finding(kind=UNRESOLVED, field="meta", text=text[:500]))
            if not lacking or is_vouched:
                written.append(record)
    learned = [record for record in before.meta if is_claim_id(record.id)]
    if tuple(written) != by_people(before):
        for record in [record for record in reversed(learned) if not record.approved]:  # approved records stay
            if fits((*written, *learned)):
                break
            learned.remove(record)
            text = f"record {record.id} gives way: there is no room for it beside what the file holds"
            findings.append(Finding(kind=NO_ROOM, field="meta", text=text))
    blocks = {block: getattr(wanted, block) for block in BLOCKS}
    document = ProfileDocument(name=before.name, meta=(*written, *learned), **blocks)
    return Proposal(document=document, parent=before.version or 0, findings=tuple(findings))


def of_entry(head: ProfileDocument, block: str, entry: ProfileEntry) -> Proposal:
    """Propose one entry: it replaces the entry with its id, or is appended to its block.

    A locked entry stays locked; only a file can remove a lock.
    """
    if block not in BLOCKS:
        raise InputError(f"{block!r:.80} is no block of a profile; write {', '.join(BLOCKS)}, and a key: persona.voice")
    standing: tuple[ProfileEntry, ...] = getattr(head, block)
    before = next((other for other in standing if other.id == entry.id), None)
    entry = entry.model_copy(update={"locked": entry.locked or (before is not None and before.locked)})
    entries = tuple(entry if other.id == entry.id else other for other in standing)
    fields = {name: getattr(head, name) for name in (*BLOCKS, "meta")}
    fields[block] = entries if before is not None else (*standing, entry)
    return Proposal(document=ProfileDocument(name=head.name, **fields), parent=head.version or 0)


def bootstrap(
    store: Sessions, wanted: Profile, *, who: str, why: str, when: str, tenant: str = "default"
) -> BootstrapResult:
    """Make a chain from a file. If there is a chain already, raise `Unapproved` unless the file equals its head."""
    versions = store.profiles(wanted.name, tenant=tenant)
    head = versions.head()
    proposal = of_file(wanted, head.profile if head else None, resolver(store, tenant))
    if head is None:
        first = versions.commit(proposal.document, who=who, why=why, when=when, parent=0)
        return BootstrapResult(first, True, proposal.findings)
    if not same_text(head.profile, proposal.document):
        raise Unapproved(wanted.name, head.number, "the file says something else")
    return BootstrapResult(head, False, proposal.findings)


def same_text(one: ProfileDocument, other: ProfileDocument) -> bool:
    """Return whether two documents have equal blocks and records; names and version numbers are ignored."""
    return all(getattr(one, name) == getattr(other, name) for name in (*BLOCKS, "meta"))


def by_people(document: ProfileDocument) -> tuple[MetaRecord, ...]:
    """Return the records that people wrote and no night harvested."""
    return tuple(record for record in document.meta if not is_claim_id(record.id))
