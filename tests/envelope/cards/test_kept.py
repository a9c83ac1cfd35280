"""`store.cards()`: one call, and every message has its card beside the conversation, over restarts and kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.cards import CardMaker, StoreCards, card_maker, open_cards
from ctxsteward.envelope.cards.index import MemoryCards
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.summary import SourceMessage

from ...examples import SOAK, examples
from .conversations import CHARS, LONG, carded_of, messages, say, session_of
from .indexes import clock

WAIT = 60.0
BURSTS = examples(25)
PYTHON = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path / 'store'}") as opened:
        yield opened


def ordinals(cards: StoreCards, session: str = "s") -> list[int]:
    return [card.ordinal for card in cards.index.of_session("default", session)]


def card_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ctxsteward-cards")]


# -- one call -----------------------------------------------------------------------------------------------------


def test_one_call_keeps_cards_of_what_is_appended_before_and_after_it(store: Store) -> None:
    before = session_of(store, "before", 25)
    cards = store.cards()
    after = session_of(store, "after", 13)
    before.extend(messages(8, first=26))  # opened before there were cards

    assert cards.flush(WAIT)
    assert [card.ordinal for card in cards.of(before)] == carded_of(33)
    assert [card.ordinal for card in cards.of(after, refs=["§1", "§4"])] == [1, 4]
    assert {card.generator_model for card in cards.of(after)} == {"fast-path", "extractive"}
    assert list(cards.findings) == []
    assert store.cards() is cards


class Place(NamedTuple):
    id: str
    store: str
    journal: str | None
    cards: str | None
    lies: str


PLACES = [
    Place("a folder", "file:{tmp}/store", None, None, "{tmp}/store/cards.sqlite"),
    Place("a journal elsewhere: beside it", "file:{tmp}/store", "{tmp}/j", None, "{tmp}/j/cards.sqlite"),
    Place("named", "file:{tmp}/store", None, "sqlite:{tmp}/deep/c.db", "{tmp}/deep/c.db"),
    Place("named, of a store in memory", "memory:", None, "sqlite:{tmp}/c.db", "{tmp}/c.db"),
]


@pytest.mark.parametrize("place", PLACES, ids=[place.id for place in PLACES])
def test_cards_lie_beside_the_journal_or_where_they_are_named(place: Place, tmp_path: Path) -> None:
    uri, journal, named, lies = (None if part is None else part.format(tmp=tmp_path) for part in place[1:])
    assert uri is not None
    assert lies is not None
    with open_store(uri, journal=journal, cards=named) as store:
        assert store.cards_uri == f"sqlite:{lies}"
        assert not Path(lies).exists()
        session_of(store, count=3)
        assert store.cards().flush(WAIT)
    index = open_cards(f"sqlite:{lies}", must_exist=True)
    assert [row.carded for row in index.sessions()] == [3]
    index.close()


def test_an_index_of_the_caller_s_own_is_used_and_left_open() -> None:
    index = MemoryCards()
    with memory_store() as store:
        cards = store.cards(index, maker=CardMaker(now=clock))
        assert cards.index is index
        for tenant in ("acme", "default"):
            session_of(store, count=3, tenant=tenant)
        assert cards.flush(WAIT)
    assert [(row.tenant, row.carded) for row in index.sessions()] == [("acme", 3), ("default", 3)]
    assert {card.generated_at for card in index.of_session("acme", "s")} == {clock()}


@pytest.mark.parametrize("bad", ["x", "sqlite:", "sqlite:{tmp}/other", "sqlite:{tmp}"])
def test_an_index_that_cannot_be_had_is_refused_and_the_store_goes_on(bad: str, store: Store, tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "other")
    db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises((InputError, StoreError)):
        store.cards(bad.format(tmp=tmp_path))
    session_of(store, count=3)
    assert card_threads() == []
    assert store.erasers == []
    assert store.cards().flush(WAIT)


def test_cards_are_kept_once_and_may_be_closed_and_kept_again(store: Store) -> None:
    session = session_of(store, count=5)
    cards = store.cards()
    for more in ({"index": "memory:"}, {"maker": card_maker("leading")}):
        with pytest.raises(InputError, match="keeps its cards already"):
            store.cards(**more)  # type: ignore[arg-type]
    assert cards.close()
    assert (card_threads(), store.erasers) == ([], [])
    assert cards.close()

    session.extend(messages(5, first=6))
    again = store.cards(maker=card_maker("leading"))
    assert again is not cards
    assert again.flush(WAIT)
    assert ordinals(again) == carded_of(10)


def test_a_summarizer_that_is_not_installed_is_refused() -> None:
    with pytest.raises(InputError, match="no summarizer named 'x'"):
        card_maker("x")


def test_opening_a_session_finds_what_a_process_without_cards_has_written(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as kept, open_store(uri) as other:
        cards = kept.cards()
        session_of(other, count=12)
        assert cards.flush(WAIT)
        session = kept.session("s", counter=CHARS)
        assert cards.flush(WAIT)
        assert [card.ordinal for card in cards.of(session)] == carded_of(12)


def _env() -> dict[str, str]:
    return os.environ | PYTHON


# -- the end ------------------------------------------------------------------------------------------------------


def test_closing_the_store_cards_what_waits_and_ends_the_threads(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path / 'store'}") as store:
        store.cards()
        session_of(store, count=300)
    assert card_threads() == []
    index = open_cards(f"sqlite:{tmp_path / 'store' / 'cards.sqlite'}")
    assert [row.carded for row in index.sessions()] == [300]
    index.close()
    assert sorted(path.name for path in (tmp_path / "store").glob("cards.sqlite*")) == ["cards.sqlite"]


class Stuck:
    """A summarizer that hangs until it is released."""

    def __init__(self) -> None:
        self.release, self.entered = threading.Event(), threading.Semaphore(0)

    def __call__(self, source: SourceMessage) -> str:
        self.entered.release()
        self.release.wait(WAIT)
        return "late"


def test_thousands_of_appends_wait_for_no_card(store: Store) -> None:
    """All threads hang from the first message to the last: whatever an append waited for would hold it up for ever."""
    stuck = Stuck()
    cards = store.cards(maker=CardMaker(now=clock, summarize=stuck))
    try:
        sessions = [session_of(store, name) for name in "abcd"]
        for session in sessions:
            session.append({"role": "user", "content": LONG})
        for _ in range(2):
            assert stuck.entered.acquire(timeout=WAIT)
        for burst in range(BURSTS):
            for session in sessions:
                session.extend(messages(100, first=2 + 100 * burst))
        assert [len(session) for session in sessions] == [1 + 100 * BURSTS] * 4
        assert [row.carded for row in cards.index.sessions()] == []
        assert not cards.flush(0.05)
    finally:
        stuck.release.set()
    assert cards.close(0.0) is False
    again = store.cards(maker=CardMaker(now=clock))
    assert again.flush(2 * WAIT)
    assert [row.carded for row in again.index.sessions()] == [1 + 100 * BURSTS] * 4


# -- processes ----------------------------------------------------------------------------------------------------

WRITER = """
import sys
from ctxsteward.envelope import open_store
sys.path.insert(0, sys.argv[2])
from tests.envelope.cards.conversations import CHARS, messages
with open_store(sys.argv[1]) as store:
    cards = store.cards()
    for n in range(int(sys.argv[4])):
        for name in ("shared", sys.argv[3]):
            session = store.session(name, counter=CHARS)
            session.extend(messages(10, first=len(session) + 1))
            print(name, len(session), flush=True)
    assert cards.flush(60)
    assert not cards.findings, list(cards.findings)
