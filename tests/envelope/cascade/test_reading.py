"""Configurations that are read, and those that are refused by place and reason."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from ctxsteward.envelope.cascade import parse_cascade
from ctxsteward.envelope.cascade.config import (
    MAX_YAML_BYTES,
    anchors,
    cascade_of,
    intra_context,
    load_cascade,
    selection,
)
from ctxsteward.envelope.cascade.runner import sub_input, sub_state
from ctxsteward.schemas.cascade import Anchors, Cascade, Context, IntraContext, Selection, Source
from ctxsteward.schemas.errors import InputTooLarge, InvalidCascade
from ctxsteward.schemas.publish import validate

from ...tables import table
from .runs import cascade

YAML = Path(__file__).with_name("charts.yaml").read_text(encoding="utf-8")


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
        "include": ("images", "output"),
        "images_filter": "all",
        "images_count": 1,
        "messages_filter": "all",
        "as_role": "user",
        "condition": None,
    }
    assert (auto.include_input, auto.from_, auto.anchors, auto.selection) == (True, (), None, None)
    assert Anchors().model_dump() == {
        "window": 3,
        "from_phases": ("previous",),
        "include": ("output", "callouts", "input"),
    }
    assert Selection().model_dump() == {
        "strategy": "heuristic",
        "max_tokens": 30_000,
        "max_messages": 50,
        "selector_model": None,
        "recency_weight": 0.3,
        "keyword_weight": 0.4,
        "callout_weight": 0.3,
        "similarity_threshold": 0.7,
    }
    assert IntraContext().model_dump() == {
        "enabled": True,
        "window": 5,
        "mask_observations_after": 3,
        "compress_loops": True,
        "loop_history_limit": 3,
        "preserve_reasoning": True,
        "preserve_errors": True,
        "policy": "threshold",
    }


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


def test_a_phase_inherits_each_setting_that_it_does_not_name() -> None:
    example = cascade(
        {"name": "a"},
        {
            "name": "b",
            "intra_context": {"enabled": True},
            "context": {"mode": "auto", "anchors": {"include": ["errors"]}, "selection": {"max_tokens": 30}},
        },
        auto_context={
            "intra_phase": {"window": 4, "enabled": False},
            "inter_phase": {
                "anchors": {"from_phases": ["a"], "window": 7},
                "selection": {"max_tokens": 20, "recency_weight": 1.0},
            },
        },
    )
    phase = example.phases[1]

    assert intra_context(example, phase) == IntraContext(enabled=True, window=4)
    assert anchors(example, phase) == Anchors(window=7, from_phases=("a",), include=("errors",))
    assert selection(example, phase) == Selection(max_tokens=30, recency_weight=1.0)
    assert intra_context(example, example.phases[0]) == IntraContext(enabled=False, window=4)


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


# -- refusals ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    id: str
    key: str
    found: str
    hint: str = ""
    second: str = ""
    """What stands in the second of three phases, where no file is given."""
    file: str = ""

    @property
    def text(self) -> str:
        return self.file or f"cascade_id: c\nphases:\n- {{name: a}}\n- {{name: b, {self.second}}}\n- {{name: later}}\n"


BAD = [
    *(Case(**row) for row in table(__file__, "refused.yaml")),
    Case(
        "condition of a megabyte",
        "phases[1].inject_from[0].if",
        "100,000 characters",
        "at most 2,000",
        second=f"inject_from: [{{phase: a, if: {'x' * 100_000}}}]",
    ),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_bad_cascade_is_refused_by_place_and_reason(case: Case) -> None:
    with pytest.raises(InvalidCascade) as caught:
        parse_cascade(case.text, source="c.yaml")
    error = caught.value

    assert error.where == case.key
    assert error.found.startswith(case.found)
    assert case.hint in error.hint
    assert error.source.startswith("c.yaml")
    assert len(str(error)) < 500
    assert "\n" not in str(error)


PLACES = {
    "inject_from": "inject_from: [{ref}]",
    "from": "context: {{mode: explicit, from: [{ref}]}}",
    "from_phases": "context: {{mode: auto, anchors: {{from_phases: [{ref}]}}}}",
    "exclude": "context: {{mode: auto, exclude: [{ref}]}}",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("ref", "refused"),
    [
        ("p1", ""),
        ("previous", ""),
        ("'*'", ""),
        ("'p*'", ""),
        ("b", "is this phase itself"),
        ("p2", "comes after 'b'"),
        ("'*2'", "comes after 'b'"),
        ("nobody", "is no phase of this cascade"),
        ("'x*'", "matches no phase"),
    ],
)
def test_a_source_has_run_by_then_and_what_is_excluded_need_not_have(place: str, ref: str, refused: str) -> None:
    text = f"cascade_id: c\nphases:\n- name: p1\n- {{name: b, {PLACES[place].format(ref=ref)}}}\n- name: p2\n"
    may_be_later = place == "exclude" and refused in ("is this phase itself", "comes after 'b'")
    if not refused or may_be_later:
        assert len(parse_cascade(text).phases) == 3
    else:
        with pytest.raises(InvalidCascade, match=refused):
            parse_cascade(text)


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


def test_an_input_of_a_sub_cascade_may_be_as_long_as_instructions_and_is_no_condition(
    tmp_path: Path,
) -> None:
    long = "Dig on. " * 1_000 + "{{ input.x }}"
    outer = {
        "cascade_id": "c",
        "phases": [{"name": "a", "sub_cascades": [{"ref": "in", "input_map": {"q": long}}]}],
        "cascades": [{"cascade_id": "in", "phases": [{"name": "p"}]}],
    }
    (tmp_path / "c.json").write_text(json.dumps(outer))
    (sub,) = load_cascade(tmp_path / "c.json").phases[0].sub_cascades
    assert sub_input(sub, input={"x": 1}, state={}) == {"q": "Dig on. " * 1_000 + "1"}
