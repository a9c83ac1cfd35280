"""Sources of transcripts: files below a folder, objects below a prefix, or the store's own closed sessions.

    folder/of/transcripts, file:PATH     files below a folder, or one file
    s3://BUCKET/PREFIX?endpoint=…        objects below a prefix (`store.objects.s3_location`)
    store                                the store's own closed sessions (`StoreSource`)

A source lists names that end in ``.json``, ``.jsonl``, ``.ndjson`` or ``.traj``, also with a compression suffix
(compressed files are refused when they are read). Hidden files and folders are skipped. Links are not followed: the
target of a link inside the folder is listed itself, and a link that leads out is listed and refused. An item's name is
its path below the folder or prefix; unprintable characters and ``%`` are percent-encoded. A sidecar without a
transcript is listed, too, so that people see it in quarantine. Objects with keys that our stores could not write are
not listed.

**Sessions.** The store's own sessions are read from their logs after they end. A session ends when its last message is
`SETTLED_SECONDS` old at the time of the night. A session whose messages have no time counts as ended, and as changed
just now: it is read every night, and harvested again only if it grew. Its version is the number of its records and
their generation, so every change is noticed. If no message has a time, they get the time at which the object store
received the session's first part.

A session belongs to the governed profile that it used last. Sessions of other profiles belong to other agents and are
no evidence here. A session without a profile, or with a profile without a version, belongs to every agent.

A session is passed on as one JSON document, ``{"session", "is_anothers", "profile_version", "shown", "meta",
"entries": [[ordinal, wire, ts, principal, origin], …]}``. A fork passes on only its own part. Forgotten and damaged
messages are left out. `shown` has the ids of the meta records in every profile of the session and of a fork's parents.

Raises `InputError` for a URI that names no source, `Erased` for a forgotten session, `InputTooLarge`, `StoreError`;
`TranscriptSource` documents further errors of listing and reading.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote_to_bytes

from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.errors import Damaged, InputTooLarge, InvalidTranscript, ObjectMissing, shown_uri
from ctxsteward.schemas.profile import instant
from ctxsteward.store import ObjectStore
from ctxsteward.store.backend import open_bucket
from ctxsteward.store.journal.events import MessageAppended, OutcomeTold, SessionHead
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.names import session_folder
from ctxsteward.store.objects.port import ObjectInfo

from .items import (
    COMPRESSED_SUFFIXES,
    MAX_SIDECAR_BYTES,
    TRANSCRIPT_SUFFIXES,
    FileStamp,
    LoadedItem,
    SourceItem,
    is_named_like_transcript,
    listed,
    orphans,
    sidecar_of,
    sidecars_of,
    sizes_of,
    written_seconds,
)

if TYPE_CHECKING:
    from ctxsteward.envelope import Store

SETTLED_SECONDS = 6 * 3600.0
READ_AHEAD_RECORDS = 32
OWN_ORIGIN = "steward"
"""`origin` of the first message of the steward's own sessions."""
ENTRIES_ORIGIN = "entries"
"""`origin` of the first message of a framework's own log (`EntryLog`), whose messages are also in another session."""


