"""The journal's file: its version, what is left in it, and a disk that is full, locked, read-only or damaged."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ctxsteward.schemas import StoreError, StoreLocked
from ctxsteward.schemas.errors import Conflict, Damaged, UnsupportedVersion
from ctxsteward.store.journal.database import LAYOUT_VERSION
from ctxsteward.store.journal.port import DrainMark, JournalRecord, SessionKey, WaitingLog
from ctxsteward.store.journal.sqlite import FileJournal

from ...simulation.disk import SqliteDisk
from .journals import KEY, OTHER, in_threads, message, note

CANARY = "canary-5e1f"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[FileJournal]:
    opened = FileJournal(tmp_path, busy_seconds=0.1)
    yield opened
    opened.close()


def other_connection(root: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(root / "journal.sqlite", isolation_level=None, timeout=0))


# -- version -----------------------------------------------------------------------------------------------


def test_a_new_file_carries_the_layout_version(journal: FileJournal, tmp_path: Path) -> None:
    with other_connection(tmp_path) as db:
        assert db.execute("PRAGMA user_version").fetchall() == [(LAYOUT_VERSION,)]
        assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(0, StoreError, id="tables without a version"),
        pytest.param(1, StoreError, id="an earlier one"),
        pytest.param(2, StoreError, id="the version before with other tables"),
        pytest.param(LAYOUT_VERSION + 1, UnsupportedVersion, id="a later one"),
    ],
)
def test_a_file_of_another_layout_is_refused_and_left_as_it_is(
    tmp_path: Path, version: int, error: type[StoreError]
) -> None:
    with other_connection(tmp_path) as db:
        db.execute("CREATE TABLE records (x)")
        db.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / "journal.sqlite").read_bytes()
    with pytest.raises(error, match=str(version)) as refused:
        FileJournal(tmp_path)
    assert type(refused.value) is error
    assert "journal.sqlite" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["journal.sqlite"]
    assert (tmp_path / "journal.sqlite").read_bytes() == before


def test_a_journal_keeps_its_name_and_everything_else(tmp_path: Path) -> None:
    first = FileJournal(tmp_path, draw_id=lambda: "first")
    first.append(KEY, 0, [note("a")])
    first.close()
    second = FileJournal(tmp_path, draw_id=lambda: "second")
    assert (second.id, second.read(KEY, 0)) == ("first", [note("a")])
    second.close()


def test_logs_written_before_there_was_a_store_to_drain_to_wait_once_there_is(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as alone:
        alone.append(KEY, 0, [note("a")])
        alone.append(OTHER, 0, [note("b"), note("c")])
        alone.put_manifest(KEY, "ab", "{}")
    for _ in range(2):
        with closing(FileJournal(tmp_path, drains=True)) as draining:
            assert draining.waiting() == [WaitingLog(KEY, DrainMark(), 1, 0), WaitingLog(OTHER, DrainMark(), 2, 0)]
            assert draining.waiting_bytes() == sum(len(note(text).body) for text in "abc")


def test_two_openers_of_a_folder_see_each_other_s_writes_at_once(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path, drains=True)) as one, closing(FileJournal(tmp_path, drains=True)) as two:
        for n in range(0, 10, 2):
            one.append(KEY, n, [note(f"{n}")])
            with pytest.raises(Conflict):
                two.append(KEY, n, [note("late")])
            two.append(KEY, n + 1, [note(f"{n + 1}")])
        assert one.read(KEY, 0) == two.read(KEY, 0) == [note(f"{n}") for n in range(10)]
        one.truncate(KEY, 4)
        with pytest.raises(Conflict):
            two.append(KEY, 4, [note("of the old generation")])
        two.set_drained(KEY, DrainMark(4, 1, 1))
        one.append(KEY, 4, [note("last")], generation=1)
        assert one.waiting_bytes() == len(note("last").body)
        assert (one.id, one.waiting()) == (two.id, two.waiting())


# -- durability --------------------------------------------------------------------------------------------


def test_what_was_acknowledged_is_in_the_files_and_every_commit_is_fsynced(
    journal: FileJournal, tmp_path: Path
) -> None:
    """A copy of the files is what a crash of the machine would leave at least: `synchronous = FULL` is 2."""
    assert journal._writer.db.execute("PRAGMA synchronous").fetchall() == [(2,)]
    journal.append(KEY, 0, [note("a"), note("b")])
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob("journal.sqlite*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, copy)
    with closing(FileJournal(copy)) as recovered:
        assert recovered.read(KEY, 0) == [note("a"), note("b")]


# -- scrubbing ---------------------------------------------------------------------------------------------


def traces(root: Path) -> list[str]:
    """Files that hold the canary."""
    return [path.name for path in sorted(root.glob("journal.sqlite*")) if CANARY.encode() in path.read_bytes()]


CHANGES: dict[str, Callable[[FileJournal], None]] = {
    "rewrite": lambda journal: journal.rewrite(KEY, {n: JournalRecord("erased", "{}", n + 1) for n in range(40)}),
    "truncate": lambda journal: journal.truncate(KEY, 0),
    "drop_manifests": lambda journal: journal.drop_manifests(KEY),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("others", ["alone", "beside another connection"])
def test_a_scrubbed_file_holds_no_trace(journal: FileJournal, tmp_path: Path, change: str, others: str) -> None:
    filler = "x" * 700
    for n in range(40):
        journal.append(OTHER, n, [message(n + 1, filler)])
        if change == "drop_manifests":
            journal.put_manifest(KEY, f"{n:04}", f"{CANARY} {filler}")
        else:
            journal.append(KEY, n, [message(n + 1, f"{CANARY} {filler} {n}" * (1 + n % 9), id=f"{CANARY} {n}")])
    assert traces(tmp_path) != []
    with other_connection(tmp_path) as other:
        if others != "alone":
            assert other.execute("SELECT count(*) FROM records").fetchall() != []
        CHANGES[change](journal)
        journal.scrub()
        assert traces(tmp_path) == []
    assert [record.wire for record in journal.read(OTHER, 0)] == [message(1, filler).wire] * 40
    journal.append(OTHER, 40, [note("still writable")])


def churn(journal: FileJournal, seed: int) -> None:
    """Write eight logs in turn, rewrite now and then, then drop half of them; all that was dropped holds the canary."""
    draws = random.Random(seed)
    keys = [SessionKey("acme", f"s{n}") for n in range(8)]
    for n in range(400):
        key = draws.choice(keys)
        position, text = journal.length(key), CANARY if key in keys[:4] else "x"
        records = [
            message(position + i + 1, text * draws.choice([1, 20, 200]), id=f"{text} {n} {i}")
            for i in range(draws.randrange(1, 4))
        ]
        journal.append(key, position, records, generation=journal.generation(key))
        if draws.random() < 0.3:
            journal.put_manifest(key, f"{n:06x}", text * draws.randrange(1, 300))
        if draws.random() < 0.05 and position:
            journal.rewrite(key, {draws.randrange(position): JournalRecord("erased", "{}")})
    for key in keys[:4]:
        journal.truncate(key, 0)
        journal.drop_manifests(key)


def test_a_scrub_reaches_what_moving_pages_left_behind(journal: FileJournal, tmp_path: Path) -> None:
    """`secure_delete` does not reach every copy that a split page leaves: this seed leaves 21 without the vacuum."""
    churn(journal, seed=7)
    journal.scrub()
    assert traces(tmp_path) == []


def test_a_scrub_that_a_reader_hinders_says_so(journal: FileJournal, tmp_path: Path) -> None:
    journal.append(KEY, 0, [note(CANARY)])
    with other_connection(tmp_path) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM records").fetchall()
        journal.truncate(KEY, 0)
        with pytest.raises(StoreLocked, match="not scrubbed"):
            journal.scrub()
        other.execute("COMMIT")
    journal.scrub()
    assert traces(tmp_path) == []


# -- trouble -----------------------------------------------------------------------------------------------


def test_a_journal_that_another_process_holds_is_locked_and_loses_nothing(journal: FileJournal, tmp_path: Path) -> None:
    journal.append(KEY, 0, [note("a")])
    with other_connection(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")

        def refused(n: int) -> None:
            with pytest.raises(StoreLocked, match=r"0\.1 s"):
                journal.append(SessionKey("acme", f"s{n}"), 0, [note("x")])

        start = time.monotonic()
        in_threads([lambda n=n: refused(n) for n in range(64)])  # type: ignore[misc]
        assert time.monotonic() - start < 4  # all wait together, not one after the other
        assert journal.read(KEY, 0) == [note("a")]
        other.execute("ROLLBACK")
    assert journal.sessions("acme") == ["s"]
    journal.append(KEY, 1, [note("b")])
    assert journal.read(KEY, 0) == [note("a"), note("b")]


def test_a_refused_append_keeps_nobody_waiting(journal: FileJournal, tmp_path: Path) -> None:
    journal.append(KEY, 0, [message(1)])
    with pytest.raises(StoreError, match="decide again"):
        journal.append(KEY, 1, [message(1)])
    with other_connection(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")


@contextmanager
def disk_of(bytes_left: int, path: Path) -> Iterator[None]:
    """No file of this process may grow beyond this one's size and that much more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("seed", range(8))
