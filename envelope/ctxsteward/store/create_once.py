"""Create a file whole or not at all, and never over another one. For objects, keys and `journal.id`.

A temporary file beside it is written and fsynced, then linked to its name, then the folder is fsynced: after a crash
at any point the name is absent or holds every byte. `rename` would overwrite, so it is never used for this. A folder is
made only after the folder above it is durable. Where a folder is there already, the one above it is fsynced all the
same: another process may have made it and been killed before its own fsync.

A crash can leave a temporary file, named ``<name>.<16 hex digits>.tmp``; it is never the object.

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
    """The calls that decide what survives a crash."""

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int: ...
    def write(self, descriptor: int, data: memoryview, /) -> int: ...
    def fsync(self, fd: int) -> None: ...
    def close(self, fd: int) -> None: ...
    def link(self, src: Path, dst: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def mkdir(self, path: Path, mode: int = 0o777) -> None: ...


class Unsettled(OSError):
    """The name may be there, and may or may not be there after a crash."""


def create(path: Path, data: bytes, *, mode: int = 0o600, disk: Disk = os) -> bool:
    """Create `path` with this content and mode, whatever the umask; False where it exists already, and durably.

    Raises `OSError` where nothing was created, its subclass `Unsettled` where that cannot be said.
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
            if error.errno == errno.EIO:  # a network file system may have done it and lost the answer
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
    """Remove a file and what a crash may have left of it, durably; a missing one is fine."""
    if not path.parent.is_dir():
        return
    left = [path.with_name(name) for name in os.listdir(path.parent) if name_of_temporary(name) == path.name]
    for each in (path, *left):
        with suppress(FileNotFoundError):
            disk.unlink(each)
    sync_folder(path.parent, disk=disk)


def make_folders(folder: Path, *, mode: int = 0o700, disk: Disk = os) -> None:
    """Create a folder and its parents, those that are missing, with this mode and each durable in its own parent."""
    if folder.is_dir():
        with suppress(PermissionError):  # a parent we may not read is not one we or our neighbours make folders in
            sync_folder(folder.parent, disk=disk)
        return
    make_folders(folder.parent, mode=mode, disk=disk)
    with suppress(FileExistsError):
        disk.mkdir(folder, mode)
        os.chmod(folder, mode)  # past the umask
    sync_folder(folder.parent, disk=disk)


def sync_folder(folder: Path, *, disk: Disk = os) -> None:
    """Make the names in a folder durable."""
    descriptor = disk.open(folder, os.O_RDONLY)
    try:
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)


def name_of_temporary(name: str) -> str | None:
    """The name that a temporary file was to get; None for any other file."""
    found = _TEMPORARY.fullmatch(name)
    return found[1] if found else None


def _write(path: Path, data: bytes, mode: int, disk: Disk) -> None:
    descriptor = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        os.fchmod(descriptor, mode)  # past the umask
        view = memoryview(data)
        while view:
            written = disk.write(descriptor, view)
            if written < 1:  # or it would be tried for ever
                raise OSError(errno.EIO, "the disk takes no more bytes", str(path))
            view = view[written:]
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)
