"""What a session needs from local storage: an ordered journal, and what stands beside it.

The journal of a session is a list of records at positions 0, 1, 2 …; appending names the position it expects to take,
so two writers never overwrite each other: the second gets `Conflict` and decides again on what it then reads. An append
that has returned is durable (group commit: appends that wait at the same time share one fsync).

A log's *generation* changes when what was already written is replaced: records of a forgotten subject, turns of a
writer that lost the session to another machine. An append names the generation it has read, too.

Beside the logs: manifests of envelopes; how far each log has been drained to the object store; the highest numbers
seen in the object store (a witness against a store that forgets); which subjects were forgotten.

The functions at the end are shared by all journals: the size of records, and whether they may be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Backpressure


class SessionKey(NamedTuple):
    """Which log: a tenant's session."""

    tenant: str
    session: str


class JournalRecord(NamedTuple):
    """One journal record. `wire` holds a message's JSON text, everything else is in `body`."""

    kind: str
    """opened | head | message | note | pin | outcome | compaction | observations | refused | selection | erased"""
    body: str
    """JSON object."""
    ordinal: int = 0
    """A message's ordinal; 0 for other records."""
    outputs: int = 0
    """Tool outputs in the session up to and including this message; 0 for other records."""
    id: str | None = None
    """The caller's idempotency key."""
    wire: str | None = None
    mac: str = ""
    """Code over everything above, session and place; see `records.code_of`."""


class LogExtent(NamedTuple):
    """How far a log goes."""

    length: int
    generation: int


class Manifest(NamedTuple):
    """What an envelope can be laid out from again."""

    address: str
    body: str
    """JSON object."""


class DrainMark(NamedTuple):
    """How far a log has got into the object store."""

    position: int = 0
    """Records before it are there."""
    number: int = 0
    """Of the last link of the session's chain that this journal has written or read."""
    epoch: int = 0
    """Writer epoch under which this journal owns the session; 0: it has not claimed it yet."""


class WaitingLog(NamedTuple):
    """A log with something to drain."""

    key: SessionKey
    drained: DrainMark
    length: int
    manifests: int
    """Manifests that are not in the object store yet."""


class MovedTail(NamedTuple):
    """The tail of a log on its way into a log of its own; see `Journal.adopt`."""

    key: SessionKey
    """The new log."""
    records: Sequence[JournalRecord]
    """All of it, as they read there."""
    manifests: Mapping[str, str]
    """Manifests that go with it: by address, as they read there."""
    forks: Mapping[SessionKey, JournalRecord]
    """First records of the logs that were forked off the tail: they name the new log."""


class Adoption(NamedTuple):
    """What the object store holds of a log, on its way into the journal; see `Journal.adopt`."""

    position: int
    """From here on it stands in place of what is there."""
    records: Sequence[JournalRecord]
    length: int
    """Of the log, as it was when this was decided."""
    drained: DrainMark
    """Noted with it."""
    manifests: Sequence[Manifest] = ()
    moved: MovedTail | None = None
    """What becomes of the tail that is replaced; None: it is dropped."""


class ForgottenSubject(NamedTuple):
    """A subject that was forgotten: `principal` None is a whole session."""

    session: str
    principal: str | None
    who: str
    when: str
    why: str


class AlteredRow(NamedTuple):
    """A session of which a row of the journal's own is not what was written."""

    session: str
    row: Literal["log", "forgotten"]


