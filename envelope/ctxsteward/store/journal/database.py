"""The journal's SQLite file: its tables and their version, connections for reading, checks of the file as a whole.

    records    one row a record: (tenant, session, position) → kind, ordinal, outputs, id, address, body, wire, mac
    logs       one row a log: length, generation, how far it is drained, what waits to be, subjects forgotten, code
    manifests  one row an envelope, in the order of their making (seq)
    seen       highest number noted under a name
    forgotten  one row a forgotten subject, with its code
    meta       the journal's own id; bytes that wait in all logs; whether rows have their codes (`RowCodes`)

Write-ahead log, every commit fsynced (`synchronous = FULL`), deleted content overwritten (`secure_delete`). The version
is SQLite's `user_version`. Version 2, whose logs and forgotten subjects had no codes, gets the columns for them when it
is opened; a file with any other one, or with tables and none, is refused and left as it is.

``journal.id`` beside the file, ``{"schema_version": 1, "journal": the journal's own id}``, says which journal belongs
here, so that after the loss of a journal the empty one made in its place is noticed. It is written when a journal is
first opened and stays when the journal is gone. A folder without it holds a new journal, or one of a release that wrote
no such file. Where there are objects or keys already and no journal, a journal was lost whose id is not known.

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
"""The write-ahead log is cut back to this after it grew under a slow reader."""

_PRAGMAS = ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON", f"journal_size_limit = {WAL_KEPT_BYTES}")

IDLE_READERS = 8
"""Connections kept open for reading; more are made while more threads read at once."""

_POLL_SECONDS = 0.001
_NET_SECONDS = 0.5
"""A reader that waits for a fork to be over looks round after this long."""

# Records are a table with row ids, so that appends of many logs fill the same page: half the time of a transaction.
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
    """A connection that is safe to hand from thread to thread; transactions are begun by hand.

    All may have been closed for a fork, so each is opened as if it were the first. Raises `Damaged`.
    """
    check_companions(path)
    db = sqlite_file.connect(path, busy_seconds, _PRAGMAS, make=make)
    db.text_factory = partial(str, encoding="utf-8", errors="replace")  # a code finds it
    return db


def prepare(db: sqlite3.Connection, path: Path, draw_id: Callable[[], str], busy_seconds: float) -> tuple[str, bool]:
    """Make the tables where there are none, check their version, add what an earlier one had not.

    Returns the journal's id, and whether the tables were made here and now.
    Switching a new file to write-ahead mode does not wait for another process that does the same: it fails at once, so
    it is tried again until `busy_seconds` are over.
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
    """Of the tables; 0 where there are none, raises where other ones are."""
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
    """Whether somebody else held the file for too long."""
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
    """The `StoreError` for an error of SQLite; `effect` says what became of the call."""
    code, tail = _code(error), f"; {effect}" if effect else ""
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(f"{root}: another process has held the journal for {busy_seconds:g} s{tail}; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(f"{root}: {error}{tail}; restore the journal from a backup")
    advice = _ADVICE.get(code)
    return StoreError(f"{root}: {error}{tail}{f'; {advice}' if advice else ''}")


def opening_error(error: OSError | sqlite3.Error, root: Path) -> StoreError:
    """The `StoreError` that says why a journal cannot be opened."""
    what = f"cannot open a store at {root}: {error}"
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return StoreLocked(f"{what}; another process holds it; try again")
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(f"{what}; restore it from a backup, or name another folder")
    return StoreError(f"{what}; name a folder you may write, or restore it from a backup")


RowReader = Callable[..., list[tuple[Any, ...]]]
"""All rows of a query, and of the values in it if there are some; see `Readers.all`."""


class Readers:
    """Connections for reading: a read sees the newest commit and waits for no writer. Safe with threads."""

    def __init__(self, path: Path, busy_seconds: float, same: SameFile) -> None:
        self._path, self._busy_seconds, self._same = path, busy_seconds, same
        self._lock = forking.lock()
        self._idle: list[Connection] = []
        self._made: WeakSet[Connection] = WeakSet()
        """Those that are open: idle ones, and those in use."""
        self._forking, self._over = False, threading.Event()
        self._pausing = 0
        """The process that was last about to fork."""
        self._closed = False
        forking.pause_at_fork(self)
        forking.renew_in_child(self)

    def all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows, so that no statement stays open and holds a snapshot."""
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
        self._same.check_main()  # what took the file's place is not read
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
        """Close what is idle now, and what is in use when its read ends."""
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
            if self._lock.acquire(timeout=max(0.0, until - time.monotonic())):  # held for long by who opens the file
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
        if self._pausing == os.getpid():  # in a child nobody waits, and who was about to may have left it locked
            over.set()

    def forked(self) -> None:
        self._forking, self._over = False, threading.Event()
        self._idle, self._made = [], WeakSet()


_MOST = 100
"""Findings of one kind."""

_UNOWNED = """
SELECT tenant, session, count(*) FROM {table} WHERE NOT EXISTS (
  SELECT 1 FROM logs WHERE logs.tenant = {table}.tenant AND logs.session = {table}.session AND length > 0
) GROUP BY tenant, session LIMIT ?
"""


def check_file(read: RowReader) -> list[str]:
    """One line a finding; none where the file is whole."""
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
"""In place of the id of a journal that was lost before there was such a file."""


def belongs(root: Path, id: str, *, made: bool, inhabited: bool) -> str | None:
    """None where the journal with this id is the one that belongs here; else what is missing.

    `made`: it was made just now; `inhabited`: beside objects or keys that were there before it.
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