def test_what_was_scrubbed_is_not_there_again_after_a_power_cut(tmp_path: Path, seed: int) -> None:
    is_dead = False
    disk = SqliteDisk(tmp_path, lambda what: "dead" if is_dead else "")
    try:
        journal = FileJournal(tmp_path)
        journal.append(KEY, 0, [note(CANARY)])
        journal.truncate(KEY, 0)
        journal.scrub()
        is_dead = True
        journal.close()
        disk.cut_power(random.Random(seed))
    finally:
        disk.remove()
    assert traces(tmp_path) == []


def test_a_full_disk_refuses_an_append_and_loses_nothing(journal: FileJournal, tmp_path: Path) -> None:
    journal.append(KEY, 0, [note("a")])
    with disk_of(200_000, tmp_path / "journal.sqlite-wal"):
        for _ in range(3):
            with pytest.raises(StoreError, match=r"nothing was written; (free|check)"):
                journal.append(KEY, 1, [note("x" * 2_000_000)])
            assert (journal.length(KEY), journal.read(KEY, 0)) == (1, [note("a")])
        journal.append(KEY, 1, [note("a small one still fits")])
    journal.append(KEY, 2, [note("x" * 2_000_000)])
    journal.close()
    with closing(FileJournal(tmp_path)) as reopened:
        assert [len(record.body) for record in reopened.read(KEY, 0)] == [
            len(note(text).body) for text in ("a", "a small one still fits", "x" * 2_000_000)
        ]


