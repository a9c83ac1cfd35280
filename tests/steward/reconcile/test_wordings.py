"""Wordings of one fact are one record; claims that differ stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest
from ctxsteward.steward.reconcile.features import alike, claim_features, value_norm

from ..scenes import AGENT, TENANT, artifact, memory_store, replayed, said
from .wordings import DIFFERENT, FRESH, FRESH_DIFFERENT, LATER, SETS, Facts, Pair

MOST_RECORDS = 6


def records_of(facts: Facts, **fields: object) -> list[str]:
    """Texts of the records that five facts make, said in three sessions."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for at in range(3):
            ledger.absorb(artifact(store, f"s{at}", [fact[at] for fact in facts.facts], **fields))
        assert not ledger.flawed()
        return [record.text for record in ledger.records() if not record.conflicts]


@pytest.mark.parametrize("facts", [*SETS, *FRESH], ids=lambda facts: facts.name)
def test_five_facts_in_three_wordings_are_at_most_six_records(facts: Facts) -> None:
    assert 5 <= len(records_of(facts)) <= MOST_RECORDS


@pytest.mark.parametrize("facts", [*SETS, *FRESH, *LATER], ids=lambda facts: facts.name)
def test_the_same_out_of_transcripts(facts: Facts) -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for at in range(3):
            lines = [said(fact[at], ordinal=2 * number + 1) for number, fact in enumerate(facts.facts)]
            talk = replayed(f"s{at}", *lines)
            ledger.absorb(*build_artifact(talk, harvest(talk), extractor=EXTRACTOR, key=store.keys.address_key(TENANT)))
        assert 1 <= len(list(ledger.records())) <= MOST_RECORDS


def test_wordings_nobody_tuned_for_mostly_become_one() -> None:
    found = [len(records_of(facts)) for facts in LATER]
    assert sum(count <= MOST_RECORDS for count in found) >= len(found) / 2
    assert sum(found) <= 7 * len(found)


@pytest.mark.parametrize("kind", ["fact", "correction", "decision"])
def test_kinds_of_one_family_and_others_merge_alike(kind: str) -> None:
    assert len(records_of(SETS[0], kind=kind)) == 5


@pytest.mark.parametrize("pair", [*DIFFERENT, *FRESH_DIFFERENT], ids=lambda pair: pair.one)
def test_claims_that_differ_are_two_records(pair: Pair) -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(artifact(store, "s1", [pair.one.ljust(8, "。")]), artifact(store, "s2", [pair.other]))
        assert len(list(ledger.records())) == 2, pair.why


@given(st.sampled_from([wording for facts in (*SETS, *FRESH) for fact in facts.facts for wording in fact]), st.data())
def test_likeness_is_symmetric_and_holds_of_itself(text: str, data: st.DataObject) -> None:
    other = data.draw(st.text(min_size=1, max_size=60) | st.just(text[::-1]) | st.just(text + " please"))
    one, two = claim_features(text), claim_features(other)
    assert alike(one, one)
    assert alike(one, two) == alike(two, one)


@given(st.text(max_size=280))
def test_any_text_can_be_taken_apart(text: str) -> None:
    assert alike(claim_features(text), claim_features(text))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((45, "days"), ("45", "day"), True),
        (("9 am", None), ("09:00", None), True),
        (("Berlin", None), ("berlin", None), True),
        ((30, "days"), (30, "hours"), False),
        (("$1,200", None), ("1200 dollars", None), True),
        (("Berlin", None), ("Bonn", None), False),
        (("三十天", None), (30, "天"), True),
    ],
)
def test_values_compare_by_what_they_mean(
    one: tuple[str | float, str | None], other: tuple[str | float, str | None], same: bool
) -> None:
    assert (value_norm(*one) == value_norm(*other)) == same
