"""Cards are made when they are asked for, each once, and go with their originals."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.cards import cards_of
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.erasure.forget import forget

from .conversations import LONG, carded_of, messages, say, session_of

TOLD = {"who": "dpo", "why": "asked", "when": "2026-11-24T09:00:00Z"}


class Counted:
    """A summarizer that counts its calls."""

    def __init__(self, name: str = "counted") -> None:
        self.name, self.asked = name, list[str]()

    def __call__(self, source: SourceMessage) -> str:
        self.asked.append(source.ref)
        return f"{self.name} {source.ref}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path / 'store'}") as opened:
        yield opened


def holders(folder: Path, words: str) -> list[str]:
    """Files below a folder that have these words."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.name for path in files if words.encode() in path.read_bytes()]


def test_each_message_is_summarized_once_in_every_process(store: Store, tmp_path: Path) -> None:
    session, counted = session_of(store, count=12), Counted()
    first = cards_of(session, counted)
    assert [card.ordinal for card in first.cards] == carded_of(12)
    assert counted.asked == ["§4", "§8", "§12"]
    assert cards_of(session, counted) == first

    session.extend(messages(4, first=13))
    with open_store(store.uri) as other:
        later = cards_of(other.session("s"), counted)
    assert counted.asked == ["§4", "§8", "§12", "§16"]
    assert later.cards[: len(first.cards)] == first.cards


def test_each_summarizer_has_summaries_of_its_own_and_they_can_be_made_anew(store: Store) -> None:
    session = session_of(store, count=4)
    one, two = Counted("one"), Counted("two")
    summaries = [cards_of(session, counted, refs=["§4"]).cards[0].summary for counted in (one, two, one)]
    assert summaries == ["one §4", "two §4", "one §4"]
    cards_of(session, one, anew=True)
    assert (one.asked, two.asked) == (["§4", "§4"], ["§4"])


def test_a_summarizer_that_failed_is_asked_again(store: Store) -> None:
    session = session_of(store, count=4)

    def down(source: SourceMessage) -> str:
        raise RuntimeError("no quota")

    down.__name__ = "model"
    assert [finding.kind for finding in cards_of(session, down).findings] == ["card_not_summarized"]
    assert cards_of(session, Counted("model")).cards[-1].summary == "model §4"


def test_phase_and_references_limit_the_cards(store: Store) -> None:
    session = session_of(store)
    session.extend([say("user", "one", phase="research"), say("assistant", "two"), say("user", "three", phase="write")])
    assert [card.ref for card in cards_of(session, phase="research").cards] == ["§1", "§2"]
    assert [card.ref for card in cards_of(session, refs=["3", "§1", "§9"]).cards] == ["§1", "§3"]
    assert cards_of(session, refs=["§3"]).cards[0].phase_name == "write"
    assert cards_of(session, refs=[]).cards == []
    with pytest.raises(InputError, match="not a reference"):
        cards_of(session, refs=["x"])
    with pytest.raises(InputError, match="no summarizer named 'x'"):
        cards_of(session, "x")


def test_pins_are_those_of_now(store: Store) -> None:
    session = session_of(store, count=2)
    assert not cards_of(session).cards[0].is_callout
    session.pin("§1", "keep", name="the question")
    assert cards_of(session).cards[0].callout_name == "the question"
    session.pin("§1", None)
    assert not cards_of(session).cards[0].is_callout


def test_a_fork_has_the_cards_of_the_part_it_shares_each_under_its_own_session(store: Store) -> None:
    parent = session_of(store, count=9)
    child = parent.fork("§4", id="child")
    child.append({"role": "user", "content": "another way"})
    grandchild = child.fork("§5", id="grandchild")
    grandchild.append({"role": "user", "content": "a third"})
    assert [(card.ref, card.session) for card in cards_of(grandchild).cards] == [
        *((f"§{n}", "s") for n in range(1, 5)),
        ("§5", "child"),
        ("§6", "grandchild"),
    ]


def test_what_is_forgotten_leaves_no_card_and_no_byte(store: Store, tmp_path: Path) -> None:
    words = "the vault code is 7719-QX"
    for name in ("s", "t"):
        session = session_of(store, name)
        session.append({"role": "user", "content": words}, principal="ann")
        session.append({"role": "user", "content": f"bob says {LONG}"}, principal="bob")
        assert words in cards_of(session).cards[0].summary
    assert len(holders(tmp_path, words)) > 1

    forget(store, tenant="default", principal="ann", **TOLD)
    assert holders(tmp_path, words) == []
    left = cards_of(store.session("s"))
    assert ([card.ref for card in left.cards], left.findings) == (["§2"], [])
    assert holders(tmp_path, words) == []


def test_a_session_that_was_open_meanwhile_writes_no_forgotten_word_back(store: Store, tmp_path: Path) -> None:
    words = "the vault code is 7719-QX"
    session = session_of(store)
    session.append({"role": "user", "content": words}, principal="ann")
    session.append({"role": "assistant", "content": LONG})

    def forgets(source: SourceMessage) -> str:
        with open_store(store.uri) as other:
            forget(other, tenant="default", principal="ann", **TOLD)
        return "a reply"

    assert [card.summary for card in cards_of(session, forgets).cards] == [words, "a reply"]
    assert holders(tmp_path, words) == []
    assert [card.ref for card in cards_of(session, forgets).cards] == ["§2"]


def test_a_damaged_original_costs_its_own_card(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as store:
        session_of(store, "bad", 9)
    (journal,) = (tmp_path / "store").glob("journal*.sqlite")
    db = sqlite3.connect(journal)
    wire = "replace(wire, 'question 5', 'question 6')"
    assert db.execute(f"UPDATE records SET wire = {wire} WHERE ordinal = 5").rowcount == 1
    db.commit()
    db.close()
    with open_store(uri) as store:
        cards, findings = cards_of(store.at("default", "bad"))
    assert [card.ordinal for card in cards] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert {(finding.kind, finding.ref) for finding in findings} == {("card_not_made", "§5")}


def test_kept_summaries_that_are_altered_are_made_again(store: Store, tmp_path: Path) -> None:
    session, counted = session_of(store, count=4), Counted()
    cards_of(session, counted)
    (kept,) = (tmp_path / "store" / "indexes").rglob("*cards*")
    kept.write_bytes(kept.read_bytes().replace(b"counted ", b"forged! "))
    assert cards_of(session, counted).cards[-1].summary == "counted §4"
    assert counted.asked == ["§4", "§4"]


def test_tenants_and_stores_without_a_folder_share_nothing() -> None:
    store, counted = memory_store(), Counted()
    for tenant in ("acme", "zeta"):
        session = session_of(store, tenant=tenant)
        session.append({"role": "user", "content": f"{tenant} {LONG}"})
        assert [(card.tenant, card.summary) for card in cards_of(session, counted).cards] == [(tenant, "counted §1")]
    assert counted.asked == ["§1", "§1"]


def test_threads_may_read_the_same_session(store: Store) -> None:
    session, read = session_of(store, count=40), list[list[int]]()
    threads = [Thread(target=lambda: read.append([card.ordinal for card in cards_of(session).cards])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [carded_of(40)] * 4
