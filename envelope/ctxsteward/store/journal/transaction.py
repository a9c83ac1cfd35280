"""One transaction of the journal: what a group of tickets reads and writes, how it is committed, and the codes of rows.

The row of a log (`LogRow`) decides a ticket; it is kept in memory from one transaction to the next as long as no other
connection has committed (`PRAGMA data_version`). New records and changed heads are collected and written in a few
statements when the group is complete. Before the commit, and before it is acknowledged, the file is looked at: it must
still be the one at its path (`SameFile`). Sizes are bytes of UTF-8.

Rows that no session writes itself, of `logs` and `forgotten`, have codes, checked when they are read: HMAC-SHA-256
under the tenant's address key of the table, the session and all that the row says, so that no row can be changed,
swapped with another session's or made up without the key. How many subjects of a session were forgotten is part of its
log's row, so that none of those rows can be taken out, either. An older row of the same place is not told from the one
that stood there last. Raises `Damaged`. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

from ctxsteward.schemas import Damaged, StoreError, StoreLocked

from ..crypto.addresses import AddressKey, code
from ..sqlite_file import SameFile, SqliteFile
from .group_commit import Commits, Ticket
from .log import check, owned, prefixed
from .port import ForgottenSubject, JournalRecord, SessionKey

HEADS_KEPT = 10_000
"""Logs whose heads are kept in memory."""

_CHUNKS = (32, 8, 1)
"""Rows a statement: few statements, and few different ones to prepare."""


class LogRow(NamedTuple):
    """A log's row."""

    length: int = 0
    generation: int = 0
    drained: int = 0
    """Position."""
    number: int = 0
    epoch: int = 0
    manifests: int = 0
    """Those that wait."""
    bytes: int = 0
    """Of all that waits."""
    since: int = 0
    """Place in the order of waiting; 0: nothing waits."""
    forgotten: int = 0
    """Subjects of it that were forgotten."""


NEW = LogRow()
HEAD_QUERY = f"SELECT {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? AND session = ?"


class Codes(Protocol):
    """What makes and checks the codes of logs; see `row_codes`."""

    def of_log(self, key: SessionKey, head: Sequence[int]) -> str: ...

    def check_log(self, key: SessionKey, head: Sequence[int], mac: object) -> None: ...


