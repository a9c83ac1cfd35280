"""How a session ended: a verdict out of what was told, and what later words change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from ctxsteward.schemas.documents import Outcome

TOLD = st.fixed_dictionaries(
    {},
    optional={
        "succeeded": st.booleans(),
        "reward": st.floats(-2, 2),
        "thumbs": st.sampled_from(["up", "down"]),
        "resolved": st.booleans(),
        "escalated": st.booleans(),
    },
).filter(bool)


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({"succeeded": False, "reward": 1.0, "thumbs": "up"}, False),  # somebody has judged it
        ({"reward": 1.0}, True),
        ({"reward": 0.99}, False),  # a part of it
        ({"thumbs": "down"}, False),
        ({"thumbs": "up"}, None),  # anybody can press it
        ({"thumbs": "up", "escalated": True}, False),
        ({"thumbs": "up", "reward": 1.0}, True),
        ({"resolved": True, "thumbs": "up"}, True),
        ({"resolved": True, "escalated": True}, None),  # they contradict each other
        ({"escalated": True}, False),
        ({"escalated": False}, None),  # says nothing
        ({"escalated": False, "resolved": True}, True),
    ],
)
def test_verdict(told: dict[str, Any], verdict: bool | None) -> None:
    assert Outcome(**told).verdict is verdict


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"reward": "1"},
        {"reward": float("nan")},
        {"reward": True},
        {"thumbs": "sideways"},
        {"succeeded": 1},
        {"resolved": "yes"},
        {"escalated": None},
        {"happy": True},
    ],
)
def test_what_is_no_outcome_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Outcome(**told)


@given(TOLD, TOLD)
def test_of_two_outcomes_all_is_known_and_the_later_counts(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert Outcome(**first).then(Outcome(**second)) == Outcome(**first | second)
