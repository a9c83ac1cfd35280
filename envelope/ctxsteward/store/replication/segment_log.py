"""`SessionLog`: a session's log in the object store as a chain of links with encrypted records.

    {"kind": "segment", "owner": journal, "start": 12, "keys": [subject address, …], "records": [[key, data], …],
     "manifests": [[address, key, data], …], "session": [key, data]}
    {"kind": "takeover", "owner": journal, "length": 40}
    {"kind": "rewrite", "owner": journal, "keys": […], "records": [[position, key, data], …], "manifests": […]}

A *segment* has the records from position `start` on. The first link of the chain is always a segment, and also has the
session's id. A *takeover* makes another journal the owner, under the next epoch, after `length` records. A *rewrite*
replaces earlier records after an erasure, or adds manifests of envelopes that another machine has built; it does not
change the owner. `owner` is a journal's id.

`data` is base64 of AES-256-GCM under the data key of the record's subject (`key` is the subject's index in `keys`). The
subject of a message is its principal in this session; all other records, and redacted messages, belong to a *derived*
subject of the session. It gets a new generation when a principal is forgotten and the previous key is destroyed. The
context binds folder and position (for a manifest its address), but not the link, so no record can be moved to another
place. A record whose key was destroyed reads as None; a later rewrite has its replacement.

Every returned record is checked: it decrypts with its subject's key at this place, its code is right, segments have no
gaps, and the id in the first link is this session's.
Raises `Damaged`, `Erased`, and what `Chain` and `Vault` raise. Sizes in bytes.
Source: NIST SP 800-38D; the state design.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxsteward.schemas import Erased, Finding
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from ..crypto.hash_chain import Chain, Link
from ..crypto.keyring import Keys, subject_of
from ..crypto.vault import DataKey, Vault, derived_subject
from ..journal import log as records
from ..journal.erasures import ReachedSessions
from ..journal.port import DrainMark, Journal, JournalRecord, Manifest, SessionKey
from ..names import session_folder
from ..objects.port import ObjectStore, Patience
from .report_objects import context, plain_report, put_report, reports_in

SEGMENT_RECORDS = 1000
"""Most records, and most manifests, of one segment."""
SEGMENT_BYTES = 1 << 20
"""Bytes of text after which a segment ends with the current record."""
MAX_GENERATIONS = 1000
"""Most derived keys of a session to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Records of a session from `start` on."""

    owner: str
    start: int
    records: tuple[JournalRecord | None, ...]
    manifests: tuple[Manifest, ...] = ()
    session: str | None = None
    """The session's id; only in the first link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """A change of the session's owner to another journal."""

    owner: str
    length: int
    """Number of records in the chain before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Replacements of records in earlier links."""

    owner: str
    records: Mapping[int, JournalRecord | None]
    manifests: tuple[Manifest, ...] = ()


SegmentPart = Segment | Takeover | Rewrite


def subject_of_record(session: str, record: JournalRecord, generation: int) -> str:
    """Return the subject whose data key encrypts a record; `generation` is that of the derived subject."""
    if record.kind == "message":
        body = json.loads(record.body)
        if not body.get("erased"):
            return subject_of(session, body.get("principal"))
    return derived_subject(session, generation)


def span_of(records: Sequence[JournalRecord], manifests: Sequence[Manifest]) -> tuple[int, int]:
    """Return how many of the first records and manifests one segment takes; at least one record if there is any."""
    size, taken, kept = 0, 0, 0
    for record in records[:SEGMENT_RECORDS]:
        if size >= SEGMENT_BYTES:
            break
        size += len(record.body) + len(record.wire or "")
        taken += 1
    for manifest in manifests[:SEGMENT_RECORDS]:
        if size >= SEGMENT_BYTES:
            break
        size += len(manifest.body)
        kept += 1
    return taken, kept


def encode(
    part: SegmentPart, vault: Vault, folder: str, session: str, *, generation: int | None = None
) -> dict[str, Any]:
    """Return the body of a link; make missing data keys.

    `generation` is that of the derived key; by default the newest. Raises `Erased` if a message's subject was
    forgotten, or the derived key destroyed.
    """
    if isinstance(part, Takeover):
        return {"kind": "takeover", "owner": part.owner, "length": part.length}
    sealer = _Sealer(vault, folder, session, generation)
    if isinstance(part, Rewrite):
        body: dict[str, Any] = {"kind": "rewrite", "owner": part.owner}
        body["records"] = [[n, *sealer.record(n, record)] for n, record in sorted(part.records.items()) if record]
    else:
        body = {"kind": "segment", "owner": part.owner, "start": part.start}
        body["records"] = [sealer.record(n, record) for n, record in enumerate(part.records, part.start) if record]
        if part.session is not None:
            body["session"] = sealer.seal(subject_of(session, None), _SESSION, part.session)
    body["manifests"] = [
        [manifest.address, *sealer.derived(_manifest(manifest.address), manifest.body)] for manifest in part.manifests
    ]
    return body | {"keys": sealer.keys}


def decode(body: Mapping[str, Any], vault: Vault, folder: str) -> SegmentPart:
    """Decrypt a link's body. Under a destroyed key, records and session id are None, and manifests are left out."""
    opener = _Opener(vault, folder, body)
    try:
        match body["kind"]:
            case "takeover":
                return Takeover(owner=str(body["owner"]), length=int(body["length"]))
            case "segment":
                start = int(body["start"])
                return Segment(
                    owner=str(body["owner"]),
                    start=start,
                    records=tuple(opener.record(n, *sealed) for n, sealed in enumerate(body["records"], start)),
                    manifests=opener.manifests(body["manifests"]),
                    session=opener.text(_SESSION, *body["session"]) if "session" in body else None,
                )
            case "rewrite":
                return Rewrite(
                    owner=str(body["owner"]),
                    records={int(n): opener.record(int(n), *sealed) for n, *sealed in body["records"]},
                    manifests=opener.manifests(body["manifests"]),
                )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Damaged(f"{folder}: a link's body cannot be read ({error}); run store fsck") from error
    raise Damaged(f"{folder}: a link of unknown kind {body['kind']!r:.40}; upgrade ctxsteward, or run store fsck")


