"""A simulated disk under SQLite and under `FileObjects`: real files, and what a power cut would leave of them.

SQLite reaches its files through the functions of a *VFS*. `SqliteDisk` puts its own in front of opening, writing,
truncating, syncing and deleting; all else is SQLite's. Nothing is synced for real: a sync only says that what was
written so far outlives a power cut. `ObjectDisk` is the same for the port `create_once.Disk`.

    killed process      the system keeps what was written; writes after the kill do nothing
    power cut           of the unsynced writes none, all, a prefix with a torn write, or any part reaches the disk

Source: SQLite documentation, "The OS Interface or VFS", "Atomic Commit"; `crash_disk` (all states, for one object).
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

DiskFault = Literal["", "dead", "ENOSPC", "EIO"]
Ask = Callable[[str], DiskFault]
"""Called before each write, sync, … with its name; returns what becomes of it."""

_FULL, _IO_WRITE, _IO_FSYNC, _IO_TRUNCATE, _IO_DELETE = 13, 778, 1034, 1546, 2570
_POINTERS = (
    *("open", "delete", "access", "full", "dlopen", "dlerror", "dlsym", "dlclose"),
    *("random", "sleep", "time", "error", "time64", "set", "get", "next"),
)
_METHODS = (
    *("close", "read", "write", "truncate", "sync", "size", "lock", "unlock", "reserved", "control"),
    *("sector", "device", "map", "shmlock", "barrier", "unmap", "fetch", "unfetch"),
)


class _Vfs(ctypes.Structure):
    _fields_ = [  # as ctypes wants it
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("path_bytes", ctypes.c_int),
        ("following", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _POINTERS),
    ]


class _Methods(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), *((name, ctypes.c_void_p) for name in _METHODS)]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_Methods))]


_FILE = ctypes.POINTER(_File)
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _FILE, ctypes.c_int, ctypes.c_void_p)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_CLOSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


@dataclass
class _Content:
    """A file's bytes that are certain, and the writes (offset and bytes; None: the new length) since its last sync."""

    certain: bytearray
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data in self.unsynced:
            _apply(self.certain, offset, data)
        self.unsynced.clear()

    def after_power_cut(self, random: Random) -> bytes:
        """Draw what is there afterwards."""
        writes, body = self.unsynced, bytearray(self.certain)
        match random.choice(("none", "all", "torn", "any")):
            case "none":
                writes = []
            case "torn" if writes:
                writes = writes[: random.randint(1, len(writes))]
                offset, data = writes[-1]
                writes[-1] = (offset, data if data is None else data[: random.randrange(len(data) + 1)])
            case "any":
                writes = [write for write in writes if random.random() < 0.5]
        for offset, data in writes:
            _apply(body, offset, data)
        return bytes(body)


