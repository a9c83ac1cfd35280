"""Configurations that are read, and those that are refused by place and reason."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ctxsteward.envelope.cascade import (
    anchors,
    auto_enabled,
    cascade_of,
    intra_context,
    load_cascade,
    parse_cascade,
    selection,
    sub_input,
    sub_state,
)
from ctxsteward.envelope.cascade.config import MAX_YAML_BYTES
from ctxsteward.schemas import InputTooLarge
from ctxsteward.schemas.cascade import Anchors, AutoContext, Cascade, Context, IntraContext, Selection, Source
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.publish import validate

from .runs import cascade

YAML = """\
cascade_id: charts
phases:
  - name: draw
    instructions: Draw {{ input.data }}.
    tackle: manifest
    output_extraction: {pattern: "n=(\\\\d+)", store_as: n}
    context_ttl: {tool_results: 3, images: null}
  - name: check
    context:
      from:
        - draw
        - {phase: draw, include: [messages], filter: last_turn, if: "{{ state.n }}"}
      exclude: []
    soundings: {factor: 3}
  - name: report
    inject_from: ["dr*", previous]
    context_retention: output_only
    sub_cascades: [{ref: inner, context_in: [n], context_out: false}]
cascades:
  - cascade_id: inner
    phases: [{name: only}]
