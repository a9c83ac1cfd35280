"""The drainer behind the chat path: it never holds anybody up, gives the store pauses, and says what waits."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.store import Store
from ctxsteward.evals.suites.kit.faulty_objects import SimulatedClock
from ctxsteward.schemas import InputError, StoreUnavailable
from ctxsteward.schemas.errors import Backpressure
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import Manifest, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.replication.breaker import Breaker, Timing
from ctxsteward.store.replication.segment_log import SEGMENT_BYTES

from ..doubles import HookedObjects
from .machines import KEYS, TENANT, World, drain, user


class Watched(HookedObjects):
    """Objects that note which threads ask, and can be held up or dead."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.alive = True
        self.open = threading.Event()
        self.open.set()

    def ask(self, method: str, key: str) -> None:
        self.threads.add(threading.current_thread().name)
        self.open.wait(20)
        if not self.alive:
            raise StoreUnavailable("dead")


def over(objects: Any, journal: Any = None, **timing: Any) -> Store:
    timing.setdefault("timing", Timing(first_pause_seconds=0.01, longest_pause_seconds=0.05))
    return Store(
        journal or MemoryJournal(drains=True),
        objects,
        KEYS,
        uri="memory:",
        write_behind=True,
        behind={"patience": Patience(total_seconds=0.2)} | timing,
    )


def holds(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def test_appends_and_builds_never_ask_the_store() -> None:
    objects = Watched()
    with over(objects) as store:
        session = store.session("s")
        store.flush(10)
        objects.threads.clear()
        builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=150))
        for number in range(30):
            session.append(user(f"message {number} with a few words more"))
            builder.build(session)
            session.fork().append(user("in the fork"))
        assert store.flush(20)
        assert objects.threads == {"ctxsteward write-behind"}


@pytest.mark.parametrize("trouble", ["black-holed", "dead"])
def test_a_store_that_is_gone_costs_an_opening_a_moment_and_a_finding(trouble: str) -> None:
    objects = Watched()
    with over(objects, timing=Timing(check_seconds=0.2, first_pause_seconds=30)) as store:
        store.session("known").append(user("before"))
        assert store.flush(10)
        objects.alive = trouble != "dead"
        if trouble == "black-holed":
            objects.open.clear()
        started = time.monotonic()
        first = store.session("known")
        second = store.session("new")
        assert time.monotonic() - started < 1.5
        for session in (first, second):
            assert [finding.kind for finding in session.findings] == ["ownership_unchecked"]
            session.append(user("in the outage"))
            assert EnvelopeBuilder(tokenizer="o200k_base").build(session).findings[0].kind == "ownership_unchecked"
        status = store.write_behind_status()
        assert status is not None
        assert status.waiting_records >= 3
        assert status.waiting_bytes > 0
        assert status.last_error
        objects.open.set()


def test_what_waited_is_drained_when_the_store_is_back_and_the_status_says_so() -> None:
    objects = Watched()
    with over(objects) as store:
        session = store.session("s")
        store.flush(10)
        objects.alive = False
        session.extend(user(f"message {number}") for number in range(50))
        assert not store.flush(0.3)
        assert holds(lambda: store.write_behind_status().breaker != "closed")  # type: ignore[union-attr]
        status = store.write_behind_status()
        assert status is not None
        assert (status.waiting_records, status.waiting_sessions, status.last_error) == (50, 1, "StoreUnavailable: dead")
        assert status.oldest_seconds > 0
        objects.alive = True
        assert store.flush(10)
        status = store.write_behind_status()
        assert status is not None
        assert (status.waiting_records, status.waiting_bytes, status.oldest_seconds) == (0, 0, 0)
        assert (status.last_error, status.breaker) == (None, "closed")


def test_closing_gives_what_waits_a_chance_and_the_next_start_finds_the_rest(tmp_path: Path) -> None:
    objects = Watched()
    store = over(objects, FileJournal(tmp_path, drains=True))
    store.session("s").append(user("one"))
    store.close()
    store = over(objects, FileJournal(tmp_path, drains=True))
    assert store.journal.waiting() == []
    objects.alive = False
    store.session("s").append(user("two"))
    started = time.monotonic()
    store.close()
    assert time.monotonic() - started < 6
    objects.alive = True
    with over(objects, FileJournal(tmp_path, drains=True)) as store:
        assert len(store.journal.waiting()) == 1
        assert store.flush(10)


def test_a_session_that_cannot_be_drained_holds_no_other_one_up(world: World) -> None:
    a = world.machine("a")
    bad, good = a.session("bad"), a.session("good")
    drain(a)
    key = next(info.key for info in world.objects.list("sessions/") if a.vault().subject_address("bad") in info.key)
    world.objects.delete(key)
    world.objects.put(key, b"{}")
    bad.append(user("x")), good.append(user("y"))
    a = world.machine("a")
    drain(a)
    status = a.write_behind_status()
    assert status is not None
    assert status.waiting_sessions == 1
    assert status.last_error is not None
    assert status.last_error.startswith("session 'bad': Damaged: ")


def test_a_full_queue_refuses_messages_and_nothing_else_and_drops_nothing(tmp_path: Path) -> None:
    objects = Watched()
    for journal in (
        MemoryJournal(drains=True, queue_bytes=20_000),
        FileJournal(tmp_path, drains=True, queue_bytes=20_000),
    ):
        objects.alive = True
        with over(objects, journal, timing=Timing(first_pause_seconds=0.05, longest_pause_seconds=0.05)) as store:
            session = store.session(f"s of {type(journal).__name__}")
            store.flush(10)
            objects.alive = False
            builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=150), selector=None)
            accepted = 0
            with suppress(Backpressure):
                while accepted < 200:
                    session.append(user(f"message {accepted} " + "and so on " * 10))
                    accepted += 1
                    builder.build(session)
            assert 10 < accepted < 200
            with pytest.raises(Backpressure, match="bytes wait for the object store and the cap is 20,000"):
                session.append(user(f"message {accepted} " + "and so on " * 10))  # a shorter one may still fit
            assert len(session) == accepted
            with pytest.raises(Backpressure):
                session.extend([user("a " * 50)] * 3)
            assert builder.build(session).metrics["messages"] == accepted
            session.note("plan", "wait for the store")
            objects.alive = True
            assert store.flush(10)
            session.append(user("again"))
            assert store.flush(10)
            assert len(session) == accepted + 1


