"""A change that a person proposes: a profile file, or one entry, over what is in force.

    of_file    persona, policies, rails and surface as the file has them; records that people wrote as the file has
               them; what nights have learned is carried over
    of_entry   what is in force, with one entry of it added or replaced

A record of the file names what it rests on. Sources that do not resolve (in the store's sessions, or in what was
harvested) are a finding, and the record stays out of the slice unless somebody vouches for it: then another person must
agree, as with everything that a person writes. A record that is in force already is not checked again.

`bootstrap` makes a chain out of a file; where there is one, the file must say what is in force.

Pure but for `bootstrap` and what `resolver` asks. Raises `InputError`, `Unapproved`, and what `ProfileVersions` raises.
Source: the layered-envelope design (governed slices, provenance); the state design (meta records cite what they rest
on; text of users lies in the vault alone, so an entry is worded by whoever proposes it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from ctxsteward.schemas import ContextError, Finding, InputError, StoreUnavailable, Unapproved
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, ProfileEntry, is_claim_id

from .text import Profile
from .version_codec import Version
from .versions import ProfileVersions


class Sessions(Protocol):
    """The part of a store that proposals need: sessions to resolve pointers in, and versions of profiles."""

    def profiles(self, name: str, *, tenant: str) -> ProfileVersions: ...

    def exists(self, id: str, *, tenant: str) -> bool: ...

    def at(self, tenant: str, id: str) -> PointerSource: ...


class PointerSource(Protocol):
    """A session's log as it is now: `resolve` gives what a pointer names, None where it names nothing."""

    def resolve(self, pointer: str) -> object: ...


Fits = Callable[[tuple[MetaRecord, ...]], bool]
"""Whether records are no more than the slice has room for."""
Resolves = Callable[[str], bool]
"""Whether what a pointer names can be read."""

Cites = Callable[[str, str], bool]
"""Whether a message (session and ``§128``) was harvested, and can be read still."""

_PLACE = re.compile(r"[1-9][0-9]{0,11}(?:\.[1-9][0-9]{0,3})?")
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
            findings += _not_in_force(record, known.get(record.id))
        elif known.get(record.id) == record:
            written.append(record)
        else:
            unresolved = list(_unresolved(record, resolves, record.id in vouched))
            findings += unresolved
            written += [record] if not unresolved or record.id in vouched else []
    learned = [record for record in before.meta if is_claim_id(record.id)]
    if tuple(written) != by_people(before):
        findings += _give_way(written, learned, fits)
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


def resolver(sessions: Sessions, tenant: str, harvested: Cites = lambda session, ref: False) -> Resolves:
    """Whether the store's sessions hold what a pointer (``s-42§128``) names, or `harvested` has it."""

    @cache
    def resolves(pointer: str) -> bool:
        name, _, place = pointer.rpartition("§")
        session = unquote(name)
        if not session or not _PLACE.fullmatch(place):
            return False
        if harvested(session, f"§{place}"):
            return True
        try:
            return (
                sessions.exists(session, tenant=tenant)
                and sessions.at(tenant, session).resolve(f"§{place}") is not None
            )
        except StoreUnavailable:
            raise
        except ContextError:  # forgotten, damaged, or not there
            return False

    return resolves


def _unresolved(record: MetaRecord, resolves: Resolves, vouched: bool) -> Iterator[Finding]:
    lacking = [pointer for pointer in record.sources if not resolves(pointer)]
    if lacking:
        ends = (
            "it stays because it is vouched for"
            if vouched
            else "it is left out; vouch for it, or name what it rests on"
        )
        text = f"record {record.id}: {', '.join(lacking)} cannot be resolved; {ends}"
        yield Finding(kind=UNRESOLVED, field="meta", text=text[:500])


def _give_way(written: list[MetaRecord], learned: list[MetaRecord], fits: Fits) -> Iterator[Finding]:
    """Take out of `learned` what has no room any more; what a person approved stays."""
    for record in [one for one in reversed(learned) if not one.approved]:
        if fits((*written, *learned)):
            return
        learned.remove(record)
        text = f"record {record.id} gives way: there is no room for it beside what the file holds"
        yield Finding(kind=NO_ROOM, field="meta", text=text)


def _not_in_force(record: MetaRecord, standing: MetaRecord | None) -> Iterator[Finding]:
    """A file shows a harvested record; it stands by what is in force, not by the file."""
    if standing is None or standing.text != record.text:
        text = f"record {record.id} has the id of a harvested one and is not in force so; it is left out: rename it"
        yield Finding(kind=NOT_IN_FORCE, field="meta", text=text)
