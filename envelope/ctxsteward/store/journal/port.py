"""The port `Journal`: ordered records of sessions in local storage, and the state that belongs to them.

The log of a session has records at positions 0, 1, 2 …. An append names the position that it expects, so two writers
never overwrite each other: the second gets `Conflict`, reads on and decides again. An append that has returned is
durable (group commit: appends that wait at the same time share one fsync).

A log's *generation* changes when written records are replaced: those of a forgotten subject, or of a writer that lost
the session to another machine. An append also names the generation that the writer has read.

A journal also stores manifests of envelopes, the position up to which each log is drained to the object store, the
highest numbers seen in the object store (to detect that it lost objects), and the forgotten subjects.

The functions at the end serve all journals: they compute sizes of records and check whether records may be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Backpressure


class SessionKey(NamedTuple):
    """The key of a log: tenant and session."""

    tenant: str
    session: str


class JournalRecord(NamedTuple):
    """One journal record. A message's JSON text is in `wire`, everything else in `body`."""

    kind: str
    """opened | head | message | note | pin | outcome | compaction | observations | refused | selection | erased"""
    body: str
    """A JSON object as text."""
    ordinal: int = 0
    """Ordinal of a message; 0 for other records."""
    outputs: int = 0
    """Number of tool outputs in the session up to and including this message; 0 for other records."""
    id: str | None = None
    """The caller's idempotency key."""
    wire: str | None = None
    mac: str = ""
    """Code over all fields above, the session and the place; see `log.code_of`."""


class LogExtent(NamedTuple):
    """Length and generation of a log."""

    length: int
    generation: int


class Manifest(NamedTuple):
    """The inputs to lay an envelope out again."""

    address: str
    body: str
    """A JSON object as text."""


class DrainMark(NamedTuple):
    """The progress of draining a log into the object store."""

    position: int = 0
    """Position up to which (exclusive) the records are drained."""
    number: int = 0
    """Number of the last link of the session's chain that this journal has written or read."""
    epoch: int = 0
    """Writer epoch under which this journal owns the session; 0 before its first claim."""


class WaitingLog(NamedTuple):
    """A log with records or manifests to drain."""

    key: SessionKey
    drained: DrainMark
    length: int
    manifests: int
    """Number of manifests that are not in the object store yet."""


class MovedTail(NamedTuple):
    """The tail of a log that `Journal.adopt` moves into a new log."""

    key: SessionKey
    """The new log."""
    records: Sequence[JournalRecord]
    """All records of the new log, already rewritten for it."""
    manifests: Mapping[str, str]
    """Manifests to move along, by address, already rewritten for the new log."""
    renamed: Callable[[str, JournalRecord], JournalRecord | None]
    """Returns a new first record, which names the new log, for a session's first record if its log was forked off the
    tail, else None. Called in the transaction, so that no fork is missed."""


class Adoption(NamedTuple):
    """Records of a log from the object store that `Journal.adopt` puts into the journal."""

    position: int
    """Position from which on the records replace those of the journal."""
    records: Sequence[JournalRecord]
    length: int
    """Length of the journal's log when the adoption was decided."""
    drained: DrainMark
    """Drain mark to store with the records."""
    manifests: Sequence[Manifest] = ()
    moved: MovedTail | None = None
    """New log for the replaced tail, or None to drop the tail."""


class ForgottenSubject(NamedTuple):
    """A forgotten subject: a principal in a session, or the whole session if `principal` is None."""

    session: str
    principal: str | None
    who: str
    when: str
    why: str


class AlteredRow(NamedTuple):
    """A session one of whose rows in the journal's own tables was altered."""

    session: str
    row: Literal["log", "forgotten"]


