"""A SQLite file of this product (journal, cards, ledger): mode 0600, and no connection is used across a fork.

SQLite records in memory which locks this process has on a file. A child inherits the record without the locks: its
writes may be lost when the parent closes the file, and even its new connections trust the inherited record. So a file
is closed before Python forks and opened again at its next use (`process_forks`). If that is not possible (in the middle
of a transaction or of opening, or because a C library forked), the child cannot open the file (`StoreError`), and never
closes the inherited connection, because closing would write.

Files are made with mode 0600 under any umask, and SQLite gives its companion files (``-wal``, ``-shm``) the same mode.
If an earlier version left a file readable for others, opening it removes their rights.

A write to a removed or replaced file succeeds for the operating system, but nobody can read it again. So each
transaction checks the file, its write-ahead log and its shared memory before it commits and again before it is
acknowledged (`SameFile`): device, inode, size, and the first bytes of the log, which an emptied log lacks. That takes
some microseconds, little against an fsync. No file that SQLite has locked is opened, because closing it would release
this process's locks (`fcntl(2)`); SQLite does not lock the log.

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
"""Stands for a database in memory."""

_making = forking.lock()
"""Serializes making files: closing a descriptor drops all locks of this process on its file."""
_inherited: dict[tuple[int, int], int] = {}
"""Parent's process id by file (device, inode) that the parent had open when it forked this process."""


class Connection(sqlite3.Connection):
    """A connection with its file and the process that opened it; no other process closes it."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        in_memory = path == IN_MEMORY
        self.process: int = os.getpid()
        self.file: tuple[int, int] | None = None if in_memory else _identity(path)
        """Device and inode; None if the database is in memory, or closed."""
        forking.renew_in_child(self)  # first, because another thread may fork while this one opens the file
        super().__init__(
            str(path) if in_memory else f"{path.absolute().as_uri()}?mode=rw",
            uri=not in_memory,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    @property
    def is_foreign(self) -> bool:
        """Whether another process opened it. A database in memory was copied at the fork, so it is not foreign."""
        return self.file is not None and self.process != os.getpid()

    def close(self) -> None:
        if self.is_foreign:
            self.forked()
        else:
            super().close()
            self.file = None

    def forked(self) -> None:
        """Keep a foreign connection alive to the interpreter's end, so that it is never closed here; and note its
        file as inherited, so that this process never opens it, even if the parent's thread was only opening it."""
        if not self.is_foreign:
            return
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        if self.file is not None and any(self.file):
            _inherited[self.file] = self.process


def connect(path: Path, busy_seconds: float, pragmas: Sequence[str], *, make: bool = False) -> Connection:
    """Open a file (or `IN_MEMORY`); with `make`, make it if missing. Threads may share the connection.

    The caller begins transactions. Raises `sqlite3.Error`, and `StoreError` if this process has inherited the file.
    """
    forking.notice()
    if make and path != IN_MEMORY:
        with _making, suppress(OSError):  # SQLite will raise an error if the file cannot be made
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
    """Remove the rights of group and others from a file and its companions, as far as the system permits."""
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        with suppress(OSError):
            status = name.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                name.chmod(status.st_mode & 0o700)


class SqliteFile:
    """The connection of this process to one file. A caller must hold `lock` while it uses `db`."""

    def __init__(self, connect: Callable[..., Connection]) -> None:
        """Open nothing yet. `connect` takes only the argument `make`."""
        self._connect = connect
        self.lock: RLock = forking.rlock()
        self.before_closing: Callable[[], object] = lambda: None
        """Called with the lock held before a fork closes the file."""
        self.resumed: Callable[[], object] = lambda: None
        """Called after a fork."""
        self._db: Connection | None = None
        self._closed = False
        forking.pause_at_fork(self)
        forking.renew_in_child(self)

    def make(self) -> sqlite3.Connection:
        """Open the file for the first time, and make it if missing."""
        self._db = self._connect(make=True)
        return self._db

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, opened again after a fork. Raises `StoreError`, `sqlite3.Error`."""
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
        """Close the file; it cannot be opened again through this object."""
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
        is_inside = forking.is_held(self.lock)  # this thread forks while it uses the file: the child cannot open it
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
    """Run the block in a transaction with the write lock from its start; roll back and reraise any exception."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode of a file, or zeros if it cannot be read; SQLite will then raise the error."""
    try:
        return _inode(path.stat())
    except OSError:
        return 0, 0


_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
LOG, SHARED = "-wal", "-shm"
"""Suffixes of the files that SQLite makes beside a database: write-ahead log and shared memory."""
_END_OTHERS = "end every process that has it open, without killing it, and try again: closing saves what it still holds"
"""First step of every advice: moving files that another process uses loses what that process would have saved."""


class SameFile:
    """Identity of an open database file and its two companions. Make it after the connection's first read."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path, self._log, self._shared = str(path), f"{path}{LOG}", f"{path}{SHARED}"
        self._db = db
        self._files = {name: _inode(os.stat(name)) for name in (self._path, self._log, self._shared)}

    def check_main(self) -> None:
        """Raise `StoreError` if the database file was removed, replaced or emptied."""
        self._check(self._path)

    def check(self, db: sqlite3.Connection) -> None:
        """Raise `StoreError` if any of the three files was; call it inside a transaction of the writing connection.

        A new `db` has opened the same database again and may have made new companions, which are then accepted.
        """
        if db is not self._db:
            self.check_main()
            self._files |= {name: _inode(self._look(name)) for name in (self._log, self._shared)}
            self._db = db
        for name in self._files:
            self._check(name)

    def check_kept(self, db: sqlite3.Connection) -> None:
        """Do `check`, and raise `StoreError` if the log was emptied, which only shows after a commit."""
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
    """Raise `Damaged` if SQLite would open the database without commits that its companion files prove.

    SQLite deletes the write-ahead log of a database that is missing or empty. It makes the log before the shared memory
    and removes it after, so shared memory without a log means that the log was taken away. Other processes may make,
    close and open the database between two checks, so each condition is checked twice. A process that still has the
    database open may have the missing commits, and writes them when it closes the database, so the advice begins with
    that. A log belongs to the database beside which it was written, and to no older or newer copy.
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
    """Return device and inode."""
    return found.st_dev, found.st_ino