class Journal(Protocol):
    """Ordered, durable records of one session each, and what stands beside them: what a store is opened over.

    A journal inherits from this class and implements its methods up to `forgotten`. Those after it have a default, for
    a journal that is shared by all machines, from which nothing is drained, and that has no codes of its own to check.

    Every method raises `StoreError` subclasses only, and is safe with threads; in a folder, with several processes.
    """

    missing: str | None = None
    """Says that another journal belongs here, which was lost with what it had acknowledged."""

    @property
    def id(self) -> str:
        """Names this journal for ever: the owner of the sessions written here."""

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        """Write all records at `position` and after, or none: `Conflict` when it is taken or the generation is gone.

        Raises `Backpressure` for messages (for nothing else) where too many bytes wait for the object store.
        """

    def length(self, key: SessionKey) -> int: ...

    def generation(self, key: SessionKey) -> int: ...

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]: ...

    def sessions(self, tenant: str) -> list[str]: ...

    def extents(self, tenant: str) -> dict[str, LogExtent]:
        """Return length and generation of the tenant's logs, the oldest log first as far as the journal knows."""
        keys = [SessionKey(tenant, session) for session in self.sessions(tenant)]
        return {key.session: LogExtent(self.length(key), self.generation(key)) for key in keys}

    def tenants(self) -> list[str]: ...

    def close(self) -> None: ...

    # -- finding in the logs: by ordinal, id, tool output, address

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        """Position of the newest compaction (below `before`); 0 where there is none."""

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None: ...

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        """Where the message with this ordinal stands."""

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None: ...

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        """The message that holds the session's n-th tool output."""

    def put_manifest(self, key: SessionKey, address: str, body: str) -> None:
        """Keep an envelope's manifest; the same address twice is one manifest."""

    def get_manifest(self, tenant: str, address: str) -> str | None: ...

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        """Manifests of a session, oldest first; with `waiting` those that are not drained yet."""

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        """Session and position of the compaction with this address."""

    def matching(self, tenant: str, prefix: str) -> list[str]:
        """Addresses of envelopes and compactions that begin so, at most three."""

    # -- replacing what was written, for erasure, fencing and repair alone: each makes a new generation

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        """Put other records at these positions."""

    def truncate(self, key: SessionKey, length: int) -> None:
        """Drop the records at `length` and after."""

    def drop_manifests(self, key: SessionKey) -> None: ...

    def scrub(self) -> None:
        """Leave no byte of what was replaced or dropped in the journal's files."""

    # -- beside the logs: how far the object store was seen, and who was forgotten

    def seen(self, name: str) -> int:
        """The highest number ever noted under this name; 0: none."""

    def see(self, name: str, number: int) -> None: ...

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        """Note that a subject was forgotten; the same twice is once."""

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        """Subjects forgotten, of one session or of all."""

    # -- what of the logs is in the object store, and what waits for it

    def drained(self, key: SessionKey) -> DrainMark:
        return DrainMark()

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        """Note progress; never backwards in `number`. `manifests` are addresses that are in the object store now."""
        raise StoreError("nothing is drained from this journal")

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        """Return logs with records or manifests to drain, those that wait longest first."""
        return []

    def waiting_bytes(self) -> int:
        """Return the size of what is not drained yet; approximate where several processes write.

        It must be as cheap as a counter.
        """
        return 0

    def adopt(self, key: SessionKey, adoption: Adoption) -> None:
        """Take it over, all in one step.

        `Conflict` where the log is no longer as long, its drained number is beyond, or the log that the tail is moved
        to exists. Never `Backpressure`; a new generation only where records are dropped.
        """
        raise StoreError("this journal takes nothing over from an object store")

    # -- checking the journal itself, and mending it

    def witnessed(self) -> dict[str, int]:
        """Return all that `see` has noted of the object store."""
        return {}

    def altered(self, tenant: str) -> Sequence[AlteredRow]:
        """Return the journal's own rows that are not what was written, or are gone."""
        return ()

    def integrity(self) -> list[str]:
        """Return what is wrong with the journal as a whole, a line each."""
        return []

    def recount(self, key: SessionKey, length: int, drained: DrainMark) -> None:
        """Write a log's row anew from what its records and the object store say; it is a new generation."""
        raise StoreError("this journal has no rows of logs to count anew")


def size_bytes(record: JournalRecord) -> int:
    """Of body and wire, as UTF-8."""
    return text_bytes(record.body) + (text_bytes(record.wire) if record.wire is not None else 0)


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_queue(waiting_bytes: int, added_bytes: int, cap_bytes: int | None) -> None:
    """Raise `Backpressure` where what is added does not fit beside what waits; alone, everything fits."""
    if cap_bytes is not None and waiting_bytes and waiting_bytes + added_bytes > cap_bytes:
        raise Backpressure(waiting_bytes, cap_bytes)


def check_replaced(key: SessionKey, length: int, positions: Iterable[int]) -> None:
    """Raise `StoreError` where no record stands to be replaced."""
    for position in positions:
        if not 0 <= position < length:
            raise StoreError(
                f"session {key.session!r}: no record at position {position} to replace, it holds {length}; "
                "nothing was written"
            )
