"""Wordings of one fact are one claim; claims that differ stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward import Ledger
from ctxsteward.steward.reconcile.features import alike, claim_features, value_norm

from ..scenes import AGENT, TENANT, artifact, memory_store
from .wordings import DIFFERENT, FRESH, FRESH_DIFFERENT, LATER, SETS, Facts, Pair

MOST_CLAIMS = 6


def claims_of(facts: Facts, **fields: object) -> int:
    """How many claims five facts are, said in three sessions."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for at in range(3):
            ledger.absorb(artifact(store, f"s{at}", [fact[at] for fact in facts.facts], **fields))
        assert not ledger.flawed()
        return ledger.components()


@pytest.mark.parametrize("facts", [*SETS, *FRESH], ids=lambda facts: facts.name)
def test_five_facts_in_three_wordings_are_at_most_six_claims(facts: Facts) -> None:
    assert 5 <= claims_of(facts) <= MOST_CLAIMS


def test_wordings_nobody_tuned_for_mostly_become_one() -> None:
    found = [claims_of(facts) for facts in LATER]
    assert sum(count <= MOST_CLAIMS for count in found) >= len(found) / 2
    assert sum(found) <= 7 * len(found)


def test_kinds_of_one_family_merge_alike() -> None:
    assert claims_of(SETS[0], kind="correction") == claims_of(SETS[0], kind="preference") == 5


@pytest.mark.parametrize("pair", [*DIFFERENT, *FRESH_DIFFERENT], ids=lambda pair: pair.one)
def test_claims_that_differ_are_two(pair: Pair) -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(artifact(store, "s1", [pair.one.ljust(8, "。")]), artifact(store, "s2", [pair.other]))
        assert ledger.components() == 2, pair.why


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
