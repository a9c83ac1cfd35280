"""Writers that wait at the same time share a transaction; none waits for ever, none fails another."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.journal import group_commit
from ctxsteward.store.journal.database import connect, prepare
from ctxsteward.store.journal.group_commit import GroupCommit, Ticket
from ctxsteward.store.journal.port import Journal, JournalRecord, SessionKey
from ctxsteward.store.journal.row_codes import LogRow
from ctxsteward.store.journal.sqlite import FileJournal, JournalWriter
from ctxsteward.store.journal.tables import Transaction
from ctxsteward.store.sqlite_file import SameFile, SqliteFile

from .journals import KEY, OTHER, append_at_end, in_threads, message, note

THREADS = 64


@pytest.fixture(autouse=True)
def _no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers are woken; they do not find out by looking round."""
    monkeypatch.setattr(group_commit, "NET_SECONDS", 120)


# -- the group itself --------------------------------------------------------------------------------------


class Groups:
    """Runs tickets of numbers; writes down its groups; raises or holds where it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.raises: list[BaseException | None] = []
        self.commit = GroupCommit(self.run)

    def run(self, group: Sequence[Ticket[list[int]]]) -> None:
        error = self.raises.pop(0) if self.raises else None
        if error is not None:
            raise error
        done: list[int] = []
        for ticket in group:
            ticket.result = ticket.work(done)
        self.groups.append(done)
        for ticket in group:
            ticket.settled = True

    @contextmanager
    def held(self, callers: Sequence[Callable[[], object]]) -> Iterator[list[object]]:
        """Start all callers while nothing is committed, let them go when all of them wait."""
        outcomes: list[object] = []

        def call(caller: Callable[[], object]) -> None:
            try:
                outcomes.append(caller())
            except BaseException as error:
                outcomes.append(error)

        threads = [threading.Thread(target=call, args=(caller,), daemon=True) for caller in callers]

        def wait_for_all() -> None:
            for thread in threads:
                thread.start()
            while len(self.commit._pending) < len(callers):
                threads[0].join(timeout=0.001)

        self.commit.alone(wait_for_all)
        for thread in threads:
            thread.join(timeout=30)
        assert not any(thread.is_alive() for thread in threads)
        yield outcomes


def adding(groups: Groups, number: int) -> Callable[[], object]:
    def work(done: list[int]) -> int:
        done.append(number)
        return number

    return lambda: groups.commit.submit(work)


def test_all_that_wait_are_one_group() -> None:
    groups = Groups()
    with groups.held([adding(groups, n) for n in range(20)]) as outcomes:
        assert sorted(map(str, outcomes)) == sorted(map(str, range(20)))
    assert [len(group) for group in groups.groups] == [20]


def test_a_lone_writer_is_a_group_of_its_own() -> None:
    groups = Groups()
    assert [adding(groups, n)() for n in range(3)] == [0, 1, 2]
    assert groups.groups == [[0], [1], [2]]


def test_an_interrupted_leader_strands_nobody() -> None:
    groups = Groups()
    groups.raises = [KeyboardInterrupt(), KeyboardInterrupt()]
    with groups.held([adding(groups, n) for n in range(20)]) as outcomes:
        interrupted = [outcome for outcome in outcomes if isinstance(outcome, KeyboardInterrupt)]
    assert len(interrupted) == 2
    (group,) = groups.groups
    assert sorted(group) == sorted(outcome for outcome in outcomes if isinstance(outcome, int))
    assert len(group) == 18
    assert adding(groups, 99)() == 99


# -- on a journal ------------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[FileJournal]:
    opened = FileJournal(tmp_path, drains=True, busy_seconds=0.2)
    yield opened
    opened.close()


def together(journal: FileJournal, calls: Sequence[Callable[[], object]]) -> list[object]:
    """Run all calls as one group; results and errors in the order of the calls."""
    outcomes: dict[int, object] = {}

    def call(n: int) -> None:
        try:
            outcomes[n] = calls[n]()
        except StoreError as error:
            outcomes[n] = error

    threads = [threading.Thread(target=call, args=(n,), daemon=True) for n in range(len(calls))]

    def wait_for_all() -> None:
        for n, thread in enumerate(threads):
            thread.start()
            while len(journal._group._pending) <= n:
                thread.join(timeout=0.001)

    journal._group.alone(wait_for_all)
    for thread in threads:
        thread.join(timeout=30)
    return [outcomes[n] for n in range(len(calls))]


def test_appends_of_many_threads_share_one_transaction(journal: FileJournal) -> None:
    before = journal.commits
    keys = [SessionKey("acme", f"s{n}") for n in range(THREADS)]
    outcomes = together(journal, [lambda key=key: journal.append(key, 0, [note(key.session)]) for key in keys])  # type: ignore[misc]
    assert outcomes == [None] * THREADS
    assert (journal.commits.transactions - before.transactions, journal.commits.tickets - before.tickets) == (
        1,
        THREADS,
    )
    assert [journal.read(key, 0) for key in keys] == [[note(key.session)] for key in keys]


def test_in_one_group_each_call_sees_the_ones_before_it(journal: FileJournal) -> None:
    outcomes = together(
        journal,
        [
            lambda: journal.append(KEY, 0, [note("a"), note("b")]),
            lambda: journal.append(KEY, 0, [note("late")]),
            lambda: journal.append(KEY, 2, [note("c")]),
            lambda: journal.truncate(KEY, 1),
            lambda: journal.append(KEY, 1, [note("of the old generation")]),
            lambda: journal.append(KEY, 1, [note("d")], generation=1),
            lambda: journal.rewrite(KEY, {0: note("A")}),
            lambda: journal.put_manifest(KEY, "ab", "{}"),
        ],
    )
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        Conflict,
        type(None),
        type(None),
        Conflict,
        type(None),
        type(None),
        type(None),
    ]
    assert (journal.read(KEY, 0), journal.generation(KEY)) == ([note("A"), note("d")], 2)
    (waiting,) = journal.waiting()
    assert (waiting.length, waiting.manifests) == (2, 1)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([message(1), message(1)], id="an ordinal twice"),
        pytest.param([note("x"), JournalRecord("note", "\ud800")], id="half a character"),
        pytest.param([JournalRecord("note", "x", 1 << 70)], id="a number that fits no column"),
    ],
)
def test_a_call_that_fails_fails_alone(journal: FileJournal, bad: list[JournalRecord]) -> None:
    keys = [SessionKey("acme", f"s{n}") for n in range(8)]
    calls: list[Callable[[], object]] = [
        lambda key=key: journal.append(key, 0, [message(1)])  # type: ignore[misc]
        for key in keys
    ]
    outcomes = together(journal, [*calls[:4], lambda: journal.append(OTHER, 0, bad), *calls[4:]])
    assert [type(outcome) for outcome in outcomes] == [*[type(None)] * 4, StoreError, *[type(None)] * 4]
    assert "nothing was written" in str(outcomes[4])
    assert [journal.length(key) for key in (*keys, OTHER)] == [1] * 8 + [0]


def test_an_error_is_each_caller_s_own(journal: FileJournal) -> None:
    outcomes = together(journal, [lambda: journal.append(KEY, 5, [note("x")]) for _ in range(4)])
    assert len({id(outcome) for outcome in outcomes}) == 4


class InterruptedOnce(JournalWriter):
    """A Ctrl-C between the commit and its bookkeeping."""

    interrupts = 1

    def _settle(self) -> None:
        self.interrupts -= 1
        if self.interrupts >= 0:
            raise KeyboardInterrupt
        super()._settle()


class InterruptedTwice(InterruptedOnce):
    """And another one while the first is cleared up behind."""

    clearings = 1

    def __init__(self, *arguments: Any, committed: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.interrupts = int(committed)

    def _clear_up(self) -> None:
        self.clearings -= 1
        if self.clearings >= 0:
            raise KeyboardInterrupt
        super()._clear_up()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Callable[..., tuple[Any, sqlite3.Connection]]]:
    """Makes a writer of this class, and the connection that it writes by."""
    path = tmp_path / "journal.sqlite"
    file = SqliteFile(partial(connect, path, 1))
    db = file.make()
    prepare(db, path, lambda: "id", 1)
    same = SameFile(path, db)
    yield lambda kind, **more: (kind(file, same, drains=False, error=lambda e: StoreError(str(e)), **more), db)
    file.close()


def put(length: int, *, interrupted: bool = False) -> Ticket[Transaction]:
    def work(transaction: Transaction) -> None:
        transaction.put(KEY, LogRow(length))
        transaction.flush()
        if interrupted:
            raise KeyboardInterrupt

    return Ticket(work)


def outcomes(tickets: Sequence[Ticket[Transaction]]) -> list[tuple[bool, StoreError | None]]:
    return [(ticket.settled, ticket.error) for ticket in tickets]


def test_what_was_committed_when_the_leader_was_interrupted_is_acknowledged(written: Any) -> None:
    writer, db = written(InterruptedOnce)
    tickets = [put(7) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        writer.run(tickets)
    assert outcomes(tickets) == [(True, None)] * 3
    assert db.execute("SELECT length FROM logs").fetchall() == [(7,)]
    assert (writer.heads[KEY], writer.commits.tickets) == (LogRow(7), 3)


def test_what_was_committed_before_two_interrupts_is_acknowledged_by_the_next_group_and_not_done_again(
    written: Any,
) -> None:
    writer, db = written(InterruptedTwice, committed=True)
    first, second = put(7), put(8)
    with pytest.raises(KeyboardInterrupt):
        writer.run([first])
    assert outcomes([first]) == [(False, None)]
    writer.run([first, second])
    assert outcomes([first, second]) == [(True, None)] * 2
    assert db.execute("SELECT length FROM logs").fetchall() == [(8,)]
    assert writer.commits == (2, 2)


def test_what_two_interrupts_left_half_done_is_undone_by_the_next_group(written: Any) -> None:
    writer, db = written(InterruptedTwice, committed=False)
    with pytest.raises(KeyboardInterrupt):
        writer.run([put(7, interrupted=True)])
    assert db.in_transaction
    (ticket,) = group = [Ticket[Transaction](lambda transaction: transaction.execute("SELECT * FROM logs", ()))]
    writer.run(group)
    assert outcomes(group) == [(True, None)]
    assert ticket.result == []
    assert not db.in_transaction
    assert writer.commits == (1, 1)


# -- many threads ------------------------------------------------------------------------------------------


def gap_free(journal: Journal, key: SessionKey, positions: Sequence[int]) -> None:
    assert sorted(positions) == list(range(len(positions)))
    assert journal.length(key) == len(journal.read(key, 0)) == len(positions)


def test_threads_on_one_log_get_one_order(journal: FileJournal) -> None:
    """Positions are gap-free, ids unique, and an append that had returned stands before one that began later."""
    clock = iter(range(10**9)).__next__
    seen: list[tuple[int, int, int, str]] = []

    def worker(name: int) -> None:
        for n in range(6):
            id = f"{name}-{n}"
            start = clock()
            position = append_at_end(journal, KEY, JournalRecord("note", "{}", id=id))
            seen.append((start, clock(), position, id))

    in_threads([lambda name=name: worker(name) for name in range(THREADS)])  # type: ignore[misc]
    gap_free(journal, KEY, [position for _, _, position, _ in seen])
    for _, _, position, id in seen:
        assert journal.read(KEY, position, position + 1)[0].id == id
    earliest_stop = 10**9
    for start, stop, *_ in sorted(seen, key=lambda row: row[2], reverse=True):
        assert start < earliest_stop  # nothing behind it had returned before it began
        earliest_stop = min(earliest_stop, stop)


def test_threads_on_many_logs_share_fsyncs_and_lose_nothing(
    journal: FileJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, before = journal._writer._attempt, journal.commits

    def on_a_disk(group: Sequence[Ticket[Transaction]]) -> None:
        """As long as an fsync takes, wherever the files of tests lie."""
        attempt(group)
        time.sleep(0.002)

    monkeypatch.setattr(journal._writer, "_attempt", on_a_disk)

    def worker(name: int) -> None:
        for n in range(20):
            journal.append(SessionKey("acme", f"s{name}"), n, [note(f"{name} {n}")])

    in_threads([lambda name=name: worker(name) for name in range(THREADS)])  # type: ignore[misc]
    for name in range(THREADS):
        assert journal.read(SessionKey("acme", f"s{name}"), 0) == [note(f"{name} {n}") for n in range(20)]
    transactions = journal.commits.transactions - before.transactions
    assert transactions <= THREADS * 20 / 4, f"{transactions} transactions"


def test_readers_see_whole_appends_and_their_own_at_once(journal: FileJournal) -> None:
    stop = threading.Event()

    def reader() -> None:
        while not stop.is_set():
            records = journal.read(KEY, 0)
            assert len(records) % 2 == 0
            assert len(records) <= journal.length(KEY)

    def writer() -> None:
        try:
            for n in range(100):
                journal.append(KEY, 2 * n, [note(f"{n}"), note(f"{n} again")])
                assert journal.length(KEY) == 2 * n + 2
        finally:
            stop.set()

    in_threads([writer, *[reader] * 4])


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from ctxsteward.store.sqlite_file import SameFile
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.schemas.errors import Conflict

appending = False

def interrupted(number, frame):
    # Once an append at most: one behind it would end the loop below.
    global appending
    if appending:
        appending = False
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupted)
journal = FileJournal(Path(sys.argv[1]))
main, stop = SessionKey("t", "main"), threading.Event()
acknowledged, interrupts = [], 0

def worker(name):
    key, n = SessionKey("t", name), 0
    while not stop.is_set():
        journal.append(key, n, [JournalRecord("note", "{}", id=str(n))])
        n += 1
    assert journal.length(key) == n

def interrupt():
    for _ in range(150):
        time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)
    while len(acknowledged) < 10:  # nothing hinders the main thread any longer
        time.sleep(0.002)
    stop.set()

threads = [threading.Thread(target=worker, args=(f"w{n}",)) for n in range(6)]
tease = threading.Thread(target=interrupt)
n = 0
def begin():
    for thread in (*threads, tease):
        thread.start()
def once():
    global n
    n += 1
    try:
        journal.append(main, journal.length(main), [JournalRecord("note", "{}", id=str(n))])
    except Conflict:  # what was interrupted has landed after all
        return
    acknowledged.append(str(n))
started = False
while not stop.is_set():
    try:
        if not started:
            started = True
            begin()
        appending = True
        once()
        appending = False
    except KeyboardInterrupt:
        interrupts += 1
for thread in (*threads, tease):
    thread.join()
ids = [record.id for record in journal.read(main, 0)]
assert set(acknowledged) <= set(ids) and len(set(ids)) == len(ids) == journal.length(main)
assert [id for id in ids if id in set(acknowledged)] == acknowledged
journal.close()
print(interrupts, min(len(acknowledged), 10))
"""


def test_interrupts_at_any_moment_strand_no_thread_and_lose_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    interrupts, acknowledged = map(int, done.stdout.split())
    assert interrupts > 20
    assert acknowledged == 10
    reopened = FileJournal(tmp_path)
    ids: Counter[Any] = Counter(record.id for record in reopened.read(SessionKey("t", "main"), 0))
    reopened.close()
    assert max(ids.values()) == 1
