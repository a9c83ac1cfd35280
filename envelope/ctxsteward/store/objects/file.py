"""`file:`: objects as files below a folder; the path of a file is its key.

A put is `create_once.create`: after a crash at any point the object is absent or complete, and after the answer
`committed` it is durable. Modified times are the file system's. Temporary files that a crash left are never listed or
read; `temporaries` yields them, `sweep` removes old ones.

Raises `ObjectMissing`, `StoreUnavailable` (certainly not written: no space, no permission), `InputError` for an invalid
key. Works on local file systems and on network file systems that have hard links.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import ObjectMissing

from .. import create_once
from ..names import checked_key, checked_prefix, is_key
from .port import Leftover, ObjectInfo, ObjectStore, PutOutcome

_HINTS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of the quota",
    errno.EACCES: "let this user read and write there",
    errno.EPERM: "let this user write there, on a file system with hard links",
    errno.EROFS: "mount it writable",
    errno.ENOTDIR: "an object stands where a folder is needed: no key may be a folder of another",
    errno.EOPNOTSUPP: "use a file system with hard links",
}


class FileObjects(ObjectStore):
    """An `ObjectStore` below `root`, which is made at the first put."""

    def __init__(self, root: Path, *, now: Callable[[], float] = time.time, disk: create_once.Disk = os) -> None:
        self.root = root
        self._now, self._disk = now, disk
        self._durable: set[Path] = set()
        """Folders whose names this process has made durable."""
        self._was_there = False

    @property
    def uri(self) -> str:
        return f"file:{self.root}"

    def put(self, key: str, body: bytes) -> PutOutcome:
        path = self._path(key)
        try:
            self._make_folder(path.parent)
            return "committed" if create_once.create(path, body, disk=self._disk) else "conflicted"
        except (create_once.Unsettled, FileNotFoundError):  # not found: another process is removing key or folder
            return "unknown"
        except OSError as error:
            raise _unavailable(path, "was not written", error) from error

    def get(self, key: str) -> bytes:
        path = self._path(key)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            self._check_root()
            raise ObjectMissing(key) from error
        except OSError as error:
            raise _unavailable(path, "cannot be read", error) from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        checked_prefix(prefix)
        folder, slash, _ = prefix.rpartition("/")
        yield from self._walk(folder + slash, prefix, after)

    def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            create_once.remove(path, disk=self._disk)
        except (NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise _unavailable(path, "was not removed for good", error) from error

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def make_durable(self, key: str) -> None:
        path = self._path(key)  # its bytes and its folder were synced before it had a name
        try:
            create_once.sync_folder(path.parent, disk=self._disk)
        except OSError as error:
            raise _unavailable(path, "was not made durable", error) from error

    def temporaries(self) -> Iterator[Leftover]:
        """Yield the temporary files below the root, in no order."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                if create_once.name_of_temporary(name) is not None:
                    path = Path(folder, name)
                    try:
                        status = path.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # finished meanwhile
                    yield Leftover(path, status.st_size, self._now() - status.st_mtime)

    def sweep(self, older_than_seconds: float) -> int:
        """Remove temporary files of at least this age and return their number."""
        old = [left.path for left in self.temporaries() if left.age_seconds >= older_than_seconds]
        for path in old:
            try:
                create_once.remove(path, disk=self._disk)
            except OSError as error:
                raise _unavailable(path, "was not removed for good", error) from error
        return len(old)

    def _check_root(self) -> None:
        """Raise `StoreUnavailable` if the root has disappeared: an unmounted or moved root does not prove that an
        object is missing."""
        was_there = self._was_there  # read first, because another thread may make the folder in between
        there = self.root.is_dir()
        if was_there and not there:
            raise StoreUnavailable(f"{self.root} is gone; mount it, or put it back")
        self._was_there = there

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*checked_key(key).split("/"))

    def _make_folder(self, folder: Path) -> None:
        if folder not in self._durable or not folder.is_dir():
            create_once.make_folders(folder, disk=self._disk)
            self._durable.add(folder)
            self._was_there = True

    def _walk(self, inside: str, prefix: str, after: str) -> Iterator[ObjectInfo]:
        """Yield objects below `inside`. A folder sorts by its name and slash, so that keys come in byte order."""
        for name, entry in self._entries(inside):
            key = inside + name
            if name.endswith("/"):
                wanted = key.startswith(prefix) or prefix.startswith(key)
                if wanted and (key > after or after.startswith(key)):
                    yield from self._walk(key, prefix, after)
            elif key.startswith(prefix) and key > after:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # deleted meanwhile
                yield ObjectInfo(key, status.st_size, status.st_mtime)

    def _entries(self, inside: str) -> Sequence[tuple[str, os.DirEntry[str]]]:
        """Return folders (with a slash) and objects in one folder, sorted."""
        folder = self.root / inside
        try:
            with os.scandir(folder) as entries:
                pairs = [(_listed(entry), entry) for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            self._check_root()
            return ()
        except OSError as error:
            raise _unavailable(folder, "cannot be listed", error) from error
        return sorted(((name, entry) for name, entry in pairs if name), key=lambda pair: pair[0])


def _listed(entry: os.DirEntry[str]) -> str:
    """Return the entry's part of a key, or "" if it is not an object or a folder of objects."""
    if entry.is_dir(follow_symlinks=False):
        return f"{entry.name}/" if is_key(f"{entry.name}/x") else ""
    return entry.name if is_key(entry.name) and entry.is_file(follow_symlinks=False) else ""


def _unavailable(path: Path, what: str, error: OSError) -> StoreUnavailable:
    hint = _HINTS.get(error.errno or 0, "check the disk and its mount")
    return StoreUnavailable(f"{path} {what}: {error.strerror or error}; {hint}")
