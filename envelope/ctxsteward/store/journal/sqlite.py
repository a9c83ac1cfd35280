"""`file:PATH`: a durable journal in one SQLite file, `PATH/journal.sqlite`.

An append is acknowledged when its transaction is on disk; appends of several threads that wait at the same time share
one (`group_commit`). Several processes may share the folder: SQLite's lock orders them, `Conflict` tells the second
writer of a position. A large append is one transaction. Reads see every acknowledged append and wait for no writer.

`PATH/journal.id` says which journal belongs here (`belonging`), so that one that was lost is not taken for a new one; a
file that is removed, replaced or emptied under a writer is an error of its next write (`same_file`).

Raises `StoreError`, `Conflict`, `StoreLocked`, `Damaged`, `UnsupportedVersion`.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ctxsteward.schemas import Conflict, Damaged, StoreError, StoreLocked

from .. import create_once as exclusive
from ..crypto.addresses import AddressKey
from ..sqlite_file import SameFile, SqliteFile, close_to_others
from .database import FILE_NAME, Readers, belongs, check_file, connect, opening_error, prepare, store_error
from .group_commit import Commits, GroupCommit
from .port import (
    AlteredRow,
    DrainMark,
    ForgottenSubject,
    JournalRecord,
    Manifest,
    MovedTail,
    SessionKey,
    WaitingLog,
    check_queue,
    check_replaced,
    compaction_address,
    size_bytes,
    text_bytes,
)
from .transaction import (
    HEAD_QUERY,
    JournalWriter,
    LogRow,
    RowCodes,
    Transaction,
    forgotten_altered,
    give_codes,
    head_in,
)

BUSY_SECONDS = 30.0
"""How long a writer waits for another process before `StoreLocked`."""

_END = 1 << 62
_COLUMNS = "kind, body, ordinal, outputs, id, wire, mac"
_LOG = "tenant = ? AND session = ?"
_FORGOTTEN = "session, whole, principal, who, at, why, mac"
_ROBBED = """
SELECT session FROM logs WHERE {where} AND forgotten > 0 AND forgotten <>
  (SELECT count(*) FROM forgotten f WHERE f.tenant = logs.tenant AND f.session = logs.session) LIMIT 1
"""
"""A log of which other subjects were forgotten than are noted: in one step, so that none is noted in between."""
_UNOWNED = """
SELECT DISTINCT session FROM records WHERE tenant = ? AND NOT EXISTS
  (SELECT 1 FROM logs WHERE logs.tenant = records.tenant AND logs.session = records.session)
