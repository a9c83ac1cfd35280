"""What every index promises: last write wins, marks with their cards, nothing across sessions, erasure for good."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope.cards import CardIndex, open_cards
from ctxsteward.envelope.cards.index import EVERYTHING, CardedSession
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.errors import InvalidReference

from ...postgres import postgres, postgres_dsn
from .indexes import Opener, at, card, index, opener

__all__ = ["index", "opener", "postgres", "postgres_dsn"]  # fixtures


def test_a_card_comes_back_as_it_was_put(index: CardIndex) -> None:
    cards = [
        card(1),
        card(2, embedding=(0.1, -2.5, 1e-20), embedding_model="m", summary="", keywords=()),
        card(3, phase_name=None, turn_number=None, message_timestamp=None, role="tool", estimated_tokens=0),
        card(4, is_anchor=True, is_callout=True, callout_name="the 'plan' 🎯", summary="x" * 300),
        card(10, generated_at=at(-1e9), summary="tab\tnewline\n\\ {} $1 \u2028"),
    ]

    assert index.put(cards[::-1]) == 5
    assert index.of_session("default", "s") == cards


def test_the_card_generated_last_stands_whatever_comes_last(index: CardIndex) -> None:
    newer, older, equal = (
        card(1, summary=text, generated_at=at(seconds)) for text, seconds in (("newer", 2), ("older", 1), ("equal", 2))
    )
    index.put([newer])
    index.put([older])
    assert index.of_session("default", "s") == [newer]
    index.put([equal])
    assert index.of_session("default", "s") == [equal]
    index.put([card(2, summary="b", generated_at=at(9)), card(2, summary="a", generated_at=at(8))])
    assert index.of_session("default", "s", refs=["§2"])[0].summary == "b"


def test_sessions_and_tenants_do_not_see_each_other(index: CardIndex) -> None:
    index.put([card(1, "a"), card(1, "b"), card(1, "a", tenant="acme")], [("acme", "a", 1)])

    assert [c.tenant for c in index.of_session("acme", "a")] == ["acme"]
    assert [c.session for c in index.of_session("default", "b")] == ["b"]
    assert index.of_session("acme", "b") == []
    assert (index.carded("acme", "a"), index.carded("default", "a")) == (1, 0)
    index.erase("default", "a")
    assert len(index.of_session("acme", "a")) == len(index.of_session("default", "b")) == 1


def test_phases_and_refs_choose(index: CardIndex) -> None:
    index.put([card(n) for n in range(1, 9)])

    def chosen(**more: Any) -> list[int]:
        return [c.ordinal for c in index.of_session("default", "s", **more)]

    assert chosen(phase="research") == [2, 4, 6, 8]
    assert chosen(phase="nothing like it") == chosen(phase="research\x00") == []
    assert chosen(refs=["§7", "2", "§2", "§99"]) == [2, 7]
    assert chosen(refs=["§7", "§2"], phase="write") == [7]
    assert chosen(refs=[]) == []
    assert len(chosen(refs=[f"§{n}" for n in range(1, 40_000)])) == 8
    with pytest.raises(InvalidReference):
        chosen(refs=["§0"])


def test_a_mark_is_set_with_its_cards_or_not_at_all(index: CardIndex) -> None:
    index.put([card(1)], [("default", "s", 1)])
    no_ordinal: Any = None  # the table refuses it, after the cards were written
    with pytest.raises(StoreError):
        index.put([card(2), card(3)], [("default", "s", no_ordinal)])

    assert [c.ordinal for c in index.of_session("default", "s")] == [1]
    assert index.carded("default", "s") == 1
    index.put([], [("default", "s", 7), ("default", "other", 2)])
    index.put([], [("default", "s", 4)])
    assert (index.carded("default", "s"), index.carded("default", "other")) == (4, 2)


def test_what_was_erased_stays_erased(opener: Opener) -> None:
    index = opener()
    index.put([card(n) for n in range(1, 6)], [("default", "s", 5)])

    assert index.erase("default", "s", [2, 4, 9]) == 2
    assert index.erase("default", "s", {2, 4, 9}) == 0
    late = [card(n, generated_at=at(60)) for n in (1, 2, 9)]
    assert opener().put(late) == 1
    assert [c.ordinal for c in index.of_session("default", "s")] == [1, 3, 5]

    assert index.erase("default", "s") == 3
    assert index.erase("default", "s", [1], scrub=False) == index.erase("default", "s") == 0
    assert opener().put(late) == 0
    assert index.of_session("default", "s") == []
    assert index.sessions() == [CardedSession("default", "s", 0, 5, (EVERYTHING,))]


def test_what_is_deleted_without_being_burnt_may_come_back(opener: Opener) -> None:
    index = opener()
    index.put([card(n) for n in range(1, 6)], [("default", "s", 5)])

    assert index.erase("default", "s", [2, 4, 9], scrub=False, burn=False) == 2
    assert index.sessions() == [CardedSession("default", "s", 3, 5, ())]
    assert index.erase("default", "s", [4]) == 0
    assert opener().put([card(2), card(4)]) == 1
    assert index.erase("default", "s", burn=False) == 4
    assert index.sessions() == [CardedSession("default", "s", 0, 5, (4,))]
    assert opener().put([card(n) for n in range(1, 6)]) == 4


def test_an_empty_erasure_erases_nothing(index: CardIndex) -> None:
    index.put([card(1)])
    assert index.erase("default", "s", []) == index.erase("default", "unknown", []) == 0
    assert index.sessions() == [CardedSession("default", "s", 1, 0, ())]


def test_sessions_are_told_in_order_with_their_counts(index: CardIndex) -> None:
    assert index.sessions() == []
    index.put([card(n, "b") for n in (1, 2)] + [card(1, "Z", tenant="acme")], [("default", "a", 3)])
    index.erase("default", "c", [4, 2], scrub=False)

    assert index.sessions() == [
        CardedSession("acme", "Z", 1, 0, ()),
        CardedSession("default", "a", 0, 3, ()),
        CardedSession("default", "b", 2, 0, ()),
        CardedSession("default", "c", 0, 0, (2, 4)),
    ]
    assert [row.session for row in index.sessions("acme")] == ["Z"]


def test_threads_may_share_an_index(index: CardIndex) -> None:
    failed: list[Exception] = []

    def write(part: int) -> None:
        try:
            for n in range(1, 41):
                index.put([card(n, f"s{n % 3}", generated_at=at(part))], [("default", f"s{n % 3}", n)])
                index.of_session("default", "s1")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sum(row.cards for row in index.sessions()) == 40


class BadUri(NamedTuple):
    uri: str
    says: str


@pytest.mark.parametrize(
    "case",
    [
        BadUri("", "name no index"),
        BadUri("sqlite:", "name no index"),
        BadUri("memory:x", r"'memory:\*{3}' name no index"),
        BadUri("cards.sqlite", "'cards.sqlite' name no index"),
        BadUri("mysql://user:secret@host/db", r"'mysql://\*{3}@host/db' name no index"),
        BadUri("postgresql:secret", r"'postgresql:\*{3}' name no index"),
        BadUri("postgres:user:secret@host/db", r"'postgres:\*{3}@host/db' name no index"),
        BadUri("user:secret@host/db", r"'user:\*{3}@host/db' name no index"),
        BadUri("secret@host/db", r"'\*{3}@host/db' name no index"),
    ],
)
def test_a_uri_that_names_no_index_is_refused_without_its_secrets(case: BadUri) -> None:
    with pytest.raises(InputError, match=case.says) as refused:
        open_cards(case.uri)
    assert "secret" not in str(refused.value)


def test_an_index_that_must_exist_is_not_made(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_cards(f"sqlite:{tmp_path}/none.sqlite", must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as refused:
        open_cards("postgresql://user:s3cret@127.0.0.1:1/db")
    assert "postgresql://127.0.0.1/db" in str(refused.value)
    assert "s3cret" not in str(refused.value)
