"""What a file system may hold after a crash: a disk that records, and every state that POSIX allows afterwards.

    disk = RecordingDisk(base)                   # does everything for real below `base`, and writes it down
    FileObjects(base / "store", disk=disk).put(…)
    disk.note("committed a/b")                   # what was acknowledged, and when
    for crash in disk.crashes():                 # at every point, every state
        crash.lay_out(empty_folder); crash.noted # what had been acknowledged by then

The model, harsher than any one file system:

- A name in a folder (made by open, link, mkdir; taken away by unlink) is certain only once that folder was fsynced
  after it. Until then any subset of the changes may have reached the disk, in their own order for one name.
- A file's bytes are certain only once the file was fsynced after the write. Until then it may be empty, hold half of
  them, as many zeros, or all.
- Fsyncing a file makes no name of it certain, fsyncing a folder no byte.

`forgets` names fsyncs that are claimed and not done: the mutants. `kill_before` makes the process die at the n-th
call: nothing after it happens, all calls of it raise `Killed`.

Source: POSIX fsync(2), link(2), rename(2); the crash states of "All File Systems Are Not Created Equal" (OSDI 2014).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NamedTuple

_NAMES = ("name", "mkdir", "unname")
_VARIANTS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: b"",
    lambda data: data[: len(data) // 2],
    lambda data: bytes(len(data)),
    lambda data: data,
)


class Killed(BaseException):
    """The process is gone."""


class Call(NamedTuple):
    kind: str
    """name, mkdir, unname, write, fsync, or note."""
    folder: int
    """The folder's inode (name, mkdir, unname), else the inode itself (write, fsync), else 0."""
    name: str = ""
    inode: int = 0
    data: bytes = b""


@dataclass
class Crash:
    """One state after one crash."""

    names: dict[int, dict[str, int]]
    """Folder inode → name → inode."""
    contents: dict[int, bytes]
    """File inode → bytes; the others are folders."""
    root: int
    noted: tuple[str, ...]

    def lay_out(self, folder: Path) -> None:
        """Make it real below an empty folder."""
        self._lay(self.root, folder)

    def _lay(self, inode: int, folder: Path) -> None:
        for name, child in self.names.get(inode, {}).items():
            if child in self.contents:
                (folder / name).write_bytes(self.contents[child])
            else:
                (folder / name).mkdir()
                self._lay(child, folder / name)


@dataclass
class RecordingDisk:
    """An `create_once.Disk` below `base`; everything that was there before is certain."""

    base: Path
    forgets: Callable[[Path], bool] = lambda path: False
    kill_before: int | None = None
    calls: list[Call] = field(default_factory=list)
    count: int = 0
    _open: dict[int, Path] = field(default_factory=dict)

    # -- the port --------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        self._step()
        descriptor = os.open(path, flags, mode)
        self._open[descriptor] = path
        if flags & os.O_CREAT:
            self._name("name", path)
            self._keep(path)
        return descriptor

    def write(self, descriptor: int, data: memoryview, /) -> int:
        self._step()
        written = os.write(descriptor, data)
        self.calls.append(Call("write", os.fstat(descriptor).st_ino, data=bytes(data[:written])))
        return written

    def fsync(self, fd: int) -> None:
        self._step()
        if not self.forgets(self._open[fd]):
            self.calls.append(Call("fsync", os.fstat(fd).st_ino))

    def close(self, fd: int) -> None:
        if fd in self._open:  # a killed process has closed it already
            del self._open[fd]
            os.close(fd)
        self._step()

    def link(self, src: Path, dst: Path) -> None:
        self._step()
        os.link(src, dst)
        self._name("name", dst)

    def unlink(self, path: Path) -> None:
        self._step()
        inode = os.stat(path).st_ino
        os.unlink(path)
        self.calls.append(Call("unname", os.stat(path.parent).st_ino, path.name, inode))

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._step()
        os.mkdir(path, mode)
        self._name("mkdir", path)

    # -- the record ------------------------------------------------------------------------------------

    def note(self, what: str) -> None:
        self.calls.append(Call("note", 0, what))

    def revive(self) -> None:
        """The next process, on the same disk."""
        self.kill_before = None

    def crashes(self) -> Iterator[Crash]:
        """Every state after a crash at every point."""
        for point in range(len(self.calls) + 1):
            yield from _states(self.calls[:point], self.base.stat().st_ino)

    def _name(self, kind: str, path: Path) -> None:
        self.calls.append(Call(kind, os.stat(path.parent).st_ino, path.name, os.stat(path).st_ino))

    def _keep(self, path: Path) -> None:
        """Hold on to the inode, or its number would come again for another file."""
        kept = self.base / "kept"
        kept.mkdir(exist_ok=True)
        os.link(path, kept / str(len(self.calls)))

    def _step(self) -> None:
        self.count += 1
        if self.kill_before is not None and self.count >= self.kill_before:
            for descriptor in self._open:
                os.close(descriptor)
            self._open.clear()
            raise Killed


def _states(calls: list[Call], root: int) -> Iterator[Crash]:
    certain, unsure = [], []
    contents = _contents(calls)
    for at, call in enumerate(calls):
        if call.kind in _NAMES:
            synced = any(later.kind == "fsync" and later.folder == call.folder for later in calls[at:])
            (certain if synced else unsure).append((at, call))
    noted = tuple(call.name for call in calls if call.kind == "note")
    for chosen in product((True, False), repeat=len(unsure)):
        happened = sorted(certain + [change for change, kept in zip(unsure, chosen, strict=True) if kept])
        names: dict[int, dict[str, int]] = {}
        for _, call in happened:
            entries = names.setdefault(call.folder, {})
            if call.kind != "unname":
                entries[call.name] = call.inode
            elif entries.get(call.name) == call.inode:
                del entries[call.name]
        reachable = {inode for entries in names.values() for inode in entries.values()} & contents.keys()
        for bodies in product(*(sorted(contents[inode]) for inode in sorted(reachable))):
            yield Crash(names, dict(zip(sorted(reachable), bodies, strict=True)), root, noted)


def _contents(calls: list[Call]) -> dict[int, set[bytes]]:
    """Each file's possible bytes."""
    written: dict[int, bytes] = {}
    synced: dict[int, bytes] = {}
    files = {call.inode for call in calls if call.kind == "name"}
    for call in calls:
        if call.kind == "write":
            written[call.folder] = written.get(call.folder, b"") + call.data
        elif call.kind == "fsync":
            synced[call.folder] = written.get(call.folder, b"")
    possible = {}
    for inode in files:
        sure = synced.get(inode, b"")
        rest = written.get(inode, b"")[len(sure) :]
        possible[inode] = {sure + variant(rest) for variant in _VARIANTS}
    return possible
