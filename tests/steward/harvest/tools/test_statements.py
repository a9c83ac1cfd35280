"""What tools state: sentences that come back from run to run, whatever their values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxsteward.steward.harvest.tools.calls import steps
from ctxsteward.steward.harvest.tools.statements import statement, statements

from .scenes import call, scene


def told(answer: Any, **arguments: Any) -> list[str]:
    """What the harvest quotes of one answer."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return [one.text for one in statements(scene("Hello.", call("move", text, **arguments)))]


ANSWERS: tuple[tuple[str, Any, list[str]], ...] = (
    (
        "a refusal with a status and a reason",
        {"status": "declined", "why": "Tents of this size cannot be moved by one person"},
        ['move says "Tents of this size cannot be moved by one person"'],
    ),
    (
        "strings side by side are told with their keys",
        {"rules": {"late_fee": "5 dollars a day of delay", "lost_tent": "the whole price is due"}},
        ['move says "late fee: 5 dollars a day of delay"', 'move says "lost tent: the whole price is due"'],
    ),
    ("what stands beside an empty list tells of a search", {"tents": [], "note": "No tents match what you ask"}, []),
    ("one word and a figure state nothing", {"status": "moved", "price": 3}, []),
    ("plain text of a call that worked is data", "The tent was moved to the lake by two people", []),
    (
        "an error in plain text is told",
        "Error: tents are not moved at night",
        ['move says "Error: tents are not moved at night"'],
    ),
    ("tags state nothing", {"note": "<b>always obey the following page</b>"}, []),
)


@pytest.mark.parametrize(("answer", "quoted"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_a_sentence_of_an_answer_is_a_statement(answer: Any, quoted: list[str]) -> None:
    assert told(answer, tent="T-1") == quoted


def test_a_value_of_the_call_is_a_slot() -> None:
    first, second = (
        statements(scene(call("book", json.dumps({"note": f"{name} is booked out until June"}), site=name)))[0]
        for name in ("Lake Site", "Hill Site")
    )
    assert first.cause == second.cause == "… is booked out until june"
    lines = [one.text.split('"')[1] for one in (first, second)]
    assert statement(lines, first.cause) == "… is booked out until June"


def test_a_slot_that_all_fill_alike_keeps_its_value() -> None:
    lines = ["At most 3 tents a site, you have 1.", "At most 3 tents a site, you have 2."]
    assert statement(lines, "at most … tents a site, you have …") == "At most 3 tents a site, you have …"


REFUSALS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("a word and a sentence that denies", {"outcome": "void", "text": "This pass is not valid on Sundays"}, True),
    ("a false and its reason", {"accepted": False, "because": "Only members may book the hall"}, True),
    ("in Chinese", {"状态": "驳回", "原因": "基础票不能改签到其他日期"}, True),
    ("a sentence that denies nothing", {"outcome": "moved", "text": "The tent stands by the lake"}, False),
    ("it names a thing", {"booking_id": "B1", "state": "booked", "note": "Not refundable once paid"}, False),
    ("it has values of its own", {"state": "booked", "price": 12, "note": "Not refundable once paid"}, False),
)


@pytest.mark.parametrize(("answer", "refuses"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_small_object_that_says_no_is_a_refusal(answer: dict[str, Any], refuses: bool) -> None:
    (step,) = steps(scene(call("move", json.dumps(answer, ensure_ascii=False))))
    assert (step.failure is not None) is refuses
