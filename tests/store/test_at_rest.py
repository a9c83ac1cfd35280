"""What lies on the disk is its owner's alone to read, and a store that is dropped leaves nothing open or running."""

from __future__ import annotations

import gc
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store, open_store
from ctxsteward.envelope.cards import cards_of
from ctxsteward.steward.ledger.database import LedgerDatabase

JOIN_SECONDS = 30


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def used(store: Store) -> None:
    """Everything that a store writes has been written."""
    session = store.session("s", tenant="acme")
    session.append(user("Where is order FH-2044?"), id="a", principal="ann")
    EnvelopeBuilder(model="gpt-4o").build(session)
    store.profiles("support", tenant="acme").commit(
        Profile.from_text("Be calm."), who="ada", why="test", when="2026-11-22T04:00:00Z"
    )
    cards_of(session)
    store.flush(JOIN_SECONDS)


def modes(folder: Path) -> dict[Path, str]:
    """Of everything in a folder."""
    return {path: f"{stat.S_IMODE(path.lstat().st_mode):o}" for path in (folder, *folder.rglob("*"))}


_BESIDE = ("", "-wal", "-shm")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_whatever_is_written_is_its_owners_alone_under_any_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        root = tmp_path / "made" / "here"
        with open_store(f"file:{root}/store", journal=root / "journal") as store:
            used(store)
            ledger = LedgerDatabase(root / "ledgers" / "ledger.sqlite", "test")
            ledger.run("INSERT INTO about VALUES ('x', '1')")
            found = modes(tmp_path / "made")
            folders = {path for path in found if path.is_dir()}
            ledger.close()
    names = {path.name for path in found}
    databases = [f"{name}.sqlite{beside}" for name in ("journal", "ledger") for beside in _BESIDE]
    assert names.issuperset((*databases, "drain.lock"))
    assert any(name.endswith(".key") for name in names)
    assert sum(name.endswith(".json") for name in names) >= 3  # objects
    assert found == {path: "700" if path in folders else "600" for path in found}


def test_what_an_earlier_version_left_open_is_closed_to_others_and_a_folder_of_yours_is_yours(tmp_path: Path) -> None:
    folder = tmp_path / "yours"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with open_store(f"file:{folder}") as store:
        used(store)
    (folder / "journal.sqlite").chmod(0o644)
    with open_store(f"file:{folder}") as store:
        used(store)
        found = {path.name: mode for path, mode in modes(folder).items() if "sqlite" in path.name}
    assert found == {f"journal.sqlite{beside}": "600" for beside in _BESIDE}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_file_of_another_program_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"something else altogether, and long enough to be no empty database file" * 10)
    path.chmod(0o644)
    with pytest.raises(Exception, match="not a database"):
        open_store(f"file:{tmp_path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


# -- dropped -----------------------------------------------------------------------------------------------


def open_below(folder: Path) -> list[str]:
    """Files of a folder that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if path.startswith(str(folder)):
            found.append(path)
    return found


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param(lambda folder: open_store(f"file:{folder}"), id="journal in the store"),
        pytest.param(lambda folder: open_store(f"file:{folder}/o", journal=folder / "j"), id="drained"),
    ],
)
def test_a_store_dropped_without_close_leaves_no_thread_and_no_descriptor(
    tmp_path: Path, opened: Callable[[Path], Store]
) -> None:
    before = set(threading.enumerate())
    store = opened(tmp_path)
    used(store)
    started = set(threading.enumerate()) - before
    assert open_below(tmp_path)
    del store
    end = time.monotonic() + JOIN_SECONDS
    while any(thread.is_alive() for thread in started) and time.monotonic() < end:
        gc.collect()  # a thread in the midst of a pass keeps what an earlier collection would have found
        time.sleep(0.01)
    gc.collect()
    assert [thread.name for thread in started if thread.is_alive()] == []
    assert open_below(tmp_path) == []
