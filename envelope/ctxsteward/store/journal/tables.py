"""A journal in SQL tables (`TableJournal`), and the transactions of its writing methods.

Reads see every acknowledged append and wait for no writer.

Each transaction checks and updates the row of a log (`LogRow`). `TableJournal` uses the SQL that SQLite and PostgreSQL
share, with `?` for a value, and transactions that implement `TableTransaction`. The one for SQLite (`Transaction`)
caches rows of logs across transactions as long as no other connection has committed (`PRAGMA data_version`). New
records and changed rows of logs are collected and written in a few statements at the end. Sizes are bytes of UTF-8.
Raises `StoreError`, `Conflict`, `Backpressure`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Conflict, Damaged

from .database import RowReader, check_file, store_error
from .port import (
    Adoption,
    AlteredRow,
    DrainMark,
    ForgottenSubject,
    Journal,
    JournalRecord,
    LogExtent,
    Manifest,
    MovedTail,
    SessionKey,
    WaitingLog,
    check_queue,
    check_replaced,
    size_bytes,
    text_bytes,
)
from .row_codes import HEAD_QUERY, NEW, LogRow, RowCodes, forgotten_altered, head_in

HEADS_KEPT = 10_000
"""Most rows of logs in memory."""

LOG = "tenant = ? AND session = ?"
_END = 1 << 62
_COLUMNS = "kind, body, ordinal, outputs, id, wire, mac"
_FORGOTTEN = "session, whole, principal, who, at, why, mac"
_PUT_MANIFEST = "INSERT INTO manifests (tenant, session, address, body, waiting) VALUES (?,?,?,?,?)"
_ROBBED = """
SELECT session FROM logs WHERE {where} AND forgotten > 0 AND forgotten <>
  (SELECT count(*) FROM forgotten f WHERE f.tenant = logs.tenant AND f.session = logs.session) LIMIT 1
"""
"""Finds a log whose count of forgotten subjects differs from their rows; one statement, so that no write intervenes."""
_UNOWNED = """
SELECT DISTINCT session FROM records WHERE tenant = ? AND NOT EXISTS
  (SELECT 1 FROM logs WHERE logs.tenant = records.tenant AND logs.session = records.session)
"""
"""Finds sessions with records but without a row of their log."""

_CHUNKS = (32, 8, 1)
"""Rows per statement, for few statements and few different texts to prepare."""


class TableTransaction(Protocol):
    """The transaction that the work of a call runs in. The work raises `StoreError` only before its first change."""

    @property
    def drains(self) -> bool:
        """Whether written records wait to be drained into an object store."""

    @property
    def waiting_bytes(self) -> int:
        """Size of all that waits in all logs, including the additions of this transaction."""

    def head(self, key: SessionKey) -> LogRow:
        """Return a log's row in this transaction; no other transaction changes it meanwhile."""

    def put(self, key: SessionKey, head: LogRow) -> None: ...

    def replace(self, key: SessionKey, head: LogRow) -> None:
        """Replace an untrusted row by this one, with its waiting part recounted."""

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows that `record_row` made."""

    def execute(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement after writing all inserted records; return its rows."""

    def next_place(self) -> int:
        """Return the next place at the end of the order of waiting logs."""

    def recount(self, key: SessionKey, head: LogRow) -> LogRow:
        """Return the row with its waiting part recounted, and the log at the end of the order."""