class Transaction:
    """What a ticket's work is handed. It raises `StoreError` before it has changed anything, or not at all."""

    def __init__(self, writer: JournalWriter) -> None:
        self._writer = writer
        self._rows: list[tuple[Any, ...]] = []
        self.drains = writer.drains
        self.heads: dict[SessionKey, LogRow] = {}
        self.bytes_added = 0

    def head(self, key: SessionKey) -> LogRow:
        found = self.heads.get(key) or self._writer.heads.get(key)
        if found is None:
            found = self._writer.heads[key] = head_in(
                self._writer.db.execute(HEAD_QUERY, key).fetchall(), key, self._writer.codes
            )
        return found

    def put(self, key: SessionKey, head: LogRow) -> None:
        self.bytes_added += head.bytes - self.head(key).bytes
        self.heads[key] = head

    def replace(self, key: SessionKey, head: LogRow) -> None:
        """Put a counted head in the place of one that cannot be believed."""
        self.heads.pop(key, None)
        self._writer.heads[key] = NEW
        self.put(key, self.recount(key, head))

    @property
    def waiting_bytes(self) -> int:
        """Of all logs, with what this transaction adds."""
        return self._writer.waiting_bytes + self.bytes_added

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows.extend(rows)

    def execute(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement behind the records that were inserted before it."""
        self._write_rows()
        return self._writer.db.execute(statement, values).fetchall()

    def next_place(self) -> int:
        """At the end of the order of waiting."""
        self._writer.place += 1
        return self._writer.place

    def recount(self, key: SessionKey, head: LogRow) -> LogRow:
        """The head with what waits counted anew, and the log at the end of the order."""
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
        """Write what was collected."""
        self._write_rows()
        codes = self._writer.codes
        rows = [key + head + ("" if codes is None else codes.of_log(key, head),) for key, head in self.heads.items()]
        _write(self._writer.db, _put_logs, rows)
        if self.bytes_added:
            self._writer.db.execute(
                "UPDATE meta SET value = value + ? WHERE name = 'waiting_bytes'", (self.bytes_added,)
            )

    def _write_rows(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            _write(self._writer.db, _insert_records, rows)


class JournalWriter:
    """The one connection that writes. Called by the leader of a group alone."""

    def __init__(
        self, file: SqliteFile, same: SameFile | None, *, drains: bool, error: Callable[[BaseException], StoreError]
    ) -> None:
        self._file, self._same, self.drains, self._error = file, same, drains, error
        file.before_closing = self._clear_up
        self.codes: Codes | None = None
        """None: the rows of logs have no codes."""
        self.heads: dict[SessionKey, LogRow] = {}
        self.place = 0
        self.waiting_bytes = 0
        self.commits = Commits(0, 0)
        self._version = -1
        self.closed = False
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
        if len(group) > 1 and not self.closed and not isinstance(self._error(error), StoreLocked):
            for ticket in group:
                self.run((ticket,))
            return
        for ticket in group:
            ticket.error = self._error(error)
            if ticket.error is not error:
                ticket.error.__cause__ = error
            ticket.settled = True

    def close(self) -> None:
        self.closed = True
        self._file.close()

    def _attempt(self, group: Sequence[Ticket[Transaction]]) -> None:
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        self._look_for_others()
        transaction = Transaction(self)
        for ticket in group:
            ticket.error = None
            try:
                ticket.result = ticket.work(transaction)
            except StoreError as error:
                ticket.error = error
        transaction.flush()
        if self._same is not None:
            self._same.check(db)
        self._committing = (transaction, group)
        db.execute("COMMIT")
        self._check_kept()
        self._settle()

    def _check_kept(self) -> None:
        """What was committed into a file that is gone, or into an emptied log, is not acknowledged."""
        try:
            if self._same is not None:
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

    def settle(self, transaction: Transaction) -> None:
        """Remember what a transaction has left."""
        self.heads.update(transaction.heads)
        self.waiting_bytes += transaction.bytes_added

    def reread(self) -> None:
        """Undo what is under way, and forget what is remembered of the tables."""
        if self._file.in_transaction:
            self.db.execute("ROLLBACK")
        self._version = -1
        self._look_for_others()

    def _look_for_others(self) -> None:
        """Forget what is remembered of the file if another connection has changed it."""
        ((version,),) = self.db.execute("PRAGMA data_version").fetchall()
        if version != self._version or len(self.heads) > HEADS_KEPT:
            self.heads.clear()
            query = (
                "SELECT (SELECT value FROM meta WHERE name = 'waiting_bytes'), "
                "(SELECT coalesce(max(since), 0) FROM logs WHERE since > 0)"
            )
            ((self.waiting_bytes, self.place),) = self.db.execute(query).fetchall()
            self._version = version

    def _clear_up(self) -> None:
        """Behind a failed or interrupted transaction: undo it, or settle it where it had been committed."""
        self._version = -1
        if self._file.in_transaction:
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            self._committing = None
        elif self._committing is not None:
            self._settle()


def head_in(rows: Sequence[Sequence[Any]], key: SessionKey, codes: Codes | None) -> LogRow:
    """The head that `HEAD_QUERY` has found; raises `Damaged` where it is not what was written."""
    if not rows:
        return NEW
    *fields, mac = rows[0]
    if codes is not None:
        codes.check_log(key, fields, mac)
    return LogRow(*fields)


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


_COLUMNS = "tenant, session, " + ", ".join(LogRow._fields)
_HAS_CODES = """
SELECT 1 FROM meta WHERE name = 'row_codes' UNION ALL
SELECT 1 FROM logs WHERE mac <> '' UNION ALL SELECT 1 FROM forgotten WHERE mac <> '' LIMIT 1
"""
_SAMPLE = 20
"""Records of a tenant that are looked at to tell whether these are its keys."""


class RowCodes:
    """Makes and checks codes with the keys of all tenants."""

    def __init__(self, address_key: Callable[[str], AddressKey]) -> None:
        self._address_key = address_key

    def of_log(self, key: SessionKey, head: Sequence[int]) -> str:
        numbers = b"%d,%d,%d,%d,%d,%d,%d,%d,%d" % tuple(head)
        return code(self._address_key(key.tenant), owned(key.session, "row of logs") + numbers)

    def of_forgotten(self, tenant: str, subject: ForgottenSubject) -> str:
        session, principal, *told = subject
        who = b"\x00" if principal is None else b"\x01" + prefixed(principal)
        text = owned(session, "row of forgotten") + who + b"".join(map(prefixed, told))
        return code(self._address_key(tenant), text)

    def check_log(self, key: SessionKey, head: Sequence[int], mac: object) -> None:
        """Raise `Damaged` where a log's row is not what was written."""
        if not _is_same(mac, lambda: self.of_log(key, head)):
            raise Damaged(
                f"session {key.session!r}: the journal's row of its log is not what was written (or was written with "
                "other keys); `ctxsteward store fsck --repair` counts it anew from the records, else restore the "
                "journal from a backup"
            )

    def check_forgotten(self, tenant: str, subject: ForgottenSubject, mac: object) -> None:
        """Raise `Damaged` where the note that a subject was forgotten is not what was written."""
        if not _is_same(mac, lambda: self.of_forgotten(tenant, subject)):
            raise forgotten_altered(subject.session)

    def key_fits(self, tenant: str, rows: Sequence[Sequence[object]]) -> bool:
        """Whether one of these records (session, position, fields) was written with our key of the tenant."""
        for session, position, *fields in rows:
            try:
                check(self._address_key(tenant), str(session), int(str(position)), JournalRecord(*fields))  # type: ignore[arg-type]
            except Damaged:
                continue
            return True
        return not rows


def forgotten_altered(session: str) -> Damaged:
    return Damaged(
        f"session {session!r}: the journal's notes of who was forgotten are not what was written; restore the journal "
        "from a backup, and repeat what was forgotten since"
    )


def give_codes(transaction: Transaction, codes: RowCodes) -> bool:
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
    for seq, tenant, session, whole, principal, *told in transaction.execute(f"SELECT {columns} FROM forgotten", ()):
        subject = ForgottenSubject(session, None if whole else principal, *told)
        mac = codes.of_forgotten(tenant, subject)
        transaction.execute("UPDATE forgotten SET mac = ? WHERE seq = ?", (mac, seq))
    transaction.execute("INSERT INTO meta VALUES ('row_codes', 1)", ())
    return True


def _is_same(mac: object, expected: Callable[[], str]) -> bool:
    try:
        return isinstance(mac, str) and hmac.compare_digest(mac, expected())
    except (TypeError, ValueError, AttributeError):  # no numbers, no text, or none that can be encoded
        return False
