"""The worker beside a conversation: appends never wait for it, nothing is lost, nothing stops it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from ctxsteward.envelope import Store
from ctxsteward.envelope.cards import (
    CardEraser,
    CardIndex,
    CardMaker,
    StoreCards,
    cards_of,
    rebuild as rebuilt,
)
from ctxsteward.envelope.cards.index import MemoryCards
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import StoreError
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.journal.erasures import Deletion
from ctxsteward.store.journal.port import SessionKey

from .conversations import LONG, carded_of, say, session_of
from .indexes import at, clock

MAKER = CardMaker(now=clock)
WAIT = 30.0


def ordinals(index: CardIndex, session: str = "s") -> list[int]:
    return [card.ordinal for card in index.of_session("default", session)]


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as opened:
        yield opened


def test_cards_of_the_worker_are_those_of_a_rebuild(store: Store) -> None:
    """Phases and turns go on over batches, restarts and messages without cards."""
    session = session_of(store)
    index, again = MemoryCards(), MemoryCards()
    draw = random.Random(3)
    for n in range(120):
        phase, origin = draw.choice(("p", "q", None, None, None)), draw.choice(("other", None, None))
        role = draw.choice(("user", "assistant", "system"))
        session.extend([say(role, f"message {n}", phase=phase, origin=origin)])
        if draw.random() < 0.2:
            with closing(StoreCards(store, index, MAKER)) as worker:
                assert worker.flush(WAIT)
    with closing(StoreCards(store, index, MAKER)) as worker:
        assert worker.flush(WAIT)
    rebuilt(store, again, MAKER)
    assert index.of_session("default", "s") == again.of_session("default", "s")
    assert len({(card.phase_name, card.turn_number) for card in again.of_session("default", "s")}) > 8


# -- appends never wait ------------------------------------------------------------------------------------------


class Stuck:
    """A summarizer that hangs until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.entered = threading.Semaphore(0)

    def __call__(self, source: SourceMessage) -> str:
        self.entered.release()
        self.release.wait(WAIT)
        return "late"


def test_a_hint_that_comes_while_its_session_is_in_hand_is_not_lost(store: Store) -> None:
    stuck, index, key = Stuck(), MemoryCards(), SessionKey("default", "s")
    session = session_of(store)
    session.extend([say("user", LONG)])
    with closing(StoreCards(store, index, CardMaker(now=clock, summarize=stuck))) as worker:
        assert stuck.entered.acquire(timeout=WAIT)
        session.extend([say("user", "one more")])
        worker.hint(key)
        until = time.monotonic() + WAIT
        while key in worker._waiting and time.monotonic() < until:
            time.sleep(0.001)  # the other thread takes the hint, finds the session in hand, and leaves it
        stuck.release.set()
        assert worker.flush(WAIT)
        assert ordinals(index) == [1, 2]


# -- nothing stops it --------------------------------------------------------------------------------------------


