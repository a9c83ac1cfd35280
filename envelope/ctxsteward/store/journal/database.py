"""The journal's SQLite file: its tables and their version, connections for reading, checks of the file as a whole.

    records    one row per record: (tenant, session, position) → kind, ordinal, outputs, id, address, body, wire, mac
    logs       one row per log: length, generation, drain mark, waiting part, number of forgotten subjects, code
    manifests  one row per envelope, in the order in which they were made (seq)
    seen       highest number recorded under a name
    forgotten  one row per forgotten subject, with its code
    meta       the journal's own id; bytes that wait in all logs; whether rows have codes (`RowCodes`)

Write-ahead log, every commit fsynced (`synchronous = FULL`), deleted content overwritten (`secure_delete`). The version
is SQLite's `user_version`. Version 2 had no codes of logs and forgotten subjects; it gets their columns when it is
opened. A file of any other version, or with tables but no version, is refused and left unchanged.

``journal.id`` beside the file, ``{"schema_version": 1, "journal": the journal's own id}``, names the journal that
belongs here, so that a new empty journal in place of a lost one is detected. It is written when a journal is first
opened, and stays if the journal is lost. A folder without it has a new journal, or one of a version that wrote no such
file. If there are objects or keys but no journal, a journal was lost whose id is unknown.

Raises `OSError`, `StoreError`, `UnsupportedVersion`, `Damaged`. Source: SQLite documentation, "Write-Ahead Logging",
"PRAGMA".
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ctxsteward.schemas import StoreError, StoreLocked
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion

from .. import create_once, process_forks as forking, sqlite_file
from ..deadline import uncut
from ..sqlite_file import Connection, SameFile, check_companions

LAYOUT_VERSION = 3
_WITHOUT_CODES = 2
FILE_NAME = "journal.sqlite"

WAL_KEPT_BYTES = 64 << 20
"""Size to which the write-ahead log is truncated after it grew because of a slow reader."""

_PRAGMAS = ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON", f"journal_size_limit = {WAL_KEPT_BYTES}")

IDLE_READERS = 8
"""Most idle connections for reading; more are made while more threads read at once."""

_POLL_SECONDS = 0.001
_NET_SECONDS = 0.5
"""Longest wait of a reader for the end of a fork before it checks again."""

# `records` has row ids, so that appends of many logs fill the same page; a transaction takes half the time.
_TABLES = """
CREATE TABLE records (
  tenant TEXT NOT NULL, session TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, ordinal INTEGER NOT NULL,
  outputs INTEGER NOT NULL, id TEXT, address TEXT, body TEXT NOT NULL, wire TEXT, mac TEXT NOT NULL,
  PRIMARY KEY (tenant, session, position)
);
CREATE UNIQUE INDEX by_ordinal ON records (tenant, session, ordinal) WHERE ordinal > 0;
CREATE UNIQUE INDEX by_id ON records (tenant, session, id) WHERE id IS NOT NULL;
CREATE INDEX by_output ON records (tenant, session, outputs, position) WHERE outputs > 0;
CREATE INDEX by_compaction ON records (tenant, session, position) WHERE kind = 'compaction';
CREATE UNIQUE INDEX by_address ON records (tenant, address, session) WHERE address IS NOT NULL;
CREATE TABLE logs (
  tenant TEXT NOT NULL, session TEXT NOT NULL, length INTEGER NOT NULL, generation INTEGER NOT NULL,
  drained INTEGER NOT NULL, number INTEGER NOT NULL, epoch INTEGER NOT NULL,
  manifests INTEGER NOT NULL, bytes INTEGER NOT NULL, since INTEGER NOT NULL,
  forgotten INTEGER NOT NULL DEFAULT 0, mac TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
CREATE INDEX logs_waiting ON logs (since) WHERE since > 0;
CREATE TABLE manifests (
  seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL, address TEXT NOT NULL, body TEXT NOT NULL,
  waiting INTEGER NOT NULL, UNIQUE (tenant, address)
);
CREATE INDEX manifests_of ON manifests (tenant, session, seq);
CREATE INDEX manifests_waiting ON manifests (tenant, session, seq) WHERE waiting = 1;
CREATE TABLE seen (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE forgotten (
  seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL, whole INTEGER NOT NULL, principal TEXT NOT NULL,
  who TEXT NOT NULL, at TEXT NOT NULL, why TEXT NOT NULL, mac TEXT NOT NULL DEFAULT '',
  UNIQUE (tenant, session, whole, principal)
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('waiting_bytes', 0);
"""
_WITH_CODES = """
ALTER TABLE logs ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE forgotten ADD COLUMN mac TEXT NOT NULL DEFAULT '';
UPDATE logs SET forgotten =
  (SELECT count(*) FROM forgotten f WHERE f.tenant = logs.tenant AND f.session = logs.session);
INSERT INTO logs SELECT DISTINCT tenant, session, 0, 0, 0, 0, 0, 0, 0, 0,
  (SELECT count(*) FROM forgotten f WHERE f.tenant = forgotten.tenant AND f.session = forgotten.session), ''
  FROM forgotten WHERE NOT EXISTS
  (SELECT 1 FROM logs WHERE logs.tenant = forgotten.tenant AND logs.session = forgotten.session);
"""


def connect(path: Path, busy_seconds: float, *, make: bool = False) -> Connection:
    """Open a connection that threads may pass on; the caller begins transactions.

    A fork may have closed all connections, so each one is opened with the checks of the first. Raises `Damaged`.
    """
    check_companions(path)
    db = sqlite_file.connect(path, busy_seconds, _PRAGMAS, make=make)
    db.text_factory = partial(str, encoding="utf-8", errors="replace")  # the record's code detects altered bytes
    return db


def prepare(db: sqlite3.Connection, path: Path, draw_id: Callable[[], str], busy_seconds: float) -> tuple[str, bool]:
    """Make missing tables, check their version, and add the columns that an earlier version lacks.

    Returns the journal's id, and whether this call made the tables. Switching a new file to write-ahead mode fails at
    once if another process does the same, instead of waiting for it. So it is repeated until `busy_seconds` have
    passed.
    """
    deadline = time.monotonic() + busy_seconds
    while True:
        is_new = False
        try:
            if _version(db, path) != LAYOUT_VERSION:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("BEGIN IMMEDIATE")
                version = _version(db, path)
                if version != LAYOUT_VERSION:
                    for statement in (_WITH_CODES if version else _TABLES).split(";\n")[:-1]:
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {LAYOUT_VERSION}")
                if not version:
                    db.execute("INSERT INTO meta VALUES ('id', ?)", (draw_id(),))
                db.execute("COMMIT")
                is_new = not version
            return str(db.execute("SELECT value FROM meta WHERE name = 'id'").fetchall()[0][0]), is_new
        except BaseException as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if not (isinstance(error, sqlite3.Error) and is_busy(error)) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables, or 0 without tables. Raises if the tables are not a journal's."""
    query = (
        "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema), "
        "(SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('records', 'logs', 'forgotten', 'meta'))"
    )
    ((version, tables, ours),) = db.execute(query).fetchall()
    if version > LAYOUT_VERSION:
        raise UnsupportedVersion(str(path), version, LAYOUT_VERSION)
    if version < LAYOUT_VERSION and (version or tables) and (version, ours) != (_WITHOUT_CODES, 4):
        raise StoreError(
            f"{path} has layout version {version}, not {LAYOUT_VERSION}: it is no journal of a release; "
            "move it away, or name another folder"
        )
    return int(version)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection had the file locked for too long."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


_ADVICE = {
    sqlite3.SQLITE_FULL: "free space on the disk",
    sqlite3.SQLITE_IOERR: "check the disk, and the space and quota left on it",
    sqlite3.SQLITE_READONLY: "name a folder you may write",
    sqlite3.SQLITE_CANTOPEN: "name a folder you may write",
    sqlite3.SQLITE_CONSTRAINT: "an id, ordinal or address of it is there already; refresh and decide again",
}


def store_error(error: BaseException, root: Path, busy_seconds: float, effect: str = "") -> StoreError:
    """Return the `StoreError` for an error of SQLite; `effect` tells the user what the call has done."""
    code, tail = _code(error), f"; {effect}" if effect else ""
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(f"{root}: another process has held the journal for {busy_seconds:g} s{tail}; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(f"{root}: {error}{tail}; restore the journal from a backup")
    advice = _ADVICE.get(code)
    return StoreError(f"{root}: {error}{tail}{f'; {advice}' if advice else ''}")


def opening_error(error: OSError | sqlite3.Error, root: Path) -> StoreError:
    """Return the `StoreError` that says why a journal cannot be opened."""
    file = next((path for path in (root, *root.parents) if path.is_file()), None)
    if file is not None:
        return StoreError(f"cannot open a store at {root}: {file} is a file, and a store is a folder; name a folder")
    what = f"cannot open a store at {root}: {error}"
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return StoreLocked(f"{what}; another process holds it; try again")
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(f"{what}; restore it from a backup, or name another folder")
    return StoreError(f"{what}; name a folder you may write, or restore it from a backup")


RowReader = Callable[..., list[tuple[Any, ...]]]
"""Return all rows of a query with optional values; see `Readers.all`."""


class Readers:
    """A pool of connections for reading. A read sees the newest commit and waits for no writer. Safe with threads."""

    def __init__(self, path: Path, busy_seconds: float, same: SameFile) -> None:
        self._path, self._busy_seconds, self._same = path, busy_seconds, same
        self._lock = forking.lock()
        self._idle: list[Connection] = []
        self._made: WeakSet[Connection] = WeakSet()
        """All open connections, idle and in use."""
        self._forking, self._over = False, threading.Event()
        self._pausing = 0
        """Id of the process that last began to fork."""
        self._closed = False
        forking.pause_at_fork(self)
        forking.renew_in_child(self)

    def all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows at once, so that no open statement keeps an old snapshot."""
        if self._closed:
            raise StoreError(f"{self._path.parent}: the journal is closed; open its store again")
        try:
            with uncut():
                db = self._take()
                try:
                    return db.execute(query, values).fetchall()
                finally:
                    self._give(db)
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise store_error(error, self._path.parent, self._busy_seconds) from error

    def _take(self) -> Connection:
        forking.notice()
        while True:
            with self._lock:
                if not self._forking:
                    if self._idle:
                        return self._idle.pop()
                    return self._connected()
            self._over.wait(_NET_SECONDS)

    def _connected(self) -> Connection:
        self._same.check_main()  # do not read a file that replaced the journal
        db = connect(self._path, self._busy_seconds)
        self._made.add(db)
        db.execute("PRAGMA query_only = ON")
        return db

    def _give(self, db: Connection) -> None:
        with self._lock:
            if self._closed or len(self._idle) >= IDLE_READERS:
                self._made.discard(db)
                db.close()
            else:
                self._idle.append(db)

    def close(self) -> None:
        """Close the idle connections now, and each used one when its read ends."""
        self._closed = True
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        while self._idle:
            db = self._idle.pop()
            self._made.discard(db)
            db.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self._let_go()

    # -- forks --------------------------------------------------------------------------------------------------

    def pause(self, timeout_seconds: float) -> bool:
        until = time.monotonic() + timeout_seconds
        self._forking, self._pausing = True, os.getpid()
        while True:
            if self._lock.acquire(timeout=max(0.0, until - time.monotonic())):  # opening the file may hold it for long
                try:
                    if len(self._made) == len(self._idle):
                        self._let_go()
                        return True
                finally:
                    self._lock.release()
            if time.monotonic() >= until:
                self.resume()
                return False
            time.sleep(_POLL_SECONDS)

    def resume(self) -> None:
        over, self._over = self._over, threading.Event()
        self._forking = False
        if self._pausing == os.getpid():  # in a child no thread waits, and the event's lock may have stayed locked
            over.set()

    def forked(self) -> None:
        self._forking, self._over = False, threading.Event()
        self._idle, self._made = [], WeakSet()


_MOST = 100
"""Most reported faults of one kind."""

_UNOWNED = """
SELECT tenant, session, count(*) FROM {table} WHERE NOT EXISTS (
  SELECT 1 FROM logs WHERE logs.tenant = {table}.tenant AND logs.session = {table}.session AND length > 0
) GROUP BY tenant, session LIMIT ?
"""


def check_file(read: RowReader) -> list[str]:
    """Return one line per fault of the file; an empty list if it is intact."""
    try:
        rows = read("SELECT * FROM pragma_integrity_check(?)", (_MOST,))
        problems = [f"SQLite says: {line}" for (line,) in rows if line != "ok"]
        for table in ("records", "manifests"):
            unowned = read(_UNOWNED.format(table=table), (_MOST,))
            problems += [f"{count} {table} of tenant {t!r}, session {s!r} belong to no log" for t, s, count in unowned]
    except Damaged as error:
        return [str(error)]
    return problems


NAME = "journal.id"
VERSION = 1
UNKNOWN = "unknown"
"""Value in ``journal.id`` for a journal that was lost before the file was written."""


def belongs(root: Path, id: str, *, made: bool, inhabited: bool) -> str | None:
    """Return None if the journal with this id belongs here, else a text that names the missing journal.

    `made` says that it was just made, `inhabited` that objects or keys were there before it.
    """
    path = root / NAME
    belonging = _read(path)
    if belonging is None:
        wanted = UNKNOWN if made and inhabited else id
        body = json.dumps({"schema_version": VERSION, "journal": wanted})
        create_once.create(path, body.encode(), mode=0o600)
        belonging = _read(path)
    if belonging == id:
        return None
    named = "a journal" if belonging == UNKNOWN else f"journal {belonging}"
    return (
        f"{named} was here and is gone: what it had acknowledged is not in the one that is here now; restore "
        f"{root / 'journal.sqlite'} from a backup or name the folder it is in, or remove {path} to go on without it"
    )


def _read(path: Path) -> str | None:
    try:
        document = json.loads(path.read_bytes())
        version, journal = document["schema_version"], document["journal"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        version, journal = VERSION, None
    if version != VERSION:
        raise UnsupportedVersion(str(path), version, VERSION)
    if not isinstance(journal, str):
        raise Damaged(f"{path}: it does not say which journal belongs here; restore it from a backup, or remove it")
    return journal
