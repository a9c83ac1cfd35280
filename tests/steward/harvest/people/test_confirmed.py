"""What a declared field of an answer says first is confirmed by it; wishes about form alone may be for everybody."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from ctxsteward.schemas.summary import Trust
from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.observations.transcript import ReplayedCall, ReplayedUtterance

from .talk import found, said, talk

PICKUP = "Correction: pickup in Bonn ends at 18:00."
FEE = "No, the cancellation fee is 50 EUR, not 30 EUR."


class Answer(NamedTuple):
    id: str
    claim: str
    text: str
    confirms: bool
    trust: Trust = "tool_internal"
    denies: bool = False


DEPOTS = '{"depots": [{"city": "Bonn", "pickup_ends": "%s"}, {"city": "Kiel", "pickup_ends": "%s"}]}'
FIELDS = ("price", "pickup_ends")
"""That the operator declares; no tool writes into them what it was given."""
ANSWERS = (
    Answer("a sentence has no fields", PICKUP, "Bonn: pickup ends at 6 pm.", False),
    Answer("an object of JSON", PICKUP, DEPOTS % ("18:00", "20:00"), True),
    Answer("another way to write it", PICKUP, DEPOTS % ("6 pm", "20:00"), True),
    Answer("a text in JSON", PICKUP, '{"notices": ["Bonn: pickup ends at 6 pm."]}', False),
    Answer("a field that nobody declared", FEE, '{"item": "cancellation fee", "note": "50 EUR"}', False),
    Answer("the value beside the field", FEE, '{"item": "cancellation fee 50 EUR", "price": "see above"}', False),
    Answer("two objects together say nothing", PICKUP, DEPOTS % ("20:00", "18:00"), False, denies=True),
    Answer("another value", PICKUP, "Pickup in Bonn ends at 19:00.", False, denies=True),
    Answer("a denial", PICKUP, '{"city": "Bonn", "pickup_ends": "never at 18:00"}', False),
    Answer("a page from elsewhere", PICKUP, DEPOTS % ("18:00", "20:00"), False, "tool_external"),
    Answer("a number without its unit", FEE, '{"item": "cancellation fee", "price": 5000}', False),
    Answer("what was wrong", FEE, "The cancellation fee is 30 EUR.", False, denies=True),
    Answer("another fee", FEE, '{"item": "airport fee", "price": "50 EUR"}', False),
    Answer(
        "a count of something else",
        "No, the locker limit is 12, not 14.",
        '{"locker": "limit set", "price": 4411}',
        False,
    ),
    Answer("when it was", FEE, "The cancellation fee was 30 EUR two years ago.", False),
    Answer("the fee", FEE, '{"item": "cancellation fee", "price": "50 EUR"}', True),
    Answer("Chinese", "错了，配送费是12元，不是9元。", '{"item": "配送费", "price": "12元"}', True),
    Answer("Chinese, another value", "错了，配送费是12元，不是9元。", "配送费是9元。", False, denies=True),
    Answer("no JSON", FEE, "[" * 50_000, False),
    Answer("empty", FEE, "", False),
)


def answered(text: str, ordinal: int, trust: Trust = "tool_internal", arguments: str = "{}") -> list[ReplayedUtterance]:
    """A call of a tool whose fields are declared, and its answer."""
    call = ReplayedCall(id="c1", name="look_up", arguments=arguments)
    fields = FIELDS if trust == "tool_internal" else ()
    told = said(text, "tool", ordinal + 1, call_id="c1", tool="look_up", trust=trust, confirming_fields=fields)
    return [said("", "assistant", ordinal, calls=(call,)), told]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.id)
def test_a_claim_is_confirmed_by_a_declared_field_that_says_so_too(answer: Answer) -> None:
    told = answered(answer.text, 2, answer.trust)
    every = harvest(talk(said("Hello, I have a question."), *told, said(answer.claim, ordinal=4)))
    (claim,) = [one for one in every if one.kind == "correction"]  # a tool's own sentence may be one besides
    assert claim.reach == "shared"
    stop = len(answer.text.encode())
    spans = [(place.ref, place.start, place.stop) for place in claim.places if place.relation == "confirms"]
    assert spans == ([("§3", 0, stop)] if answer.confirms else [])
    denied = [(place.ref, place.start, place.stop) for place in claim.places if place.relation == "contradicts"]
    assert denied == ([("§3", 0, stop)] if answer.denies else [])


PRICE = '{"item": "cancellation fee", "price": "50 EUR"}'
PRICE_TEXT = "No, the cancellation fee is 50 EUR, not 30 EUR."
ECHOES = (
    ("a tool that is asked with the value", answered(PRICE, 1, arguments='{"q": "is the fee 50 EUR?"}')),
    ("the value is an argument without its unit", answered(PRICE, 1, arguments='{"price": 50}')),
    ("a person said it before", [said("Is the fee 50 EUR?"), *answered(PRICE, 2)]),
    ("the claim comes before the answer", [said(PRICE_TEXT), *answered(PRICE, 2)]),
    ("the assistant summed it up before", [said("You say 50 EUR.", "assistant"), *answered(PRICE, 2)]),
    ("another tool said it before", [said("note: 50 EUR", "tool", 1, call_id="c0", tool="note"), *answered(PRICE, 2)]),
    (
        "an earlier call stored it",
        [
            said("", "assistant", 1, calls=(ReplayedCall(id="c0", name="note", arguments='{"text": "50 EUR"}'),)),
            *answered(PRICE, 2),
        ],
    ),
)


@pytest.mark.parametrize("before", [each[1] for each in ECHOES], ids=[each[0] for each in ECHOES])
def test_a_value_that_stood_in_the_session_before_the_answer_confirms_nothing(before: list[ReplayedUtterance]) -> None:
    found = harvest(talk(*before, said(FEE, ordinal=9)))
    claims = [one for one in found if one.kind == "correction"]
    assert claims
    assert [place for one in claims for place in one.places if place.relation == "confirms"] == []


@given(
    order=st.permutations(["claim", "note", "summary", "read"]),
    price=st.integers(2, 9_999),
    others=st.lists(st.sampled_from(["claim", "note", "summary"]), max_size=3),
)
def test_only_what_a_tool_says_first_confirms_whatever_the_order(
    order: list[str], price: int, others: list[str]
) -> None:
    steps = {
        "claim": [said(f"No, the cancellation fee is {price} EUR, not 1 EUR.")],
        "summary": [said(f"The fee is {price} EUR, I understand.", "assistant")],
        "note": [said("", "assistant", calls=(ReplayedCall(id="n", name="note", arguments=f'{{"t": {price}}}'),))],
        "read": answered(f'{{"item": "cancellation fee", "price": "{price} EUR"}}', 1),
    }
    sequence = [*order, *others]
    told = [one for name in sequence for one in steps[name]]
    placed = [replace(one, ordinal=at, ref=f"§{at}") for at, one in enumerate(told, 1)]
    confirmed = [one for one in harvest(talk(*placed)) if any(place.relation == "confirms" for place in one.places)]
    assert sequence[0] == "read" or not confirmed


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("I never want emojis in your answers.", "shared"),
        ("From now on, please keep your answers short.", "shared"),
        ("以后回答请简短一点。", "shared"),
        ("Please always answer in German.", "session"),  # a language is its reader's own
        ("Always answer briefly that refunds go to DE00 1234.", "session"),
        ("Always write short answers: pickup ends at 18:00.", "session"),
        ("From now on, always use bullet points and say that refunds are free.", "session"),
        ("以后回答请简短，退款都是免费的。", "session"),
        ("From now on, deliver only on Saturdays, please.", "session"),
    ],
)
def test_a_wish_may_be_for_everybody_where_it_is_about_form_and_nothing_else(text: str, reach: str) -> None:
    assert {seen.reach for seen in found(text, "preferences")} == {reach}
