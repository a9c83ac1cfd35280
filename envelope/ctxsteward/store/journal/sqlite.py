"""The durable journal: a SQLite file in a folder, `PATH/journal.sqlite`.

An append is acknowledged when its transaction is on disk; appends of several threads that wait at the same time share
one (`group_commit`). Several processes may share the folder: SQLite's lock orders them, `Conflict` tells the second
writer of a position. A large append is one transaction. Before a commit, and before it is acknowledged, the file is
looked at: one that is removed, replaced or emptied under a writer is an error of its next write (`SameFile`); one that
was lost is not taken for a new one (`database.belongs`).

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
"""How long a writer waits for another process before `StoreLocked`."""


class JournalWriter(TableWriter):
    """The one connection that writes. Called by the leader of a group alone."""

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
        """Opened again behind a fork. Raises `StoreError`, `sqlite3.Error`."""
        return self._file.db

    def run(self, group: Sequence[Ticket[Transaction]]) -> None:
        """Settle all tickets in one transaction; where that fails, each in its own, so that none fails another."""
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
        """What was committed into a file that is gone, or into an emptied log, is not acknowledged."""
        try:
            self._same.check_kept(self.db)
        except (StoreError, OSError):
            self._committing = None
            raise

    def _settle(self) -> None:
        """The transaction is on disk."""
        assert self._committing is not None
        transaction, group = self._committing
        self.settle(transaction)
        self.commits = Commits(self.commits.transactions + 1, self.commits.tickets + len(group))
        self._committing = None
        for ticket in group:
            ticket.settled = True

    def _clear_up(self) -> None:
        """Behind a failed or interrupted transaction: undo it, or settle it where it had been committed."""
        self.version = -1
        if self._file.in_transaction:
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            self._committing = None
        elif self._committing is not None:
            self._settle()


class FileJournal(SqliteJournal):
    """A `Journal` in a folder; safe with threads and with several processes.

    With `drains`, what is written waits to be drained into an object store, and messages are refused while
    `queue_bytes` wait; else nothing ever waits. With `address_key` (by tenant) the journal's own rows have codes, too.
    `inhabited` says, where there is no journal, whether what lies around it was written beside one.
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
            was_inhabited = not path.exists() and inhabited()  # asked before anybody can have made one
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
        """Transactions of this process so far, and the calls they served."""
        return self._writer.commits

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
                f"{self._root}: another reader has held the journal for {self._busy_seconds:g} s, so it was not "
                "scrubbed; try again"
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


def _adopt(transaction: TableTransaction) -> None:
    """Let logs wait that were written while nothing was drained."""
    for tenant, session in transaction.execute(
        "SELECT tenant, session FROM logs WHERE since = 0 AND length > drained", ()
    ):
        key = SessionKey(tenant, session)
        with suppress(Damaged):  # its readers say so
            transaction.put(key, transaction.recount(key, transaction.head(key)))


_COLUMNS = "tenant, session, " + ", ".join(LogRow._fields)
_HAS_CODES = """
SELECT 1 FROM meta WHERE name = 'row_codes' UNION ALL
SELECT 1 FROM logs WHERE mac <> '' UNION ALL SELECT 1 FROM forgotten WHERE mac <> '' LIMIT 1
"""
_SAMPLE = 20
"""Records of a tenant that are looked at to tell whether these are its keys."""


def give_codes(transaction: TableTransaction, codes: RowCodes) -> bool:
    """Give every row its code where none has one yet; whether rows have them now.

    A journal from before there were codes is taken at its word, this once; not where its records show that these are
    other keys than it was written with, nor where any row has a code: then rows without one, or with a wrong one, are
    not what was written, whatever `meta` says.
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
