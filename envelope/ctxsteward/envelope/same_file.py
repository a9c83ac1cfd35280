"""Whether the SQLite file that a connection holds open is still the one at its path.

Whoever writes to a file that was removed or replaced is told by the operating system that all went well, and nobody
will ever read it again. So each transaction looks before it commits and again before it is acknowledged, at the file,
its write-ahead log and its shared memory: device, inode and size, and the first bytes of the log, which an emptied one
no longer has. Costs some microseconds, beside an fsync. The log and the shared memory keep their inodes as long as a
connection is open.

Nothing is opened that SQLite has locked: closing it would give up this process's locks (`fcntl(2)`); of the log SQLite
locks nothing. Raises `StoreError`. Source: SQLite documentation, "How To Corrupt An SQLite Database File", 2 and 4;
"WAL-mode File Format", 2.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import Damaged, StoreError

_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
LOG, SHARED = "-wal", "-shm"
"""What SQLite puts behind the name of a database."""


class _Inode(NamedTuple):
    device: int
    number: int


class SameFile:
    """A database file that was just opened, and its two companions. Make it once the connection has read."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path, self._log, self._shared = str(path), f"{path}{LOG}", f"{path}{SHARED}"
        self._db = db
        self._files = {name: _inode(os.stat(name)) for name in (self._path, self._log, self._shared)}

    def check_main(self) -> None:
        """Raise `StoreError` where the database itself is gone, is another one, or was emptied."""
        self._check(self._path)

    def check(self, db: sqlite3.Connection) -> None:
        """Raise `StoreError` where one of the three is; inside a transaction of the connection that writes.

        Another connection than before has opened the same database again, and may have made its companions anew.
        """
        if db is not self._db:
            self.check_main()
            self._files |= {name: _inode(self._look(name)) for name in (self._log, self._shared)}
            self._db = db
        for name in self._files:
            self._check(name)

    def check_kept(self, db: sqlite3.Connection) -> None:
        """`check`, and that the log is one: of an emptied one that can be told behind a commit."""
        self.check(db)
        with open(self._log, "rb", buffering=0) as log:
            start = log.read(len(_LOG_MAGIC[0]))
        if start and start not in _LOG_MAGIC:
            raise self._changed(self._log, "was emptied")

    def _look(self, name: str) -> os.stat_result:
        try:
            return os.stat(name)
        except FileNotFoundError:
            raise self._changed(name, "was removed") from None
        except OSError as error:
            raise self._changed(name, f"cannot be looked at ({error.strerror})") from error

    def _check(self, name: str) -> None:
        found = self._look(name)
        if _inode(found) != self._files[name]:
            raise self._changed(name, "was replaced")
        if not found.st_size and name != self._log:
            raise self._changed(name, "was emptied")

    def _changed(self, name: str, what: str) -> StoreError:
        return StoreError(
            f"{name} {what} while it was in use: nothing that is written now would be found again; stop what has "
            "it open, put the file back or restore it from a backup, and open it anew"
        )


def check_companions(path: Path) -> None:
    """Before a database is opened: raise `Damaged` where SQLite would go on without what its companions tell of.

    It removes the write-ahead log of a database that is missing or empty. And while a database is in use its log is
    made before its shared memory and removed after it, so that memory without a log means that the log was taken away.
    Others may make, close and open the database between two looks, so each alarm is looked at twice.
    """
    log, shared = Path(f"{path}{LOG}"), Path(f"{path}{SHARED}")
    if not _size(path) and (waiting := _size(log)) and not _size(path):
        raise Damaged(
            f"{path} is missing or empty, and {log.name} beside it holds {waiting:,} bytes that were acknowledged: "
            f"restore {path.name} from a backup, or move {log.name} away to go on without them"
        )
    if _size(path) and all(shared.exists() and not log.exists() for _ in range(2)) and shared.exists():
        raise Damaged(
            f"{log} is missing, and with it what was acknowledged last: restore it from a backup, "
            f"or remove {shared.name} to go on without it"
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _inode(found: os.stat_result) -> _Inode:
    return _Inode(found.st_dev, found.st_ino)
