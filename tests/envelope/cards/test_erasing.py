"""Cards of what was forgotten are gone to the last byte: here, elsewhere, in time and late, whoever has the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.cards import CardIndex, CardMaker, card_maker, open_cards, rebuild
from ctxsteward.envelope.cards.index import EVERYTHING, MemoryCards
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.schemas import Erased, StoreError
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import DrainMark, SessionKey
from ctxsteward.store.objects.memory import MemoryObjects

from ...store.erasure.scenes import ANN, BOB, NOTE, OWN, TOLD, contents_of, fill, hits
from .conversations import CHARS
from .indexes import clock

WAIT = 60.0
HERS = (*ANN, *NOTE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path / 'store'}") as opened:
        fill(opened, turns=3)
        yield opened


def words_in(index: CardIndex, words: tuple[str, ...], tenant: str = "acme") -> list[str]:
    """Words in any card of a tenant, folded, as keywords are."""
    rows = index.sessions(tenant)
    cards = repr([index.of_session(tenant, row.session) for row in rows]).lower()
    return [word for word in words if word.lower() in cards]


def left_in(store: Store, root: Path, words: tuple[str, ...]) -> dict[str, list[str]]:
    """Words in any file below a folder, any object, also folded."""
    contents = contents_of(store, root)
    return hits({name: data + data.lower() for name, data in contents.items()}, (*words, *map(str.lower, words)))


# -- a file store -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False], ids=["kept up by this process", "kept up by nobody"])
def test_forgetting_leaves_no_byte_of_its_cards_in_the_store(store: Store, tmp_path: Path, kept: bool) -> None:
    cards = store.cards()
    assert cards.flush(WAIT)
    index = open_cards(store.cards_uri)
    assert words_in(index, (*ANN, *BOB, *OWN)) == [*ANN, *BOB, *OWN]
    if not kept:
        cards.close()
    forget(store, tenant="other", session="s-1", **TOLD)

    done = forget(store, tenant="acme", principal="ann", **TOLD)
    assert done.elsewhere > 0
    assert left_in(store, tmp_path, HERS) == {}
    assert words_in(index, (*BOB, *OWN)) == [*BOB, *OWN]

    for session in ("s-1", "s-2", "s-3"):
        assert forget(store, tenant="acme", session=session, **TOLD).elsewhere > 0
    assert left_in(store, tmp_path, (*ANN, *BOB, *OWN, *NOTE)) == {}
    assert {row.erased for row in index.sessions()} == {(EVERYTHING,)}
    index.close()


def test_forgetting_while_cards_are_made_lets_none_of_them_through(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path / 'store'}") as store:
        cards = store.cards()
        for n in range(12):
            session = store.session(f"s{n}", tenant="acme", counter=CHARS)
            session.extend(NewMessage(message={"role": "user", "content": f"{ANN[0]} {m} " * 30}) for m in range(40))
            forget(store, tenant="acme", session=f"s{n}", **TOLD)
        assert cards.flush(WAIT)
        assert left_in(store, tmp_path, ANN) == {}
        assert {finding.text for finding in cards.findings if "was erased" not in finding.text} == set()


def test_every_index_of_the_store_is_told(tmp_path: Path) -> None:
    """The one beside the journal, the one that is named, and one of the caller's own."""
    root, named, own = tmp_path / "store", f"sqlite:{tmp_path / 'named.sqlite'}", MemoryCards()
    with open_store(f"file:{root}") as store:
        fill(store, turns=1)
        assert store.cards().flush(WAIT)
    with open_store(f"file:{root}", cards=named) as store:
        assert store.cards().flush(WAIT)
    with open_store(f"file:{root}", cards=named) as store:
        assert store.cards(own).flush(WAIT)
        assert set(left_in(store, tmp_path, ANN)) >= set(ANN)
        forget(store, tenant="acme", principal="ann", **TOLD)
        forget(store, tenant="other", session="s-1", **TOLD)
        assert left_in(store, tmp_path, HERS) == {}
        assert words_in(own, ANN) == []
        assert words_in(own, BOB) == [*BOB]


