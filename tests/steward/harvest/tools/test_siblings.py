"""What one tool taught, told of others that have the same trouble."""

from __future__ import annotations

from itertools import permutations

from ctxsteward.steward.harvest.tools.errors import MAX_TAKEN, identifiers, siblings, takes, tool_errors
from ctxsteward.steward.observations.observation import Observation

from .scenes import call, scene


def learned() -> Observation:
    (one,) = tool_errors(
        scene(
            call("change", "Error: payment method not found", order="A17", payment_id="card_1"),
            call("get_user", '"card_88121"', user_id="ann"),
            call("change", "{}", order="A17", payment_id="card_88121"),
        )
    )
    return one


def failing() -> Observation:
    parts = [{"payment_id": "card_9", "amount": 300}]
    failed = call("book", "Error: payment method card_9 not found", flight="HAT1", parts=parts)
    _, one = tool_errors(scene(failed, succeeded=False))
    return one


def test_a_tool_that_failed_at_the_same_argument_is_told() -> None:
    one = learned()
    (other,) = siblings([one, failing()])[one]
    assert other.text == ("book may fail with payment at parts: take parts[].payment_id from get_user (as for change).")
    assert other.trigger == "tool:book error:payment arg:parts"
    assert (other.slot.subject, other.tool, other.places) == ("book", "book", one.places)
    assert other.score < one.score
    assert other.extractor == "tool_siblings/1"


def test_a_tool_with_another_code_or_argument_is_told_nothing() -> None:
    one = learned()
    (other_code,) = tool_errors(scene(call("book", "Error: invalid format of payment_id", payment_id="x-123")))
    (other_argument,) = tool_errors(scene(call("book", "Error: payment of amount is wrong", amount=3, day="monday")))
    assert siblings([one, other_code]) == {}
    assert siblings([one, other_argument]) == {}
    assert siblings([failing()]) == {}


def test_tools_known_to_take_the_identifier_are_told_without_having_failed() -> None:
    one = learned()
    known = takes([scene(call("refund", "{}", payment_id="card_3", order="A17"), call("note", "{}", text="hello"))])
    assert known["refund"] == frozenset(("payment_id", "order"))
    (other,) = siblings([one], known)[one]
    assert other.trigger == "tool:refund error:payment arg:payment_id"


def test_the_source_of_the_value_is_not_told_to_ask_itself() -> None:
    one = learned()
    assert siblings([one], {"get_user": frozenset(("payment_id",))}) == {}


def test_the_order_of_observations_does_not_matter() -> None:
    every = [learned(), failing(), *tool_errors(scene(call("pay", "Error: payment_id not found", payment_id="a-123")))]
    known = {"refund": frozenset(("payment_id",)), "hold": frozenset(("x[].payment_id",))}
    assert len({str(sorted(siblings(order, known).items(), key=repr)) for order in permutations(every)}) == 1


def test_calls_that_failed_say_nothing_about_what_a_tool_takes() -> None:
    assert takes([scene(call("refund", "Error: no", payment_id="card_3"))]) == {}


def test_of_what_a_tool_takes_identifiers_are_kept_up_to_a_cap() -> None:
    many = {f"key_{number}": "x" for number in range(2 * MAX_TAKEN)}
    found = identifiers(scene("hello", call("refund", "{}", payment_id="c", amount=3), call("store", "{}", **many)))
    assert found["refund"] == frozenset(("payment_id",))
    assert len(found["store"]) == MAX_TAKEN
    assert identifiers(scene("hello", call("note", "{}", text="hi"))) == {}
