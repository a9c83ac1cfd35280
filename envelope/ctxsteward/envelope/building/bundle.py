"""A session as one file (`bundle_lines`), and the file into a store (`import_bundle`).

The file is JSON Lines (schema `session_bundle`), not encrypted: the logs of the session and, as far as they are shared,
of those that it is a fork of; the manifests of its envelopes; the profile versions that it has pinned, with promotions.

Addresses are HMACs under a tenant's key, and another store has another key. An import gives messages and envelopes the
addresses that they have under the target's key, so whoever receives one session needs no key that opens all others.
Reports keep their ids, which nothing recomputes. Under the same key every address stays, and the header's code must be
right. Under another key the checksums find accidents only: import from people whom you would let write the session.

Before it writes, an import lays out every envelope in memory and compares its digest. It commits no profile version:
the gates of a store decide what is in force there, and a session shows the profile in its own log. What was forgotten
in the target does not come back: its words are refused; withdrawn records of profiles and lines of earlier sessions are
left out. A repeated import changes nothing and completes an interrupted one.

Raises `InputError`, `UnsupportedVersion`, `Erased`, `Damaged`, `StoreError`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ctxsteward.schemas import ContextError, Erased, InputError, ReferenceNotFound
from ctxsteward.schemas.bundle import (
    BundleCall,
    BundleForgotten,
    BundleHeader,
    BundleLog,
    BundlePart,
    BundleRecord,
    BundleVersion,
)
from ctxsteward.schemas.errors import Damaged, InputTooLarge, InvalidDocument, UnsupportedVersion
from ctxsteward.schemas.message import MAX_MESSAGE_BYTES, Wire, decode_wire
from ctxsteward.store.crypto.keyring import AddressKey, address_of, key_check, subject_of
from ctxsteward.store.facts.fact_store import withdrawn_heads
from ctxsteward.store.journal.events import (
    EarlierLine,
    ForkPoint,
    MessageAppended,
    SessionOpened,
    encoded_body,
    from_record,
)
from ctxsteward.store.journal.log import Log, addressed, body_of, coded, coded_manifest, forks_above, read_manifest
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import ForgottenSubject, JournalRecord, Manifest, SessionKey
from ctxsteward.store.names import checked_name, checked_note
from ctxsteward.store.objects.memory import MemoryObjects

from ..envelope import Envelope, digest_of
from ..store import Store
from ..transcripts.strict_json import InputLine, decode, open_input
from .builder import EnvelopeBuilder
from .past_calls import read_on

VERSION = 1
MAX_BUNDLE_BYTES = 1 << 30
_FACTS, _EARLIER = 4, 7
"""Indexes in a checkpoint's selection (`State.checkpoint`)."""
_NOT_OURS = "`ctxsteward export session` writes no such file"
LineT = TypeVar("LineT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """What an import did."""

    session: str
    messages: int
    calls: int
    """Number of envelopes that were laid out and compared."""
    same_keys: bool
    """Whether the bundle was written under the target's keys, so that its code was checked."""
    was_here: bool
    """Whether the store already had the session exactly as it is in the bundle."""
    addresses: Mapping[str, str]
    """New address of each envelope by the one in the bundle, where they differ."""
    versions: tuple[BundleVersion, ...]


def bundle_lines(store: Store, session: str, *, tenant: str = "default") -> Iterator[bytes]:
    """Yield the lines of a session's bundle, each with its line break, the header first."""
    key, address_key = SessionKey(tenant, session), store.keys.address_key(tenant)
    if not store.at(*key).state.position:  # brings the session and its parents here, and raises for a forgotten one
        raise ReferenceNotFound(f"session {session!r}", "", "it has no record; name a session of this tenant")
    ranges = [(key, store.journal.length(key))]
    for _, origin in forks_above(store.journal, key):
        ranges.insert(0, (SessionKey(tenant, origin.session), origin.position))
    written: list[bytes] = []
    logs: list[BundleLog] = []
    pinned: dict[tuple[str, int], None] = {}
    for owner, stop in ranges:
        rows = _opened(store, owner, stop)
        _refuse_forgotten(store, owner, rows)
        profiles = ((body_of(row) or {}).get("profile") for row in rows if row.kind == "head")
        pinned |= {(one["name"], one["version"]): None for one in profiles if one and one.get("version")}
        notes = (note._asdict() for note in store.journal.forgotten(*owner) if note.principal is not None)
        part = _part((BundleRecord(**_without(row._asdict(), "mac")) for row in rows), written)
        forgotten = tuple(BundleForgotten(**_without(note, "session")) for note in notes)
        logs.append(BundleLog(session=owner.session, forgotten=forgotten, **dict(part)))
    header = BundleHeader(
        tenant=tenant,
        key_check=key_check(address_key),
        logs=tuple(logs),
        calls=_part(_calls(store, key), written),
        versions=_part(_versions(store, tenant, pinned), written),
    )
    yield _line(header.model_copy(update={"code": _code(address_key, header)}))
    yield from written


def _part(values: Iterable[BaseModel], written: list[bytes]) -> BundlePart:
    """Add the lines of a part to those that are `written`."""
    lines = list(map(_line, values))
    written += lines
    return BundlePart(lines=len(lines), sha256=hashlib.sha256(b"".join(lines)).hexdigest())


def _line(value: BaseModel) -> bytes:
    return value.model_dump_json().encode() + b"\n"


def _without(fields: Wire, name: str) -> Wire:
    return {field: value for field, value in fields.items() if field != name}


def _code(key: AddressKey, header: BundleHeader) -> str:
    return address_of(key, "", "bundle", _line(header.model_copy(update={"code": ""})))


def _opened(store: Store, key: SessionKey, stop: int) -> list[JournalRecord]:
    """Return checked records without codes, in which lines of earlier sessions are plain, and empty if erased."""
    rows = store.journal.read(key, 0, stop)
    if len(rows) < stop:
        raise Damaged(f"session {key.session!r}: its log has {len(rows)} records, and {stop} were written; run fsck")
    log = Log(store.journal, key, store.keys.address_key(key.tenant))
    for position, row in enumerate(rows):
        log.event(row, position)

    def opened(turn: int, lines: list[EarlierLine]) -> Iterator[EarlierLine]:
        texts: dict[EarlierLine, str | None] = {}
        store.earlier_sessions().open(key.tenant, lines, texts)
        for line in lines:
            text = texts[line]
            yield line._replace(sealed="") if text is None else line._replace(key="", sealed=text)

    return [_with_earlier(key.session, row._replace(mac=""), opened) for row in rows]


def _with_earlier(
    session: str, row: JournalRecord, change: Callable[[int, list[EarlierLine]], Iterable[EarlierLine]]
) -> JournalRecord:
    """Return a record with its lines of earlier sessions changed; refuse facts."""
    body = body_of(row) if row.kind in ("selection", "compaction") else None
    if body is None:
        return row
    if is_checkpoint := row.kind == "compaction":
        chosen = body["checkpoint"].get("selection") or [0]
        turn, facts, lines = chosen[0], chosen[_FACTS : _FACTS + 1], next(iter(chosen[_EARLIER:]), ())
    else:
        turn, facts, lines = body["turn"], [body.get("facts", [])], body.get("earlier", ())
    if facts not in ([], [[]]):
        text = "it was shown facts that earlier versions kept, which a bundle does not carry; copy the store instead"
        raise InputError(f"session {session!r}: {text}")
    if not lines:
        return row
    changed = [list(line) for line in change(turn, [EarlierLine(*line) for line in lines])]
    if is_checkpoint:
        chosen[_EARLIER] = changed
    else:
        body["earlier"] = changed
    return row._replace(body=encoded_body(body))


def _refuse_forgotten(store: Store, key: SessionKey, rows: Sequence[JournalRecord]) -> None:
    """Raise `Erased` if the session, or a principal whose words stand in these records, was forgotten in the store."""
    vault, noted = store.vault(key.tenant), {note.principal: note for note in store.journal.forgotten(*key)}
    bodies = [body_of(row) or {} for row in rows if row.kind == "message"]
    speakers = {body.get("principal") for body in bodies if body.get("erased") is not True}
    for principal in (None, *sorted(name for name in speakers if name is not None)):
        gone = noted.get(principal) or vault.tombstone(vault.subject_address(subject_of(key.session, principal)))
        if gone is not None:
            what = f"session {key.session!r}" if principal is None else f"principal {principal!r} of {key.session!r}"
            raise Erased(what, who=gone.who, when=gone.when, why=gone.why)


def _calls(store: Store, key: SessionKey) -> Iterator[BundleCall]:
    manifests = store.journal.manifests(key)
    fields = [_without(read_manifest(store.keys.address_key(key.tenant), *one), "mac") for one in manifests]
    for (address, _), read, envelope in zip(manifests, fields, _laid_out(store, key, fields), strict=True):
        is_whole = envelope is not None and envelope.address == address
        yield BundleCall(address=address, manifest=read, digest=_digest(envelope) if is_whole else None)


def _laid_out(store: Store, key: SessionKey, manifests: Sequence[Wire]) -> Iterator[Envelope | None]:
    """Yield the envelope of each manifest; None for a report and for an envelope that cannot be laid out."""
    read, session = store.at(*key), None
    for fields in manifests:
        envelope = None
        if "meta_report" not in fields:
            try:
                session = read_on(store, read, session, fields["position"])
                envelope = EnvelopeBuilder.from_manifest(fields).rebuild(session)
            except ContextError:
                session = None  # its state may be half read
        yield envelope


def _digest(envelope: Envelope | None) -> str | None:
    """Return the digest of an envelope without the addresses of tenant and profile, which differ between stores."""
    if envelope is None:
        return None
    tools, renderer = envelope.head.tools_digest, envelope.renderer
    return digest_of("", envelope.session, None, envelope.sections, tools, renderer).hex()


def _versions(store: Store, tenant: str, pinned: Iterable[tuple[str, int]]) -> Iterator[BundleVersion]:
    for name, number in pinned:
        versions = store.profiles(name, tenant=tenant)
        with suppress(ReferenceNotFound):
            profile, entry = versions.at(number).profile, next(versions.told(number))
            yield BundleVersion(profile=profile, changelog=entry, promotion=entry.promotion)


# -- into a store ----------------------------------------------------------------------------------------------


class _Log:
    """A log of the bundle, with the addresses of the target."""

    def __init__(self, key: SessionKey, rows: list[JournalRecord], part: BundleLog) -> None:
        self.key, self.rows, self.forgotten, self.is_here = key, rows, part.forgotten, False


def import_bundle(store: Store, path: Path, *, tenant: str = "default") -> ImportedSession:
    """Write the session in a file into a store, or nothing; see the module."""
    source, key = open_input(path), store.keys.address_key(checked_name("tenant", tenant))
    if path.stat().st_size > MAX_BUNDLE_BYTES:
        raise InputTooLarge(source.source, path.stat().st_size, MAX_BUNDLE_BYTES)
    lines = source.lines()
    try:
        (header,) = _read(source.source, lines, BundleHeader, BundlePart(lines=1, sha256="0" * 64))
        same_keys = hmac.compare_digest(header.key_check, key_check(key))
        if same_keys and not hmac.compare_digest(header.code, _code(key, header)):
            raise _refused(source.source, "line 1: it is not what a holder of the tenant's key wrote")
        logs: list[_Log] = []
        addresses: dict[str, str] = {}
        for part in header.logs:
            rows = [JournalRecord(**dict(row)) for row in _read(source.source, lines, BundleRecord, part)]
            _check_order(source.source, part.session, rows, logs)
            rows = [addressed(key, part.session, row, addresses) for row in rows]
            logs.append(_Log(SessionKey(tenant, checked_name("session", part.session)), rows, part))
        calls = _read(source.source, lines, BundleCall, header.calls)
        versions = _read(source.source, lines, BundleVersion, header.versions)
        if next(lines, None) is not None:
            raise _refused(source.source, "it has more lines than its header says")
        with Store(MemoryJournal(), MemoryObjects(), store.keys, uri="memory:") as scratch:
            for log in logs:
                scratch.add_log(log.key, [coded(key, log.key.session, at, row) for at, row in enumerate(log.rows)], ())
            messages = len(scratch.at(*logs[-1].key))
            manifests = list(_checked_calls(source.source, scratch, logs[-1].key, calls))
    except (InputError, UnsupportedVersion):
        raise
    except (ContextError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _refused(source.source, f"{type(error).__name__}: {error}") from error
    for log in logs:  # all before one is written
        log.is_here = _is_here(store, log, key, is_parent=log is not logs[-1])
    speakers: dict[int, str] = {}
    for log in logs:
        _write(store, log, key, manifests if log is logs[-1] else (), speakers)
    return ImportedSession(
        session=logs[-1].key.session,
        messages=messages,
        calls=sum(call.digest is not None for call in calls),
        same_keys=same_keys,
        was_here=logs[-1].is_here,
        addresses={c.address: m.address for c, m in zip(calls, manifests, strict=True) if c.address != m.address},
        versions=tuple(versions),
    )


def _refused(source: str, found: str) -> InvalidDocument:
    return InvalidDocument(source, "", found, _NOT_OURS)


def _read(source: str, lines: Iterator[InputLine], model: type[LineT], part: BundlePart) -> list[LineT]:
    """Read the lines of a part, and compare their checksum unless they are the header."""
    digest = hashlib.sha256()
    values: list[LineT] = []
    while len(values) < part.lines:
        line = next(lines, None)
        if line is None:
            raise InvalidDocument(source, "", "cut off: it has fewer lines than its header says", "copy it again")
        digest.update(line.data)
        value: Any = decode(line.data, source, f"line {line.number}")
        if model is BundleHeader and isinstance(value, dict) and value.get("schema_version", VERSION) != VERSION:
            raise UnsupportedVersion(source, value["schema_version"], VERSION)
        try:
            values.append(model.model_validate(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            found = f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}"
            raise InvalidDocument(source, f"line {line.number}", found, _NOT_OURS) from error
    if model is not BundleHeader and digest.hexdigest() != part.sha256:
        raise InvalidDocument(source, "", f"its {model.__name__} lines are not what was written", "copy it again")
    return values


def _check_order(source: str, session: str, rows: Sequence[JournalRecord], before: Sequence[_Log]) -> None:
    """Refuse records that a session does not write in this order behind the log that it is a fork of."""
    ordinal = max((row.ordinal for log in before for row in log.rows), default=0)
    origin = ForkPoint(before[-1].key.session, len(before[-1].rows), ordinal) if before else None
    for position, row in enumerate(rows):
        event = from_record(row)
        is_right = isinstance(event, SessionOpened) == (position == 0)
        if isinstance(event, SessionOpened):
            is_right = is_right and event.parent == origin
        elif isinstance(event, MessageAppended):
            ordinal += 1
            is_right = event.ordinal == ordinal and len(event.wire.encode()) <= MAX_MESSAGE_BYTES
            decode_wire(event.wire)
        if not is_right:
            raise _refused(source, f"session {session!r}: its record {position} is out of order, or too long")


def _checked_calls(source: str, scratch: Store, key: SessionKey, calls: Sequence[BundleCall]) -> Iterator[Manifest]:
    """Yield the manifests with their new addresses; refuse an envelope that is laid out otherwise than it was."""
    address_key = scratch.keys.address_key(key.tenant)
    laid_out = _laid_out(scratch, key, [call.manifest for call in calls])
    for number, (call, envelope) in enumerate(zip(calls, laid_out, strict=True), 1):
        if _digest(envelope) != call.digest and call.digest is not None:
            found = f"call {number}, {call.address[:16]}…, is laid out otherwise than it was sent"
            raise InvalidDocument(source, "", found, "import it with the version of ctxsteward that exported it")
        report = call.manifest.get("meta_report", {"id": call.address})
        if call.manifest["session"] != key.session or report["id"] != call.address:
            raise _refused(source, f"call {number} is that of another session or report")
        address = call.address if envelope is None or call.digest is None else envelope.address
        yield Manifest(address, coded_manifest(address_key, address, encoded_body(call.manifest)[1:-1]))


def _is_here(store: Store, log: _Log, key: AddressKey, *, is_parent: bool) -> bool:
    """Return whether the store has this log; refuse another one of its name, and words that were forgotten here.

    Records of a profile that were withdrawn here leave the log.
    """
    _refuse_forgotten(store, log.key, log.rows)
    vault, (tenant, session) = store.vault(log.key.tenant), log.key

    def is_gone(subject: str) -> bool:
        return vault.tombstone(vault.subject_address(subject)) is not None

    for at, row in withdrawn_heads(key, session, log.rows, is_gone).items():
        log.rows[at] = row
    if not store.exists(session, tenant=tenant):
        return False
    length = store.at(tenant, session).state.position
    if _opened(store, log.key, min(length, len(log.rows)) if is_parent else length) != log.rows:
        raise InputError(
            f"session {session!r} of tenant {tenant!r} is here with {length} records and differs from the bundle's "
            f"{len(log.rows)}; nothing was written: import into another tenant (--tenant) or store"
        )
    return True


def _write(store: Store, log: _Log, key: AddressKey, manifests: Sequence[Manifest], speakers: dict[int, str]) -> None:
    """Write a log unless it is here, and its manifests; `speakers` are principals by ordinal, and grow."""
    tenant, session = log.key
    speakers |= {row.ordinal: (body_of(row) or {}).get("principal") or "" for row in log.rows if row.ordinal}

    def sealed(turn: int, lines: list[EarlierLine]) -> Iterator[EarlierLine]:
        for line in lines:
            told = (line.session, line.ordinal, line.sealed)
            yield from (line,) if line.key else store.earlier_sessions().seal(tenant, speakers.get(turn, ""), (told,))

    records = []
    if not log.is_here:
        rows = (_with_earlier(session, row, sealed) for row in log.rows)
        records = [coded(key, session, at, row) for at, row in enumerate(rows)]
        for gone in log.forgotten:
            note = checked_note(gone.who, gone.why, gone.when)
            store.vault(tenant).destroy_key(subject_of(session, gone.principal), **note)
            store.journal.forget(tenant, ForgottenSubject(session, gone.principal, **note))
    store.add_log(log.key, records, manifests)