class Transaction:
    """A `TableTransaction` in SQLite."""

    def __init__(self, writer: TableWriter, db: sqlite3.Connection) -> None:
        self._writer, self._db = writer, db
        self._rows: list[tuple[Any, ...]] = []
        self.drains: bool = writer.drains
        self.heads: dict[SessionKey, LogRow] = {}
        self.bytes_added: int = 0

    def head(self, key: SessionKey) -> LogRow:
        found = self.heads.get(key) or self._writer.heads.get(key)
        if found is None:
            found = self._writer.heads[key] = head_in(
                self._db.execute(HEAD_QUERY, key).fetchall(), key, self._writer.codes
            )
        return found

    def put(self, key: SessionKey, head: LogRow) -> None:
        self.bytes_added += head.bytes - self.head(key).bytes
        self.heads[key] = head

    def replace(self, key: SessionKey, head: LogRow) -> None:
        self.heads.pop(key, None)
        self._writer.heads[key] = NEW
        self.put(key, self.recount(key, head))

    @property
    def waiting_bytes(self) -> int:
        return self._writer.waiting_bytes + self.bytes_added

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows.extend(rows)

    def execute(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        self._write_rows()
        return self._db.execute(statement, values).fetchall()

    def next_place(self) -> int:
        self._writer.place += 1
        return self._writer.place

    def recount(self, key: SessionKey, head: LogRow) -> LogRow:
        if not self.drains:
            return head._replace(manifests=0, bytes=0, since=0)
        query = (
            "SELECT count(*), coalesce(sum(length(CAST(body AS BLOB))), 0) FROM manifests "
            "WHERE tenant = ? AND session = ? AND waiting = 1"
        )
        ((manifests, manifest_bytes),) = self.execute(query, key)
        query = (
            "SELECT coalesce(sum(length(CAST(body AS BLOB)) + coalesce(length(CAST(wire AS BLOB)), 0)), 0) "
            "FROM records WHERE tenant = ? AND session = ? AND position >= ?"
        )
        ((record_bytes,),) = self.execute(query, (*key, head.drained))
        since = self.next_place() if manifests or head.length > head.drained else 0
        return head._replace(manifests=manifests, bytes=manifest_bytes + record_bytes, since=since)

    def flush(self) -> None:
        """Write the collected rows."""
        self._write_rows()
        codes = self._writer.codes
        rows = [key + head + ("" if codes is None else codes.of_log(key, head),) for key, head in self.heads.items()]
        _write(self._db, _put_logs, rows)
        if self.bytes_added:
            self._db.execute("UPDATE meta SET value = value + ? WHERE name = 'waiting_bytes'", (self.bytes_added,))

    def _write_rows(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            _write(self._db, _insert_records, rows)


class TableWriter:
    """The cache of table contents that one connection keeps between its transactions."""

    def __init__(self, *, drains: bool, error: Callable[[BaseException], StoreError]) -> None:
        self.drains: bool = drains
        self.error: Callable[[BaseException], StoreError] = error
        self.codes: RowCodes | None = None
        """Codes of the rows of logs; None if the rows have none."""
        self.heads: dict[SessionKey, LogRow] = {}
        self.place: int = 0
        self.waiting_bytes: int = 0
        self.version: int = -1
        """SQLite's `data_version` for which the cache is valid; -1 if it is invalid."""

    def run_alone(
        self, db: sqlite3.Connection, lock: AbstractContextManager[Any], work: Callable[[Transaction], Any]
    ) -> Any:
        """Run `work` in a transaction of its own and return its result."""
        with lock:
            try:
                db.execute("BEGIN")
                transaction = Transaction(self, db)
                result = work(transaction)
                transaction.flush()
                db.execute("COMMIT")
                self.settle(transaction)
            except BaseException as error:  # an interrupt may come at any point, even after the commit
                self.reread(db)
                if isinstance(error, StoreError) or not isinstance(error, Exception):
                    raise
                raise self.error(error) from error
            return result

    def settle(self, transaction: Transaction) -> None:
        """Cache the changes of a committed transaction."""
        self.heads.update(transaction.heads)
        self.waiting_bytes += transaction.bytes_added

    def reread(self, db: sqlite3.Connection) -> None:
        """Roll back an open transaction, and read the cache again."""
        if db.in_transaction:
            db.execute("ROLLBACK")
        self.version = -1
        self.look_for_others(db)

    def look_for_others(self, db: sqlite3.Connection) -> None:
        """Drop the cache if another connection has changed the file, or the cache is too large."""
        ((version,),) = db.execute("PRAGMA data_version").fetchall()
        if version != self.version or len(self.heads) > HEADS_KEPT:
            self.heads.clear()
            query = (
                "SELECT (SELECT value FROM meta WHERE name = 'waiting_bytes'), "
                "(SELECT coalesce(max(since), 0) FROM logs WHERE since > 0)"
            )
            ((self.waiting_bytes, self.place),) = db.execute(query).fetchall()
            self.version = version


class TableJournal(Journal):
    """A `Journal` in SQL. A subclass provides the database."""

    _all: RowReader
    _codes: RowCodes | None = None
    """Codes of the journal's own rows; None if they have none."""

    _submit: Callable[[Callable[[TableTransaction], Any]], Any]
    """Run work in a transaction and return its result once that is durable."""

    def __init__(self, drains: bool, queue_bytes: int | None) -> None:
        self._drains = drains
        self._queue_bytes = queue_bytes if drains else None
        self._id = ""

    @property
    def id(self) -> str:
        return self._id

    # -- logs

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        rows = [record_row(key, position + index, record) for index, record in enumerate(records)]
        sizes = [size_bytes(record) for record in records] if self._drains else ()
        stop = position + len(rows)
        bounded = self._queue_bytes is not None and any(record.kind == "message" for record in records)

        def work(transaction: TableTransaction) -> None:
            head = transaction.head(key)
            if head.length != position or head.generation != generation:
                raise Conflict(key.session, position)
            if not rows:
                return
            if bounded:
                check_queue(transaction.waiting_bytes, sum(sizes), self._queue_bytes)
            transaction.insert(rows)
            waits, since = head.bytes, head.since
            if sizes and stop > head.drained:
                waits += sum(sizes[max(0, head.drained - position) :])
                since = since or transaction.next_place()
            transaction.put(key, head._replace(length=stop, bytes=waits, since=since))

        self._submit(work)

    # -- manifests, and finding by address

    def put_manifest(self, key: SessionKey, address: str, body: str, *, generation: int | None = None) -> None:
        waits = int(self._drains)
        size = text_bytes(body) if waits else 0

        def work(transaction: TableTransaction) -> None:
            if generation not in (None, transaction.head(key).generation):
                raise Conflict(key.session, transaction.head(key).length)
            statement = f"{_PUT_MANIFEST} ON CONFLICT DO NOTHING RETURNING seq"
            if transaction.execute(statement, (*key, address, body, waits)) and waits:
                head = transaction.head(key)
                since = head.since or transaction.next_place()
                transaction.put(key, head._replace(manifests=head.manifests + 1, bytes=head.bytes + size, since=since))

        self._submit(work)

    # -- replacing written records

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        rows = [record_row(key, position, record) for position, record in records.items()]

        def work(transaction: TableTransaction) -> None:
            head = transaction.head(key)
            check_replaced(key, head.length, records)
            for position in records:
                transaction.execute(f"DELETE FROM records WHERE {LOG} AND position = ?", (*key, position))
            transaction.insert(rows)
            transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        if rows:
            self._submit(work)

    def truncate(self, key: SessionKey, length: int) -> None:
        def work(transaction: TableTransaction) -> None:
            head = transaction.head(key)
            if not 0 <= length < head.length:
                return
            transaction.execute(f"DELETE FROM records WHERE {LOG} AND position >= ?", (*key, length))
            drained = min(head.drained, length)
            head = head._replace(length=length, generation=head.generation + 1, drained=drained)
            transaction.put(key, transaction.recount(key, head))

        self._submit(work)

    def drop_manifests(self, key: SessionKey, instead: Sequence[Manifest] = ()) -> None:
        def work(transaction: TableTransaction) -> None:
            dropped = transaction.execute(f"DELETE FROM manifests WHERE {LOG} RETURNING seq", key)
            head = transaction.head(key)
            for manifest in instead if head.length else ():
                transaction.execute(f"{_PUT_MANIFEST} ON CONFLICT DO NOTHING", (*key, *manifest, int(self._drains)))
            if dropped or instead:
                transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        self._submit(work)

    def adopt(self, key: SessionKey, adoption: Adoption) -> None:
        position, records, length, drained, manifests, moved = adoption
        rows = [record_row(key, position + index, record) for index, record in enumerate(records)]

        def work(transaction: TableTransaction) -> None:
            head = transaction.head(key)
            taken = moved is not None and transaction.head(moved.key).length
            if head.length != length or drained.number < head.number or taken:
                raise Conflict(key.session, length)
            if position < length:
                transaction.execute(f"DELETE FROM records WHERE {LOG} AND position >= ?", (*key, position))
            transaction.insert(rows)
            for manifest in manifests:
                transaction.execute(f"{_PUT_MANIFEST} ON CONFLICT DO NOTHING", (*key, *manifest, 0))
            if moved is not None:
                _move(transaction, key, moved)
            generation = head.generation + (position < length)
            head = transaction.head(key)._replace(
                length=position + len(rows),
                generation=generation,
                drained=drained.position,
                number=drained.number,
                epoch=drained.epoch,
                manifests=0,
                since=0,
            )
            transaction.put(key, transaction.recount(key, head))

        self._submit(work)

    # -- beside the logs

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        def work(transaction: TableTransaction) -> None:
            head = transaction.head(key)
            for address in manifests:
                transaction.execute(f"UPDATE manifests SET waiting = 0 WHERE {LOG} AND address = ?", (*key, address))
            if drained.number >= head.number:
                position, number, epoch = drained
                head = head._replace(drained=position, number=number, epoch=epoch)
            transaction.put(key, transaction.recount(key, head))

        self._submit(work)

    def see(self, name: str, number: int) -> None:
        if self.seen(name) >= number:
            return
        statement = (
            "INSERT INTO seen VALUES (?,?) ON CONFLICT (name) DO UPDATE SET number = excluded.number "
            "WHERE excluded.number > seen.number"
        )
        self._submit(lambda transaction: transaction.execute(statement, (name, number)))

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        session, principal, who, when, why = forgotten
        values = (tenant, session, int(principal is None), principal or "", who, when, why)
        statement = (
            "INSERT INTO forgotten (tenant, session, whole, principal, who, at, why, mac) "
            "VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING RETURNING seq"
        )

        def work(transaction: TableTransaction) -> None:
            mac = "" if self._codes is None else self._codes.of_forgotten(tenant, forgotten)
            if transaction.execute(statement, (*values, mac)):
                key = SessionKey(tenant, session)
                head = transaction.head(key)
                transaction.put(key, head._replace(forgotten=head.forgotten + 1))

        self._submit(work)

    def recount(self, key: SessionKey, length: int, drained: DrainMark) -> None:
        """Rewrite a log's row from its records and the object store, as a new generation."""

        def work(transaction: TableTransaction) -> None:
            before = transaction.execute(f"SELECT generation FROM logs WHERE {LOG}", key)
            generation = abs(int(before[0][0])) if before else 0
            ((forgotten,),) = transaction.execute(f"SELECT count(*) FROM forgotten WHERE {LOG}", key)
            transaction.replace(key, LogRow(length, generation + 1, *drained, forgotten=forgotten))

        self._submit(work)

    # -- reading

    def length(self, key: SessionKey) -> int:
        return self._head(key).length

    def generation(self, key: SessionKey) -> int:
        return self._head(key).generation

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        query = f"SELECT {_COLUMNS} FROM records WHERE {LOG} AND position >= ? AND position < ? ORDER BY position"
        return [JournalRecord(*row) for row in self._all(query, (*key, start, _END if stop is None else stop))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        query = f"SELECT max(position) FROM records WHERE {LOG} AND kind = 'compaction' AND position < ?"
        return self._number(query, (*key, _END if before is None else before))

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        return self._record("ordinal = ? AND ordinal > 0", key, ordinal)

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        query = f"SELECT position FROM records WHERE {LOG} AND ordinal = ? AND ordinal > 0"
        rows = self._all(query, (*key, ordinal))
        return int(rows[0][0]) if rows else None

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None:
        return self._record("id = ? AND id IS NOT NULL", key, id)

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        return self._record("outputs >= ? AND outputs > 0 ORDER BY outputs, position LIMIT 1", key, number)

    def sessions(self, tenant: str) -> list[str]:
        query = "SELECT session FROM logs WHERE tenant = ? AND length > 0 ORDER BY session"
        return [str(session) for (session,) in self._all(query, (tenant,))]

    def extents(self, tenant: str) -> dict[str, LogExtent]:
        query = "SELECT session, length, generation FROM logs WHERE tenant = ? AND length > 0 ORDER BY session"
        return {str(session): LogExtent(*extent) for session, *extent in self._all(query, (tenant,))}

    def tenants(self) -> list[str]:
        query = "SELECT DISTINCT tenant FROM logs WHERE length > 0 ORDER BY tenant"
        return [str(tenant) for (tenant,) in self._all(query)]

    def get_manifest(self, tenant: str, address: str) -> str | None:
        rows = self._all("SELECT body FROM manifests WHERE tenant = ? AND address = ?", (tenant, address))
        return str(rows[0][0]) if rows else None

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        where = f"{LOG} AND waiting = 1" if waiting else LOG
        query = f"SELECT address, body FROM manifests WHERE {where} ORDER BY seq LIMIT ?"
        return [Manifest(*row) for row in self._all(query, (*key, _END if limit is None else limit))]

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        query = "SELECT session, position FROM records WHERE tenant = ? AND address = ?"
        rows = self._all(query, (tenant, address))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def matching(self, tenant: str, prefix: str) -> list[str]:
        stop = f"{prefix}g"  # addresses are lower-case hexadecimal
        query = (
            "SELECT address FROM manifests WHERE tenant = ? AND address >= ? AND address < ? UNION ALL "
            "SELECT address FROM records WHERE tenant = ? AND address >= ? AND address < ? LIMIT 3"
        )
        return [str(row[0]) for row in self._all(query, (tenant, prefix, stop, tenant, prefix, stop))]

    def drained(self, key: SessionKey) -> DrainMark:
        head = self._head(key)
        return DrainMark(head.drained, head.number, head.epoch)

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        query = (
            "SELECT tenant, session, drained, number, epoch, length, manifests FROM logs "
            "WHERE since > 0 ORDER BY since LIMIT ?"
        )
        return [
            WaitingLog(SessionKey(tenant, session), DrainMark(drained, number, epoch), length, manifests)
            for tenant, session, drained, number, epoch, length, manifests in self._all(query, (limit,))
        ]

    def seen(self, name: str) -> int:
        return self._number("SELECT number FROM seen WHERE name = ?", (name,))

    def witnessed(self) -> dict[str, int]:
        """Return all numbers that `see` has recorded, by name."""
        return {str(name): _noted(number) for name, number in self._all("SELECT name, number FROM seen")}

    def integrity(self) -> list[str]:
        """Return the faults of the file as a whole, one line each; see `check_file`."""
        return check_file(self._all)

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        where, values = ("tenant = ?", (tenant,)) if session is None else (LOG, (tenant, session))
        subjects = []
        for row in self._all(f"SELECT {_FORGOTTEN} FROM forgotten WHERE {where} ORDER BY seq", values):
            name, whole, principal, *note, mac = row
            subject = ForgottenSubject(name, None if whole else principal, *note)
            if self._codes is not None:
                self._codes.check_forgotten(tenant, subject, mac)
            subjects.append(subject)
        for (robbed,) in self._all(_ROBBED.format(where=where), values):
            raise forgotten_altered(str(robbed))
        return subjects

    def altered(self, tenant: str) -> list[AlteredRow]:
        """Return this tenant's altered or removed rows of logs and of forgotten subjects."""
        rows = [AlteredRow(str(session), "log") for (session,) in self._all(_UNOWNED, (tenant,))]
        if self._codes is not None:
            query = f"SELECT session, {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? ORDER BY session"
            for session, *head, mac in self._all(query, (tenant,)):
                try:
                    self._codes.check_log(SessionKey(tenant, str(session)), head, mac)
                except Damaged:
                    rows.append(AlteredRow(str(session), "log"))
        for (session,) in self._all(
            "SELECT DISTINCT session FROM forgotten WHERE tenant = ? UNION "
            "SELECT session FROM logs WHERE tenant = ? AND forgotten > 0",
            (tenant, tenant),
        ):
            try:
                self.forgotten(tenant, str(session))
            except Damaged:
                rows.append(AlteredRow(str(session), "forgotten"))
        return rows

    def _record(self, where: str, key: SessionKey, value: object) -> JournalRecord | None:
        rows = self._all(f"SELECT {_COLUMNS} FROM records WHERE {LOG} AND {where}", (*key, value))
        return JournalRecord(*rows[0]) if rows else None

    def _head(self, key: SessionKey) -> LogRow:
        return head_in(self._all(HEAD_QUERY, key), key, self._codes)

    def _number(self, query: str, values: Sequence[object]) -> int:
        rows = self._all(query, values)
        return _noted(rows[0][0] or 0) if rows else 0


def _noted(number: object) -> int:
    if not isinstance(number, int):
        raise Damaged(f"the journal notes {number!r:.40} where a number was written; restore it from a backup")
    return number


class SqliteJournal(TableJournal):
    """A `TableJournal` in SQLite, with `FileJournal` and `MemoryJournal` as subclasses."""

    _writer: TableWriter

    def __init__(self, root: Path, drains: bool, queue_bytes: int | None, busy_seconds: float) -> None:
        super().__init__(drains, queue_bytes)
        self._root, self._busy_seconds = root, busy_seconds

    def waiting_bytes(self) -> int:
        return self._writer.waiting_bytes if self._drains else 0

    def extents(self, tenant: str) -> dict[str, LogExtent]:
        query = (  # row ids of first records have the order in which the logs were begun
            "SELECT l.session, l.length, l.generation FROM logs l JOIN records r ON r.tenant = l.tenant "
            "AND r.session = l.session AND r.position = 0 WHERE l.tenant = ? ORDER BY r.rowid"
        )
        return {str(session): LogExtent(*extent) for session, *extent in self._all(query, (tenant,))}

    def _refusal(self, error: BaseException) -> StoreError:
        """Return the `StoreError` for a transaction's error."""
        if isinstance(error, StoreError):
            return error
        return store_error(error, self._root, self._busy_seconds, "nothing was written")


def record_row(key: SessionKey, position: int, record: JournalRecord) -> tuple[Any, ...]:
    """Return a row of table `records`. Raises `StoreError` for a compaction without an address."""
    kind, body, ordinal, outputs, id, wire, mac = record
    return (*key, position, kind, ordinal, outputs, id, compaction_address(record), body, wire, mac)


def _move(transaction: TableTransaction, key: SessionKey, moved: MovedTail) -> None:
    """Make a new log of a tail, with the manifests and forks that belong to it."""
    transaction.insert(record_row(moved.key, position, record) for position, record in enumerate(moved.records))
    statement = f"UPDATE manifests SET session = ?, body = ?, waiting = ? WHERE {LOG} AND address = ?"
    for address, body in moved.manifests.items():
        transaction.execute(statement, (moved.key.session, body, int(transaction.drains), *key, address))
    head = transaction.head(moved.key)._replace(length=len(moved.records))
    transaction.put(moved.key, transaction.recount(moved.key, head))
    query = f"SELECT session, {_COLUMNS} FROM records WHERE tenant = ? AND position = 0 AND kind = 'opened'"
    for session, *values in transaction.execute(query, (key.tenant,)):
        fork = SessionKey(key.tenant, str(session))
        first, head = moved.renamed(fork.session, JournalRecord(*values)), transaction.head(fork)
        if first is not None and not head.number:  # a drained fork shares what was drained before it, not the tail
            transaction.execute(f"DELETE FROM records WHERE {LOG} AND position = 0", fork)
            transaction.insert([record_row(fork, 0, first)])
            transaction.put(fork, transaction.recount(fork, head._replace(generation=head.generation + 1)))


def compaction_address(record: JournalRecord) -> str | None:
    """Return the address of a compaction record, or None for other records.

    >>> compaction_address(JournalRecord("compaction", '{"report": {"id": "ab12"}}'))
    'ab12'
    """
    if record.kind != "compaction":
        return None
    try:
        return str(json.loads(record.body)["report"]["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError("a compaction record holds no report with an id; nothing was written") from error


_RECORD_ROW = "(" + ",".join("?" * 11) + ")"
_LOG_ROW = "(" + ",".join("?" * 12) + ")"
_LOG_CHANGED = ",".join(f"{name} = excluded.{name}" for name in (*LogRow._fields, "mac"))


@lru_cache(maxsize=len(_CHUNKS))
def _insert_records(rows: int) -> str:
    return "INSERT INTO records VALUES " + ",".join([_RECORD_ROW] * rows)


@lru_cache(maxsize=len(_CHUNKS))
def _put_logs(rows: int) -> str:
    values = ",".join([_LOG_ROW] * rows)
    return f"INSERT INTO logs VALUES {values} ON CONFLICT (tenant, session) DO UPDATE SET {_LOG_CHANGED}"


def _write(db: sqlite3.Connection, statement: Callable[[int], str], rows: Sequence[tuple[Any, ...]]) -> None:
    done = 0
    for chunk in _CHUNKS:
        while len(rows) - done >= chunk:
            values = chain.from_iterable(rows[done : done + chunk])
            db.execute(statement(chunk), tuple(values))
            done += chunk
