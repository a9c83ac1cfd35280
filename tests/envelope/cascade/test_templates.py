"""Templates: what they may say, and that nothing else is reachable, at any price."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from ctxsteward.envelope.cascade.templates import TemplateFailed, check_template, holds, render
from ctxsteward.schemas import InputError

from ...tables import table

STATE: dict[str, Any] = {
    "yes": True, "no": False, "word": "False", "n": 3, "zero": 0, "list": ["a"], "empty": [], "items": 5,
    "nested": {"deep": "x"}, "none": None,
}  # fmt: skip

TABLE = table(__file__, "templates.yaml")
CONDITIONS: dict[str, bool] = TABLE["conditions"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_true_or_false(condition: str) -> None:
    assert check_template(condition, is_condition=True) is None
    assert holds(condition, input={"kind": "urgent"}, state=STATE) is CONDITIONS[condition]


ATTACKS = [
    *TABLE["attacks"],
    "{{ " + "(" * 400 + ")" * 400 + " }}",
    "{{ " + "[" * 400 + "]" * 400 + " }}",
    "x" * 2_001,
    "state.a " * 131_072,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda text: text[:60])
def test_an_attack_is_a_clear_error_and_soon(attack: str) -> None:
    state = {**STATE, "dunder": "__class__"}
    before = repr(state)
    started = time.process_time()

    with pytest.raises(TemplateFailed) as failed:
        holds(attack, input={}, state=state)

    assert time.process_time() - started < 2
    assert failed.value.found
    assert failed.value.hint
    assert len(str(failed.value)) < 400
    assert repr(state) == before


@pytest.mark.parametrize("value", [{"f": print}, {"t": {1, 2}}, {1: "a"}, float("nan"), {"x": float("inf")}])
def test_data_that_is_no_json_is_refused_before_it_is_reachable(value: Any) -> None:
    with pytest.raises(InputError, match="input"):
        holds("input.x", input=value, state={})


def test_instructions_are_filled_in_and_say_what_was_missing() -> None:
    text = "{{ input.topic }} {{ input.rows }} {{ input.nope }}"
    text += "{% for r in input.rows %} {{ loop.index }}:{{ r.n ~ '!' }}{% endfor %}"
    found = render(text, input={"topic": "tea", "rows": [{"n": 1}, {"n": 2}]}, state={})

    assert found.text == 'tea [{"n": 1}, {"n": 2}]  1:1! 2:2!'
    assert found.missing == ("nope",)


def test_a_value_that_looks_like_a_template_is_not_rendered_again() -> None:
    assert render("{{ input.x }}", input={"x": "{{ state.secret }}"}, state={"secret": 1}).text == "{{ state.secret }}"


PIECES = st.sampled_from(
    (
        "input.a",
        "input",
        "state.word",
        "1",
        "'x'",
        "[1, 2]",
        " == ",
        " > ",
        " and ",
        " not ",
        " in ",
        "(",
        ")",
        "|length",
        "+",
    )
)


@settings(deadline=2_000)  # a text takes a millisecond of CPU; on a busy machine 200 ms of wall time pass without any
@given(st.text(max_size=60) | st.lists(PIECES, max_size=6).map("".join))
@example("input.a == 1")
@example("not input.a in [1, 2]")
def test_any_text_is_a_condition_or_a_refusal(text: str) -> None:
    for condition in (text, "{{" + text + "}}", "{%" + text + "%}"):
        problem = check_template(condition, is_condition=True)
        try:
            answer = holds(condition, input={"a": 1}, state=STATE)
        except TemplateFailed:
            continue
        assert problem is None
        assert isinstance(answer, bool)
