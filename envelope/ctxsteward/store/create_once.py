"""Create a file completely or not at all, and never overwrite one. Used for objects, keys and `journal.id`.

`create` writes and fsyncs a temporary file, links it to the final name, and fsyncs the folder. After a crash at any
point the name is absent or the file is complete. `rename` would overwrite, so it is not used. A folder is made only
after its parent is durable. The parent of an existing folder is fsynced as well, because another process may have made
the folder and been killed before its own fsync.

A crash can leave a temporary file, named ``<name>.<16 hex digits>.tmp``. It is never read as the object.

`disk` has the calls to the operating system, by default the module `os`; tests pass a double that records them.
Raises `OSError`. Source: POSIX `link(2)`, `fsync(2)`; the durable create-if-absent of the state design.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Protocol

TEMPORARY_SUFFIX = ".tmp"
_TEMPORARY = re.compile(r"(.+)\.[0-9a-f]{16}\.tmp")


class Disk(Protocol):
    """The calls to the operating system on which durability depends."""

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int: ...
    def write(self, descriptor: int, data: memoryview, /) -> int: ...
    def fsync(self, fd: int) -> None: ...
    def close(self, fd: int) -> None: ...
    def link(self, src: Path, dst: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def mkdir(self, path: Path, mode: int = 0o777) -> None: ...


class Unsettled(OSError):
    """The file may or may not have been created, and may or may not survive a crash."""


def create(path: Path, data: bytes, *, mode: int = 0o600, disk: Disk = os) -> bool:
    """Create `path` durably with this content and mode, under any umask; return False if it exists already.

    Raises `OSError` if nothing was created, and its subclass `Unsettled` if that is not known.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        _write(temporary, data, mode, disk)
        try:
            disk.link(temporary, path)
            created = True
        except FileExistsError:
            created = False
        except OSError as error:
            if error.errno == errno.EIO:  # a network file system may have made the link and lost the answer
                raise Unsettled(error.errno, error.strerror, str(path)) from error
            raise
    finally:
        with suppress(OSError):
            disk.unlink(temporary)
    try:
        sync_folder(path.parent, disk=disk)
    except OSError as error:
        raise Unsettled(error.errno, error.strerror, str(path)) from error
    return created


def remove(path: Path, *, disk: Disk = os) -> None:
    """Remove a file and its temporary files durably. A missing file is no error."""
    if not path.parent.is_dir():
        return
    left = [path.with_name(name) for name in os.listdir(path.parent) if name_of_temporary(name) == path.name]
    for each in (path, *left):
        with suppress(FileNotFoundError):
            disk.unlink(each)
    sync_folder(path.parent, disk=disk)


def make_folders(folder: Path, *, mode: int = 0o700, disk: Disk = os) -> None:
    """Create a folder and its missing parents with this mode; fsync the parent of each."""
    if folder.is_dir():
        with suppress(PermissionError):  # no process with our rights has made a folder in an unreadable parent
            sync_folder(folder.parent, disk=disk)
        return
    make_folders(folder.parent, mode=mode, disk=disk)
    with suppress(FileExistsError):
        disk.mkdir(folder, mode)
        os.chmod(folder, mode)  # `mkdir` applied the umask
    sync_folder(folder.parent, disk=disk)


def sync_folder(folder: Path, *, disk: Disk = os) -> None:
    """Fsync a folder, so that the names in it are durable."""
    descriptor = disk.open(folder, os.O_RDONLY)
    try:
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)


def name_of_temporary(name: str) -> str | None:
    """Return the final name for a temporary file's name, or None for any other file."""
    found = _TEMPORARY.fullmatch(name)
    return found[1] if found else None


def _write(path: Path, data: bytes, mode: int, disk: Disk) -> None:
    descriptor = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        os.fchmod(descriptor, mode)  # `open` applied the umask
        view = memoryview(data)
        while view:
            written = disk.write(descriptor, view)
            if written < 1:  # without this check the loop would not end
                raise OSError(errno.EIO, "the disk takes no more bytes", str(path))
            view = view[written:]
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)
