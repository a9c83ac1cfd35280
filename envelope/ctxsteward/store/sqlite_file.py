"""A SQLite file that this product owns (journal, cards, ledger): mode 0600, and no connection goes through a fork.

SQLite notes for each process which locks it holds on a file, and a child inherits the notes without the locks: what it
writes may be lost when the parent closes the file, and even a new connection of it trusts the inherited notes. So a
file is closed before Python forks and opened again by whoever uses it next (`process_forks`). Where that was not
possible, in the middle of a transaction or of its opening, or because a C library forked, the child is refused the file
(`StoreError`), and what it has inherited is never closed there: closing would write.

Files are made with mode 0600 under any umask, and what SQLite puts beside them (``-wal``, ``-shm``) takes it over; one
that an earlier version left readable for others is closed to them when it is opened.

A write to a file that was removed or replaced succeeds for the operating system, and nothing will ever read it again.
So each transaction looks before it commits and again before it is acknowledged (`SameFile`), at the file, its
write-ahead log and its shared memory: device, inode and size, and the first bytes of the log, which an emptied one no
longer has. That costs some microseconds beside an fsync. Nothing is opened that SQLite has locked: closing it would
give up this process's locks (`fcntl(2)`); of the log SQLite locks nothing.

Raises `StoreError`, `Damaged`. Source: SQLite documentation, "How To Corrupt An SQLite Database File", 2 and 4, "URI
Filenames", "WAL-mode File Format", 2.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Damaged

from . import process_forks as forking

FILE_MODE = 0o600
IN_MEMORY = Path(":memory:")
"""In place of a file."""

_making = forking.lock()
"""Closing a descriptor drops all locks that the process has on the file: none is open while others may have some."""
_inherited: dict[tuple[int, int], int] = {}
"""Files (device, inode) that were open in the parent when this process was forked, and the parent."""


class Connection(sqlite3.Connection):
    """Knows its file and the process that opened it; in another one, it is never closed."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        in_memory = path == IN_MEMORY
        self.process: int = os.getpid()
        self.file: tuple[int, int] | None = None if in_memory else _identity(path)
        """Device and inode; None: it is in memory, or closed."""
        forking.renew_in_child(self)  # first: another thread may fork while this one opens
        super().__init__(
            str(path) if in_memory else f"{path.absolute().as_uri()}?mode=rw",
            uri=not in_memory,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    @property
    def is_foreign(self) -> bool:
        """Whether it is another process's; one in memory was copied."""
        return self.file is not None and self.process != os.getpid()

    def close(self) -> None:
        if self.is_foreign:
            self.forked()
        else:
            super().close()
            self.file = None

    def forked(self) -> None:
        """Never close what the parent has open, also not at the end of the interpreter; and never open the file here,
        be it that a thread of the parent was only about to."""
        if not self.is_foreign:
            return
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        if self.file is not None and any(self.file):
            _inherited[self.file] = self.process


def connect(path: Path, busy_seconds: float, pragmas: Sequence[str], *, make: bool = False) -> Connection:
    """Open a file (or `IN_MEMORY`), and `make` it if missing; threads may share it, transactions are begun by hand.

    Raises `sqlite3.Error`, and `StoreError` where this process has inherited the file.
    """
    forking.notice()
    if make and path != IN_MEMORY:
        with _making, suppress(OSError):  # SQLite says what is wrong where that cannot be done
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                os.fchmod(descriptor, FILE_MODE)
            finally:
                os.close(descriptor)
    parent = _inherited.get(_identity(path)) if _inherited else None
    if parent is not None:
        raise StoreError(
            f"{path}: it was in use in process {parent} when this process was forked from it, so nothing is read "
            "or written here; open the store after the fork (uWSGI: lazy-apps = true), or fork while nothing is "
            "under way"
        )
    db = Connection(path, busy_seconds)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def close_to_others(path: Path) -> None:
    """Take the rights of group and others from a file of ours and what lies beside it, as far as we may."""
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        with suppress(OSError):
            status = name.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                name.chmod(status.st_mode & 0o700)


class SqliteFile:
    """The connection of this process to one file; who uses `db` holds its `lock`."""

    def __init__(self, connect: Callable[..., Connection]) -> None:
        """Nothing is opened yet; `connect` takes `make` alone."""
        self._connect = connect
        self.lock: RLock = forking.rlock()
        self.before_closing: Callable[[], object] = lambda: None
        """Called before a fork closes the file; the lock is held."""
        self.resumed: Callable[[], object] = lambda: None
        """Called behind a fork."""
        self._db: Connection | None = None
        self._closed = False
        forking.pause_at_fork(self)
        forking.renew_in_child(self)

    def make(self) -> sqlite3.Connection:
        """Open the file for the first time, made if missing."""
        self._db = self._connect(make=True)
        return self._db

    @property
    def db(self) -> sqlite3.Connection:
        """Opened again behind a fork. Raises `StoreError`, `sqlite3.Error`."""
        db = self._db
        if db is None or db.is_foreign:
            if self._closed:
                raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
            forking.notice()
            db = self._db = self._connect()
        return db

    @property
    def in_transaction(self) -> bool:
        return self._db is not None and self._db.in_transaction

    def close(self) -> None:
        """For good."""
        with self.lock:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self._let_go()

    # -- forks --------------------------------------------------------------------------------------------------

    def pause(self, timeout_seconds: float) -> bool:
        is_inside = forking.is_held(self.lock)  # this very thread forks in the middle of it: the child is refused
        if not self.lock.acquire(timeout=timeout_seconds):
            return False
        try:
            if self._db is not None and self._db.file is not None and not is_inside:
                self.before_closing()
                self._let_go()
        except BaseException:
            self.lock.release()
            raise
        return True

    def resume(self) -> None:
        self.lock.release()
        self.resumed()

    def forked(self) -> None:
        if self._db is not None and self._db.is_foreign:
            self._db = None


@contextmanager
def one_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock from the beginning; roll back whatever ends it otherwise. Raises what is raised within."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _identity(path: Path) -> tuple[int, int]:
    """Device, inode and size of a file; zeros where they cannot be read, and SQLite says why."""
    try:
        return _inode(path.stat())
    except OSError:
        return 0, 0


_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
LOG, SHARED = "-wal", "-shm"
"""What SQLite puts behind the name of a database."""
_END_OTHERS = "end every process that has it open, without killing it, and try again: closing saves what it still holds"
"""First of all: whoever takes away what another process works with loses what that one would have saved."""


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
            f"{name} {what} while it was in use: nothing that is written now would be found again; end what has "
            "it open, put the file back or restore the database with its log from a backup, and open it anew"
        )


