"""How much use records were: one table for the same batches, in whatever order and however often they are counted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hypothesis import given, settings, strategies as st

from ctxsteward.steward.harvest.batches import BatchResult, SessionUse
from ctxsteward.steward.harvest.usage import FATES, RecordUse
from ctxsteward.steward.ledger.database import LedgerDatabase
from ctxsteward.steward.ledger.reconciliation import Reconciliation
from ctxsteward.steward.ledger.records import LedgerIdentity
from ctxsteward.steward.ledger.usage_table import UsageTable

from ...examples import examples

RECORDS = ("r-1", "r-2", "r-3")


@dataclass
class Batches:
    """Finished batches by address, and those that were read."""

    by_address: dict[str, tuple[SessionUse, ...]]

    def __post_init__(self) -> None:
        self.asked: list[str] = []

    def read(self, address: str) -> BatchResult:
        self.asked.append(address)
        return BatchResult(address=address, artifacts=(), uses=self.by_address[address])


def usage_table(database: LedgerDatabase) -> UsageTable:
    return UsageTable(database, lambda: Reconciliation(database, LedgerIdentity("acme", "support")))


def counted(batches: Iterable[tuple[str, tuple[SessionUse, ...]]]) -> dict[str, RecordUse]:
    database = LedgerDatabase(Path(":memory:"), "test")
    try:
        table = usage_table(database)
        for address, uses in batches:
            table.catch_up([address], Batches({address: uses}).read)
        return table.by_shown_id()
    finally:
        database.close()


def use(reading: str, revision: int, *rests: str, **fates: str) -> SessionUse:
    return SessionUse(reading, revision, {fate: ids.split() for fate, ids in fates.items()}, rests)


USES = st.builds(
    lambda reading, revision, told, who: SessionUse(
        reading,
        revision,
        {fate: sorted(id for id in told if told[id] == fate) for fate in sorted(set(told.values()))},
        (reading, who),
    ),
    st.sampled_from(("s-1", "s-2", "s-3")),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(RECORDS), st.sampled_from(sorted(FATES)), max_size=3),
    st.sampled_from(("ann", "ben")),
)
BATCHES = st.dictionaries(st.sampled_from("abcdef"), st.lists(USES, max_size=3).map(tuple), max_size=5)


@settings(max_examples=examples(100))
@given(BATCHES, st.randoms(use_true_random=False))
def test_the_same_batches_in_any_order_and_again_make_the_same_table(
    batches: dict[str, tuple[SessionUse, ...]], random: Random
) -> None:
    rows = list(batches.items())
    once = counted(rows)
    random.shuffle(rows)
    assert counted(rows + rows[::-1]) == once

    every = [one for uses in batches.values() for one in uses]
    newest: dict[str, int] = {}
    for one in every:
        newest[one.reading] = max(one.revision, newest.get(one.reading, 0))
    most = {
        reading: max(sum(map(len, one.fates.values())) for one in every if one[:2] == (reading, revision))
        for reading, revision in newest.items()
    }
    assert sum(hit.shown for hit in once.values()) == sum(most.values()), "a session counts once, as it is now"


@settings(max_examples=examples(100))
@given(BATCHES, st.sets(st.sampled_from(("s-1", "s-2", "ann"))))
def test_whoever_was_forgotten_counts_no_more_and_does_not_come_back(
    batches: dict[str, tuple[SessionUse, ...]], forgotten: set[str]
) -> None:
    left = {address: tuple(one for one in uses if forgotten.isdisjoint(one.rests)) for address, uses in batches.items()}
    found, database = Batches(batches), LedgerDatabase(Path(":memory:"), "test")
    try:
        table = usage_table(database)
        table.catch_up(found.by_address, found.read, forgotten)
        assert table.by_shown_id() == counted(left.items()), "a ledger that is made anew"
        found.by_address["later"] = (use("s-1", 9, "s-1", complied="r-1"),)
        table.catch_up(found.by_address, found.read, forgotten)
        assert ("s-1" in held(database)) == ("s-1" not in forgotten)
    finally:
        database.close()


def held(database: LedgerDatabase) -> str:
    """All that the file holds of batches."""
    return json.dumps(database.rows("SELECT * FROM batches"))


def test_what_was_counted_before_is_taken_back() -> None:
    database = LedgerDatabase(Path(":memory:"), "test")
    batches = Batches(
        {
            "a": (use("s-1", 1, "s-1", "ann", complied="r-1", quiet="r-2"),),
            "b": (use("s-2", 1, "s-2", "ben", complied="r-1"),),
        }
    )
    try:
        table = usage_table(database)
        table.catch_up(batches.by_address, batches.read)
        table.withdraw({"ann"})
        assert table.by_shown_id() == {"r-1": FATES["complied"]}
        assert "s-1" not in held(database)
        assert "r-2" not in held(database), "no record of theirs is named"
    finally:
        database.close()


def test_a_session_that_grew_counts_as_it_is_now() -> None:
    first = use("s-1", 4, complied="r-1", quiet="r-2")
    grown = use("s-1", 9, contradicted="r-1", quiet="r-2 r-3")
    for order in ([("a", (first,)), ("b", (grown,))], [("b", (grown,)), ("a", (first,))]):
        assert counted(order) == {
            "r-1": FATES["contradicted"],
            "r-2": FATES["quiet"],
            "r-3": FATES["quiet"],
        }


def test_what_only_a_later_program_tells_says_that_it_was_shown() -> None:
    assert counted([("a", (use("s-1", 1, delighted="r-1"),))]) == {"r-1": FATES["untold"]}


def test_batches_that_are_counted_are_not_read_again(tmp_path: Path) -> None:
    batches = Batches({"a": (use("s-1", 1, quiet="r-1"),), "b": ()})
    database = LedgerDatabase(tmp_path / "ledger.sqlite", "test")
    try:
        table = usage_table(database)
        assert table.catch_up(batches.by_address, batches.read) == 2
        batches.by_address["c"] = (use("s-2", 1, complied="r-1"),)
        assert table.catch_up(batches.by_address, batches.read) == 1
        assert batches.asked == ["a", "b", "c"]
        assert table.by_shown_id() == {"r-1": RecordUse(shown=2, judged=2, fired=1, complied=1)}
    finally:
        database.close()