def test_a_full_database_refuses_one_of_a_group_and_keeps_the_others(journal: FileJournal) -> None:
    ((pages,),) = journal._writer.db.execute("PRAGMA page_count").fetchall()
    journal._writer.db.execute(f"PRAGMA max_page_count = {pages + 40}")

    def write(n: int) -> str:
        try:
            journal.append(SessionKey("acme", f"s{n}"), 0, [note("x" * (1_000_000 if n == 3 else 10))])
        except StoreError as error:
            return str(error)
        return "written"

    outcomes = in_threads([lambda n=n: write(n) for n in range(8)])  # type: ignore[misc]
    assert [outcome == "written" for outcome in outcomes] == [n != 3 for n in range(8)]
    assert "free space" in str(outcomes[3])


@contextmanager
def unprivileged() -> Iterator[None]:
    """Not as root, who may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_journal_is_a_store_error() -> None:
    root = Path(tempfile.mkdtemp())
    try:
        with closing(FileJournal(root)) as journal:
            journal.append(KEY, 0, [note("a")])
        (root / "journal.sqlite").chmod(0o444)
        root.chmod(0o555)
        with unprivileged(), pytest.raises(StoreError, match="name a folder you may write"):
            FileJournal(root)
        root.chmod(0o755)
        with closing(FileJournal(root)) as journal:
            assert journal.read(KEY, 0) == [note("a")]
    finally:
        root.chmod(0o755)
        shutil.rmtree(root)


def test_a_file_whose_pages_were_overwritten_is_damaged(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as journal:
        for n in range(200):
            journal.append(KEY, n, [note("x" * 500)])
        journal.scrub()
    data = (tmp_path / "journal.sqlite").read_bytes()
    (tmp_path / "journal.sqlite").write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    with pytest.raises(Damaged, match="backup"), closing(FileJournal(tmp_path)) as journal:
        journal.read(KEY, 0)


def test_a_closed_journal_refuses_everything(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    journal.append(KEY, 0, [note("a")])
    journal.close()
    journal.close()
    calls: list[Callable[[], object]] = [
        lambda: journal.append(KEY, 1, [note("b")]),
        lambda: journal.length(KEY),
        lambda: journal.put_manifest(KEY, "ab", "{}"),
        lambda: journal.scrub(),
        lambda: journal.see("x", 1),
    ]
    for call in calls:
        with pytest.raises(StoreError):
            call()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.id", "journal.sqlite"]


def test_closing_waits_for_no_reader_that_is_gone_and_leaves_no_file_open(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    journal.append(KEY, 0, [note("a")])
    in_threads([lambda: journal.read(KEY, 0)] * 20)
    journal.close()
    open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)]
    assert [path for path in open_files if str(tmp_path) in path] == []


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")