class StoreSource:
    """A `TranscriptSource` of one tenant's sessions."""

    uri = "store"

    def __init__(
        self,
        store: Store,
        tenant: str = "default",
        *,
        profile: str | None = None,
        now_seconds: float,
    ) -> None:
        """Sessions of a profile other than `profile` are marked as another agent's; None: no session is."""
        self.store: Store = store
        self.tenant: str = tenant
        self.profile: str | None = profile
        self._now_seconds = now_seconds

    def items(self) -> Iterator[SourceItem]:
        for session in sorted(self.store.sessions(tenant=self.tenant)):
            key = SessionKey(self.tenant, session)
            try:
                length = self.store.journal.length(key)
            except Damaged:  # reading it fails again, and it is quarantined without stopping the others
                yield SourceItem(self.uri, session, "damaged", 0, self._now_seconds)
                continue
            if not length and self.store.write_behind is not None:
                try:
                    self.store.at(self.tenant, session)  # copies the session's log to this machine
                except Erased:
                    continue
                length = self.store.journal.length(key)
            last_seconds = self._last_seconds(key, length)
            modified_seconds = self._now_seconds if last_seconds is None else last_seconds
            if last_seconds is None or last_seconds <= self._now_seconds - SETTLED_SECONDS:
                version = f"{length}@{self.store.journal.generation(key)}"
                yield SourceItem(self.uri, session, version, length, modified_seconds)

    def read(self, name: str, version: str, *, cap_bytes: int) -> LoadedItem:
        session = self.store.at(self.tenant, name)
        log = Log(session.journal, session.key, session.address_key, session.replica.log.repair)
        entries: list[list[object]] = []
        heads: list[SessionHead] = []
        outcome: Outcome | None = None
        size_bytes = position = 0
        length = session.journal.length(session.key)
        while position < length:
            for row in log.read(position, min(length, position + READ_AHEAD_RECORDS)):
                if isinstance(row, SessionHead):
                    heads.append(row)
                elif isinstance(row, OutcomeTold):
                    outcome = row.outcome if outcome is None else outcome.then(row.outcome)
                elif isinstance(row, MessageAppended) and not row.erased:
                    size_bytes += len(row.wire.encode())
                    entries.append([row.ordinal, json.loads(row.wire), row.ts, row.principal, row.origin])
            if size_bytes > cap_bytes:
                raise InputTooLarge(f"session {name!r}", size_bytes, cap_bytes)
            position += READ_AHEAD_RECORDS
        if not heads and session.state.head.profile is not None:  # a fork that kept the version of its parent
            heads.append(session.state.head)
        before = session.shown_records() if session.parent() is not None else frozenset[str]()
        shown = _profiles(self.profile, heads, before)
        document = {**shown, "session": name, "meta": _meta(entries, outcome), "entries": entries}
        data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        written = None if any(_is_time(ts) for _, _, ts, *_ in entries) else self._written_seconds(name)
        return LoadedItem(
            source="store", name=name, data=data, layout="log", shown=tuple(shown["shown"]), written_seconds=written
        )

    def close(self) -> None:
        """Do nothing: the store belongs to the caller."""

    def _written_seconds(self, session: str) -> float | None:
        """Return when the first part of a session reached the object store, or None (a journal keeps no times).

        This time does not change when the session grows.
        """
        if self.store.write_behind is None:
            return None
        folder = session_folder(self.tenant, self.store.vault(self.tenant).subject_address(session))
        return next((info.modified_seconds for info in self.store.objects.list(f"{folder}/")), None)

    def _last_seconds(self, key: SessionKey, length: int) -> float | None:
        """Return the time of the newest message, or None if it has none."""
        stop = length
        while stop > 0:
            start = max(0, stop - READ_AHEAD_RECORDS)
            for record in reversed(self.store.journal.read(key, start, stop)):
                if record.kind == "message":
                    return _seconds(record)
            stop = start
        return None


def _profiles(wanted: str | None, heads: list[SessionHead], before: frozenset[str]) -> dict[str, Any]:
    """Return fields of the document: whether it is another agent's, its profile version, and the shown records."""
    profiles = [head.profile for head in heads if head.profile is not None]
    shown = before | {record["id"] for profile in profiles for record in profile.get("meta", ())}
    newest = profiles[-1] if profiles else {}
    return {
        "is_anothers": wanted is not None and newest.get("version") is not None and newest.get("name") != wanted,
        "profile_version": newest.get("version"),
        "shown": sorted(shown),
    }


def _meta(entries: list[list[object]], outcome: Outcome | None) -> dict[str, Any]:
    """Return the session's metadata: its outcome, and the steward as origin of sessions that are not to be read."""
    fields: dict[str, Any] = {} if outcome is None else {"outcome": outcome.model_dump(exclude_none=True)}
    if entries and entries[0][4] in (OWN_ORIGIN, ENTRIES_ORIGIN):
        fields["origin"] = OWN_ORIGIN
    return fields


def _is_time(ts: object) -> bool:
    return isinstance(ts, str) and instant(ts) != -inf


def _seconds(record: JournalRecord) -> float | None:
    """Return the time in a message's record (UTC if it has no zone), or None."""
    ts = json.loads(record.body).get("ts")
    return instant(ts) if _is_time(ts) else None