def check_companions(path: Path) -> None:
    """Before a database is opened: raise `Damaged` where SQLite would go on without what its companions tell of.

    It removes the write-ahead log of a database that is missing or empty. And while a database is in use its log is
    made before its shared memory and removed after it, so that memory without a log means that the log was taken away.
    Others may make, close and open the database between two looks, so each alarm is looked at twice. A process that
    has the database open still may hold what is missing, and writes it into the database when it closes: the advice
    begins with that. A log is good for the database that it was written beside, and for no older or newer copy of it.
    """
    log, shared = Path(f"{path}{LOG}"), Path(f"{path}{SHARED}")
    if not _size(path) and (waiting := _size(log)) and not _size(path):
        raise Damaged(
            f"{path} is missing or empty, and {log.name} beside it holds {waiting:,} bytes that were acknowledged: "
            f"{_END_OTHERS}; then put back that same {path.name} if it was only moved, or move {log.name} away to go "
            f"on without them, with a {path.name} from a backup or a new one"
        )
    if _size(path) and all(shared.exists() and not log.exists() for _ in range(2)) and shared.exists():
        raise Damaged(
            f"{log} is missing, and with it what was acknowledged last: {_END_OTHERS}; then restore {path.name} and "
            f"{log.name} together from a backup, or remove {shared.name} to go on without it"
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _inode(found: os.stat_result) -> tuple[int, int]:
    """Device and inode."""
    return found.st_dev, found.st_ino
