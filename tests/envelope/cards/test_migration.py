"""Moving cards between indexes of any two kinds: everything arrives, a cut-off run goes on, a difference is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxsteward.envelope.cards import CardIndex, CountMismatch, MigrationResult, migrate
from ctxsteward.envelope.cards.index import EVERYTHING, MemoryCards
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.cards import ContextCard

from ...postgres import postgres, postgres_dsn
from .indexes import Opener, at, card, index, opener

__all__ = ["index", "opener", "postgres", "postgres_dsn"]  # fixtures


def fill(source: CardIndex) -> None:
    for session, count in (("a", 25), ("b", 3), ("c", 40)):
        vectors = {"embedding": (0.25, float(count)), "embedding_model": "m"} if session == "c" else {}
        source.put([card(n, session, **vectors) for n in range(1, count + 1)], [("default", session, count + 2)])
    source.put([card(1, "a", tenant="acme")], [("acme", "a", 1), ("acme", "marked only", 7)])
    source.erase("default", "a", [2, 3, 99], scrub=False)
    source.erase("default", "b", scrub=False)


def contents(index: CardIndex) -> list[object]:
    return [(row, index.of_session(row.tenant, row.session)) for row in index.sessions()]


def test_everything_arrives_and_a_second_run_does_nothing(opener: Opener) -> None:
    source, target, back = MemoryCards(), opener(), MemoryCards()
    fill(source)

    assert migrate(source, target, batch_cards=7) == MigrationResult(5, 0, 64, ())
    assert contents(target) == contents(source)
    assert migrate(source, target) == MigrationResult(5, 5, 0, ())
    assert migrate(target, back) == MigrationResult(5, 0, 64, ())
    assert contents(back) == contents(source)


class CutOff(Exception):
    pass


def test_a_run_that_was_cut_off_goes_on_where_it_was(opener: Opener) -> None:
    source, left = MemoryCards(), 6

    class Cutting(MemoryCards):
        def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                raise CutOff
            return target.put(cards, done)

        def sessions(self, tenant: str | None = None) -> list:  # type: ignore[type-arg]
            return target.sessions(tenant)

    fill(source)
    target = opener()
    with pytest.raises(CutOff):
        migrate(source, Cutting(), batch_cards=5)
    done = migrate(source, target, batch_cards=5)
    assert done.skipped >= 2
    assert done.differences == ()
    assert contents(target)[:2] == contents(source)[:2]
    assert [row[:4] for row in target.sessions()] == [row[:4] for row in source.sessions()]


def test_newer_cards_of_the_target_stand_and_older_ones_go(index: CardIndex) -> None:
    source = MemoryCards()
    source.put([card(1, summary="from the source", generated_at=at(5)), card(2, summary="from the source")])
    index.put([card(1, summary="older"), card(2, summary="newer", generated_at=at(9))])
    assert migrate(source, index) == MigrationResult(1, 0, 2, ())
    assert [c.summary for c in index.of_session("default", "s")] == ["from the source", "newer"]


def test_what_is_erased_in_either_does_not_arrive(index: CardIndex) -> None:
    source = MemoryCards()
    source.put([card(1), card(2), card(3)], [("default", "s", 3)])
    source.erase("default", "s", [1])
    index.put([card(1)])
    index.erase("default", "s", [3])
    done = migrate(source, index)
    assert [c.ordinal for c in index.of_session("default", "s")] == [2]
    assert done.differences == (CountMismatch("default", "s", 2, 1),)
    source.erase("default", "s")
    migrate(source, index)
    assert index.sessions()[0][2:] == (0, 3, (EVERYTHING,))


def test_embeddings_that_the_target_cannot_hold_stop_it(index: CardIndex) -> None:
    source = MemoryCards()
    fill(source)
    index.put([card(1, "z", embedding=(1.0, 2.0, 3.0), embedding_model="m")])
    with pytest.raises(InputError, match="this index holds 'm' with 3"):
        migrate(source, index)


def test_a_source_that_is_written_to_meanwhile_is_found_out() -> None:
    source, target = MemoryCards(), MemoryCards()
    fill(source)

    def write(session: str) -> None:
        source.put([card(500, "a", tenant="acme")])

    assert migrate(source, target, on_session=write).differences == ()
    source.put([card(1, "new")])
    done = migrate(source, target, on_session=lambda name: source.put([card(9, "late")]) and None)
    assert done.differences == (CountMismatch("default", "late", 1, 0),)


def test_a_failing_target_is_an_error_and_no_loss_of_the_source() -> None:
    class Full(MemoryCards):
        def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
            raise StoreError("the disk is full")

    source = MemoryCards()
    fill(source)
    before = contents(source)
    with pytest.raises(StoreError, match="full"):
        migrate(source, Full())
    assert contents(source) == before