class FolderSource:
    """A `TranscriptSource` of files."""

    def __init__(self, path: Path, *, uri: str | None = None) -> None:
        self.path = path
        self.uri: str = uri or str(path)

    def items(self) -> Iterator[SourceItem]:
        if self.path.is_file():
            yield self._item(self.path.name, self.path.stat(), self._is_there)
            return
        if not self.path.is_dir():
            raise InputError(f"source {shown_uri(self.uri)!r}: no such folder; correct the path")
        yield from self._below("")

    def read(self, name: str, version: str, *, cap_bytes: int) -> LoadedItem:
        path = self._path(name)
        data = _bytes_of(path, name, cap_bytes)
        beside = sidecar_of(path.name, lambda other: os.path.lexists(path.with_name(other)))
        sidecar_name = name.removesuffix(_named(path.name)) + _named(beside) if beside else ""
        sidecar = _bytes_of(path.with_name(beside), sidecar_name, MAX_SIDECAR_BYTES) if beside else None
        return LoadedItem(
            source=name,
            name=name,
            data=data,
            sidecar=sidecar,
            sidecar_name=sidecar_name,
            written_seconds=written_seconds(version),
        )

    def close(self) -> None:
        """Nothing to release."""

    @property
    def _root(self) -> Path:
        return self.path.parent if self.path.is_file() else self.path

    def _path(self, name: str) -> Path:
        parts = [os.fsdecode(unquote_to_bytes(part)) for part in name.split("/")]
        if any(part in ("", ".", "..") or "/" in part or "\x00" in part for part in parts):
            raise InvalidTranscript(name, "", "not a name in this folder", "use a name that was listed")
        return self._root.joinpath(*parts)

    def _below(self, inside: str) -> Iterator[SourceItem]:
        """Yield the items of one folder, sorted by name; `inside` is its path with a final slash."""
        try:
            with os.scandir(self.path / inside) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(
                f"source {shown_uri(self.uri)!r}: {inside!r:.80} cannot be listed: {error.strerror}"
            ) from error
        entries = [entry for entry in entries if not entry.name.startswith(".")]
        names = {entry.name for entry in entries}
        strays = orphans(names)
        for entry in entries:
            is_transcript = is_named_like_transcript(entry.name)
            if entry.name in strays:
                is_listed = True
            elif entry.is_symlink():
                is_listed = (is_transcript or os.path.isdir(entry.path)) and not self._stays_inside(Path(entry.path))
            elif entry.is_dir():
                is_listed = False
                yield from self._below(f"{inside}{entry.name}/")
            else:
                is_listed = is_transcript and entry.is_file()
            if is_listed:
                yield self._item(inside + entry.name, entry.stat(follow_symlinks=False), names.__contains__)

    def _stays_inside(self, link: Path) -> bool:
        try:
            return link.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError):  # a circle of links
            return True

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(self._root / name)

    def _item(self, path: str, status: os.stat_result, is_beside: Callable[[str], bool]) -> SourceItem:
        """Make an item; `is_beside` says whether its folder has a file with a name."""
        stamps = [FileStamp(status.st_size, status.st_mtime_ns)]
        beside = sidecar_of(path.rpartition("/")[2], is_beside)
        with suppress(OSError):
            sidecar = (self._root / path).with_name(beside).lstat() if beside else None
            stamps += [FileStamp(sidecar.st_size, sidecar.st_mtime_ns)] if sidecar else []
        return listed(self.uri, _named(path), *stamps)


def _named(path: str) -> str:
    """Return an item's name for a path: unprintable characters and ``%`` percent-encoded."""
    return "".join(char if char.isprintable() and char != "%" else quote(os.fsencode(char), safe="") for char in path)


