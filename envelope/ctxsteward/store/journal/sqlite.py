"""The durable journal: a SQLite file in a folder, `PATH/journal.sqlite`.

An append is acknowledged when its transaction is on disk. Appends of several threads that wait at the same time share
one transaction (`group_commit`). Several processes may share the folder: SQLite's lock orders them, and the second
writer of a position gets `Conflict`. A large append is one transaction. The file is checked before a commit and before
its acknowledgement: if it was removed, replaced or emptied, the write fails (`SameFile`). A new empty file in place of
a lost one is detected, too (`database.belongs`).

Raises `StoreError`, `Conflict`, `StoreLocked`, `Damaged`, `UnsupportedVersion`.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ctxsteward.schemas import StoreError, StoreLocked
from ctxsteward.schemas.errors import Damaged

from .. import create_once
from ..crypto.keyring import AddressKey
from ..sqlite_file import SameFile, SqliteFile, close_to_others
from .database import FILE_NAME, Readers, belongs, connect, opening_error, prepare, store_error
from .group_commit import Commits, GroupCommit, Ticket
from .port import ForgottenSubject, SessionKey
from .row_codes import LogRow, RowCodes
from .tables import SqliteJournal, TableTransaction, TableWriter, Transaction

BUSY_SECONDS = 30.0
"""Longest wait of a writer for another process before `StoreLocked`."""


class JournalWriter(TableWriter):
    """The only writing connection. Only the leader of a group calls it."""

    def __init__(
        self, file: SqliteFile, same: SameFile, *, drains: bool, error: Callable[[BaseException], StoreError]
    ) -> None:
        super().__init__(drains=drains, error=error)
        self._file, self._same = file, same
        file.before_closing = self._clear_up
        self.commits: Commits = Commits(0, 0)
        self.closed: bool = False
        self._committing: tuple[Transaction, Sequence[Ticket[Transaction]]] | None = None

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, opened again after a fork. Raises `StoreError`, `sqlite3.Error`."""
        return self._file.db

    def run(self, group: Sequence[Ticket[Transaction]]) -> None:
        """Settle all tickets in one transaction; if it fails, run each in its own, so that none makes another fail."""
        if self.closed:
            self._refuse(group, StoreError("the journal is closed"))
            return
        if self._committing is not None or self._file.in_transaction:
            self._clear_up()
            group = [ticket for ticket in group if not ticket.settled]
        try:
            self._attempt(group)
        except Exception as error:
            if isinstance(error, sqlite3.Error):
                self._committing = None
            self._clear_up()
            self._refuse([ticket for ticket in group if not ticket.settled], error)
        except BaseException:
            self._clear_up()
            raise

    def _refuse(self, group: Sequence[Ticket[Transaction]], error: Exception) -> None:
        if len(group) > 1 and not self.closed and not isinstance(self.error(error), StoreLocked):
            for ticket in group:
                self.run((ticket,))
            return
        for ticket in group:
            ticket.error = self.error(error)
            if ticket.error is not error:
                ticket.error.__cause__ = error
            ticket.settled = True

    def close(self) -> None:
        self.closed = True
        self._file.close()

    def _attempt(self, group: Sequence[Ticket[Transaction]]) -> None:
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        self.look_for_others(db)
        transaction = Transaction(self, db)
        for ticket in group:
            ticket.error = None
            try:
                ticket.result = ticket.work(transaction)
            except StoreError as error:
                ticket.error = error
        transaction.flush()
        self._same.check(db)
        self._committing = (transaction, group)
        db.execute("COMMIT")
        self._check_kept()
        self._settle()

    def _check_kept(self) -> None:
        """Raise, and do not acknowledge the commit, if it went into a removed file or an emptied log."""
        try:
            self._same.check_kept(self.db)
        except (StoreError, OSError):
            self._committing = None
            raise

    def _settle(self) -> None:
        """Settle the tickets of a transaction that is on disk."""
        assert self._committing is not None
        transaction, group = self._committing
        self.settle(transaction)
        self.commits = Commits(self.commits.transactions + 1, self.commits.tickets + len(group))
        self._committing = None
        for ticket in group:
            ticket.settled = True

    def _clear_up(self) -> None:
        """Undo a failed or interrupted transaction, or settle it if it was committed."""
        self.version = -1
        if self._file.in_transaction:
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            self._committing = None
        elif self._committing is not None:
            self._settle()


