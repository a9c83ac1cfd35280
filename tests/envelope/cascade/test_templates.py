"""Templates: what they may say, and that nothing else is reachable, at any price."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.envelope.cascade.templates import TemplateFailed, check_template, holds, render
from ctxsteward.schemas import InputError

STATE: dict[str, Any] = {
    "yes": True, "no": False, "word": "False", "n": 3, "zero": 0, "list": ["a"], "empty": [], "items": 5,
    "nested": {"deep": "x"}, "none": None,
}  # fmt: skip

CONDITIONS = {
    "{{ state.yes }}": True,
    "state.yes": True,
    "{{ state.no }}": False,
    "{{ state.word }}": False,  # a text that says no
    "{{ state.missing }}": False,
    "{{ state.missing.deeper }}": False,
    "state.n > 2 and not state.empty": True,
    "'a' in state.list": True,
    "{{ state.empty }}": False,
    "{{ state.zero }}": False,
    "{{ state.none }}": False,
    "{% if state.yes %}yes{% endif %}": True,
    "{% if state.no %}yes{% endif %}": False,
    "state.list|length == 1": True,
    "state.get('n') == 3": True,
    "state.items == 5": True,  # a key, not the method
    "state.nested.deep is defined": True,
    "input.kind == 'urgent'": True,
    "state.nested['deep'].upper() == 'X'": True,
    "{{ state.yes }} and more": True,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_true_or_false(condition: str) -> None:
    assert check_template(condition, is_condition=True) is None
    assert holds(condition, input={"kind": "urgent"}, state=STATE) is CONDITIONS[condition]


ATTACKS = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''['__class__'] }}",
    "{{ state['__class__'] }}",
    "{{ state[state.dunder] }}",
    "{{ state|attr('__class__') }}",
    "{{ [state]|map('attr', '__class__')|list }}",
    "{{ [state]|map(attribute='__class__')|list }}",
    "{{ state.get.__self__ }}",
    "{{ state.get.__globals__ }}",
    "{{ state.get }}",
    "{{ self }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ lipsum(1000000) }}",
    "{{ dict(a=1) }}",
    "{{ namespace(x=1) }}",
    "{{ state.pop('yes') }}",
    "{{ state.update({}) }}",
    "{{ state.clear() }}",
    "{{ state.list.append(1) }}",
    "{{ 'a'.format(1) }}",
    "{{ '{0.__class__}'.format(state) }}",
    "{{ 'a' * 1000000000 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ 10 ** 100 }}",
    "{{ 9999999999999999999 * 9999999999999999999 }}",
    "{{ range(1000000000) }}",
    "{{ range(1000000000)|list }}",
    "{{ 'x'|center(1000000000) }}",
    "{{ 'x'|indent(1000000000) }}",
    "{{ 5|round(1000000000) }}",
    "{{ [[1]]|tojson(indent=1000000000) }}",
    "{{ [1, 2]|sum(start=[]) }}",
    "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in range(999) %}{% for b in range(999) %}{{ state.list|join(',') }}{% endfor %}{% endfor %}",
    "{% for x in state recursive %}{{ loop(x) }}{% endfor %}",
    "{% set x = 1 %}{{ x }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% include 'secrets' %}",
    "{% import 'os' as os %}",
    "{% extends 'base' %}",
    "{% filter upper %}x{% endfilter %}",
    "{{ state.list[0](1) }}",
    "{{ open('/etc/hostname').read() }}",
    "{{ 1 / 0 }}",
    "{{ 1 // 0 }}",
    "{{ state.n + 'a' }}",
    "{{ state.list.a.b.c() }}",
    "{{ ''.split('') }}",
    "{{ state",
    "{% if state.yes %}",
    "state.yes }} and {{ state.no",
    "state.yes }}",
    "inputs.kind",  # a typo is no false
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


@given(st.text(max_size=60))
def test_any_text_is_a_condition_or_a_refusal(text: str) -> None:
    for condition in (text, "{{" + text + "}}", "{%" + text + "%}"):
        problem = check_template(condition, is_condition=True)
        try:
            answer = holds(condition, input={"a": 1}, state=STATE)
        except TemplateFailed:
            continue
        assert problem is None
        assert isinstance(answer, bool)
