"""Objects as files: what a crash, a full disk or a missing permission can leave, and what it cannot."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store.objects.file import FileObjects

from ...examples import SOAK
from .crash_disk import Crash, Killed, RecordingDisk

KEY = "a/b/1.json"
BODY = b"the whole of it"


# -- leftovers ---------------------------------------------------------------------------------------------


def leftover(root: Path, key: str, body: bytes = b"half", *, age_seconds: float = 0.0, now: float = 1e9) -> Path:
    path = root / f"{key}.0123456789abcdef.tmp"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    os.utime(path, (now - age_seconds, now - age_seconds))
    return path


def test_an_unfinished_file_is_no_object_and_is_shown_with_its_age(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path, now=lambda: 1e9)
    objects.put("a/1", BODY)
    path = leftover(tmp_path, "a/2", age_seconds=3_600)

    assert [found.key for found in objects.list("")] == ["a/1"]
    with pytest.raises(ObjectMissing):
        objects.get("a/2")
    assert list(objects.temporaries()) == [(path, 4, 3_600.0)]


def test_a_sweep_spares_what_may_still_be_written(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path, now=lambda: 1e9)
    objects.put("a/1", BODY)
    old, new = leftover(tmp_path, "a/2", age_seconds=3_600), leftover(tmp_path, "b/2", age_seconds=10)

    assert objects.sweep(older_than_seconds=3_600) == 1
    assert (old.exists(), new.exists()) == (False, True)
    assert objects.get("a/1") == BODY


def test_deleting_an_object_leaves_no_half_of_it_behind(tmp_path: Path) -> None:
    """A data key that is destroyed must not survive in what an earlier crash left."""
    objects = FileObjects(tmp_path)
    objects.put("keys/s", BODY)
    leftover(tmp_path, "keys/s", BODY)
    neighbour = leftover(tmp_path, "keys/s2", BODY)

    objects.delete("keys/s")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [neighbour]


def test_what_is_not_ours_is_not_listed(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    objects.put("a/1", BODY)
    (tmp_path / "a" / "no key.json").write_bytes(b"")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "1")
    (tmp_path / "lost found").mkdir()
    (tmp_path / "lost found" / "1").write_bytes(b"")

    assert [found.key for found in objects.list("")] == ["a/1"]


def test_a_removed_folder_is_made_again(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path / "store")
    objects.put("a/1", BODY)
    for path in (tmp_path / "store/a/1", tmp_path / "store/a", tmp_path / "store"):
        path.unlink() if path.is_file() else path.rmdir()

    assert objects.put("a/1", BODY) == "committed"
    assert objects.get("a/1") == BODY


def test_an_object_where_a_folder_is_needed_is_said(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    objects.put("a", BODY)

    with pytest.raises(StoreUnavailable, match="an object stands where a folder is needed"):
        objects.put("a/b", BODY)
    with pytest.raises(ObjectMissing):
        objects.get("a/b")


# -- a disk that fails -------------------------------------------------------------------------------------


@dataclass
class FailingDisk:
    """The real one, but the n-th call of one kind fails, or every one."""

    fails: str
    error: int
    nth: int | None = None
    count: int = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._failing(real) if name == self.fails else real

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.count += 1
            if self.nth is None or self.count == self.nth:
                raise OSError(self.error, os.strerror(self.error))
            return real(*arguments)

        return call


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        pytest.param("write", errno.ENOSPC, "No space left on device; free some space", id="full"),
        pytest.param("write", errno.EDQUOT, "free some of the quota", id="over quota"),
        pytest.param("open", errno.EACCES, "Permission denied; let this user read and write there", id="no permission"),
        pytest.param("open", errno.EROFS, "Read-only file system; mount it writable", id="read-only"),
        pytest.param("write", errno.EIO, "Input/output error; check the disk", id="bad disk while writing"),
        pytest.param("fsync", errno.EIO, "Input/output error; check the disk", id="bad disk while syncing the file"),
        pytest.param("link", errno.EPERM, "on a file system with hard links", id="no hard links"),
        pytest.param("link", errno.ENOSPC, "free some space", id="no room for the name"),
        pytest.param("mkdir", errno.ENOSPC, "free some space", id="no room for a folder"),
    ],
)
def test_what_was_certainly_not_written_says_path_and_reason(
    tmp_path: Path, call: str, error: int, message: str
) -> None:
    (tmp_path / "a").mkdir()
    objects = FileObjects(tmp_path, disk=FailingDisk(call, error))

    with pytest.raises(
        StoreUnavailable, match=f"{tmp_path}/a/b was not written: .*{message}" if call != "mkdir" else message
    ):
        objects.put("a/b" if call != "mkdir" else "new/b", BODY)

    assert list(objects.list("")) == []
    assert list(objects.temporaries()) == []


@pytest.mark.parametrize(
    ("call", "nth", "there"),
    [
        pytest.param("link", 1, False, id="the link itself may have happened"),
        pytest.param("fsync", 3, True, id="its folder could not be synced"),
    ],
)
def test_an_io_error_after_the_link_is_unknown(tmp_path: Path, call: str, nth: int, there: bool) -> None:
    (tmp_path / "a").mkdir()
    objects = FileObjects(tmp_path, disk=FailingDisk(call, errno.EIO, nth))

    assert objects.put("a/b", BODY) == "unknown"

    assert [found.key for found in objects.list("")] == (["a/b"] if there else [])
    assert objects.put("a/b", BODY) == ("conflicted" if there else "committed")
    assert objects.get("a/b") == BODY


def test_a_leftover_that_cannot_be_removed_does_not_undo_the_put(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path, disk=FailingDisk("unlink", errno.EIO, 1))

    assert objects.put("a/b", BODY) == "committed"
    assert [left.size_bytes for left in objects.temporaries()] == [len(BODY)]
    assert [found.key for found in objects.list("")] == ["a/b"]


def test_what_cannot_be_read_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")
    objects = FileObjects(tmp_path)

    with pytest.raises(StoreUnavailable, match="cannot be read: Too many levels of symbolic links; check the disk"):
        objects.get("a/b")
    with pytest.raises(StoreUnavailable, match="cannot be listed"):
        list(objects.list("a/"))


def test_a_store_whose_folder_is_gone_does_not_say_that_it_is_empty(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path / "store")
    assert list(objects.list("")) == []  # a new one is
    objects.put("a/1", BODY)
    (tmp_path / "store").rename(tmp_path / "unmounted")

    for ask in (lambda: list(objects.list("")), lambda: objects.get("a/1"), lambda: objects.get("a/2")):
        with pytest.raises(StoreUnavailable, match="store is gone; mount it, or put it back"):
            ask()

    (tmp_path / "unmounted").rename(tmp_path / "store")
    assert objects.get("a/1") == BODY


@pytest.mark.parametrize("takes", [1, 4], ids=["byte by byte", "four at a time"])
def test_short_writes_are_gone_on_with(tmp_path: Path, takes: int) -> None:
    objects = FileObjects(tmp_path, disk=ShortDisk(takes))

    assert objects.put("a/b", BODY) == "committed"
    assert objects.get("a/b") == BODY


def test_a_disk_that_takes_nothing_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path, disk=ShortDisk(0))

    with pytest.raises(StoreUnavailable, match="a/b was not written: the disk takes no more bytes; check the disk"):
        objects.put("a/b", BODY)

    assert (list(objects.list("")), list(objects.temporaries())) == ([], [])


class ShortDisk:
    """The real one, but a write takes only so many bytes."""

    def __init__(self, takes: int) -> None:
        self.takes = takes

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: memoryview, /) -> int:
        return os.write(descriptor, data[: self.takes])


# -- crashes -----------------------------------------------------------------------------------------------

Step = tuple[str, str, bytes]
"""put or delete, key, body."""


def run(objects: FileObjects, disk: RecordingDisk, steps: list[Step]) -> None:
    """Do these, and note what was acknowledged."""
    for verb, key, body in steps:
        if verb == "put":
            outcome = objects.put(key, body)
            assert outcome in ("committed", "conflicted")
            disk.note(f"there {key}")
        else:
            objects.delete(key)
            disk.note(f"gone {key}")


def faults(crash: Crash, steps: list[Step]) -> tuple[str, ...]:
    """What is wrong with one state: torn, lost, risen again, or not writable any more."""
    found: list[str] = []
    with TemporaryDirectory() as folder:
        crash.lay_out(Path(folder))
        objects = FileObjects(Path(folder) / "store")
        listed = [info.key for info in objects.list("")]
        for key in {key for _, key, _ in steps}:
            bodies = {body for verb, of, body in steps if verb == "put" and of == key}
            try:
                state = "there" if objects.get(key) in bodies else "torn"
            except ObjectMissing:
                state = "gone"
            said = [note for note in crash.noted if note.endswith(f" {key}")]
            started = any(verb == "delete" and of == key for verb, of, _ in steps)
            if state == "torn" or (state == "there") != (key in listed):
                found.append(f"{key} is torn")
            elif said and said[-1].startswith("gone") and state != "gone":
                found.append(f"{key} has risen again")
            elif said and said[-1].startswith("there") and state != "there" and not started:
                found.append(f"{key} was acknowledged and is lost")
        free = {key for _, key, _ in steps} - set(listed)
        found += [f"{key} cannot be written any more" for key in free if objects.put(key, BODY) != "committed"]
    return tuple(found)


def all_faults(disk: RecordingDisk, steps: list[Step]) -> tuple[set[str], int]:
    """The faults of every state of every crash, and how many states there were."""
    found: set[str] = set()
    states = 0
    for crash in disk.crashes():
        states += 1
        found.update(faults(crash, steps))
    return found, states


PUTS: list[Step] = [("put", KEY, BODY), ("put", "a/b/2.json", b"another"), ("put", KEY, b"too late"), ("put", "c", b"")]
PUT_AND_DELETE: list[Step] = [("put", KEY, BODY), ("delete", KEY, b"")]


@pytest.mark.parametrize("steps", [PUTS, PUT_AND_DELETE], ids=["puts", "put and delete"])
def test_after_any_crash_an_object_is_absent_or_whole_and_an_acknowledged_one_is_there(
    tmp_path: Path, steps: list[Step]
) -> None:
    disk = RecordingDisk(tmp_path)
    run(FileObjects(tmp_path / "store", disk=disk), disk, steps)

    found, states = all_faults(disk, steps)

    assert found == set()
    assert states > 30


def test_a_killed_writer_leaves_its_successors_nothing_to_lose(tmp_path: Path) -> None:
    """The first process dies before any one of its calls; the next one finds folders and names that are not durable
    yet, answers, and then the machine goes down. With CTXSTEWARD_SOAK=1 at every call, else at every fourth."""
    steps: list[Step] = [("put", KEY, BODY), ("put", "a/b/2.json", b"another")]
    states, point = 0, 0
    while True:
        point += 1 if SOAK else 4
        base = tmp_path / str(point)
        base.mkdir()
        disk = RecordingDisk(base, kill_before=point)
        try:
            run(FileObjects(base / "store", disk=disk), disk, steps[:1])
        except Killed:
            disk.revive()
        else:
            break
        run(FileObjects(base / "store", disk=disk), disk, steps)

        found, more = all_faults(disk, steps)

        assert (point, found) == (point, set())
        states += more
    assert point > 15
    assert states > (1_000 if SOAK else 250)


@pytest.mark.parametrize(
    ("forgets", "fault"),
    [
        pytest.param(lambda path: not path.is_dir(), f"{KEY} is torn", id="the file"),
        pytest.param(lambda path: path.name == "b", f"{KEY} was acknowledged and is lost", id="its folder"),
        pytest.param(lambda path: path.name == "a", f"{KEY} was acknowledged and is lost", id="the folder above"),
        pytest.param(lambda path: path.name == "store", "c was acknowledged and is lost", id="the store's folder"),
    ],
)
def test_a_forgotten_fsync_is_found_out(tmp_path: Path, forgets: Callable[[Path], bool], fault: str) -> None:
    """Mutants: each leaves out one kind of fsync that `exclusive` does."""
    disk = RecordingDisk(tmp_path, forgets=forgets)
    run(FileObjects(tmp_path / "store", disk=disk), disk, PUTS)

    assert any(fault in faults(crash, PUTS) for crash in disk.crashes())


def test_a_forgotten_fsync_lets_a_deleted_object_rise_again(tmp_path: Path) -> None:
    disk = RecordingDisk(tmp_path)
    objects = FileObjects(tmp_path / "store", disk=disk)
    run(objects, disk, PUT_AND_DELETE[:1])
    disk.forgets = lambda path: path.name == "b"
    run(objects, disk, PUT_AND_DELETE[1:])

    found, _ = all_faults(disk, PUT_AND_DELETE)

    assert found == {f"{KEY} has risen again"}
