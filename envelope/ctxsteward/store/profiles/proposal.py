"""A change that a person proposes: a profile file, or one entry, over what is in force.

    of_file    persona, policies, rails and surface as the file has them; records that people wrote as the file has
               them; what nights have learned is carried over
    of_entry   what is in force, with one entry of it added or replaced

A record of the file names what it rests on. Sources that do not resolve (in the store's sessions, or in what was
harvested) are a finding, and the record stays out of the slice unless somebody vouches for it: then another person must
agree, as with everything that a person writes. A record that is in force already is not checked again.

`bootstrap` makes a chain out of a file; where there is one, the file must say what is in force.

Pure but for `bootstrap`. Raises `InputError`, `Unapproved`, and what `ProfileVersions` raises.
Source: the layered-envelope design (governed slices, provenance); the state design (meta records cite what they rest
on; text of users lies in the vault alone, so an entry is worded by whoever proposes it).
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
"""Whether records are no more than the slice has room for."""


UNRESOLVED, NOT_IN_FORCE = "meta_source_unresolved", "meta_record_not_in_force"
NO_ROOM = "meta_record_without_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What would come into force."""

    document: ProfileDocument
    parent: int
    """Version it was made from; 0: there is none."""
    findings: tuple[Finding, ...] = ()
    """Records that were left out, or that a person vouches for."""


class BootstrapResult(NamedTuple):
    """What bootstrapping a profile from a file did."""

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
    """The file's text over what is in force; `vouched` are ids of records that stay whatever they rest on.

    Where records that people wrote need more room than there is, what was learned gives way, the least of it first.
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
            standing = known.get(record.id)  # the record stands by what is in force, not by the file
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
        for record in [record for record in reversed(learned) if not record.approved]:  # what people approved stays
            if fits((*written, *learned)):
                break
            learned.remove(record)
            text = f"record {record.id} gives way: there is no room for it beside what the file holds"
            findings.append(Finding(kind=NO_ROOM, field="meta", text=text))
    blocks = {block: getattr(wanted, block) for block in BLOCKS}
    document = ProfileDocument(name=before.name, meta=(*written, *learned), **blocks)
    return Proposal(document=document, parent=before.version or 0, findings=tuple(findings))


def of_entry(head: ProfileDocument, block: str, entry: ProfileEntry) -> Proposal:
    """What is in force with this entry, in the place of the one with its id, or behind all of its block.

    A lock stays: who wants it off proposes a file.
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
    """Make a chain of a file, or find that the file says what is in force; else raises `Unapproved`."""
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
    """Whether two documents say the same; their names and numbers are not looked at."""
    return all(getattr(one, name) == getattr(other, name) for name in (*BLOCKS, "meta"))


def by_people(document: ProfileDocument) -> tuple[MetaRecord, ...]:
    """Records that people wrote, and no night harvested."""
    return tuple(record for record in document.meta if not is_claim_id(record.id))