def _bytes_of(path: Path, name: str, cap_bytes: int) -> bytes:
    """Read a regular file after checking its size; no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = "a link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise InvalidTranscript(name, "", reason, "put the file itself there, readable") from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidTranscript(name, "", "not a regular file", "put the file itself there")
        if status.st_size > cap_bytes:
            raise InputTooLarge(name, status.st_size, cap_bytes)
        data = stream.read(cap_bytes + 1)
    if len(data) > cap_bytes:
        raise InputTooLarge(name, len(data), cap_bytes)
    return data


_SUFFIXES = (*TRANSCRIPT_SUFFIXES, *COMPRESSED_SUFFIXES)
"""Suffixes of possible transcripts and sidecars; other names of a listing are not kept in memory."""


class ObjectSource:
    """A `TranscriptSource` of objects."""

    def __init__(self, objects: ObjectStore, prefix: str = "", *, owned: bool = False) -> None:
        """Read objects below a prefix; with `owned`, closing the source also closes the store."""
        self.objects: ObjectStore = objects
        self.prefix: str = f"{prefix.rstrip('/')}/" if prefix else ""
        self._owned = owned

    @property
    def uri(self) -> str:
        return f"{self.objects.uri.partition('?')[0].rstrip('/')}/{self.prefix}".rstrip("/")

    def items(self) -> Iterator[SourceItem]:
        infos: dict[str, ObjectInfo] = {}
        for info in self.objects.list(self.prefix):
            name = info.key.removeprefix(self.prefix)
            if not any(part.startswith(".") for part in name.split("/")) and name.lower().endswith(_SUFFIXES):
                infos[name] = info
        strays = orphans(infos)
        for name, info in sorted(infos.items()):
            if name in strays:
                yield listed(self.uri, name, _stamp(info))
            elif is_named_like_transcript(name):
                beside = sidecar_of(name, infos.__contains__)
                yield listed(self.uri, name, _stamp(info), *([_stamp(infos[beside])] if beside else ()))

    def read(self, name: str, version: str, *, cap_bytes: int) -> LoadedItem:
        sizes = sizes_of(version)
        data = self._get(name, sizes[0], cap_bytes)
        if data is None:
            raise InvalidTranscript(name, "", "the object is gone", "it was removed after it was listed")
        sidecar_name, sidecar = self._beside(name, sizes[1]) if len(sizes) > 1 else ("", None)
        return LoadedItem(
            source=name,
            name=name,
            data=data,
            sidecar=sidecar,
            sidecar_name=sidecar_name,
            written_seconds=written_seconds(version),
        )

    def close(self) -> None:
        if self._owned:
            self.objects.close()

    def _beside(self, name: str, size_bytes: int) -> tuple[str, bytes | None]:
        """Read the sidecar of a transcript, by either of its names."""
        for sidecar_name in sidecars_of(name):
            data = self._get(sidecar_name, size_bytes, MAX_SIDECAR_BYTES)
            if data is not None:
                return sidecar_name, data
        return "", None

    def _get(self, name: str, size_bytes: int, cap_bytes: int) -> bytes | None:
        """Read an object of a listed size, or return None if it is missing; raises `InputTooLarge`."""
        if size_bytes > cap_bytes:
            raise InputTooLarge(name, size_bytes, cap_bytes)
        try:
            data = self.objects.get(self.prefix + name)
        except ObjectMissing:
            return None
        if len(data) > cap_bytes:
            raise InputTooLarge(name, len(data), cap_bytes)
        return data


def _stamp(info: ObjectInfo) -> FileStamp:
    return FileStamp(info.size_bytes, round(info.modified_seconds * 1e9))


STORE = "store"


class TranscriptSource(Protocol):
    """Transcripts in one place. Safe with threads."""

    @property
    def uri(self) -> str:
        """Name of the source, the same every night."""

    def items(self) -> Iterator[SourceItem]:
        """Yield all items, sorted by name. Raises `InputError` or `StoreError` if the place cannot be read."""

    def read(self, name: str, version: str, *, cap_bytes: int) -> LoadedItem:
        """Read one item by its listed name and version, in its present state.

        Raises `InputTooLarge` before reading, `InvalidTranscript` for an unusable item, `Erased`, `StoreError`.
        """

    def close(self) -> None: ...


def open_source(
    uri: str,
    *,
    store: Store | None = None,
    tenant: str = "default",
    profile: str | None = None,
    now_seconds: float | None = None,
) -> TranscriptSource:
    """Open the source that a URI names; only ``store`` uses the other arguments."""
    scheme, colon, rest = uri.partition(":")
    if uri == STORE:
        if store is None or now_seconds is None:
            raise InputError("source 'store' needs a store and the time of the night")
        return StoreSource(store, tenant, profile=profile, now_seconds=now_seconds)
    if scheme == "s3" and rest.startswith("//"):
        return ObjectSource(open_bucket(uri), owned=True)
    if scheme == "file" and colon and rest:
        return FolderSource(Path(rest.removeprefix("//")), uri=uri)
    if colon and rest.startswith("//"):
        shown = shown_uri(uri)
        raise InputError(f"unknown source {shown!r:.80}; use a folder, file:PATH, s3://BUCKET/PREFIX or store")
    return FolderSource(Path(uri), uri=uri)