def session_id(body: Mapping[str, Any], vault: Vault, folder: str) -> str | None:
    """Return the session's id from the first link's body, or None if the session was forgotten."""
    try:
        return _Opener(vault, folder, body).text(_SESSION, *body["session"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Damaged(f"{folder}: the first link names no session ({error}); run store fsck") from error


_SESSION = b"session"


def _position(position: int) -> bytes:
    return b"record %d" % position


def _manifest(address: str) -> bytes:
    return b"manifest " + address.encode()


def _context(folder: str, place: bytes) -> bytes:
    return folder.encode() + b"\n" + place


@dataclass(slots=True)
class _Sealer:
    """The encryption of the records of one link."""

    vault: Vault
    folder: str
    session: str
    exactly: int | None = None
    """The only generation of the derived key to use."""
    generation: int = 0
    keys: list[str] = field(default_factory=list)
    _known: dict[str, tuple[int, DataKey]] = field(default_factory=dict)

    def record(self, position: int, record: JournalRecord) -> list[Any]:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        subject = subject_of_record(self.session, record, self.generation)
        if subject == derived_subject(self.session, self.generation):
            return self.derived(_position(position), text)
        return self.seal(subject, _position(position), text)

    def derived(self, place: bytes, text: str) -> list[Any]:
        """Encrypt a text under the newest derived key."""
        self.derived_key()
        return self.seal(derived_subject(self.session, self.generation), place, text)

    def derived_key(self) -> DataKey:
        """Return the derived key of the one generation, else the newest: the first that was not destroyed."""
        if self.exactly is not None:
            self.generation = self.exactly
        for generation in range(self.generation, self.generation + MAX_GENERATIONS):
            subject = derived_subject(self.session, generation)
            try:
                key = self._known[subject][1] if subject in self._known else self.vault.data_key(subject)
            except Erased:
                is_forgotten = self.vault.tombstone(self.vault.subject_address(self.session)) is not None
                if self.exactly is not None or is_forgotten:
                    raise
                continue
            self.generation = generation
            return key
        raise Damaged(f"{self.folder}: {MAX_GENERATIONS} derived keys were destroyed; forget the whole session instead")

    def seal(self, subject: str, place: bytes, text: str) -> list[Any]:
        known = self._known.get(subject)
        if known is None:
            key = self.vault.data_key(subject)
            known = self._known[subject] = (len(self.keys), key)
            self.keys.append(key.subject)
        index, key = known
        data = self.vault.encrypt(key, text.encode("utf-8", "surrogatepass"), _context(self.folder, place))
        return [index, base64.b64encode(data).decode()]


class _Opener:
    """The decryption of the records of one link."""

    def __init__(self, vault: Vault, folder: str, body: Mapping[str, Any]) -> None:
        self._vault, self._folder, self._names = vault, folder, body.get("keys", ())
        self._keys: dict[int, DataKey | None] = {}

    def text(self, place: bytes, index: int, data: str) -> str | None:
        if index not in self._keys:
            try:
                self._keys[index] = self._vault.known_key(self._names[index])
            except (Erased, ObjectMissing):  # a running erasure may have removed the key
                self._keys[index] = None
        key = self._keys[index]
        if key is None:
            return None
        plain = self._vault.decrypt(key, base64.b64decode(data, validate=True), _context(self._folder, place))
        return plain.decode("utf-8", "surrogatepass")

    def record(self, position: int, index: int, data: str) -> JournalRecord | None:
        text = self.text(_position(position), index, data)
        return None if text is None else JournalRecord(*json.loads(text))

    def manifests(self, sealed: Iterable[Sequence[Any]]) -> tuple[Manifest, ...]:
        found = ((address, self.text(_manifest(address), index, data)) for address, index, data in sealed)
        return tuple(Manifest(address, text) for address, text in found if text is not None)


_DERIVED_HELD = 64
"""Generations of derived keys that are dropped from memory after a rewrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegments:
    """The content of a chain after a journal's drain mark."""

    start: int
    """Position of the first record."""
    records: tuple[JournalRecord, ...]
    manifests: tuple[Manifest, ...]
    rewritten: dict[int, JournalRecord]
    """Replacements of records before `start`."""
    head: Link | None
    """The chain's newest link, or None if the chain is empty."""
    owner: str | None
    """Journal that owns the session, or None if no link after the mark is a segment or takeover."""
    links: int
    """Number of links after the mark."""
    replaced: tuple[int, ...] = ()
    """Positions of records whose key is destroyed in the chain, and that are the writing journal's own here."""


def unreached(field: str, error: object) -> Finding:
    """Return a finding that a session or chain could not be read, with the reason."""
    return Finding(kind="session_unreachable", field=field, text=f"it cannot be read and is passed over: {error}")


class SessionLog:
    """The chain of one session in the object store."""

    def __init__(
        self, objects: ObjectStore, keys: Keys, vault: Vault, key: SessionKey, *, patience: Patience | None = None
    ) -> None:
        self.key = key
        self.folder: str = session_folder(key.tenant, vault.subject_address(key.session))
        self._vault, self._objects, self._patience = vault, objects, patience or Patience()
        self._address_key = keys.address_key(key.tenant)
        self._chain = Chain(objects, self.folder, self._address_key, patience=patience)

    def tail(self, number: int) -> int:
        """Return the number of the newest link. Raises `Damaged` if the known link `number` is gone."""
        return self._chain.last_number(after=number)

    def link(self, number: int) -> Link:
        return self._chain.read(number)

    def derived_generation(self) -> int:
        """Return the generation of the newest derived key.

        Call this before reading records. If an erasure redacts them afterwards, it destroys that key, and `commit`
        refuses to write the unredacted records under the next key.
        """
        sealer = _Sealer(self._vault, self.folder, self.key.session)
        sealer.derived_key()
        return sealer.generation

    def commit(self, parent: Link | None, part: SegmentPart, *, epoch: int, generation: int | None = None) -> Link:
        """Write the next link. Raises `VersionTaken` if another link has its number, and `Erased` if the link stands
        and cannot be read.

        The commit id is a hash of folder, number, epoch and body, so a repeat of the same bytes finds them. If the same
        records are in a link with other bytes (encryption is random), a reader of that link compares their content.
        """
        body = encode(part, self._vault, self.folder, self.key.session, generation=generation)
        if not isinstance(part, Takeover):
            self._put_reports(part, generation)
        number = parent.number + 1 if parent else 1
        named = json.dumps([self.folder, number, epoch, body], sort_keys=True, ensure_ascii=False)
        commit_id = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        link = self._chain.append(parent, body, epoch=epoch, commit_id=commit_id)
        for name in body.get("keys", ()):  # an erasure may have destroyed one meanwhile, and not have seen the link
            self._vault.check_not_erased(name, f"a record of session {self.key.session!r}")
        return link

    def _put_reports(self, part: Segment | Rewrite, generation: int | None) -> None:
        """Write each report as an object named by its address, before the link that contains it."""
        records = part.records if isinstance(part, Segment) else part.records.values()
        sealer = _Sealer(self._vault, self.folder, self.key.session, generation)
        for report in reports_in(records, part.manifests):
            key = sealer.derived_key()
            plain = plain_report(self.key.session, report)
            data = self._vault.encrypt(key, plain, context(self.key.tenant, report["id"]))
            put_report(self._objects, self._vault, self.key.session, report, key.subject, data, self._patience)

    def subjects(self) -> ReachedSessions:
        """Return the addresses of the subjects whose keys encrypt the records, from all readable links."""
        names, findings = dict[str, None](), list[Finding]()
        for link in self._chain.readable():
            if isinstance(link, Damaged):
                findings.append(unreached(self.key.session, link))
            else:
                names |= dict.fromkeys(map(str, link.body.get("keys", ())))
        return ReachedSessions(tuple(names), tuple(findings))

    def is_there(self) -> bool:
        """Return whether the chain has a first link, without a listing."""
        try:
            self._chain.read(1)
        except ObjectMissing:
            return False
        except (Damaged, UnsupportedVersion):
            pass
        return True

    def entries(self, start: int = 1) -> Iterator[tuple[Link, SegmentPart]]:
        """Yield the links from number `start` on, with their decrypted parts."""
        for link in self._chain.links(start):
            yield link, decode(link.body, self._vault, self.folder)

    def first(self) -> JournalRecord | None:
        """Return the record at position 0, or None if its key is gone and no rewrite replaces it."""
        for _, part in self.entries():
            if isinstance(part, Segment):
                record = part.records[0] if part.start == 0 and part.records else None
            else:
                record = part.records.get(0) if isinstance(part, Rewrite) else None
            if record is not None:
                records.check(self._address_key, self.key.session, 0, record)
                return record
        return None

    def behind(self, drained: DrainMark, journal: Journal | None = None) -> NewSegments:
        """Return the content of the chain after this mark. Raises `Erased` if the session was forgotten.

        `journal` may have written segments after its mark without an answer. If a key of theirs was destroyed since,
        the journal's own records take the place of those that cannot be read.
        """
        incoming: list[JournalRecord | None] = []
        own: list[int] = []
        manifests: dict[str, Manifest] = {}
        rewritten: dict[int, JournalRecord] = {}
        head = owner = None
        links = 0
        for head, part in self.entries(drained.number + 1):
            links += 1
            if isinstance(part, Rewrite):
                self._rewrite(part, drained.position, incoming, rewritten)
            else:
                owner = part.owner
                self._check_place(head, part, drained.position + len(incoming))
                if isinstance(part, Segment):
                    if journal is not None and part.owner == journal.id:
                        own += range(part.start, part.start + len(part.records))
                    incoming += part.records
            if not isinstance(part, Takeover):
                manifests |= {manifest.address: manifest for manifest in part.manifests}
        if head is None and drained.number:
            head = self.link(drained.number)
        replaced = []
        for position in own:
            if journal is not None and incoming[position - drained.position] is None:
                self.check_not_erased()
                for record in journal.read(self.key, position, position + 1):
                    incoming[position - drained.position] = record
                    replaced.append(position)
        return NewSegments(
            start=drained.position,
            records=self._checked(drained.position, incoming),
            manifests=tuple(manifests.values()),
            rewritten=rewritten,
            head=head,
            owner=owner,
            links=links,
            replaced=tuple(replaced),
        )

    def _rewrite(
        self, part: Rewrite, start: int, incoming: list[JournalRecord | None], rewritten: dict[int, JournalRecord]
    ) -> None:
        for position, record in part.records.items():
            if position >= start + len(incoming):
                raise Damaged(f"{self.folder}: a rewrite of position {position}, which is not there; run store fsck")
            if position >= start:
                incoming[position - start] = record
            elif record is not None:
                records.check(self._address_key, self.key.session, position, record)
                rewritten[position] = record
        # keys of this session in memory may have been destroyed, so they are read again
        named = {derived_subject(self.key.session, generation) for generation in range(_DERIVED_HELD)}
        for record in part.records.values():
            if record is not None and record.kind == "message":
                named.add(subject_of(self.key.session, json.loads(record.body).get("principal")))
        for subject in named:
            self._vault.forget_secret(self._vault.subject_address(subject))

    def _check_place(self, link: Link, part: Segment | Takeover, length: int) -> None:
        position = part.start if isinstance(part, Segment) else part.length
        if position != length:
            self.check_not_erased()
            raise Damaged(f"{self.folder}: link {link.number} is for position {position}, not {length}; run store fsck")
        if link.number == 1:
            named = part.session if isinstance(part, Segment) else ""
            if named is None:
                self.check_not_erased()
            if named != self.key.session:
                raise Damaged(f"{self.folder}: its first link is not session {self.key.session!r}'s; run store fsck")

    def _checked(self, start: int, incoming: list[JournalRecord | None]) -> tuple[JournalRecord, ...]:
        whole: list[JournalRecord] = []
        for position, record in enumerate(incoming, start):
            if record is None:
                self.check_not_erased()
                raise Damaged(
                    f"session {self.key.session!r}: the key of the record at position {position} is gone and nothing "
                    "stands in its place; finish the erasure with `ctxsteward store forget`, or restore a backup"
                )
            records.check(self._address_key, self.key.session, position, record)
            whole.append(record)
        return tuple(whole)

    def check_not_erased(self) -> None:
        """Raise `Erased` if the whole session was forgotten."""
        name = self._vault.subject_address(subject_of(self.key.session, None))
        self._vault.check_not_erased(name, f"session {self.key.session!r}")