class FileJournal(SqliteJournal):
    """A `Journal` in a folder; safe with threads and with several processes.

    With `drains`, written records wait to be drained into an object store, and messages are refused while `queue_bytes`
    wait; else nothing waits. With `address_key` (by tenant) the journal's own rows have codes, too. If there is no
    journal yet, `inhabited` says whether there are objects or keys of a lost one.
    """

    _writer: JournalWriter

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
            create_once.make_folders(root)
            was_inhabited = not path.exists() and inhabited()  # before any process can have made a journal
            file = SqliteFile(partial(connect, path, busy_seconds))
            try:
                with file.lock:
                    id, made = prepare(file.make(), path, draw_id, busy_seconds)
                    same = SameFile(path, file.db)
                self.missing: str | None = belongs(root, id, made=made, inhabited=was_inhabited)
            except BaseException:
                file.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise opening_error(error, root) from error
        close_to_others(path)
        self._id, self._same, self._readers = id, same, Readers(path, busy_seconds, same)
        self._all = self._readers.all
        self._writer = JournalWriter(file, same, drains=drains, error=self._refusal)
        self._group = GroupCommit(self._writer.run, file.lock)
        self._submit, file.resumed = self._group.submit, self._group.call_next
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

    @property
    def commits(self) -> Commits:
        """Number of this process's transactions, and of the calls in them."""
        return self._writer.commits

    def scrub(self) -> None:
        """Rewrite the file, because `secure_delete` alone leaves copies in pages that SQLite has moved.

        This takes as long as copying the file twice; writers wait meanwhile. The first copy is made in SQLite's
        temporary folder (``SQLITE_TMPDIR``, else ``/var/tmp``).
        """
        self._group.alone(self._scrub)

    def _scrub(self) -> None:
        if not self._writer.closed:
            self._same.check_main()
        try:
            db = self._writer.db
            db.execute("VACUUM")
            ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            db.execute(_SCRUBBED)  # SQLite does not sync the truncation: a power cut would bring the old log back
        except sqlite3.Error as error:
            effect = "the journal was not scrubbed (a copy goes through SQLITE_TMPDIR, else /var/tmp)"
            raise store_error(error, self._root, self._busy_seconds, effect) from error
        if busy:
            raise StoreLocked(
                f"{self._root}: another reader has held the journal for {self._busy_seconds:g} s, so it was not "
                "scrubbed; try again"
            )

    def close(self) -> None:
        """Wait for the running transaction, then close; later calls are refused."""
        self._readers.close()
        self._group.alone(self._writer.close)

    def _refusal(self, error: BaseException) -> StoreError:
        if isinstance(error, StoreError):
            return error
        try:
            self._same.check_main()  # SQLite's error may be due to a file that was removed or replaced
            self._same.check_kept(self._writer.db)
        except StoreError as gone:
            return gone
        except (OSError, sqlite3.Error):  # after a fork the file may fail to open again
            pass
        return super()._refusal(error)


_SCRUBBED = "INSERT INTO seen VALUES ('scrubs', 1) ON CONFLICT (name) DO UPDATE SET number = number + 1"


def _adopt(transaction: TableTransaction) -> None:
    """Queue the logs that were written while the journal was not drained."""
    for tenant, session in transaction.execute(
        "SELECT tenant, session FROM logs WHERE since = 0 AND length > drained", ()
    ):
        key = SessionKey(tenant, session)
        with suppress(Damaged):  # a reader of the log will report it
            transaction.put(key, transaction.recount(key, transaction.head(key)))


_COLUMNS = "tenant, session, " + ", ".join(LogRow._fields)
_HAS_CODES = """
SELECT 1 FROM meta WHERE name = 'row_codes' UNION ALL
SELECT 1 FROM logs WHERE mac <> '' UNION ALL SELECT 1 FROM forgotten WHERE mac <> '' LIMIT 1
"""
_SAMPLE = 20
"""Most records of a tenant that are checked with the keys."""


def give_codes(transaction: TableTransaction, codes: RowCodes) -> bool:
    """Add a code to every row if no row has one yet; return whether rows have codes now.

    The rows of a journal from before there were codes are trusted once. If its records were written with other keys,
    no code is added. If any row has a code already, no code is added either: rows without a valid code are then
    altered, even if `meta` says nothing of codes.
    """
    if transaction.execute(_HAS_CODES, ()):
        return True
    tenants = [str(tenant) for (tenant,) in transaction.execute("SELECT DISTINCT tenant FROM logs", ())]
    sample = (
        "SELECT session, position, kind, body, ordinal, outputs, id, wire, mac FROM records WHERE tenant = ? LIMIT ?"
    )
    if not all(codes.key_fits(tenant, transaction.execute(sample, (tenant, _SAMPLE))) for tenant in tenants):
        return False
    for tenant, session, *head in transaction.execute(f"SELECT {_COLUMNS} FROM logs", ()):
        values = (codes.of_log(SessionKey(tenant, session), head), tenant, session)
        transaction.execute("UPDATE logs SET mac = ? WHERE tenant = ? AND session = ?", values)
    columns = "seq, tenant, session, whole, principal, who, at, why"
    for seq, tenant, session, whole, principal, *note in transaction.execute(f"SELECT {columns} FROM forgotten", ()):
        subject = ForgottenSubject(session, None if whole else principal, *note)
        mac = codes.of_forgotten(tenant, subject)
        transaction.execute("UPDATE forgotten SET mac = ? WHERE seq = ?", (mac, seq))
    transaction.execute("INSERT INTO meta VALUES ('row_codes', 1)", ())
    return True
