"""A journal in SQLite: how records are written, and the durable one in a folder, `PATH/journal.sqlite`.

An append is acknowledged when its transaction is on disk; appends of several threads that wait at the same time share
one (`group_commit`). Several processes may share the folder: SQLite's lock orders them, `Conflict` tells the second
writer of a position. A large append is one transaction. A file that is removed, replaced or emptied under a writer is
an error of its next write (`SameFile`); one that was lost is not taken for a new one (`database.belongs`).

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
from .database import FILE_NAME, Readers, RowReader, belongs, connect, opening_error, prepare, store_error
from .group_commit import Commits, GroupCommit
from .port import (
    DrainMark,
    ForgottenSubject,
    JournalRecord,
    Manifest,
    MovedTail,
    SessionKey,
    check_queue,
    check_replaced,
    compaction_address,
    size_bytes,
    text_bytes,
)
from .queries import LOG, JournalQueries
from .transaction import JournalWriter, LogRow, RowCodes, Transaction, give_codes

BUSY_SECONDS = 30.0
"""How long a writer waits for another process before `StoreLocked`."""


class SqliteJournal(JournalQueries):
    """The writing half; where the tables lie is told by `FileJournal` and `memory.MemoryJournal`."""

    def __init__(self, root: Path, drains: bool, queue_bytes: int | None, busy_seconds: float) -> None:
        self._root, self._busy_seconds, self._drains = root, busy_seconds, drains
        self._queue_bytes = queue_bytes if drains else None

    def _open(self, id: str, file: SqliteFile, same: SameFile | None, readers: RowReader) -> None:
        """Read and write these tables; `same` is asked whether the file is still in its place."""
        self._id = id
        self._writer = JournalWriter(file, same, drains=self._drains, error=self._refusal)
        self._group = GroupCommit(self._writer.run, file.lock)
        file.resumed = self._group.call_next
        self._readers = readers

    def _submit(self, work: Callable[[Transaction], Any]) -> Any:
        """Run `work` in a transaction; its result, once that is durable."""
        return self._group.submit(work)

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

        self._submit(work)

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

        self._submit(work)

    # -- replacing what was written

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        rows = [_row(key, position, record) for position, record in records.items()]

        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            check_replaced(key, head.length, records)
            for position in records:
                transaction.execute(f"DELETE FROM records WHERE {LOG} AND position = ?", (*key, position))
            transaction.insert(rows)
            transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        if rows:
            self._submit(work)

    def truncate(self, key: SessionKey, length: int) -> None:
        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            if not 0 <= length < head.length:
                return
            transaction.execute(f"DELETE FROM records WHERE {LOG} AND position >= ?", (*key, length))
            drained = min(head.drained, length)
            head = head._replace(length=length, generation=head.generation + 1, drained=drained)
            transaction.put(key, transaction.recount(key, head))

        self._submit(work)

    def drop_manifests(self, key: SessionKey) -> None:
        def work(transaction: Transaction) -> None:
            if transaction.execute(f"DELETE FROM manifests WHERE {LOG} RETURNING seq", key):
                head = transaction.head(key)
                transaction.put(key, transaction.recount(key, head._replace(generation=head.generation + 1)))

        self._submit(work)

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
                transaction.execute(f"DELETE FROM records WHERE {LOG} AND position >= ?", (*key, position))
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

        self._submit(work)

    # -- beside the logs

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        def work(transaction: Transaction) -> None:
            head = transaction.head(key)
            for address in manifests:
                transaction.execute(f"UPDATE manifests SET waiting = 0 WHERE {LOG} AND address = ?", (*key, address))
            if drained.number >= head.number:
                position, number, epoch = drained
                head = head._replace(drained=position, number=number, epoch=epoch)
            transaction.put(key, transaction.recount(key, head))

        self._submit(work)

    def waiting_bytes(self) -> int:
        return self._writer.waiting_bytes if self._drains else 0

    def see(self, name: str, number: int) -> None:
        if self.seen(name) >= number:
            return
        statement = (
            "INSERT INTO seen VALUES (?,?) ON CONFLICT (name) DO UPDATE SET number = max(number, excluded.number)"
        )
        self._submit(lambda transaction: transaction.execute(statement, (name, number)))

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

        self._submit(work)

    def recount(self, key: SessionKey, length: int, drained: DrainMark) -> None:
        """Write a log's row anew from what its records and the object store say; it is a new generation."""

        def work(transaction: Transaction) -> None:
            before = transaction.execute(f"SELECT generation FROM logs WHERE {LOG}", key)
            generation = abs(int(before[0][0])) if before else 0
            ((forgotten,),) = transaction.execute(f"SELECT count(*) FROM forgotten WHERE {LOG}", key)
            transaction.replace(key, LogRow(length, generation + 1, *drained, forgotten=forgotten))

        self._submit(work)

    def _refusal(self, error: BaseException) -> StoreError:
        """What a transaction has failed with, as one of ours."""
        if isinstance(error, StoreError):
            return error
        return store_error(error, self._root, self._busy_seconds, "nothing was written")