"""
"""Records whose log has no row."""


class FileJournal:
    """A `Journal` in a folder; safe with threads and with several processes.

    With `drains`, what is written waits to be drained into an object store, and messages are refused while
    `queue_bytes` wait; else nothing ever waits. With `address_key` (by tenant) the journal's own rows have codes, too.
    `inhabited` says, where there is no journal, whether what lies around it was written beside one.
    """

    def __init__(
        self,
        root: Path,
        drains: bool = False,
        *,
        queue_bytes: int | None = None,
        busy_seconds: float = BUSY_SECONDS,
        draw_id: Callable[[], str] = lambda: secrets.token_hex(16),
        address_key: Callable[[str], AddressKey] | None = None,
        inhabited: Callable[[], bool] = lambda: False,
    ) -> None:
        self._root, self._busy_seconds, self._drains = root, busy_seconds, drains
        self._queue_bytes = queue_bytes if drains else None
        path = root / FILE_NAME
        try:
            exclusive.make_folders(root)
            was_inhabited = not path.exists() and inhabited()  # asked before anybody can have made one
            file = SqliteFile(partial(connect, path, busy_seconds))
            try:
                with file.lock:
                    self._id, made = prepare(file.make(), path, draw_id, busy_seconds)
                    same = SameFile(path, file.db)
                self.missing = belongs(root, self._id, made=made, inhabited=was_inhabited)
            except BaseException:
                file.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise opening_error(error, root) from error
        close_to_others(path)
        self._writer = JournalWriter(file, same, drains=drains, error=self._refusal)
        self._group = GroupCommit(self._writer.run, file.lock)
        file.resumed = self._group.call_next
        self._readers = Readers(path, busy_seconds, same)
        self._codes: RowCodes | None = None
        try:
            self._begin(address_key)
        except BaseException:
            self.close()
            raise

    def _begin(self, address_key: Callable[[str], AddressKey] | None) -> None:
        if address_key is not None:
            codes = RowCodes(address_key)
            if self._group.submit(lambda transaction: give_codes(transaction, codes)):
                self._codes = self._writer.codes = codes
        if self._drains:
            self._group.submit(_adopt)

    @property
    def id(self) -> str:
        return self._id

    @property
    def commits(self) -> Commits:
        """Transactions of this process so far, and the calls they served."""
        return self._writer.commits

    # -- logs

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        rows = [_row(key, position + index, record) for index, record in enumerate(records)]
        sizes = [size_bytes(record) for record in records] if self._drains else ()
        stop = position + len(rows)
        bounded = self._queue_bytes is not None and any(record.kind == "message" for record in records)

        def work(transaction: Transaction) -> None:
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

        self._group.submit(work)

    def length(self, key: SessionKey) -> int:
        return self._head(key).length

    def generation(self, key: SessionKey) -> int:
        return self._head(key).generation

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        query = f"SELECT {_COLUMNS} FROM records WHERE {_LOG} AND position >= ? AND position < ? ORDER BY position"
        return [JournalRecord(*row) for row in self._readers.all(query, (*key, start, _END if stop is None else stop))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        query = f"SELECT max(position) FROM records WHERE {_LOG} AND kind = 'compaction' AND position < ?"
        return self._number(query, (*key, _END if before is None else before))

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        return self._record("ordinal = ? AND ordinal > 0", key, ordinal)

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        query = f"SELECT position FROM records WHERE {_LOG} AND ordinal = ? AND ordinal > 0"
        rows = self._readers.all(query, (*key, ordinal))
        return int(rows[0][0]) if rows else None

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None:
        return self._record("id = ? AND id IS NOT NULL", key, id)

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        return self._record("outputs >= ? AND outputs > 0 ORDER BY outputs, position LIMIT 1", key, number)

    def sessions(self, tenant: str) -> list[str]:
        query = "SELECT session FROM logs WHERE tenant = ? AND length > 0 ORDER BY session"
        return [str(session) for (session,) in self._readers.all(query, (tenant,))]

    def tenants(self) -> list[str]:
        query = "SELECT DISTINCT tenant FROM logs WHERE length > 0 ORDER BY tenant"
        return [str(tenant) for (tenant,) in self._readers.all(query)]

    # -- manifests, and finding by address

    def put_manifest(self, key: SessionKey, address: str, body: str) -> None:
        waits = int(self._drains)
        size = text_bytes(body) if waits else 0

        def work(transaction: Transaction) -> None:
            statement = (
                "INSERT OR IGNORE INTO manifests (tenant, session, address, body, waiting) VALUES (?,?,?,?,?) "
                "RETURNING seq"
            )
            if transaction.execute(statement, (*key, address, body, waits)) and waits:
                head = transaction.head(key)
                since = head.since or transaction.next_place()
                transaction.put(key, head._replace(manifests=head.manifests + 1, bytes=head.bytes + size, since=since))

        self._group.submit(work)

    def get_manifest(self, tenant: str, address: str) -> str | None:
        rows = self._readers.all("SELECT body FROM manifests WHERE tenant = ? AND address = ?", (tenant, address))
        return str(rows[0][0]) if rows else None

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        where = f"{_LOG} AND waiting = 1" if waiting else _LOG
        query = f"SELECT address, body FROM manifests WHERE {where} ORDER BY seq LIMIT ?"
        return [Manifest(*row) for row in self._readers.all(query, (*key, -1 if limit is None else limit))]

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        query = "SELECT session, position FROM records WHERE tenant = ? AND address = ?"
        rows = self._readers.all(query, (tenant, address))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def matching(self, tenant: str, prefix: str) -> list[str]:
        stop = f"{prefix}g"  # addresses are lower-case hexadecimal
        query = (
            "SELECT address FROM manifests WHERE tenant = ? AND address >= ? AND address < ? UNION ALL "
            "SELECT address FROM records WHERE tenant = ? AND address >= ? AND address < ? LIMIT 3"
        )
        return [str(row[0]) for row in self._readers.all(query, (tenant, prefix, stop, tenant, prefix, stop))]

    # -- replacing what was written

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        rows = [_row(key, position, record) for position, record in records.items()]

        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            check_replaced(key, head.length, records)
            for position in records:
                transaction.execute(f"DELETE FROM records WHERE {_LOG} AND position = ?", (*key, position))
            transaction.insert(rows)
            transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        if rows:
            self._group.submit(work)

    def truncate(self, key: SessionKey, length: int) -> None:
        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            if not 0 <= length < head.length:
                return
            transaction.execute(f"DELETE FROM records WHERE {_LOG} AND position >= ?", (*key, length))
            drained = min(head.drained, length)
            head = head._replace(length=length, generation=head.generation + 1, drained=drained)
            transaction.put(key, transaction.recount(key, head))

        self._group.submit(work)

    def drop_manifests(self, key: SessionKey) -> None:
        def work(transaction: Transaction) -> None:
            if transaction.execute(f"DELETE FROM manifests WHERE {_LOG} RETURNING seq", key):
                head = transaction.head(key)
                transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        self._group.submit(work)

    def adopt(
        self,
        key: SessionKey,
        position: int,
        records: Sequence[JournalRecord],
        *,
        length: int,
        drained: DrainMark,
        manifests: Sequence[Manifest] = (),
        moved: MovedTail | None = None,
    ) -> None:
        rows = [_row(key, position + index, record) for index, record in enumerate(records)]

        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            taken = moved is not None and transaction.head(moved.key).length
            if head.length != length or drained.number < head.number or taken:
                raise Conflict(key.session, length)
            if position < length:
                transaction.execute(f"DELETE FROM records WHERE {_LOG} AND position >= ?", (*key, position))
            transaction.insert(rows)
            for manifest in manifests:
                statement = (
                    "INSERT OR IGNORE INTO manifests (tenant, session, address, body, waiting) VALUES (?,?,?,?,0)"
                )
                transaction.execute(statement, (*key, *manifest))
            if moved is not None:
                _move(transaction, key, moved)
            generation = head.generation + (position < length)
            head = transaction.head(key)._replace(
                length=position + len(rows), generation=generation, drained=drained.position, number=drained.number,
                epoch=drained.epoch, manifests=0, since=0,
            )  # fmt: skip
            transaction.put(key, transaction.recount(key, head))

        self._group.submit(work)

    def scrub(self) -> None:
        """As the port says: `secure_delete` alone misses copies that moving pages left behind.

        Rewrites the file: takes as long as copying it twice, and writers wait meanwhile. The first copy is made in
        SQLite's temporary folder (``SQLITE_TMPDIR``, else ``/var/tmp``).
        """
        self._group.alone(self._scrub)

    def _scrub(self) -> None:
        if not self._writer.closed:
            self._writer.same.check_main()
        try:
            db = self._writer.db
            db.execute("VACUUM")
            ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            effect = "the journal was not scrubbed (a copy goes through SQLITE_TMPDIR, else /var/tmp)"
            raise store_error(error, self._root, self._busy_seconds, effect) from error
        if busy:
            raise StoreLocked(
                f"{self._root}: somebody has read the journal for {self._busy_seconds:g} s, so it was not scrubbed; "
                "try again"
            )

    # -- beside the logs

    def drained(self, key: SessionKey) -> DrainMark:
        head = self._head(key)
        return DrainMark(head.drained, head.number, head.epoch)

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            for address in manifests:
                transaction.execute(f"UPDATE manifests SET waiting = 0 WHERE {_LOG} AND address = ?", (*key, address))
            if drained.number >= head.number:
                position, number, epoch = drained
                head = head._replace(drained=position, number=number, epoch=epoch)
            transaction.put(key, transaction.recount(key, head))

        self._group.submit(work)

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        query = (
            "SELECT tenant, session, drained, number, epoch, length, manifests FROM logs "
            "WHERE since > 0 ORDER BY since LIMIT ?"
        )
        return [
            WaitingLog(SessionKey(tenant, session), DrainMark(drained, number, epoch), length, manifests)
            for tenant, session, drained, number, epoch, length, manifests in self._readers.all(query, (limit,))
        ]

    def waiting_bytes(self) -> int:
        return self._writer.waiting_bytes if self._drains else 0

    def seen(self, name: str) -> int:
        return self._number("SELECT number FROM seen WHERE name = ?", (name,))

    def see(self, name: str, number: int) -> None:
        if self.seen(name) >= number:
            return
        statement = (
            "INSERT INTO seen VALUES (?,?) ON CONFLICT (name) DO UPDATE SET number = max(number, excluded.number)"
        )
        self._group.submit(lambda transaction: transaction.execute(statement, (name, number)))

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        session, principal, who, when, why = forgotten
        values = (tenant, session, principal is None, principal or "", who, when, why)
        statement = (
            "INSERT OR IGNORE INTO forgotten (tenant, session, whole, principal, who, at, why, mac) "
            "VALUES (?,?,?,?,?,?,?,?) RETURNING seq"
        )

        def work(transaction: Transaction) -> None:
            mac = "" if self._codes is None else self._codes.of_forgotten(tenant, forgotten)
            if transaction.execute(statement, (*values, mac)):
                key = SessionKey(tenant, session)
                head = transaction.head(key)
                transaction.put(key, head._replace(forgotten=head.forgotten + 1))

        self._group.submit(work)

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        where, values = ("tenant = ?", (tenant,)) if session is None else (_LOG, (tenant, session))
        found = []
        for row in self._readers.all(f"SELECT {_FORGOTTEN} FROM forgotten WHERE {where} ORDER BY seq", values):
            subject = _subject(row)
            if self._codes is not None:
                self._codes.check_forgotten(tenant, subject, row[6])
            found.append(subject)
        for (robbed,) in self._readers.all(_ROBBED.format(where=where), values):
            raise forgotten_altered(str(robbed))
        return found

    def altered(self, tenant: str) -> list[AlteredRow]:
        """Rows of this tenant that are not what was written, or are gone: of logs, and of who was forgotten."""
        found = [AlteredRow(str(session), "log") for (session,) in self._readers.all(_UNOWNED, (tenant,))]
        if self._codes is not None:
            query = f"SELECT session, {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? ORDER BY session"
            for session, *head, mac in self._readers.all(query, (tenant,)):
                try:
                    self._codes.check_log(SessionKey(tenant, str(session)), head, mac)
                except Damaged:
                    found.append(AlteredRow(str(session), "log"))
        for (session,) in self._readers.all("SELECT DISTINCT session FROM forgotten WHERE tenant = ? UNION "
                                            "SELECT session FROM logs WHERE tenant = ? AND forgotten > 0",
                                            (tenant, tenant)):  # fmt: skip
            try:
                self.forgotten(tenant, str(session))
            except Damaged:
                found.append(AlteredRow(str(session), "forgotten"))
        return found

    def recount(self, key: SessionKey, length: int, drained: DrainMark) -> None:
        """Write a log's row anew from what its records and the object store say; it is a new generation."""

        def work(transaction: Transaction) -> None:
            before = transaction.execute(f"SELECT generation FROM logs WHERE {_LOG}", key)
            generation = abs(int(before[0][0])) if before else 0
            ((forgotten,),) = transaction.execute(f"SELECT count(*) FROM forgotten WHERE {_LOG}", key)
            transaction.replace(key, LogRow(length, generation + 1, *drained, forgotten=forgotten))

        self._group.submit(work)

    def witnessed(self) -> dict[str, int]:
        """All that `see` has noted."""
        return {str(name): _noted(number) for name, number in self._readers.all("SELECT name, number FROM seen")}

    def integrity(self) -> list[str]:
        """What is wrong with the file as a whole, a line each; see `integrity`."""
        return check_file(self._readers)

    def close(self) -> None:
        """Wait for the transaction under way; what is asked for later is refused."""
        self._readers.close()
        self._group.alone(self._writer.close)

    # -- reading rows

    def _record(self, where: str, key: SessionKey, value: object) -> JournalRecord | None:
        rows = self._readers.all(f"SELECT {_COLUMNS} FROM records WHERE {_LOG} AND {where}", (*key, value))
        return JournalRecord(*rows[0]) if rows else None

    def _head(self, key: SessionKey) -> LogRow:
        return head_in(self._readers.all(HEAD_QUERY, key), key, self._codes)

    def _number(self, query: str, values: Sequence[object]) -> int:
        rows = self._readers.all(query, values)
        return _noted(rows[0][0] or 0) if rows else 0

    def _refusal(self, error: BaseException) -> StoreError:
        if isinstance(error, StoreError):
            return error
        try:
            self._writer.same.check_main()  # what SQLite finds malformed may be what somebody took away
            self._writer.same.check_kept(self._writer.db)
        except StoreError as gone:
            return gone
        except (OSError, sqlite3.Error):  # behind a fork, a file may not be opened again
            pass
        return store_error(error, self._root, self._busy_seconds, "nothing was written")


