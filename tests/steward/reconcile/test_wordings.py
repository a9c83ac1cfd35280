"""Claims of one thing are one in whatever words; claims that differ stay apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward import Ledger
from ctxsteward.steward.reconcile.features import claim_features, value_norm

from ..scenes import AGENT, TENANT, artifact, memory_store

DESK = {"kind": "correction", "slot": ("desk", "correction:desk", "many"), "value": "19:30", "polarity": "positive"}
EMOJI = {"slot": ("agent", "emoji", "many"), "polarity": "negative"}
NOTE = {"slot": ("user", "own_words", "many")}
BASES: dict[str, dict[str, Any]] = {"desk": DESK, "emoji": EMOJI, "note": NOTE}


def claims_of(*said: tuple[str, dict[str, Any]]) -> int:
    """How many claims these are, each said in a session of its own."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for at, (text, fields) in enumerate(said):
            ledger.absorb(artifact(store, f"s{at}", [text], **fields))
        assert not ledger.flawed()
        return ledger.components()


@pytest.mark.parametrize(
    ("fields", "wordings"),
    [
        (
            DESK,
            ("No, the desk closes at 19:30.", "Actually it is open until half past seven.", "更正：前台19:30关门。"),
        ),
        (EMOJI, ("Never use emojis, please.", "I don't want emojis in your messages.", "不要表情符号！请注意。")),
    ],
    ids=["a value", "a topic of answers"],
)
def test_other_words_for_one_thing_are_one_claim(fields: dict[str, Any], wordings: tuple[str, ...]) -> None:
    assert claims_of(*((text, fields) for text in wordings)) == 1


def test_kinds_of_one_family_are_one_claim() -> None:
    assert claims_of(("Keep it short.", DESK), ("Short, please.", DESK | {"kind": "preference"})) == 1


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ("desk", {"value": "18:00"}),
        ("desk", {"polarity": "negative"}),
        ("desk", {"kind": "policy"}),
        ("desk", {"slot": ("lift", "correction:lift", "many")}),
        ("desk", {"value": None}),
        ("emoji", {"polarity": "positive"}),
        ("note", {}),
    ],
    ids=["value", "sign", "family", "thing", "no value", "sign of a topic", "own words"],
)
def test_claims_that_differ_are_two(base: str, change: dict[str, Any]) -> None:
    fields = BASES[base]
    assert claims_of(("What the one says.", fields), ("What another says.", fields | change)) == 2


@given(st.text(max_size=280))
def test_any_text_can_be_taken_apart(text: str) -> None:
    assert claim_features(text) == claim_features(text)


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
