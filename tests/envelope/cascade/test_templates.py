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
    "yes": True,
    "no": False,
    "word": "False",
    "n": 3,
    "zero": 0,
    "list": ["a"],
    "empty": [],
    "items": 5,
    "nested": {"deep": "x"},
    "none": None,
}

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
    "1<(" * 300 + "1" + ")<1" * 300,
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


def test_instructions_are_filled_in_and_a_missing_key_is_empty() -> None:
    text = "{{ input.topic }} {{ input.rows }} {{ input.nope }}"
    text += "{% for r in input.rows %} {{ loop.index }}:{{ r.n ~ '!' }}{% endfor %}"
    rendered = render(text, input={"topic": "tea", "rows": [{"n": 1}, {"n": 2}]}, state={})

    assert rendered == 'tea [{"n": 1}, {"n": 2}]  1:1! 2:2!'


def test_a_value_that_looks_like_a_template_is_not_rendered_again() -> None:
    assert render("{{ input.x }}", input={"x": "{{ state.secret }}"}, state={"secret": 1}) == "{{ state.secret }}"


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


LONG = "a" * 100_000
COSTLY: dict[str, str] = {
    "a text in a text": "'{needle}' in input.text",
    "a text not in a text": "'{needle}' not in input.text",
    "a text in a list": "input.text in input.texts",
    "a list in a list of lists": "input.numbers in input.lists",
    "equal texts": "input.text == input.same",
    "equal lists": "input.numbers == input.alike",
    "unequal lists": "input.numbers != input.alike",
    "ordered texts": "input.text < input.same",
    "ordered lists": "input.numbers <= input.alike",
    "a chain": "input.text == input.same == input.text",
    "equal mappings": "input.mapping == input.mirror",
    "the test in": "input.text is in input.texts",
    "the test eq": "input.numbers is eq input.alike",
    "the test lower": "input.text is lower",
    "select by a test": "input.texts | select('in', input.texts) | list | length > 0",
    "reject by a test": "input.lists | reject('eq', input.numbers) | list | length > 0",
    "a slice of a text": "input.text[1:]",
    "a slice of a list": "input.numbers[::-1]",
    "strip": "input.text.strip(input.strange)",
    "trim": "input.text | trim(input.strange) | length > 0",
}
"""Expressions that read much, to stand in loops. Each costs more with more data, though it is as short."""


def costly_data() -> dict[str, Any]:
    """Equal values that are not one object, which Python would compare by identity."""
    numbers = list(range(5_000))
    return {
        "text": LONG,
        "same": "".join(list(LONG)),
        "texts": ["".join(list(LONG)) + str(n)[:0] + "b" for n in range(20)],
        "numbers": numbers,
        "alike": [*numbers],
        "lists": [[*numbers[:-1], n + 60_000] for n in range(20)],
        "mapping": {str(n): [n] for n in numbers},
        "mirror": {str(n): [n] for n in numbers},
        "strange": "".join(map(chr, range(1_000, 30_000))) + "a",
    }


@pytest.mark.parametrize("expression", COSTLY)
def test_what_reads_much_is_paid_for_and_stops_soon(expression: str) -> None:
    asked = COSTLY[expression].replace("{needle}", "a" * 49 + "b" + "a" * 49)
    loops = "{% for a in range(1000) %}{% for b in range(1000) %}", "{% endfor %}{% endfor %}"
    template = f"{loops[0]}{{% if {asked} %}}{{% endif %}}{loops[1]}"
    data = costly_data()
    started = time.process_time()
    with pytest.raises(TemplateFailed, match="steps of work"):
        holds(template, input=data, state={})
    assert time.process_time() - started < 2.0


def test_comparisons_are_what_they_were() -> None:
    data = {"n": 3, "text": "a long text", "list": [1, 2, 3], "map": {"a": 1}, "log": "x" * 300_000 + "error"}
    for condition, expected in {
        "1 < input.n < 5": True,
        "1 < input.n < 2": False,
        "'long' in input.text": True,
        "'a' in input.map": True,
        "2 not in input.list": False,
        "input.list[1:] == [2, 3]": True,
        "input.text[:6] == 'a long'": True,
        "input.absent in input.list": False,
        "'x' in input.absent": False,
        "input.n is in input.list": True,
        "input.list | select('>', 1) | list == [2, 3]": True,
        "2 in input.list | map('int')": True,
        "'error' in input.log": True,
        "input.n is eq 3 and input.n is ne 4": True,
        "5 in range(9)": True,
        "input.text.strip('a').strip() == 'long text'": True,
        "'xay' | trim('xy') == 'a'": True,
    }.items():
        assert holds(condition, input=data, state={}) is expected, condition