class Flaky(MemoryCards):
    """An index that is down for its first calls."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
        if self.failures:
            self.failures -= 1
            raise StoreError("the server is away")
        return super().put(cards, done)


def test_an_index_that_is_down_is_tried_again(store: Store) -> None:
    session_of(store, count=25)
    index = Flaky(2)
    with closing(StoreCards(store, index, MAKER)) as worker:
        assert worker.flush(WAIT)
        assert [finding.text for finding in worker.findings] == [
            "session 's': the server is away; it is tried again"
        ] * 2
    assert ordinals(index) == carded_of(25)


def test_an_unforeseen_error_leaves_a_finding_and_the_others_go_on(store: Store) -> None:
    class Broken(MemoryCards):
        def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
            if any(card.session == "bad" for card in cards):
                raise ZeroDivisionError("a bug")
            return super().put(cards, done)

    session_of(store, "bad", 5)
    session_of(store, "good", 25)
    index = Broken()
    with closing(StoreCards(store, index, MAKER)) as worker:
        assert worker.flush(WAIT)
        assert [(f.kind, f.text) for f in worker.findings] == [
            ("cards_failed", "session 'bad': ZeroDivisionError: a bug")
        ]
    assert ordinals(index, "good") == carded_of(25)


def test_a_hint_of_a_session_that_is_none_does_nothing(store: Store) -> None:
    index = MemoryCards()
    with closing(StoreCards(store, index, MAKER)) as worker:
        worker.hint(SessionKey("nobody", "nothing"))
        assert worker.flush(WAIT)
        assert list(worker.findings) == []
    assert index.sessions() == []


# -- erasure, forks, replaced logs -------------------------------------------------------------------------------


def test_a_card_in_the_making_does_not_outlive_an_erasure(store: Store) -> None:
    stuck, index = Stuck(), MemoryCards()
    worker = StoreCards(store, index, CardMaker(now=clock, summarize=stuck))
    session_of(store).extend([say("user", LONG), say("user", "other")])
    assert stuck.entered.acquire(timeout=WAIT)
    gone = [_gone(ordinals=frozenset({1})), _gone("elsewhere")]
    assert CardEraser(store.journal, index)(gone) == 0
    stuck.release.set()
    assert worker.flush(WAIT)
    assert worker.close()
    assert ordinals(index) == [2]


def _gone(session: str = "s", ordinals: frozenset[int] | None = None) -> Deletion:
    return Deletion(tenant="default", session=session, principal=None, ordinals=ordinals)


def test_a_fork_reads_its_parent_s_cards_up_to_where_it_began(store: Store) -> None:
    parent = session_of(store, count=8)
    fork = parent.fork(at=5, id="f")
    fork.extend([say("user", "another way"), say("assistant", "yes", pin="soft")])
    again = fork.fork(id="ff")
    again.extend([say("user", "and on")])
    again.pin("§2", name="the call")
    index = MemoryCards()
    with closing(StoreCards(store, index, MAKER)) as worker:
        assert worker.flush(WAIT)
        assert worker.flush(WAIT)

    assert [(row.session, row.cards, row.carded) for row in index.sessions()] == [
        ("f", 2, 7),
        ("ff", 1, 8),
        ("s", 8, 8),
    ]
    found = cards_of(index, again)
    assert [(card.session, card.ordinal) for card in found] == [
        *(("s", n) for n in range(1, 6)),
        ("f", 6),
        ("f", 7),
        ("ff", 8),
    ]
    assert [card.ordinal for card in found if card.is_callout] == [2, 7]
    assert [card.callout_name for card in found if card.is_anchor] == ["the call"]
    assert [card.turn_number for card in found] == [1, 1, 1, 1, 2, 3, 3, 4]
    assert [card.ordinal for card in cards_of(index, again, refs=["§3", "§8", "§99"])] == [3, 8]
    assert all(card.summary == again.entry(card.ref).message.text for card in found if card.role == "user")


@pytest.mark.parametrize("count", [12, 40], ids=["shorter", "longer"])
def test_cards_of_a_log_that_was_replaced_are_made_again(store: Store, count: int) -> None:
    """Turns of a writer that lost the session may be dropped, and others may take their ordinals."""
    index, replaced = MemoryCards(), memory_store()
    session_of(store, count=30)
    with closing(StoreCards(store, index, MAKER)) as worker:
        assert worker.flush(WAIT)
    session = session_of(replaced)
    session.extend([say("user", f"another {n}") for n in range(1, count + 1)])
    assert cards_of(index, session)[-1].ordinal == min(count, 29)

    with closing(StoreCards(replaced, index, CardMaker(now=lambda: at(60)))) as worker:
        assert worker.flush(WAIT)
    assert [card.summary for card in cards_of(index, session)] == [f"another {n}" for n in range(1, count + 1)]
    assert index.carded("default", "s") == count
