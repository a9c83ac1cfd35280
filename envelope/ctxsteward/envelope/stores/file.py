"""`file:PATH`: a durable journal in one SQLite file, and each tenant's key in a folder of its own.

    PATH/journal.sqlite        records and manifests; write-ahead log, every commit is fsynced
    PATH/keys/ab/ab12….key     a tenant's address key, mode 0600, folder and name derived from the tenant by SHA-256

An append is acknowledged when its transaction is on disk. Several processes may share the folder: SQLite's lock orders
them, `Conflict` tells the second writer of a position. A large append is one transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxsteward.schemas import Conflict, Damaged, StoreError, StoreLocked

from ..keys import KEY_BYTES, AddressKey
from .port import Record, SessionKey

BUSY_SECONDS = 30.0
"""How long a writer waits for another process before `StoreLocked`."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  tenant TEXT NOT NULL, session TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, ordinal INTEGER NOT NULL,
  outputs INTEGER NOT NULL, id TEXT, address TEXT, body TEXT NOT NULL, wire TEXT,
  PRIMARY KEY (tenant, session, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS by_ordinal ON records (tenant, session, ordinal) WHERE ordinal > 0;
CREATE UNIQUE INDEX IF NOT EXISTS by_id ON records (tenant, session, id) WHERE id IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_output ON records (tenant, session, outputs, position) WHERE outputs > 0;
CREATE INDEX IF NOT EXISTS by_compaction ON records (tenant, session, position) WHERE kind = 'compaction';
CREATE UNIQUE INDEX IF NOT EXISTS by_address ON records (tenant, address) WHERE address IS NOT NULL;
CREATE TABLE IF NOT EXISTS manifests (
  tenant TEXT NOT NULL, address TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (tenant, address)
) WITHOUT ROWID;
"""

_COLUMNS = "kind, body, ordinal, outputs, id, wire"


class FileJournal:
    """A `Journal` in a folder; safe with threads and with several processes."""

    def __init__(self, root: Path, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._root = root
        self._random_bytes = random_bytes
        self._lock = threading.RLock()
        self._keys: dict[str, AddressKey] = {}
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                root / "journal.sqlite", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            _prepare(self._db)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cannot open a store at {root}: {error}; name a folder you may write, or restore it from a backup"
            ) from error

    def append(self, key: SessionKey, position: int, records: Sequence[Record]) -> None:
        rows = [
            (*key, position + index, r.kind, r.ordinal, r.outputs, r.id,
             json.loads(r.body)["report"]["id"] if r.kind == "compaction" else None, r.body, r.wire)
            for index, r in enumerate(records)
        ]  # fmt: skip
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                if self.length(key) != position:
                    raise Conflict(key.session, position)
                self._db.executemany("INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
                self._db.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                if not isinstance(error, sqlite3.Error):
                    raise
                if "locked" in str(error) or "busy" in str(error):
                    raise StoreLocked(
                        f"{self._root}: another process has held the journal for {BUSY_SECONDS:.0f} s"
                    ) from error
                raise StoreError(f"{self._root}: {error}; nothing was written") from error

    def length(self, key: SessionKey) -> int:
        row = self._one("SELECT max(position) FROM records WHERE tenant = ? AND session = ?", key)
        return 0 if row is None or row[0] is None else int(str(row[0])) + 1

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[Record]:
        query = (
            f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND session = ? AND position >= ? AND position < ?"
            " ORDER BY position"
        )
        return [Record(*row) for row in self._all(query, (*key, start, stop if stop is not None else 1 << 62))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        where = "tenant = ? AND session = ? AND kind = 'compaction' AND position < ?"
        row = self._one(
            f"SELECT max(position) FROM records WHERE {where}", (*key, before if before is not None else 1 << 62)
        )
        return 0 if row is None or row[0] is None else int(str(row[0]))

    def message(self, key: SessionKey, ordinal: int) -> Record | None:
        return self._record("ordinal = ? AND ordinal > 0", key, ordinal)

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        query = "SELECT position FROM records WHERE tenant = ? AND session = ? AND ordinal = ? AND ordinal > 0"
        row = self._one(query, (*key, ordinal))
        return None if row is None else int(str(row[0]))

    def by_id(self, key: SessionKey, id: str) -> Record | None:
        return self._record("id = ? AND id IS NOT NULL", key, id)

    def by_output(self, key: SessionKey, number: int) -> Record | None:
        return self._record("outputs >= ? AND outputs > 0 ORDER BY outputs, position LIMIT 1", key, number)

    def sessions(self, tenant: str) -> list[str]:
        query = "SELECT session FROM records WHERE tenant = ? AND position = 0 ORDER BY session"
        return [str(row[0]) for row in self._all(query, (tenant,))]

    def put_manifest(self, tenant: str, address: str, body: str) -> None:
        with self._lock:
            try:
                self._db.execute("INSERT OR IGNORE INTO manifests VALUES (?,?,?)", (tenant, address, body))
            except sqlite3.Error as error:
                raise StoreError(f"{self._root}: {error}; the envelope's manifest was not kept") from error

    def get_manifest(self, tenant: str, address: str) -> str | None:
        row = self._one("SELECT body FROM manifests WHERE tenant = ? AND address = ?", (tenant, address))
        return None if row is None else str(row[0])

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        row = self._one("SELECT session, position FROM records WHERE tenant = ? AND address = ?", (tenant, address))
        return None if row is None else (str(row[0]), int(str(row[1])))

    def matching(self, tenant: str, prefix: str) -> list[str]:
        stop = f"{prefix}g"  # addresses are lower-case hexadecimal
        query = (
            "SELECT address FROM manifests WHERE tenant = ? AND address >= ? AND address < ? UNION ALL "
            "SELECT address FROM records WHERE tenant = ? AND address >= ? AND address < ? LIMIT 3"
        )
        return [str(row[0]) for row in self._all(query, (tenant, prefix, stop, tenant, prefix, stop))]

    def address_key(self, tenant: str) -> AddressKey:
        with self._lock:
            if tenant not in self._keys:
                try:
                    self._keys[tenant] = self._load_or_make_key(tenant)
                except OSError as error:
                    raise StoreError(f"{self._root}: the tenant's key cannot be read or made: {error}") from error
            return self._keys[tenant]

    def _load_or_make_key(self, tenant: str) -> AddressKey:
        name = hashlib.sha256(tenant.encode()).hexdigest()
        path = self._root / "keys" / name[:2] / f"{name}.key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create_exclusively(path, self._random_bytes(KEY_BYTES))
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise Damaged(f"{path}: the tenant's key has {len(key)} bytes, not {KEY_BYTES}; restore it from a backup")
        return AddressKey(key)

    def _record(self, where: str, key: SessionKey, value: object) -> Record | None:
        row = self._one(f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND session = ? AND {where}", (*key, value))
        return None if row is None else Record(*row)

    def _one(self, query: str, values: Sequence[object]) -> tuple[Any, ...] | None:
        rows = self._all(query, values)
        return rows[0] if rows else None

    def _all(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"{self._root}: {error}") from error

    def close(self) -> None:
        self._db.close()


def _prepare(db: sqlite3.Connection) -> None:
    """Set up a connection; a first opening by several processes at once is waited out.

    Switching a new file to write-ahead mode does not wait for another process that does the same: it fails at once,
    so it is tried again until `BUSY_SECONDS` are over.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            return
        except sqlite3.OperationalError as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _create_exclusively(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all, and never over another one (tmp, fsync, link, fsync folder)."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
