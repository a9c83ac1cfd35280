"""The `message` schema takes what `Message.from_wire` takes and refuses what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.publish import validate

from ..examples import examples
from ..needs import PUBLIC_DATA
from ..tables import table

RUNS = Path(__file__).parents[2] / "../shared/data/tau_bench_airline/runs_even_tasks.jsonl"


def taken_by_reader(wire: object) -> bool:
    try:
        Message.from_wire(wire)
    except InvalidMessage:
        return False
    return True


def taken_by_schema(wire: object) -> bool:
    try:
        validate("message", wire)
    except InputError:
        return False
    return True


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize("case", table(__file__, "wires.yaml"), ids=lambda case: case["id"])
def test_schema_and_reader_agree_and_the_schema_names_the_place(case: dict[str, Any]) -> None:
    wire, says = case["wire"], case.get("says")
    assert taken_by_reader(wire) is (says is None)
    if says is None:
        validate("message", wire)
        return
    with pytest.raises(InputError) as refused:
        validate("message", wire)
    assert says in str(refused.value)


@pytest.mark.parametrize("value", [None, [], "text", 3], ids=repr)
def test_what_is_no_object_is_no_message(value: object) -> None:
    assert not taken_by_reader(value)
    assert not taken_by_schema(value)


def test_the_deepest_message_that_is_read_can_be_checked() -> None:
    block: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(30):
        block = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    wire = user([block])

    assert taken_by_reader(wire)
    assert taken_by_schema(wire)


text = st.text(max_size=3)
named = st.fixed_dictionaries({"name": text}, optional={"arguments": text, "input": text})
call = st.one_of(
    st.fixed_dictionaries({"id": text, "function": named}),
    st.fixed_dictionaries({"custom": named}, optional={"function": st.none()}),
)
source = st.one_of(
    st.fixed_dictionaries({"type": st.just("base64"), "data": text}),
    st.fixed_dictionaries({"type": st.just("url"), "url": text}),
)


def block_of(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


leaf = st.one_of(
    text,
    *(block_of(kind, text=text) for kind in ("text", "input_text", "output_text")),
    block_of("refusal", refusal=text),
    block_of("image_url", image_url=st.one_of(text, st.fixed_dictionaries({"url": text}))),
    block_of("image", source=source),
    block_of("made_up", text=st.none()),
)
calling = st.one_of(
    block_of("thinking", thinking=text),
    block_of("redacted_thinking"),
    block_of("tool_use", id=text, name=text, input=st.just({})),
)
result = st.recursive(
    block_of("tool_result", content=st.lists(st.one_of(leaf, calling), max_size=2)),
    lambda inner: block_of("tool_result", content=st.lists(inner, max_size=2)),
    max_leaves=4,
)


def content_of(*blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(text, st.lists(st.one_of(*blocks), max_size=3))


media = st.fixed_dictionaries({"data": text}, optional={"mimeType": st.sampled_from(["image/png", "audio/wav"])})
named_call = st.fixed_dictionaries({"name": text}, optional={"args": st.just({}), "id": text})
answer = st.fixed_dictionaries(
    {"name": text},
    optional={"response": st.just({"output": "x"}), "parts": st.lists(st.fixed_dictionaries({"inlineData": media}))},
)
spoken = st.one_of(
    st.fixed_dictionaries({"text": text}, optional={"thoughtSignature": text}),
    st.fixed_dictionaries({"inline_data": media}),
    st.fixed_dictionaries({"fileData": st.fixed_dictionaries({"fileUri": text})}),
)
model_part = st.one_of(
    spoken,
    st.fixed_dictionaries({"functionCall": named_call}, optional={"thoughtSignature": text}),
    st.fixed_dictionaries({"text": text, "thought": st.booleans()}),
)
user_part = st.one_of(spoken, st.fixed_dictionaries({"function_response": answer}))
good_wires = st.one_of(
    st.fixed_dictionaries({"role": st.just("model"), "parts": st.lists(model_part, max_size=3)}),
    st.fixed_dictionaries(
        {"parts": st.lists(user_part, min_size=1, max_size=3)}, optional={"role": st.sampled_from(["user", "tool"])}
    ),
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer"]), "content": content_of(leaf)}),
    st.fixed_dictionaries({"role": st.just("user"), "content": content_of(leaf, result)}),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={"content": content_of(leaf, calling), "tool_calls": st.lists(call, max_size=2)},
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool")}, optional={"content": content_of(leaf, calling, result), "tool_call_id": text}
    ),
)
odd: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, "", "text", "tool_result", [], [3], {}, {"type": "text"}])


def places(node: object) -> list[tuple[Any, Any]]:
    """Every value inside, as its container and its key there."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *places(node[key]))]  # type: ignore[index]


@given(good_wires)
@settings(max_examples=examples(100), derandomize=True, database=None)
def test_both_take_every_well_formed_wire(wire: dict[str, Any]) -> None:
    Message.from_wire(wire)
    validate("message", wire)


@given(good_wires, st.data())
@settings(max_examples=examples(500), derandomize=True, database=None)
def test_both_say_the_same_of_a_wire_with_one_thing_changed(wire: dict[str, Any], data: st.DataObject) -> None:
    container, key = data.draw(st.sampled_from(places(wire)))
    if isinstance(container, dict) and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(odd)

    assert taken_by_schema(wire) is taken_by_reader(wire)


@pytest.mark.skipif(not RUNS.is_file(), reason=PUBLIC_DATA)
def test_every_message_of_real_agent_runs_is_taken_by_both() -> None:
    runs = [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()[:20]]
    wires = [wire for run in runs for wire in run["traj"]]

    assert len(wires) > 200
    assert [wire for wire in wires if not (taken_by_reader(wire) and taken_by_schema(wire))] == []