class FileJournal(SqliteJournal):
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
        super().__init__(root, drains, queue_bytes, busy_seconds)
        path = root / FILE_NAME
        try:
            exclusive.make_folders(root)
            was_inhabited = not path.exists() and inhabited()  # asked before anybody can have made one
            file = SqliteFile(partial(connect, path, busy_seconds))
            try:
                with file.lock:
                    id, made = prepare(file.make(), path, draw_id, busy_seconds)
                    same = SameFile(path, file.db)
                self.missing = belongs(root, id, made=made, inhabited=was_inhabited)
            except BaseException:
                file.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise opening_error(error, root) from error
        close_to_others(path)
        self._same = same
        self._open(id, file, same, Readers(path, busy_seconds, same))
        try:
            self._begin(address_key)
        except BaseException:
            self.close()
            raise

    def _begin(self, address_key: Callable[[str], AddressKey] | None) -> None:
        if address_key is not None:
            codes = RowCodes(address_key)
            if self._submit(lambda transaction: give_codes(transaction, codes)):
                self._codes = self._writer.codes = codes
        if self._drains:
            self._submit(_adopt)

    def scrub(self) -> None:
        """As the port says: `secure_delete` alone misses copies that moving pages left behind.

        Rewrites the file: takes as long as copying it twice, and writers wait meanwhile. The first copy is made in
        SQLite's temporary folder (``SQLITE_TMPDIR``, else ``/var/tmp``).
        """
        self._group.alone(self._scrub)

    def _scrub(self) -> None:
        if not self._writer.closed:
            self._same.check_main()
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

    def close(self) -> None:
        """Wait for the transaction under way; what is asked for later is refused."""
        self._readers.close()
        self._group.alone(self._writer.close)

    def _refusal(self, error: BaseException) -> StoreError:
        if isinstance(error, StoreError):
            return error
        try:
            self._same.check_main()  # what SQLite finds malformed may be what somebody took away
            self._same.check_kept(self._writer.db)
        except StoreError as gone:
            return gone
        except (OSError, sqlite3.Error):  # behind a fork, a file may not be opened again
            pass
        return super()._refusal(error)


def _row(key: SessionKey, position: int, record: JournalRecord) -> tuple[Any, ...]:
    kind, body, ordinal, outputs, id, wire, mac = record
    return (*key, position, kind, ordinal, outputs, id, compaction_address(record), body, wire, mac)


def _move(transaction: Transaction, key: SessionKey, moved: MovedTail) -> None:
    """Make a log of a tail, with the manifests and the forks that belong to it."""
    transaction.insert(_row(moved.key, position, record) for position, record in enumerate(moved.records))
    statement = f"UPDATE manifests SET session = ?, body = ?, waiting = ? WHERE {LOG} AND address = ?"
    for address, body in moved.manifests.items():
        transaction.execute(statement, (moved.key.session, body, int(transaction.drains), *key, address))
    head = transaction.head(moved.key)._replace(length=len(moved.records))
    transaction.put(moved.key, transaction.recount(moved.key, head))
    for fork, first in moved.forks.items():
        transaction.execute(f"DELETE FROM records WHERE {LOG} AND position = 0", fork)
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
