"""Snapshots: the head of a profile as a versioned envelope that is never deleted.

    snapshots/<tenant>/<profile>/   chain of {"schema_version": 1, "who", "when", "version", "envelope",
                                              "meta": [{"text"} | {"blob", "key"}]}

`envelope` is the published document (JSON Schema `envelope`) of a session without messages: system, static and meta as
a new session would show them, and an empty dynamic. Text of meta records is taken out of it. It is kept as labels, and
as lines under each record's own key (`MetaRecordVault`), so erasing a record erases it from every snapshot. The same
head taken twice makes one snapshot.

Raises `BudgetExceeded` if a head does not fit the builder's budgets, and the errors of `versions`. Source: the
layered-envelope design (backfill of personas, policies and meta into versioned envelopes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxsteward.schemas import Finding, ReferenceNotFound
from ctxsteward.schemas.errors import ObjectMissing, UnsupportedVersion, VersionTaken
from ctxsteward.store.crypto.hash_chain import Chain, Link
from ctxsteward.store.crypto.keyring import Keys
from ctxsteward.store.names import numbered, snapshots_folder
from ctxsteward.store.profiles.version_codec import MetaRecordVault, RecordRef, erased, lines_of
from ctxsteward.store.profiles.versions import Version

if TYPE_CHECKING:
    from ..envelope import Envelope
    from ..store import Store
    from .builder import EnvelopeBuilder

VERSION = 1
SESSION = "snapshot"
"""Session name in a snapshot's envelope; that session is never stored."""
_LEFT_OUT = "meta_records_left_out"


class Snapshot(NamedTuple):
    """One snapshot without its erased lines."""

    profile: str
    number: int
    version: int
    """Version of the profile."""
    who: str
    when: str
    address: str
    """Address of the envelope as it was written."""
    envelope: dict[str, Any]
    """The published document."""
    findings: tuple[Finding, ...]


class SnapshotResult(NamedTuple):
    """Result of taking a snapshot."""

    number: int
    envelope: Envelope
    written: bool
    """False if the newest snapshot already shows this head."""


class Snapshots:
    """All snapshots of one tenant."""

    def __init__(self, store: Store, tenant: str = "default") -> None:
        self._store, self._tenant = store, tenant

    def take(self, version: Version, builder: EnvelopeBuilder, *, who: str, when: str) -> SnapshotResult:
        """Store this version's head as `builder` lays it out, unless the newest snapshot is the same."""
        name = version.profile.name
        envelope = _head_envelope(version, builder, self._store.keys, self._tenant)
        chain = self._chain(name)
        while True:
            newest = chain.head()
            if newest is not None and _checked(newest, chain.folder).body["envelope"]["address"] == envelope.address:
                return SnapshotResult(newest.number, envelope, written=False)
            body = {"schema_version": VERSION, "who": who, "when": when, "version": version.number}
            try:
                link = chain.append(newest, body | self._kept(version, envelope))
            except VersionTaken:
                continue
            return SnapshotResult(link.number, envelope, written=True)

    def at(self, name: str, number: int) -> Snapshot:
        """Return one snapshot; raise `ReferenceNotFound`."""
        chain = self._chain(name)
        try:
            return self._snapshot(name, chain.read(number))
        except ObjectMissing:
            last = chain.last_number()
            known = f"it has snapshots 1 to {last}" if last else "it has none"
            raise ReferenceNotFound(f"snapshot {number} of profile {name!r}", "", known) from None

    def history(self, name: str) -> Iterator[Snapshot]:
        """Yield snapshots oldest first, each checked against the one before."""
        return (self._snapshot(name, link) for link in self._chain(name).links())

    def _chain(self, name: str) -> Chain:
        return self._store.chain(snapshots_folder(self._tenant, name), tenant=self._tenant)

    def _shelf(self, name: str) -> MetaRecordVault:
        return MetaRecordVault(self._store.vault(self._tenant), self._store.keys.address_key(self._tenant), name)

    def _kept(self, version: Version, envelope: Envelope) -> dict[str, Any]:
        """Return the envelope without derived text, and references to that text."""
        document, shelf = envelope.document(), self._shelf(version.profile.name)
        content = document["sections"]["meta"]["content"]
        text = "\n".join(fragment["text"] for fragment in content)
        for fragment in content:
            fragment["text"] = ""
        # reports of meta name records
        document["reports"] = [report for report in document["reports"] if report["section"] != "meta"]
        for finding in document["findings"]:
            if finding["kind"] == _LEFT_OUT:  # the finding names records
                finding["text"] = "meta did not fit its budget: whole records were left out"
        meta = [
            {"text": line} if record is None else shelf.keep_line(record, line, frozenset())._asdict()
            for line, record in lines_of(text, version.profile.meta)
        ]
        return {"envelope": document, "meta": meta}

    def _snapshot(self, name: str, link: Link) -> Snapshot:
        body, shelf = _checked(link, name).body, self._shelf(name)
        lines: list[str] = []
        findings: list[Finding] = []
        for part in body["meta"]:
            if "text" in part:
                lines.append(part["text"])
                continue
            kept = RecordRef(part["blob"], part["key"])
            data = shelf.content(kept)
            if data is None:
                findings.append(erased(kept, "line"))
            else:
                lines.append(data.decode())
        document = body["envelope"]
        for fragment in document["sections"]["meta"]["content"]:  # a head has at most one fragment of meta
            fragment["text"] = "\n".join(lines)
        return Snapshot(
            profile=name,
            number=link.number,
            version=body["version"],
            who=body["who"],
            when=body["when"],
            address=document["address"],
            envelope=document,
            findings=tuple(findings),
        )


def _checked(link: Link, folder: str) -> Link:
    major = link.body.get("schema_version")
    if major != VERSION:
        raise UnsupportedVersion(numbered(folder, link.number), major, VERSION)
    return link


def _head_envelope(version: Version, builder: EnvelopeBuilder, keys: Keys, tenant: str) -> Envelope:
    """Build the envelope of a new session that pins this version, in a store in memory, so that nothing is written."""
    from ctxsteward.store.journal.memory import MemoryJournal
    from ctxsteward.store.objects.memory import MemoryObjects

    from ..store import Store

    with Store(MemoryJournal(), MemoryObjects(), keys, uri="memory:", draw_nonce=lambda: "0" * 8) as aside:
        # the version was read from the chain that governs it, so it needs no comparison; this store in memory has
        # neither that chain nor the sessions that its records cite, and would report them as missing
        aside.fact_lookup.sessions = None
        session = aside.session(SESSION, tenant=tenant, profile=version.profile, counter=builder.counter)
        envelope = builder.build(session)
    # nobody has to answer this session
    return replace(envelope, findings=tuple(one for one in envelope.findings if one.kind != "nothing_to_answer"))