def test_an_index_that_cannot_be_read_stops_no_erasure_and_is_named(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "store" / "cards.sqlite"
    db = sqlite3.connect(path)
    for statement in ("CREATE TABLE t (x)", "PRAGMA application_id = 0x63747863", "PRAGMA user_version = 9"):
        db.execute(statement)
    db.close()
    with pytest.raises(StoreError, match=r"not everything is forgotten: .*cards\.sqlite.*repeat"):
        forget(store, tenant="acme", session="s-1", **TOLD)
    assert store.journal.length(SessionKey("acme", "s-1")) == 0
    path.unlink()
    assert forget(store, tenant="acme", session="s-1", **TOLD).elsewhere == 0


def test_what_was_forgotten_without_an_index_goes_when_it_is_kept_again(store: Store, tmp_path: Path) -> None:
    own = MemoryCards()
    assert store.cards(own).flush(WAIT)
    store.cards().close()
    forget(store, tenant="acme", principal="ann", **TOLD)
    forget(store, tenant="acme", session="s-3", **TOLD)
    assert words_in(own, ANN) == [*ANN]

    assert store.cards(own).flush(WAIT)
    assert words_in(own, ANN) == []
    assert words_in(own, BOB) == [*BOB]
    assert own.of_session("acme", "s-3") == []
    assert words_in(own, ANN, "other") == [*ANN]


def test_cards_of_messages_that_the_log_has_lost_go_with_their_principal(store: Store) -> None:
    """A writer that lost the session leaves cards of turns that are in no log of this name any more."""
    cards = store.cards()
    assert cards.flush(WAIT)
    key = SessionKey("acme", "s-2")
    length = store.journal.length(key)
    before = cards.index.carded(*key)
    (first,) = [n for n, record in enumerate(store.journal.read(key, 0)) if record.ordinal == before - 3]
    store.journal.truncate(key, first)
    assert 0 < first < length
    assert len(cards.index.of_session(*key)) == before

    forget(store, tenant="acme", principal="bob", **TOLD)
    assert words_in(cards.index, BOB) == []
    assert cards.index.carded(*key) == before - 4
    assert cards.flush(WAIT)
    assert words_in(cards.index, ANN) == [*ANN]


# -- several machines ---------------------------------------------------------------------------------------------


class Machines:
    """Stores with journals of their own over one object store."""

    def __init__(self) -> None:
        self._objects, self._keys = MemoryObjects(), memory_keys()

    @contextmanager
    def machine(self, journal: MemoryJournal | None = None) -> Iterator[Store]:
        made = journal or MemoryJournal(drains=True)
        with Store(made, self._objects, self._keys, uri="memory:", write_behind=True) as store:
            yield store


@pytest.fixture
def machines() -> Iterator[tuple[Store, Store]]:
    """Both have all sessions of acme in their journals, and cards of them."""
    world = Machines()
    with world.machine() as one, world.machine() as two:
        fill(one, turns=2)
        assert one.flush(WAIT)
        for session in ("s-1", "s-1-child", "s-1-grandchild", "s-2", "s-3"):
            two.session(session, tenant="acme", counter=CHARS)
        assert two.flush(WAIT)
        for store in (one, two):
            cards = store.cards(maker=card_maker("leading"))
            assert cards.flush(WAIT)
            assert words_in(cards.index, (*ANN, *BOB, *OWN)) == [*ANN, *BOB, *OWN]
        yield one, two


def test_a_session_that_another_machine_forgot_leaves_the_cards_here(machines: tuple[Store, Store]) -> None:
    one, two = machines
    forget(two, tenant="acme", session="s-1", **TOLD)
    held = one.cards().index
    assert held.of_session("acme", "s-1-child")

    done = apply_tombstones(one, "acme")
    assert done is not None
    assert done.elsewhere > 0
    for session in ("s-1", "s-1-child", "s-1-grandchild"):
        assert held.of_session("acme", session) == []
    assert held.of_session("acme", "s-2")
    assert apply_tombstones(one, "acme") is None


def test_opening_a_session_that_another_machine_forgot_is_enough(machines: tuple[Store, Store]) -> None:
    one, two = machines
    forget(two, tenant="acme", session="s-2", **TOLD)
    with pytest.raises(Erased):
        one.session("s-2", tenant="acme")
    assert one.cards().index.of_session("acme", "s-2") == []


def test_a_principal_that_another_machine_forgot_leaves_the_cards_here(machines: tuple[Store, Store]) -> None:
    one, two = machines
    forget(two, tenant="acme", principal="ann", **TOLD)
    apply_tombstones(one, "acme")
    for store in (one, two):
        assert words_in(store.cards().index, HERS) == []
        assert words_in(store.cards().index, (*BOB, *OWN)) == [*BOB, *OWN]


def test_a_redaction_that_comes_in_with_a_session_takes_its_cards_along(machines: tuple[Store, Store]) -> None:
    """Catching up with a session's chain brings what another machine has redacted, before tombstones are asked for."""
    one, two = machines
    forget(two, tenant="acme", principal="ann", **TOLD)
    assert two.flush(WAIT)
    one.session("s-2", tenant="acme", counter=CHARS)
    cards = one.cards()
    assert cards.flush(WAIT)
    assert not [card for card in cards.index.of_session("acme", "s-2") if ANN[0].lower() in repr(card).lower()]
    assert [card for card in cards.index.of_session("acme", "s-2") if BOB[0].lower() in repr(card).lower()]


def test_an_index_whose_journal_knows_nothing_of_a_session_hears_of_its_tombstone() -> None:
    """A journal that was lost, or another process that had dropped the rows before."""
    world, index = Machines(), MemoryCards()
    with world.machine() as one:
        fill(one, turns=1)
        assert one.flush(WAIT)
        assert one.cards(index).flush(WAIT)
    with world.machine() as two:
        forget(two, tenant="acme", session="s-2", **TOLD)
    with world.machine() as anew:
        anew.cards(index)
        assert index.of_session("acme", "s-2")
        done = apply_tombstones(anew, "acme")
        assert done is not None
        assert done.elsewhere > 0
        assert index.of_session("acme", "s-2") == []
        assert index.of_session("acme", "s-3")
        assert apply_tombstones(anew, "acme") is None


def test_a_session_that_another_machine_owns_and_has_carded_further_is_left_to_it() -> None:
    with Store(MemoryJournal(drains=True), MemoryObjects(), memory_keys(), uri="memory:") as store:
        session = store.session("s", counter=CHARS)
        session.extend({"role": "user", "content": f"old {n}"} for n in range(3))
        index = MemoryCards()
        rebuild(store, index, CardMaker(now=clock))
        further: dict[str, Any] = {"ref": "§4", "address": "4" * 64}
        index.put([index.of_session("default", "s")[0].model_copy(update=further)], [("default", "s", 4)])
        for number, epoch, carded in ((1, -2, 4), (2, 3, 3)):
            store.journal.set_drained(session.key, DrainMark(0, number, epoch))
            cards = store.cards(index)
            assert cards.flush(WAIT)
            cards.close()
            assert index.carded("default", "s") == carded