"""


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    read = parse_cascade(YAML)
    plain = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    (tmp_path / "c.yaml").write_text(YAML, encoding="utf-8")
    (tmp_path / "c.json").write_text(json.dumps(plain), encoding="utf-8")

    assert load_cascade(tmp_path / "c.yaml") == read
    assert load_cascade(tmp_path / "c.json") == read
    assert parse_cascade(json.dumps(plain)) == read
    validate("cascade", plain)


def test_defaults_are_the_published_ones() -> None:
    source, auto = Source(phase="p"), Context.model_validate({"mode": "auto"})
    assert source.model_dump(exclude={"phase"}) == {
        "include": ("images", "output"), "images_filter": "all", "images_count": 1, "messages_filter": "all",
        "as_role": "user", "condition": None,
    }  # fmt: skip
    assert (auto.include_input, auto.from_, auto.anchors, auto.selection) == (True, (), None, None)
    assert Anchors().model_dump() == {
        "window": 3, "from_phases": ("previous",), "include": ("output", "callouts", "input"),
    }  # fmt: skip
    assert Selection().model_dump() == {
        "strategy": "heuristic", "max_tokens": 30_000, "max_messages": 50, "selector_model": None,
        "recency_weight": 0.3, "keyword_weight": 0.4, "callout_weight": 0.3, "similarity_threshold": 0.7,
    }  # fmt: skip
    assert IntraContext().model_dump() == {
        "enabled": True, "window": 5, "mask_observations_after": 3, "compress_loops": True, "loop_history_limit": 3,
        "preserve_reasoning": True, "preserve_errors": True,
    }  # fmt: skip


def test_second_names_are_the_same_fields() -> None:
    read = parse_cascade(YAML).phases[1].context
    assert read is not None
    assert (read.from_[1].messages_filter, read.from_[1].condition) == ("last_turn", "{{ state.n }}")
    assert read.from_[1] == Source(
        phase="draw", include=("messages",), messages_filter="last_turn", condition="{{ state.n }}"
    )
    validate(
        "cascade",
        {
            "cascade_id": "c",
            "phases": [{"name": "a", "inject_from": [{"phase": "a", "filter": "all", "if": "x"}, "b*"]}],
        },
    )


# -- inheritance ---------------------------------------------------------------------------------------------


def test_settings_inherit_field_by_field_from_the_caller_to_the_phase() -> None:
    defaults = AutoContext.model_validate(
        {
            "intra_phase": {"window": 9, "loop_history_limit": 1, "enabled": False},
            "inter_phase": {"anchors": {"window": 7}, "selection": {"max_tokens": 10, "max_messages": 4}},
        }
    )
    example = cascade(
        {"name": "a"},
        {
            "name": "b",
            "intra_context": {"enabled": True},
            "context": {"mode": "auto", "anchors": {"include": ["errors"]}, "selection": {"max_tokens": 30}},
        },
        auto_context={
            "intra_phase": {"window": 4},
            "inter_phase": {"anchors": {"from_phases": ["a"]}, "selection": {"max_tokens": 20, "recency_weight": 1.0}},
        },
    )
    phase = example.phases[1]
    intra, fixed, chosen = (f(example, phase, defaults) for f in (intra_context, anchors, selection))

    assert intra == IntraContext(enabled=True, window=4, loop_history_limit=1)
    assert fixed == Anchors(window=7, from_phases=("a",), include=("errors",))
    assert chosen == Selection(max_tokens=30, max_messages=4, recency_weight=1.0)
    assert intra_context(example, example.phases[0], defaults) == IntraContext(
        enabled=False, window=4, loop_history_limit=1
    )


@pytest.mark.parametrize(
    ("outer", "inner", "strategy"),
    [
        ({}, {}, "heuristic"),
        ({"strategy": "hybrid"}, {}, "hybrid"),
        ({"strategy": "hybrid"}, {"strategy": "llm"}, "llm"),  # given twice: the inner one wins
        ({"strategy": "hybrid"}, {"max_tokens": 5}, "hybrid"),
    ],
)
def test_of_two_strategies_the_inner_one_wins(outer: dict[str, Any], inner: dict[str, Any], strategy: str) -> None:
    example = cascade({"name": "a"}, auto_context={"inter_phase": {**outer, "selection": inner}})
    assert selection(example, example.phases[0]).strategy == strategy


def test_of_two_models_the_inner_one_wins_and_a_nearer_level_wins_over_both() -> None:
    given = {"selector_model": "outer", "selection": {"selector_model": "inner"}}
    example = cascade({"name": "a"}, auto_context={"inter_phase": given})
    defaults = AutoContext.model_validate({"inter_phase": {"selection": {"selector_model": "far"}, "enabled": False}})
    near = cascade({"name": "a"}, auto_context={"inter_phase": {"selector_model": "near"}})

    assert selection(example, example.phases[0]).selector_model == "inner"
    assert selection(near, near.phases[0], defaults).selector_model == "near"
    assert auto_enabled(near, defaults) is False


# -- refusals ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    id: str
    phases: str
    key: str
    found: str
    hint: str


def two(second: str) -> str:
    return f"cascade_id: c\nphases:\n- {{name: a}}\n- {{name: b, {second}}}\n- {{name: later}}\n"


BAD = [
    Case("unknown phase", two("context: {from: [nope]}"), "phases[1].context.from[0]", "'nope' is no phase", "a"),
    Case("forward", two("context: {from: [later]}"), "phases[1].context.from[0]", "'later' comes after 'b'", "a"),
    Case("itself", two("context: {from: [b]}"), "phases[1].context.from[0]", "'b' is this phase itself", "a"),
    Case("forward injection", two("inject_from: [later]"), "phases[1].inject_from[0]", "'later' comes", "a"),
    Case("pattern of nothing", two("inject_from: ['x*']"), "phases[1].inject_from[0]", "'x*' matches no", "a"),
    Case("pattern of what comes", two("inject_from: ['lat*']"), "phases[1].inject_from[0]", "'lat*' comes", "a"),
    Case("unknown exclude", two("context: {exclude: [x]}"), "phases[1].context.exclude[0]", "'x' is no", "a"),
    Case(
        "unknown anchor",
        two("context: {mode: auto, anchors: {from_phases: [x]}}"),
        "phases[1].context.anchors.from_phases[0]", "'x' is no", "a",
    ),
    Case("both ways", two("context: {}, inject_from: []"), "phases[1]", "`context` and `inject_from`", "keep one"),
    Case("unknown key", two("colour: red"), "phases[1].colour", "unknown key", "allowed: name, instructions, context"),
    Case("unknown context key", two("context: {form: [a]}"), "phases[1].context.form", "unknown key", "from, exclude"),
    Case(
        "unknown source key",
        two("context: {from: [{phase: a, filtre: all}]}"),
        "phases[1].context.from[0].filtre", "unknown key", "messages_filter, as_role, condition, filter, if",
    ),
    Case(
        "second name clashes",
        two("inject_from: [{phase: a, filter: all, messages_filter: all}]"),
        "phases[1].inject_from[0]", "`messages_filter` and `filter`, which say the same", "keep one",
    ),
    Case(
        "second condition clashes",
        two("inject_from: [{phase: a, condition: 'x', if: 'x'}]"),
        "phases[1].inject_from[0]", "`if` and `condition`", "keep one",
    ),
    Case("include as text", two("inject_from: [{phase: a, include: output}]"),
         "phases[1].inject_from[0].include", "the text 'output'", "write a list"),
    Case("unknown include", two("inject_from: [{phase: a, include: [outputs]}]"),
         "phases[1].inject_from[0].include[0]", "the text 'outputs'", "'images', 'output', 'messages' or 'state'"),
    Case("include twice", two("inject_from: [{phase: a, include: [output, output]}]"),
         "phases[1].inject_from[0].include", "'output' twice", "once"),
    Case("nothing included", two("inject_from: [{phase: a, include: []}]"),
         "phases[1].inject_from[0].include", "a list", ""),
    Case("unknown filter", two("inject_from: [{phase: a, filter: last}]"),
         "phases[1].inject_from[0].filter", "the text 'last'", "last_turn"),
    Case("no phase in a source", two("inject_from: [{include: [output]}]"),
         "phases[1].inject_from[0].phase", "nothing", "add this key"),
    Case("a number as source", two("inject_from: [3]"), "phases[1].inject_from[0]", "the number 3", "a phase's name"),
    Case("sources as text", two("context: {from: a}"), "phases[1].context.from", "the text 'a'", "write a list"),
    Case("count as text", two("inject_from: [{phase: a, images_count: '2'}]"),
         "phases[1].inject_from[0].images_count", "the text '2'", "integer"),
    Case("no image", two("inject_from: [{phase: a, images_count: 0}]"),
         "phases[1].inject_from[0].images_count", "the number 0", "1"),
    Case("assistant as role", two("inject_from: [{phase: a, as_role: assistant}]"),
         "phases[1].inject_from[0].as_role", "the text 'assistant'", "'user' or 'system'"),
    Case("truth as text", two("context: {include_input: 'no'}"),
         "phases[1].context.include_input", "the text 'no'", "boolean"),
    Case("NaN weight", two("context: {selection: {recency_weight: .nan}}"),
         "phases.1.context.selection.recency_weight", ".nan", "finite"),
    Case("weight over 1", two("context: {selection: {recency_weight: 30}}"),
         "phases[1].context.selection.recency_weight", "the number 30", "1"),
    Case("unknown strategy", two("context: {selection: {strategy: best}}"),
         "phases[1].context.selection.strategy", "the text 'best'", "'heuristic', 'semantic', 'llm' or 'hybrid'"),
    Case("unknown mode", two("context: {mode: manual}"), "phases[1].context.mode", "the text 'manual'", "'auto'"),
    Case("tackle as text", two("tackle: web"), "phases[1].tackle", "the text 'web'", "or 'manifest'"),
    Case("no turns", two("rules: {max_turns: 0}"), "phases[1].rules.max_turns", "the number 0", "1"),
    Case("retention", two("context_retention: some"), "phases[1].context_retention", "the text 'some'", "'full'"),
    Case("ttl of what", two("context_ttl: {thoughts: 1}"), "phases[1].context_ttl.thoughts", "the text", "'images'"),
    Case("ttl below nothing", two("context_ttl: {images: -1}"), "phases[1].context_ttl.images", "the number -1", "0"),
    Case("a name twice", "cascade_id: c\nphases: [{name: a}, {name: a}]", "phases[1].name", "the text 'a'",
         "phases[0] has this name"),
    Case("a name that is a word of ours", "cascade_id: c\nphases: [{name: previous}]", "phases[0].name",
         "the text 'previous'", "name it otherwise"),
    Case("a name with a slash", "cascade_id: c\nphases: [{name: ../a}]", "phases[0].name", "the text '../a'", "match"),
    Case("no phases", "cascade_id: c\nphases: []", "phases", "a list", ""),
    Case("no id", "phases: [{name: a}]", "cascade_id", "nothing", "add this key"),
    Case("condition that does not parse", two("inject_from: [{phase: a, if: '{{ state.'}]"),
         "phases[1].inject_from[0].condition", "does not parse", "Jinja2"),
    Case("condition that escapes", two("inject_from: [{phase: a, if: 'state.__class__'}]"),
         "phases[1].inject_from[0].condition", "the attribute '__class__' is not allowed", "filters"),
    Case("condition of a megabyte", two(f"inject_from: [{{phase: a, if: {'x' * 100_000}}}]"),
         "phases[1].inject_from[0].if", "100,000 characters", "at most 2,000"),
    Case("instructions that include", two("instructions: \"{% include 'x' %}\""), "phases[1].instructions",
         "{% include %} is not allowed", "filters"),
    Case("sub-cascade nobody knows", two("sub_cascades: [{ref: x}]"), "phases[1].sub_cascades[0].ref",
         "no cascade 'x'", "defined: c"),
    Case("sub-cascade that is this one", two("sub_cascades: [{ref: c}]"), "phases[1].sub_cascades[0].ref",
         "a cycle: c -> c", "never end"),
    Case(
        "a cycle of three",
        "cascade_id: a\nphases: [{name: p, sub_cascades: [{ref: b}]}]\ncascades:\n"
        "- {cascade_id: b, phases: [{name: q, sub_cascades: [{ref: d}]}]}\n"
        "- {cascade_id: d, phases: [{name: r, sub_cascades: [{ref: a}]}]}\n",
        "phases[0].sub_cascades[0].ref", "a cycle: a -> b -> d -> a", "never end",
    ),
    Case("an id twice", "cascade_id: a\nphases: [{name: p}]\ncascades: [{cascade_id: a, phases: [{name: q}]}]",
         "cascades[0].cascade_id", "'a' twice", "its own id"),
    Case("a bad phase inside another cascade",
         "cascade_id: a\nphases: [{name: p}]\ncascades: [{cascade_id: b, phases: [{name: q, context: {from: [p]}}]}]",
         "cascades[0].phases[0].context.from[0]", "'p' is no phase", "none"),
    Case("an alias", "cascade_id: &x c\nphases: [{name: *x}]", "cascade_id", "the anchor &x", "write the text out"),
    Case("a key twice", "cascade_id: c\ncascade_id: d\nphases: [{name: a}]", "cascade_id", "the key 'cascade_id'", ""),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_bad_cascade_is_refused_by_place_and_reason(case: Case) -> None:
    with pytest.raises(InvalidCascade) as caught:
        parse_cascade(case.phases, source="c.yaml")
    error = caught.value

    assert error.key == case.key
    assert error.found.startswith(case.found)
    assert case.hint in error.hint
    assert error.source.startswith("c.yaml")
    assert len(str(error)) < 500
    assert "\n" not in str(error)


def test_a_refusal_in_yaml_names_the_line() -> None:
    with pytest.raises(InvalidCascade) as caught:
        parse_cascade("cascade_id: c\nphases:\n  - name: a\n  - name: b\n    context:\n      from: [x]\n", "c.yaml")
    assert caught.value.source == "c.yaml:6"


JSON_BAD = {
    '{"cascade_id": "c", "phases": [{"name": "a", "name": "b"}]}': "the same key twice",
    '{"cascade_id": "c", "phases": NaN}': "NaN",
    '{"cascade_id": "c", "phases": [': "the JSON ends too early",
    '{"cascade_id": "\\ud800", "phases": []}': "a lone surrogate",
    '{"cascade_id": "c", "phases": ' + "[" * 100 + "]" * 100 + "}": "levels",
    '{"": 1}': "unknown key",
}


@pytest.mark.parametrize("text", JSON_BAD, ids=lambda text: text[:50])
def test_bad_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidCascade, match=JSON_BAD[text]):
        parse_cascade(text)


@pytest.mark.parametrize("value", [{"cascade_id": "c", "phases": {"name": "a"}}, {"cascade_id": float("nan")}, {}])
def test_a_dict_is_refused_like_a_file(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidCascade):
        cascade_of(value)


def test_too_large_a_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with pytest.raises(InputTooLarge):
        parse_cascade("cascade_id: " + "c" * MAX_YAML_BYTES)
    with pytest.raises(InvalidCascade, match="no such file"):
        load_cascade(tmp_path / "gone.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"cascade_id: caf\xe9")
    with pytest.raises(InvalidCascade, match="byte 15 is not UTF-8"):
        load_cascade(tmp_path / "latin.yaml")


def test_a_pattern_costs_no_more_than_its_length() -> None:
    pattern = "*a" * 28
    with pytest.raises(InvalidCascade, match="matches no phase"):
        cascade({"name": "a" * 20 + "b" * 37}, {"name": "z", "inject_from": [pattern]})


@given(st.text(max_size=100))
def test_any_text_is_a_cascade_or_a_refusal(text: str) -> None:
    with suppress(InvalidCascade):
        assert parse_cascade(text).phases


def test_the_model_itself_refuses_what_the_reader_refuses() -> None:
    with pytest.raises(ValidationError, match="allowed: phase, include"):
        Cascade.model_validate({"cascade_id": "c", "phases": [{"name": "a", "inject_from": [{"phse": "a"}]}]})


# -- sub-cascades --------------------------------------------------------------------------------------------


def test_a_sub_cascade_gets_and_gives_what_its_parent_says() -> None:
    outer = cascade(
        {"name": "a", "sub_cascades": [{"ref": "in", "input_map": {"q": "{{ input.x }}/{{ state.n }}"}}]},
        cascades=[{"cascade_id": "in", "phases": [{"name": "p"}]}],
    )
    sub = outer.phases[0].sub_cascades[0]

    assert sub_input(sub, input={"x": 1}, state={"n": 2}) == {"q": "1/2"}
    assert sub_state(True, {"n": 2}) == {"n": 2}
    assert sub_state(False, {"n": 2}) == {}
    assert sub_state(("n", "m"), {"n": 2, "o": 3}) == {"n": 2}
    failing = sub.model_copy(update={"input_map": {"q": "{{ 1 / input.zero }}"}})
    with pytest.raises(InvalidCascade, match=r"input_map\.q: fails: ZeroDivisionError"):
        sub_input(failing, input={"zero": 0}, state={})


def test_importing_the_request_path_imports_no_template_engine() -> None:
    code = "import sys, ctxsteward.envelope; print([m for m in sys.modules if m.startswith('jinja2')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