print("done", flush=True)
"""


def writer(uri: str, name: str, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, uri, str(Path(__file__).parents[3]), name, str(batches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_env())


def test_a_kill_loses_no_card_of_what_was_acknowledged(tmp_path: Path) -> None:
    uri, acknowledged = f"file:{tmp_path / 'store'}", {"shared": 0, "mine": 0}
    for kill in range(4) if SOAK else (0, 3):
        child = writer(uri, "mine", 10_000)
        assert child.stdout is not None
        until = 20 + 15 * kill
        for line in child.stdout:
            name, count = line.split()
            acknowledged[name] = int(count)
            until -= 1
            if not until:
                child.send_signal(signal.SIGKILL)
        assert child.wait(WAIT) == -signal.SIGKILL, child.communicate()
        child.communicate()
    with open_store(uri) as store:
        cards = store.cards()
        started = time.perf_counter()
        assert cards.flush(WAIT)
        print(f"{sum(acknowledged.values())} messages, some kills; caught up in {time.perf_counter() - started:.2f} s")
        for name, count in acknowledged.items():
            session = store.session(name, counter=CHARS)
            assert len(session) >= count > 0
            roles = {n: session.entry(n).message.role for n in range(1, len(session) + 1)}
            assert ordinals(cards, name) == [n for n, role in roles.items() if role != "system"]
        assert list(cards.findings) == []


def test_two_processes_keep_the_cards_of_one_store_without_an_error(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    writers = [writer(uri, name, 20) for name in ("one", "two")]
    for process in writers:
        out, err = process.communicate(timeout=2 * WAIT)
        assert (out.splitlines()[-1:], err) == (["done"], "")
    with open_store(uri) as store:
        cards = store.cards()
        assert cards.flush(WAIT)
        assert [(row.session, row.carded) for row in cards.index.sessions()] == [
            ("one", 200),
            ("shared", 400),
            ("two", 200),
        ]
        shared = store.session("shared", counter=CHARS)
        wanted = [n for n in range(1, 401) if shared.entry(n).message.role != "system"]
        assert ordinals(cards, "shared") == wanted
        assert {card.address for card in cards.of(shared)} == {shared.entry(n).event.address for n in wanted}


def test_a_log_that_grows_while_it_is_read_in_small_parts_is_carded_to_its_end(store: Store) -> None:
    """More than one reading (32 records) behind each hint, system messages and pins between."""
    cards = store.cards(maker=card_maker("leading"))
    session = session_of(store)
    for n in range(40):
        session.extend([say(("user", "system")[n % 9 == 0], f"{n}.{m}", pin="soft") for m in range(n)])
        session.pin(f"§{max(1, len(session) // 2)}", name=f"p{n}") if len(session) else None
    assert cards.flush(WAIT)
    roles = [session.entry(n).message.role for n in range(1, len(session) + 1)]
    assert ordinals(cards) == [n for n, role in enumerate(roles, 1) if role != "system"]