def _noted(number: object) -> int:
    if not isinstance(number, int):
        raise Damaged(f"the journal notes {number!r:.40} where a number was written; restore it from a backup")
    return number


def _subject(row: Sequence[Any]) -> ForgottenSubject:
    session, whole, principal, *told = row[:6]
    return ForgottenSubject(session, None if whole else principal, *told)


def _row(key: SessionKey, position: int, record: JournalRecord) -> tuple[Any, ...]:
    kind, body, ordinal, outputs, id, wire, mac = record
    return (*key, position, kind, ordinal, outputs, id, compaction_address(record), body, wire, mac)


def _move(transaction: Transaction, key: SessionKey, moved: MovedTail) -> None:
    """Make a log of a tail, with the manifests and the forks that belong to it."""
    transaction.insert(_row(moved.key, position, record) for position, record in enumerate(moved.records))
    statement = f"UPDATE manifests SET session = ?, body = ?, waiting = ? WHERE {_LOG} AND address = ?"
    for address, body in moved.manifests.items():
        transaction.execute(statement, (moved.key.session, body, int(transaction.drains), *key, address))
    head = transaction.head(moved.key)._replace(length=len(moved.records))
    transaction.put(moved.key, transaction.recount(moved.key, head))
    for fork, first in moved.forks.items():
        transaction.execute(f"DELETE FROM records WHERE {_LOG} AND position = 0", fork)
        transaction.insert([_row(fork, 0, first)])
        head = transaction.head(fork)
        transaction.put(fork, transaction.recount(fork, head._replace(generation=head.generation + 1)))


def _adopt(transaction: Transaction) -> None:
    """Let logs wait that were written while nothing was drained."""
    for tenant, session in transaction.execute(
        "SELECT tenant, session FROM logs WHERE since = 0 AND length > drained", ()
    ):
        key = SessionKey(tenant, session)
        with suppress(Damaged):  # its readers say so
            transaction.put(key, transaction.recount(key, transaction.head(key)))
