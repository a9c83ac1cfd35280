"""One session in many hands, threads with one object or one each, and processes: one order, nothing lost.

32 threads with CTXSTEWARD_SOAK=1, else 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.envelope.history.state import State
from ctxsteward.store.journal.events import from_record
from ctxsteward.store.journal.port import SessionKey

from ...envelope.in_threads import in_threads
from ...examples import SOAK
from ..processes import run_together
from .spoiling import builder, faults, opened, user

THREADS, EACH = 32 if SOAK else 12, 12


@pytest.fixture(params=["memory:", "file:"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with open_store("memory:" if request.param == "memory:" else f"file:{tmp_path / 'store'}") as made:
        yield made


def folded(store: Store, session: str = "s") -> State:
    """The state folded over the whole journal."""
    state = State(session)
    for record in store.journal.read(SessionKey("default", session), 0):
        state.apply(from_record(record))
    return state


def is_one_order(store: Store, writers: int, each: int) -> bool:
    """Every text once, each writer's in its own order, ordinals without a gap."""
    entries = opened(store).entries()
    said = [tuple(map(int, entry.message.text.split()[0].split("/"))) for entry in entries]
    mine = all([m for w, m in said if w == writer] == list(range(each)) for writer in range(writers))
    return mine and len(said) == writers * each and [e.ordinal for e in entries] == list(range(1, len(said) + 1))


def test_many_threads_with_one_session_append_build_and_read(store: Store) -> None:
    session = opened(store)

    def work(n: int) -> None:
        maker = builder(1_500)
        for m in range(EACH):
            entry = session.append(user(f"{n}/{m} " + "word " * 8), id=f"{n}-{m}")
            assert session.resolve(entry.ref).wire == entry.message.wire
            if m % 4 == n % 4:
                envelope = maker.build(session)
                assert envelope.dynamic.tokens <= 1_500
                assert faults(envelope) == []
            elif m % 4 == 2:
                maker.preview(session, "what was said?")
                session.note("plan", f"{n}/{m}")
            assert session.append(user("another text"), id=f"{n}-{m}").ordinal == entry.ordinal

    assert in_threads(THREADS, work) == []
    assert is_one_order(store, THREADS, EACH)
    assert session.state == opened(store).state == folded(store)
    assert {finding.kind for finding in session.findings} == {"id_reused"}


def test_an_envelope_is_rendered_by_many_threads_while_the_session_goes_on(store: Store) -> None:
    session, maker = opened(store), builder(100_000)
    session.extend(user(f"0/{n}") for n in range(20))
    envelope = maker.build(session)
    expected = str(builder(100_000).rebuild(opened(store)).render("anthropic"))

    def work(n: int) -> None:
        for m in range(10):
            if n == 0:
                session.append(user(f"more {m}"))
                maker.build(session).render("anthropic")
            else:
                assert str(envelope.render("anthropic")) == expected

    assert in_threads(12, work) == []


def test_two_objects_on_one_log_agree(store: Store) -> None:
    sessions = [opened(store), opened(store)]

    def work(n: int) -> None:
        maker = builder(1_500)
        for m in range(40):
            sessions[n].append(user(f"{n}/{m} " + "word " * 8))
            if m % 5 == 0:
                assert faults(maker.build(sessions[n])) == []

    assert in_threads(2, work) == []
    assert is_one_order(store, 2, 40)
    for session in sessions:
        session.refresh()
        assert session.state == folded(store)


WRITER = """
import sys
from ctxsteward.envelope import open_store
from tests.store.recovery.spoiling import builder, opened, user

root, n = sys.argv[1], int(sys.argv[2])
with open_store(f"file:{root}") as store:
    session, maker = opened(store), builder(1_500)
    print("ready", flush=True)
    sys.stdin.readline()
    for m in range(25):
        session.append(user(f"{n}/{m} " + "word " * 8), id=f"{n}-{m}")
        if m % 5 == n % 5:
            assert maker.build(session).dynamic.tokens <= 1_500
"""


def test_processes_agree(tmp_path: Path) -> None:
    run_together(WRITER, [(tmp_path, n) for n in range(3)])
    with open_store(f"file:{tmp_path}") as store:
        assert is_one_order(store, 3, 25)
        assert opened(store).state == folded(store)
        assert opened(store).state.compactions == len(opened(store).reports()) > 0


class Interrupted(BaseException):
    """As Ctrl-C, or a killed thread."""


class Stopping:
    """A journal that is interrupted just after it has written."""

    def __init__(self, session: Session) -> None:
        self._append = session.journal.append
        self.armed = False
        session.journal.append = self.append  # type: ignore[method-assign]

    def append(self, *args: object, **more: object) -> None:
        self._append(*args, **more)  # type: ignore[arg-type]
        if self.armed:
            self.armed = False
            raise Interrupted


def test_an_append_that_was_interrupted_after_it_was_written_is_found_again(store: Store) -> None:
    session = opened(store)
    stopping = Stopping(session)
    session.append(user("0/0"))
    stopping.armed = True
    with pytest.raises(Interrupted):
        session.append(user("0/1"), id="m-1")
    assert session.append(user("0/1"), id="m-1").ordinal == 2
    assert session.append(user("0/2")).ordinal == 3
    assert session.state == opened(store).state == folded(store)
