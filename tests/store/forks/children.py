"""What children do with what they inherited, in a process of its own: `python -m tests.store.forks.children FOLDER`.

Each function below that ends in `_checked` is run once and answers with what was found; all answers are one JSON
object on stdout. The process keeps no thread from one to the next.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

from ctxsteward.envelope import Profile, open_store
from ctxsteward.envelope.layout.rows import random_nonce
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import ContextError
from ctxsteward.steward.ledger.database import LedgerDatabase
from ctxsteward.store import process_forks as forking
from ctxsteward.store.journal.database import connect
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.profiles.versions import WriterLease
from ctxsteward.store.replication.drain import Drainer

from ..profiles.agreed import agreed

LIMIT_SECONDS = 90
"""For one step; a disk that others write to may stand still for half a minute."""
KEY = SessionKey("default", "s")
HOLDS = """
import sys
from pathlib import Path
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.journal.database import connect
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.schemas import StoreError
journal = FileJournal(Path(sys.argv[1]))
journal.append(SessionKey("default", "other"), 0, [JournalRecord("note", "{}")])
print("open", flush=True)
sys.stdin.readline()
try:
    journal.append(SessionKey("default", "other"), 1, [JournalRecord("note", "{}")])
except StoreError as error:
    print(error)
"""
"""Keeps a journal open until a line comes, and then writes to it."""


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def answer_of(work: Callable[[], object], fork: Callable[[], int] = os.fork) -> Any:
    """What the work answers in a child: its JSON value, the first words of one of our errors, where each of its threads
    stood when the time was over, or how it ended."""
    reading, writing = os.pipe()
    pid = fork()
    if pid == 0:
        faulthandler.dump_traceback_later(2 * LIMIT_SECONDS, exit=True, file=writing)
        try:
            said: object = work()
        except ContextError as error:
            told = re.sub(r"process [0-9]+", "process 0", str(error))
            said = f"{type(error).__name__}: {told.partition(': ')[2] or told}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:  # to its end: stacks come in many pieces
        said = answer.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return json.loads(said) if code == 0 else f"ended with {code}: {said}"


@contextmanager
def a_living_child() -> Iterator[int]:
    """A child that does nothing, and stays."""
    pid = os.fork()
    if pid == 0:
        time.sleep(LIMIT_SECONDS)
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def ids(store: Store) -> list[str]:
    return [record.id for record in store.journal.read(store.session("s").key, 0) if record.id]


# -- refused -----------------------------------------------------------------------------------------------


def behind_python_checked(folder: Path) -> Any:
    """A C library forks: nothing was closed before."""
    fork = ctypes.PyDLL(None).fork
    with open_store(f"file:{folder}") as store, open_store(f"file:{folder}/other") as other:
        session = store.session("s")
        session.append(user("a"), id="a")

        def inherited() -> object:
            session.append(user("b"), id="b")
            return "written"

        answers = [
            answer_of(inherited, fork),
            answer_of(lambda: store.journal.read(session.key, 0), fork),
            answer_of(lambda: open_store(f"file:{folder}"), fork),
            answer_of(lambda: [store.close(), other.close()], fork),
            answer_of(lambda: open_store(f"file:{folder}/new").session("s").append(user("c"), id="c").ref, fork),
        ]
        session.append(user("d"), id="d")
    with open_store(f"file:{folder}") as store:
        return [*answers, ids(store)]


def in_the_midst_checked(folder: Path) -> Any:
    """The thread that forks is within a transaction itself: it cannot be closed."""
    ledger = LedgerDatabase(folder / "ledger.sqlite", "test")
    answers = []
    with ledger.writing():
        ledger.run("INSERT INTO about VALUES ('first', '1')")
        answers.append(answer_of(lambda: ledger.noted("first")))
        answers.append(answer_of(lambda: LedgerDatabase(folder / "ledger.sqlite", "test").noted("first")))
        ledger.run("INSERT INTO about VALUES ('second', '2')")
    answers.append(ledger.noted("second"))
    answers.append(answer_of(lambda: ledger.noted("second")))
    ledger.close()
    return answers


def gone_meanwhile_checked(folder: Path) -> Any:
    """The file is removed between the fork and its next use: it is not made again, whoever asks first."""
    with open_store(f"file:{folder}") as store:
        session = store.session("s")
        session.append(user("a"), id="a")
        with a_living_child():
            (folder / "journal.sqlite").unlink()
        answers = []
        for work in (
            lambda: store.journal.append(SessionKey("default", "t"), 0, [JournalRecord("note", "{}")]),
            lambda: session.append(user("b"), id="b"),
            lambda: store.journal.scrub(),
        ):
            try:
                work()
                answers.append("written")
            except ContextError as error:
                answers.append(Path(str(error).partition(":")[0]).name)
        return [*answers, (folder / "journal.sqlite").exists()]


def log_gone_meanwhile_checked(folder: Path) -> Any:
    """Another process keeps the journal open; the log that it writes is taken away while this one opens anew."""
    with closing(FileJournal(folder)) as journal:
        journal.append(KEY, 0, [JournalRecord("note", "{}")])
        other = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdin=PIPE, stdout=PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        answers = []
        with a_living_child():
            (folder / "journal.sqlite-wal").unlink()
        for work in (lambda: journal.append(KEY, 1, [JournalRecord("note", "{}")]), lambda: journal.read(KEY, 0)):
            try:
                answers.append(repr(work()))
            except ContextError as error:
                answers.append(f"{type(error).__name__}: {Path(str(error).partition(',')[0]).name}")
        told = other.communicate("\n", LIMIT_SECONDS)[0].strip()
    return [*answers, Path(told.partition(" while")[0]).name]


def about_to_open_checked(folder: Path) -> Any:
    """A connection that neither readers nor writer know of yet; what was not open is open to the child."""
    with closing(FileJournal(folder)) as journal:
        journal.append(KEY, 0, [JournalRecord("note", "{}")])
        opening = connect(folder / "journal.sqlite", 1.0)
        answers = [
            answer_of(lambda: journal.length(KEY)),
            answer_of(lambda: open_store(f"file:{folder}/new").session("s").append(user("c"), id="c").ref),
        ]
        opening.close()
        return [*answers, answer_of(lambda: journal.length(KEY))]


def a_fork_held_up_checked(folder: Path) -> Any:
    """The readers' lock is held all the time, as by a connection that waits for another process, and so is the turn to
    fork at first: both count."""
    with closing(FileJournal(folder)) as journal:
        journal.append(KEY, 0, [JournalRecord("note", "{}")])
        opening = connect(folder / "journal.sqlite", 1.0)
        ready, over = threading.Barrier(3), threading.Event()

        def hold(lock: Any, seconds: float) -> None:
            with lock:
                ready.wait(LIMIT_SECONDS)
                over.wait(seconds)

        threads = [
            threading.Thread(target=hold, args=(lock, seconds))
            for lock, seconds in ((journal._readers._lock, LIMIT_SECONDS), (forking._forking, 0.2))
        ]
        for thread in threads:
            thread.start()
        forking.PAUSE_SECONDS, before = 0.3, forking.PAUSE_SECONDS
        ready.wait(LIMIT_SECONDS)
        began = time.monotonic()
        try:
            answer = answer_of(lambda: journal.length(KEY))
        finally:
            forking.PAUSE_SECONDS = before
        took = time.monotonic() - began
        over.set()
        for thread in threads:
            thread.join()
        opening.close()
        return [took < 5, answer, journal.length(KEY) == 1]


# -- made anew ---------------------------------------------------------------------------------------------


def a_ledger_checked(folder: Path) -> Any:
    ledger = LedgerDatabase(folder / "ledger.sqlite", "test")
    ledger.run("INSERT INTO about VALUES ('parent', '1')")

    def noted() -> object:
        ledger.run("INSERT OR REPLACE INTO about VALUES ('child', '2')")
        return [ledger.noted("parent"), ledger.noted("child")]

    answers = [answer_of(noted), answer_of(noted)]
    answers.append(ledger.noted("child"))
    ledger.close()
    return answers


def a_held_session_checked(folder: Path) -> Any:
    """Another thread of the parent is in the midst of a call on the session."""
    with open_store(f"file:{folder}") as store:
        session = store.session("s")
        session.append(user("a"), id="a")
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            with session.lock:
                session.state.ordinal = 7  # torn
                held.set()
                over.wait(LIMIT_SECONDS)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(LIMIT_SECONDS)
        found = answer_of(lambda: [session.append(user("b"), id="b").ref, len(session)])
        over.set()
        thread.join()
        return found


def held_locks_checked(folder: Path) -> Any:
    """Threads of the parent hold every lock there is to hold."""
    with open_store(f"file:{folder}/store", journal=folder / "journal") as store:
        store.session("s").append(user("a"), id="a")
        assert store.write_behind is not None
        behind, vault = store.write_behind, store.vault()
        locks: list[Any] = [
            vault._lock,
            behind.breaker._lock,
            behind.ownership._lock,
            behind._asker._lock,
            behind.drainer._starting,
            store.fact_lookup._asker._lock,
            store._keeping,
            store.keys._lock,  # type: ignore[attr-defined]
        ]
        ready, over = threading.Barrier(2), threading.Event()

        def hold() -> None:
            for lock in locks:
                lock.acquire()
            ready.wait(LIMIT_SECONDS)
            over.wait(LIMIT_SECONDS)
            for lock in locks:
                lock.release()

        store.flush(LIMIT_SECONDS)
        thread = threading.Thread(target=hold)
        thread.start()
        ready.wait(LIMIT_SECONDS)

        def work() -> object:
            store.session("s").append(user("b"), id="b")
            return [store.flush(LIMIT_SECONDS), ids(store)]

        def fork() -> int:
            pid = os.fork()
            if pid:
                over.set()  # or the parent's drainer takes its turn and waits for them until the child's time is over
            return pid

        found = answer_of(work, fork)
        thread.join()
        return found


def a_waiting_reader_checked(folder: Path) -> Any:
    """A thread of the parent is just about to wait until the fork is over: it holds the lock of what it waits for."""
    with closing(FileJournal(folder)) as journal:
        journal.append(KEY, 0, [JournalRecord("note", "{}")])
        held, forked = threading.Event(), threading.Event()

        def wait() -> None:
            with journal._readers._over._cond:
                held.set()
                forked.wait(0.5)  # the parent needs it, too

        waiting = threading.Thread(target=wait)
        waiting.start()
        held.wait(LIMIT_SECONDS)
        answer = answer_of(lambda: journal.length(KEY))
        forked.set()
        waiting.join()
        return answer


def a_child_s_own_threads_checked(folder: Path) -> Any:
    """What a child writes by an inherited session is drained by the child: its parent may be gone."""
    with open_store(f"file:{folder}/store", journal=folder / "journal") as store:
        session = store.session("s")
        session.append(user("first things first"), id="a")
        store.flush(LIMIT_SECONDS)

        def work() -> object:
            session.append(user("a second thing"), id="b")
            done = store.flush(LIMIT_SECONDS)
            return [done, sorted(t.name for t in threading.enumerate())]

        return answer_of(work)


def a_lease_checked(folder: Path) -> Any:
    """Who holds it and forks does not hold it twice."""
    with open_store(f"file:{folder}") as store:
        lease = WriterLease(store, "support", owner="ada", clock=lambda: 1_000.0)
        lease.take(60)

        def work() -> object:
            lease.release()
            return lease.take(60)

        return [answer_of(work), answer_of(lambda: lease.renew(60)), lease.renew(60).epoch]


def numbers_drawn_checked(folder: Path) -> Any:
    with open_store(f"file:{folder}") as store:
        session = store.session("s")
        drawn = [answer_of(lambda: [random_nonce(), session.fork().id]) for _ in range(2)]
        return len({text for pair in drawn for text in pair})


def the_drainers_turn_checked(folder: Path) -> Any:
    """A child that was forked in the middle of a pass does not go on holding the turn."""
    with open_store(f"file:{folder}/store", journal=folder / "journal") as store:
        assert store.write_behind is not None
        one, path = store.write_behind.drainer, folder / "journal" / "drain.lock"

        def turn() -> bool:
            behind = store.write_behind
            assert behind is not None
            other = Drainer(store.journal, behind.ownership, behind.breaker, behind.prepare, lock_path=path)
            with other._turn() as ours:
                return ours

        with one._turn() as first:
            child = a_living_child()
            child.__enter__()
        try:
            ended = turn()
        finally:
            child.__exit__(None, None, None)
        # the same where the parent of the child is killed in its turn
        reading, writing = os.pipe()
        parent = os.fork()
        if parent == 0:
            with one._turn():
                if os.fork() == 0:
                    os.write(writing, str(os.getpid()).encode())
                time.sleep(LIMIT_SECONDS)
            os._exit(0)
        orphan = int(os.read(reading, 100))
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        try:
            return [first, ended, turn()]
        finally:
            with suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
            os.close(reading)
            os.close(writing)


def governed_checked(folder: Path) -> Any:
    """A child commits and reads governed state, encrypted content included."""
    with open_store(f"file:{folder}") as store:
        profiles = store.profiles("support")
        told = {"who": "ada", "why": "test", "when": "2026-11-22T04:00:00Z"}
        profiles.commit(Profile.from_text("First."), **told)
        address = store.vault().put("s", "note", b"said")

        def work() -> object:
            second = Profile.from_text("Second.")
            rests_on = agreed(store, second, who=told["who"], when=told["when"])
            number = profiles.commit(second, **told, promotion=rests_on).number
            return [number, store.vault().get(address).decode(), store.vault().put("s", "note", b"more") != address]

        return [answer_of(work), profiles.newest().number]


if __name__ == "__main__":
    answers = {}
    for name, check in [*globals().items()]:
        if name.endswith("_checked"):
            place = Path(sys.argv[1]) / name
            place.mkdir()
            answers[name.removesuffix("_checked")] = check(place)
    print(json.dumps(answers))