def _apply(body: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del body[offset:]
    else:
        body.extend(bytes(max(0, offset - len(body))))
        body[offset : offset + len(data)] = data


class SqliteDisk:
    """The SQLite files below a folder."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        _install()
        self.folder, self.ask = folder, ask
        self.files: dict[str, _Content] = {}
        _disks[f"{folder}{os.sep}"] = self

    def remove(self) -> None:
        del _disks[f"{self.folder}{os.sep}"]

    def cut_power(self, random: Random) -> int:
        """Leave what a power cut leaves; all connections are closed. Return how many files had unsynced writes."""
        torn = sum(bool(content.unsynced) for content in self.files.values())
        for path, content in sorted(self.files.items()):
            body = content.after_power_cut(random)
            Path(path).write_bytes(body)
            Path(f"{path}-shm").unlink(missing_ok=True)  # shared memory
        self.files.clear()
        return torn


_disks: dict[str, SqliteDisk] = {}
_open: dict[int, tuple[SqliteDisk, str]] = {}
"""Disk and path of an open file, by the address of its structure."""
_kept: list[Any] = []
"""What C refers to."""


def _disk_of(path: str) -> SqliteDisk | None:
    return next((disk for folder, disk in _disks.items() if path.startswith(folder)), None)


def _install() -> None:
    """Make a copy of SQLite's own VFS the default one, with our functions in it."""
    if _kept:
        return
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    real = library.sqlite3_vfs_find(None).contents
    ours = _Vfs.from_buffer_copy(real)
    real_open, real_delete = _OPEN(real.open), _DELETE(real.delete)
    methods: dict[int, Any] = {}
    """Our tables by the address of SQLite's."""

    def table(address: int) -> Any:
        if address not in methods:
            methods[address] = _methods(ctypes.cast(address, ctypes.POINTER(_Methods)).contents)
        return methods[address]

    def opened(vfs: int, name: int | None, file: Any, flags: int, out: int) -> int:
        code = real_open(vfs, name, file, flags, out)  # SQLite keeps the name's address
        path = ctypes.string_at(name).decode() if name else ""
        disk = _disk_of(path) if path else None
        if code or disk is None:
            return code
        if path not in disk.files:  # nobody has it open, so reading it here drops no lock
            disk.files[path] = _Content(bytearray(Path(path).read_bytes()))
        _open[ctypes.addressof(file.contents)] = (disk, path)
        file.contents.methods = table(ctypes.cast(file.contents.methods, ctypes.c_void_p).value or 0)
        return 0

    def deleted(vfs: int, name: bytes, sync: int) -> int:
        disk = _disk_of(name.decode())
        if disk is not None and disk.ask("delete"):
            return _IO_DELETE
        code = real_delete(vfs, name, sync)
        if disk is not None and not code:
            disk.files.pop(name.decode(), None)
        return code

    callbacks = _OPEN(opened), _DELETE(deleted)
    ours.open, ours.delete = (ctypes.cast(callback, ctypes.c_void_p).value for callback in callbacks)
    ours.name = b"ctxsteward-simulation"
    _kept.extend((library, ours, callbacks, methods))
    library.sqlite3_vfs_register(ctypes.byref(ours), 1)


def _methods(real: _Methods) -> Any:
    """SQLite's table of a file's functions, with ours in front of those that write."""
    ours = _Methods.from_buffer_copy(real)
    write, truncate, sync, close = _WRITE(real.write), _TRUNCATE(real.truncate), _SYNC(real.sync), _CLOSE(real.close)

    def written(file: int, data: int, count: int, offset: int) -> int:
        disk, path = _open[file]
        fault = disk.ask("write")
        if fault:
            return _FULL if fault == "ENOSPC" else _IO_WRITE
        code = write(file, data, count, offset)
        if not code:
            disk.files[path].unsynced.append((offset, ctypes.string_at(data, count)))
        return code

    def truncated(file: int, length: int) -> int:
        disk, path = _open[file]
        if disk.ask("truncate"):
            return _IO_TRUNCATE
        code = truncate(file, length)
        if not code:
            disk.files[path].unsynced.append((length, None))
        return code

    def synced(file: int, flags: int) -> int:
        disk, path = _open[file]
        if disk.ask("sync"):
            return _IO_FSYNC
        disk.files[path].sync()
        return 0

    def closed(file: int) -> int:
        _open.pop(file, None)
        return close(file)

    made = {"write": _WRITE(written), "truncate": _TRUNCATE(truncated), "sync": _SYNC(synced), "close": _CLOSE(closed)}
    for name, callback in made.items():
        setattr(ours, name, ctypes.cast(callback, ctypes.c_void_p).value)
    _kept.append((real, write, truncate, sync, close, made, ours))
    return ctypes.pointer(ours)


class ObjectDisk:
    """A `create_once.Disk` below a folder: names are certain once their folder, bytes once their file was synced."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        self._ask, self._graves = ask, folder.with_name(f"{folder.name}-removed")
        self._graves.mkdir()
        self._paths: dict[int, Path] = {}
        self._names: list[tuple[str, Path, int]] = []
        """Unsynced changes of names: kind, path, and inode or number of the removed file."""
        self._dirty: set[int] = set()
        """Inodes of unsynced files."""
        self._count = 0

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        self._do("open")
        descriptor = os.open(path, flags, mode)
        self._paths[descriptor] = path
        if flags & os.O_CREAT:
            self._names.append(("made", path, os.fstat(descriptor).st_ino))
        return descriptor

    def write(self, descriptor: int, data: memoryview, /) -> int:
        self._do("write")
        self._dirty.add(os.fstat(descriptor).st_ino)
        return os.write(descriptor, data)

    def fsync(self, fd: int) -> None:
        self._do("sync")
        path = self._paths[fd]
        if path.is_dir():
            self._names = [change for change in self._names if change[1].parent != path]
        else:
            self._dirty.discard(os.fstat(fd).st_ino)

    def close(self, fd: int) -> None:
        del self._paths[fd]
        os.close(fd)

    def link(self, src: Path, dst: Path) -> None:
        self._do("link")
        os.link(src, dst)
        self._names.append(("made", dst, os.stat(dst).st_ino))

    def unlink(self, path: Path) -> None:
        self._do("delete")
        self._count += 1
        os.rename(path, self._graves / str(self._count))
        self._names.append(("removed", path, self._count))

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._do("mkdir")
        os.mkdir(path, mode)
        self._names.append(("made", path, os.stat(path).st_ino))

    def _do(self, what: str) -> None:
        fault = self._ask(what)
        if fault:
            code = errno.ENOSPC if fault == "ENOSPC" else errno.EIO
            raise OSError(code, os.strerror(code))

    def cut_power(self, random: Random) -> int:
        """Leave what a power cut leaves. Return how many changes were not synced."""
        unsure = len(self._names) + len(self._dirty)
        for kind, path, number in reversed(self._names):
            if random.random() < 0.5:
                continue  # it had reached the disk
            if kind == "removed":
                if not path.exists():
                    os.rename(self._graves / str(number), path)
            elif path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.exists() and path.stat().st_ino == number:
                path.unlink()
        for folder, _, names in os.walk(self._graves.with_name(self._graves.name.removesuffix("-removed"))):
            for path in (Path(folder, name) for name in sorted(names)):
                if path.stat().st_ino in self._dirty:
                    body = path.read_bytes()
                    path.write_bytes(random.choice((b"", body[: len(body) // 2], bytes(len(body)), body)))
        self._names.clear()
        self._dirty.clear()
        return unsure
