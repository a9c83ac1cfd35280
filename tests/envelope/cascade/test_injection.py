"""The rules of injection that a table cannot say: images, costs, what fails, and any run; the others: `shown.yaml`."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.cascade.past import read_past
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas import ImagePart, InputError, Message
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.publish import validate

from ...examples import examples
from .runs import (
    CHARS,
    answers,
    anthropic_image,
    calls,
    cascade,
    context,
    openai_image,
    past_of,
    rendered,
    says,
    texts,
    user,
    with_image,
)

Rows = list[tuple[str | None, Wire]]


def reading(*sources: Any, **more: Any) -> Any:
    """Phases a, b, then c, which is shown these sources and no input."""
    return cascade(
        {"name": "a"}, {"name": "b"}, {"name": "c", "context": {"from": list(sources), "include_input": False, **more}}
    )


ROWS: Rows = [
    ("a", user("first")),
    ("a", says("one")),
    ("a", user("second")),
    ("a", calls("look")),
    ("a", answers("seen")),
    ("a", says("two")),
    ("b", user("third")),
    ("b", says("three")),
]


# -- what a source brings ------------------------------------------------------------------------------------


def test_kinds_come_in_one_order_whatever_order_they_are_written_in() -> None:
    rows = [*ROWS[:6], ("a", with_image("red0")), ("a", says("done"))]
    past = past_of(rows, {"a": {"n": 1}})
    for include in (["state", "messages", "output", "images"], ["images", "output", "messages", "state"]):
        shown = context(reading({"phase": "a", "include": include}), "c", past)
        assert [m.kind for m in shown.messages if m.kind != "replay"] == ["images", "output", "label", "state"]


def test_images_of_tool_results_and_of_another_provider_keep_their_own_blocks() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [anthropic_image("blue")]}
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "draw", "input": {}}]}
    rows: Rows = [("a", with_image("red0")), ("a", use), ("a", {"role": "user", "content": [result]})]
    shown = context(reading({"phase": "a", "include": ["images"]}), "c", past_of(rows))
    label = {"type": "text", "text": "[Images from a]:"}

    assert [wire["content"] for wire in shown.wires] == [
        [label, openai_image("red0")],
        [label, anthropic_image("blue")],
    ]
    for provider in ("openai-chat", "anthropic"):
        assert len(rendered(shown, provider)) == 2


def test_an_image_costs_what_the_image_rules_say_and_never_its_text() -> None:
    huge = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    rows: Rows = [("a", {"role": "user", "content": [huge]})]
    shown = context(reading({"phase": "a", "include": ["images"]}), "c", past_of(rows))

    assert shown.tokens < 5_000
    assert any(isinstance(part, ImagePart) for part in Message.from_wire(shown.wires[0]).parts)
    assert shown.wires[0]["content"][1] == huge


def test_an_image_that_nobody_is_shown_is_not_loaded() -> None:
    huge = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000_000}}
    session = past_of([("a", {"role": "user", "content": [huge]}), ("a", says("drawn"))]).messages[0].session
    session.state.groups = []  # as after a compaction: bodies are in the journal alone
    past = read_past(session)
    quiet = reading({"phase": "a", "include": ["output"]})

    tracemalloc.start()
    shown = context(quiet, "c", past)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert texts(shown) == ["[Output from a]:\ndrawn"]
    assert peak_bytes < 1_000_000


def test_an_image_that_was_passed_on_is_shown_once() -> None:
    rows: Rows = [("a", with_image("red0", "red0")), ("b", with_image("red0", "blue"))]
    shown = context(reading("a", {"phase": "b", "include": ["images", "messages"]}), "c", past_of(rows))
    blocks = [block for wire in shown.wires if isinstance(wire["content"], list) for block in wire["content"]]

    assert [block for block in blocks if block["type"] == "image_url"] == [openai_image("red0"), openai_image("blue")]
    assert blocks[-2:] == [{"type": "text", "text": "[image already shown]"}] * 2


def test_an_unknown_phase_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(InvalidCascade, match="no phase 'd'; its phases: a, b, c"):
        context(reading("a"), "d", past_of([]))


# -- conditions ----------------------------------------------------------------------------------------------


def test_a_condition_that_fails_is_an_error_with_its_place() -> None:
    example = reading({"phase": "a", "if": "{{ 1 / state.zero }}"})
    with pytest.raises(InvalidCascade, match=r"phases\[2\]\.context\.from\[0\]\.condition: fails: ZeroDivisionError"):
        context(example, "c", past_of(ROWS), state={"zero": 0})


# -- the input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": {1}}, {1: "x"}])
def test_an_input_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="input"):
        context(reading("a"), "c", past_of([]), input=value)


# -- retention and expiry --------------------------------------------------------------------------------------


def test_what_is_older_than_its_limit_is_not_shown_to_other_phases() -> None:
    example = cascade(
        {"name": "a", "context_ttl": {"tool_results": 0, "images": 1, "user": None}},
        {"name": "b"},
        {"name": "c", "context": {"from": [{"phase": "a", "include": ["images", "messages"]}]}},
    )
    rows = [("a", with_image("red0")), ("a", says("x")), *ROWS[3:6], ("a", with_image("blue")), ("a", says("end"))]
    shown = context(example, "c", past_of(rows))

    assert [w["content"][1:] for w in shown.wires if isinstance(w["content"], list)] == [
        [openai_image("blue")],
        [{"type": "text", "text": "[image expired]"}],
        [{"type": "text", "text": "[image already shown]"}],
    ]
    assert "[tool result expired, s§4]" in texts(shown)
    assert shown.log.masked_count == 2
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []


# -- attempts ------------------------------------------------------------------------------------------------


def test_images_carry_the_number_of_the_attempt_that_made_them() -> None:
    past = past_of(
        [("a", user("go"))],
        attempts={("b", 1): [with_image("red0", "blue"), says("one")], ("b", 2): [with_image("gold"), says("two")]},
        order=("a", "b", "c"),
    )
    shown = context(reading("b"), "c", past)

    assert [block.get("text", "image") for block in shown.wires[0]["content"]] == [
        "[Images from b]:",
        "[Attempt 1, image 1]:",
        "image",
        "[Attempt 1, image 2]:",
        "image",
        "[Attempt 2, image 1]:",
        "image",
    ]
    assert shown.messages[0].origin == "s.b.1§1,s.b.2§1"


# -- accounts ------------------------------------------------------------------------------------------------


def test_the_log_is_the_published_one_and_its_refs_are_the_originals() -> None:
    shown = context(reading("a", {"phase": "b", "include": ["messages"]}), "c", past_of(ROWS))

    validate("selection_log", shown.log.model_dump(mode="json"))
    assert shown.log.selection_type == "inter_phase"
    assert shown.log.selected_refs == ("§6", "§7", "§8")
    assert (shown.log.context_size, shown.log.full_history_size) == (3, 8)


def test_instructions_that_fail_are_refused_by_place() -> None:
    failing = cascade({"name": "a", "instructions": "{{ 1 / input.zero }}", "context": {}})
    with pytest.raises(InvalidCascade, match=r"phases\[0\]\.instructions: fails"):
        context(failing, "a", past_of([]), input={"zero": 0})


# -- for any run ---------------------------------------------------------------------------------------------

MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.one_of(
            st.text(min_size=1, max_size=5).map(user),
            st.text(max_size=5).map(says),
            st.sampled_from([with_image("red0"), with_image("blue", "red0"), calls("look"), answers("seen")]),
        ),
    ),
    max_size=12,
)
SOURCES = st.lists(
    st.one_of(
        st.sampled_from(["a", "b", "*", "previous"]),
        st.fixed_dictionaries(
            {"phase": st.sampled_from(["a", "b", "*"])},
            optional={
                "include": st.lists(
                    st.sampled_from(["images", "output", "messages", "state"]), min_size=1, unique=True
                ),
                "images_filter": st.sampled_from(["all", "last", "last_n"]),
                "filter": st.sampled_from(["all", "assistant_only", "last_turn"]),
            },
        ),
    ),
    max_size=4,
)


@settings(max_examples=examples(150))
@given(rows=MESSAGES, sources=SOURCES, include_input=st.booleans(), inject=st.booleans())
def test_any_context_is_ordered_valid_and_repeats_nothing(
    rows: Rows, sources: list[Any], include_input: bool, inject: bool
) -> None:
    last = {"inject_from": sources} if inject else {"context": {"from": sources, "include_input": include_input}}
    example = cascade({"name": "a"}, {"name": "b"}, {"name": "c", **last})
    past = past_of(rows, {"a": {"n": 1}})
    shown = context(example, "c", past, input={"x": 1})
    injected = shown.messages[: shown.injected]

    assert [m.kind == "input" for m in shown.messages] == [
        at == 0 and include_input and not inject for at in range(len(shown.messages))
    ]
    numbers = [n for m in injected if m.kind in ("output", "replay") for n in m.numbers]
    assert len(numbers) == len(set(numbers))
    urls = [
        part.data
        for m in injected
        if m.kind == "images"
        for part in Message.from_wire(m.wire).parts
        if isinstance(part, ImagePart)
    ]
    assert len(urls) == len(set(urls))
    if inject:
        assert [m.numbers[0] for m in shown.messages[shown.injected :]] == list(range(1, len(rows) + 1))
    for m in shown.messages:
        assert m.tokens == CHARS.message(Message.from_wire(m.wire))
        for number in m.numbers:
            assert past.messages[number - 1].origin.rpartition("§")[2] in m.origin
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []
    assert context(example, "c", past, input={"x": 1}).wires == shown.wires