def test_the_pauses_grow_up_to_a_bound_and_end_with_an_answer() -> None:
    clock = SimulatedClock()
    breaker = Breaker(
        Timing(failures=2, first_pause_seconds=1, longest_pause_seconds=8, clock=clock, jitter=lambda: 1.0)
    )
    pauses = []
    for _ in range(6):
        breaker.failed("gone")
        pauses.append((breaker.pause_seconds(), breaker.state))
        clock.seconds += breaker.pause_seconds()
    assert [seconds for seconds, _ in pauses] == [1, 2, 4, 8, 8, 8]
    assert [state for _, state in pauses] == ["closed", *["open"] * 5]
    assert breaker.state == "half_open"
    assert breaker.pause_seconds() == 0
    breaker.succeeded()
    assert (breaker.state, breaker.last_error) == ("closed", None)


def test_waiting_leaves_the_random_numbers_of_the_application_alone() -> None:
    before = random.getstate()
    for _ in range(3):
        Breaker().failed("gone")
        assert 0 <= Patience().jitter() < 1
    assert random.getstate() == before


def test_records_are_drained_in_their_order_and_logs_in_the_order_of_their_waiting(world: World) -> None:
    a = world.machine("a")
    sessions = [a.session(name) for name in ("c", "a", "b")]
    for number in range(2500):
        sessions[0].append(user(str(number)))
    drain(a)
    vault = a.vault()
    log = [(info.modified_seconds, info.key.split("/")[2]) for info in world.objects.list("sessions/")]
    order = list(dict.fromkeys(name for _, name in sorted(log)))
    assert order == [vault.subject_address(name) for name in ("c", "a", "b")]
    fresh = world.fresh()
    assert [entry.message.text for entry in fresh.at(TENANT, "c").entries()] == [str(n) for n in range(2500)]
    assert fresh.journal.drained(SessionKey(TENANT, "c")).number == 3, "segments are bounded"


LARGE = "x" * (SEGMENT_BYTES // 2)


def largest(world: World) -> int:
    return max(info.size_bytes for info in world.objects.list("sessions/"))


def test_texts_of_more_bytes_than_a_segment_are_drained_in_several_and_whole(world: World) -> None:
    a = world.machine("a")
    texts = [f"{number} {LARGE}" for number in range(6)]
    a.session("s").extend(map(user, texts))
    drain(a)
    fresh = world.fresh()
    assert [entry.message.text for entry in fresh.at(TENANT, "s").entries()] == texts
    assert fresh.journal.drained(SessionKey(TENANT, "s")).number == 3
    assert largest(world) < 2 * SEGMENT_BYTES, "two texts and what encrypting adds"


@pytest.mark.parametrize("who", ["the owner", "another machine"])
def test_manifests_of_more_bytes_than_a_segment_are_drained_in_several_and_whole(world: World, who: str) -> None:
    key, a = SessionKey(TENANT, "s"), world.machine("a")
    a.session("s").append(user("hello"))
    drain(a)
    keeper = a if who == "the owner" else world.machine("b")
    assert len(keeper.at(TENANT, "s")) == 1
    manifests = [Manifest(f"{number:064x}", json.dumps({"position": 2, "note": LARGE})) for number in range(6)]
    for manifest in manifests:
        keeper.journal.put_manifest(key, *manifest)
    drain(keeper)
    assert keeper.journal.waiting() == []
    assert sorted(world.fresh().journal.manifests(key)) == manifests
    assert largest(world) < 2 * SEGMENT_BYTES


def test_processes_that_share_a_journal_take_turns(tmp_path: Path) -> None:
    objects = Watched()
    first = over(objects, FileJournal(tmp_path, drains=True), lock_path=tmp_path / "drain.lock", background=False)
    other = over(objects, FileJournal(tmp_path, drains=True), lock_path=tmp_path / "drain.lock", background=False)
    with first, other:
        first.session("s").append(user("one"))
        objects.open.clear()
        thread = threading.Thread(target=lambda: drain(first))
        thread.start()
        assert holds(lambda: thread.name in objects.threads)
        objects.threads.clear()
        drain(other)
        assert objects.threads == set(), "it was not its turn"
        objects.open.set()
        thread.join()
        other.session("s").append(user("two"))
        drain(other)
        assert other.journal.waiting() == []
        assert other.journal.drained(SessionKey(TENANT, "s")).epoch == 1


def test_a_file_store_with_its_journal_elsewhere_is_drained_and_one_with_it_inside_is_not(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri, journal=tmp_path / "journal") as store:
        store.session("s").append(user("one"))
        assert store.flush(10)
    with open_store(uri, journal=tmp_path / "other") as store:
        assert store.sessions() == ["s"]
        assert len(store.at(TENANT, "s")) == 1
    with open_store(f"file:{tmp_path / 'plain'}") as store:
        store.session("s").append(user("one"))
        assert store.write_behind_status() is None
        assert store.flush(0)
    assert not (tmp_path / "plain/objects/sessions").exists()
    with pytest.raises(InputError, match="memory: \\(which has no journal\\)"):
        open_store("memory:", journal=tmp_path)