class Journal(Protocol):
    """The durable logs of all sessions of a store, and the state that belongs to them.

    A journal inherits from this class and implements the methods up to `forgotten`. The later methods have defaults
    that suit a journal shared by all machines: nothing is drained from it, and it has no codes of its own.

    Every method raises only `StoreError` subclasses and is safe with threads; a folder is safe with several processes.
    """

    missing: str | None = None
    """Text that says that the journal which belongs here was lost with its acknowledged records; else None."""

    @property
    def id(self) -> str:
        """Permanent id of this journal, the owner of the sessions written here."""

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        """Write all records from `position` on, or none. Raises `Conflict` if it is taken or the generation differs.

        Raises `Backpressure` if the records include a message and too many bytes wait for the object store.
        """

    def length(self, key: SessionKey) -> int: ...

    def generation(self, key: SessionKey) -> int: ...

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]: ...

    def sessions(self, tenant: str) -> list[str]: ...

    def extents(self, tenant: str) -> dict[str, LogExtent]:
        """Return length and generation of the tenant's logs, the oldest log first if the journal knows their order."""
        keys = [SessionKey(tenant, session) for session in self.sessions(tenant)]
        return {key.session: LogExtent(self.length(key), self.generation(key)) for key in keys}

    def tenants(self) -> list[str]: ...

    def close(self) -> None: ...

    # -- finding in the logs: by ordinal, id, tool output, address

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        """Return the position of the newest compaction (below `before`), or 0 if there is none."""

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None: ...

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        """Return the position of the message with this ordinal."""

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None: ...

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        """Return the message with the session's `number`-th tool output."""

    def put_manifest(self, key: SessionKey, address: str, body: str, *, generation: int | None = None) -> None:
        """Store an envelope's manifest; a second one with the same address is ignored. Raises `Conflict` if the log's
        generation is not the one that the envelope was built on, since then it may hold what was forgotten."""

    def get_manifest(self, tenant: str, address: str) -> str | None: ...

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        """Return the manifests of a session, oldest first; with `waiting` only those that are not drained yet."""

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        """Return session and position of the compaction with this address."""

    def matching(self, tenant: str, prefix: str) -> list[str]:
        """Return at most three addresses of envelopes and compactions that begin with `prefix`."""

    # -- replacing written records, only for erasure, fencing and repair: each call makes a new generation

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        """Replace the records at these positions."""

    def truncate(self, key: SessionKey, length: int) -> None:
        """Drop the records at `length` and after."""

    def drop_manifests(self, key: SessionKey, instead: Sequence[Manifest] = ()) -> None:
        """Drop a log's manifests, and store these unless the log is empty."""

    def scrub(self) -> None:
        """Remove every byte of replaced or dropped records from the journal's files."""

    # -- beside the logs: the highest numbers seen in the object store, and the forgotten subjects

    def seen(self, name: str) -> int:
        """Return the highest number ever recorded under this name, or 0."""

    def see(self, name: str, number: int) -> None: ...

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        """Record that a subject was forgotten; a repeat is ignored."""

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        """Return the forgotten subjects of one session or of all."""

    # -- draining: the drained part of each log, and the part that waits

    def drained(self, key: SessionKey) -> DrainMark:
        return DrainMark()

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        """Record progress, unless `number` would go back. `manifests` are addresses of drained manifests."""
        raise StoreError("nothing is drained from this journal")

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        """Return logs with records or manifests to drain, the longest waiting first."""
        return []

    def waiting_bytes(self) -> int:
        """Return the size of all that waits to be drained; approximate if several processes write.

        A call must be as cheap as reading a counter.
        """
        return 0

    def adopt(self, key: SessionKey, adoption: Adoption) -> None:
        """Put the adopted records into the journal in one transaction.

        Raises `Conflict` if the log's length has changed, its drained number is higher, or the tail's new log exists.
        Never raises `Backpressure`. Makes a new generation only if records are dropped.
        """
        raise StoreError("this journal takes nothing over from an object store")

    # -- checking and repairing the journal itself

    def witnessed(self) -> dict[str, int]:
        """Return all numbers that `see` has recorded, by name."""
        return {}

    def altered(self, tenant: str) -> Sequence[AlteredRow]:
        """Return the journal's own rows that were altered or removed."""
        return ()

    def integrity(self) -> list[str]:
        """Return the faults of the journal as a whole, one line each."""
        return []

    def recount(self, key: SessionKey, length: int, drained: DrainMark) -> None:
        """Rewrite a log's row from its records and the object store, as a new generation."""
        raise StoreError("this journal has no rows of logs to count anew")


def size_bytes(record: JournalRecord) -> int:
    """Return the size of body and wire as UTF-8."""
    return text_bytes(record.body) + (text_bytes(record.wire) if record.wire is not None else 0)


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_queue(waiting_bytes: int, added_bytes: int, cap_bytes: int | None) -> None:
    """Raise `Backpressure` if the added bytes do not fit; into an empty queue any number fits."""
    if cap_bytes is not None and waiting_bytes and waiting_bytes + added_bytes > cap_bytes:
        raise Backpressure(waiting_bytes, cap_bytes)


def check_replaced(key: SessionKey, length: int, positions: Iterable[int]) -> None:
    """Raise `StoreError` if one of these positions has no record."""
    for position in positions:
        if not 0 <= position < length:
            raise StoreError(
                f"session {key.session!r}: no record at position {position} to replace, it holds {length}; "
                "nothing was written"
            )
