"""Making an index anew from originals, beside whatever is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.cards import CardMaker, StoreCards, rebuild
from ctxsteward.envelope.cards.index import MemoryCards
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError

from .conversations import LONG, carded_of, say, session_of
from .indexes import at, clock

MAKER = CardMaker(now=clock)


def test_a_rebuild_makes_all_cards_of_a_tenant_or_of_one_session() -> None:
    store, index = memory_store(), MemoryCards()
    for name, count in (("a", 250), ("b", 5), ("empty", 0)):
        session_of(store, name, count)
    session_of(store, "other", 5, tenant="acme")

    one = rebuild(store, index, MAKER, session="b")
    assert (one.sessions, one.messages, one.cards) == (1, 5, 5)
    every = rebuild(store, index, MAKER)
    assert (every.sessions, every.messages, every.cards) == (3, 255, len(carded_of(250)) + 5)
    assert [(row.session, row.carded) for row in index.sessions()] == [("a", 250), ("b", 5)]
    assert rebuild(store, index, MAKER, "nobody") == (0, 0, 0, ())


def test_a_rebuild_replaces_what_stands_and_leaves_erased_messages_out() -> None:
    store, index = memory_store(), MemoryCards()
    session_of(store).extend([say("user", LONG), say("user", "two"), say("user", "three")])
    rebuild(store, index, MAKER)
    index.erase("default", "s", [2])

    later = CardMaker(now=lambda: at(60), summarize=lambda source: "better")
    done = rebuild(store, index, later)
    assert (done.messages, done.cards) == (3, 2)
    assert [(c.ordinal, c.summary) for c in index.of_session("default", "s")] == [(1, "better"), (3, "three")]


def test_a_session_that_does_not_exist_is_refused() -> None:
    store, index = memory_store(), MemoryCards()
    session_of(store, count=3)
    with pytest.raises(InputError, match="no session 'x'"):
        rebuild(store, index, MAKER, session="x")


def test_a_damaged_original_costs_its_own_card_and_never_another_session(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as store:
        for name in ("bad", "good"):
            session_of(store, name, 9)
    (journal,) = (tmp_path / "store").glob("journal*.sqlite")
    db = sqlite3.connect(journal)
    wire = "replace(wire, 'question 5', 'question 6')"
    changed = db.execute(f"UPDATE records SET wire = {wire} WHERE ordinal = 5 AND session = 'bad'").rowcount
    db.commit()
    db.close()
    assert changed == 1

    rebuilt, worked = MemoryCards(), MemoryCards()
    with open_store(uri) as store, closing(StoreCards(store, worked, MAKER)) as worker:
        findings = rebuild(store, rebuilt, MAKER).findings
        assert worker.flush(30)
        assert findings
        assert worker.findings
    for index in (rebuilt, worked):
        assert [card.ordinal for card in index.of_session("default", "good")] == carded_of(9)
        assert 5 not in [card.ordinal for card in index.of_session("default", "bad")]
