"""The `message` schema takes what `Message.from_wire` takes and refuses what it refuses."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.publish import validate

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


@dataclass(frozen=True)
class Case:
    id: str
    wire: dict[str, Any]
    says: str = ""
    """What the schema says against it; empty: both take it."""


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def calls(*tool_calls: object) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(tool_calls)}


CASES = [
    Case("plain text", user("hello")),
    Case("empty text", user("")),
    Case("no blocks", user([])),
    Case("bare strings among blocks", user(["a", {"type": "text", "text": "b"}])),
    Case("developer", {"role": "developer", "content": "x"}),
    Case("unknown fields are the provider's", user("x") | {"phase": 3, "x_trace": {"a": [1]}}),
    Case("unknown block types are the provider's", user([{"type": "server_tool_use", "n": 1}])),
    Case("assistant without content", {"role": "assistant"}),
    Case("openai call", calls({"id": "a", "function": {"name": "f", "arguments": "{}"}})),
    Case("openai call whose arguments are not text", calls({"function": {"name": "f", "arguments": {"a": 1}}})),
    Case("openai custom call", calls({"id": "a", "custom": {"name": "f", "input": "x"}})),
    Case("openai tool result", {"role": "tool", "tool_call_id": "a", "content": "x"}),
    Case("openai tool result with nothing in it", {"role": "tool", "tool_call_id": "a"}),
    Case("tool_calls of a tool message are not looked at", {"role": "tool", "tool_calls": 3}),
    Case("image by url", user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}])),
    Case("image inline", user([{"type": "image", "source": {"type": "base64", "data": "AA"}}])),
    Case("image by file", user([{"type": "image", "source": {"type": "file", "file_id": "f"}}])),
    Case("anthropic call", {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}),
    Case("anthropic result without content", user([{"type": "tool_result", "tool_use_id": "a"}])),
    Case(
        "anthropic result of blocks",
        user([{"type": "tool_result", "content": [{"type": "text", "text": "a"}]}]),
    ),
    Case("redacted thinking", {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}),
    Case("no role", {"content": "x"}, "at $: found no 'role'"),
    Case(
        "unknown role",
        {"role": "root", "content": "x"},
        'at $.role: found "root"; expected system, developer,',
    ),
    Case("retired role", {"role": "function", "content": "x"}, 'at $.role: found "function"'),
    Case("role in capitals", {"role": "User", "content": "x"}, 'at $.role: found "User"'),
    Case("role as a list", {"role": ["user"], "content": "x"}, "at $.role"),
    Case("user without content", {"role": "user"}, "at $: found no 'content'"),
    Case("user with null", user(None), "at $.content: found null; expected string or array"),
    Case("content as a number", user(3), "at $.content: found 3; expected string or array"),
    Case(
        "content as an object",
        user({"text": "x"}),
        'at $.content: found {"text": "x"}; expected string or array',
    ),
    Case("block as a number", user([3]), "at $.content[0]: found 3; expected string or object"),
    Case("block without type", user([{"text": "x"}]), "at $.content[0]: found no 'type'"),
    Case("block whose type is a number", user([{"type": 1}]), "at $.content[0].type: found 1; expected string"),
    Case("text block without text", user([{"type": "text"}]), "at $.content[0]: found no 'text'"),
    Case("text block with null", user([{"type": "text", "text": None}]), "at $.content[0].text: found null"),
    Case(
        "image url as a number",
        user([{"type": "image_url", "image_url": 3}]),
        "at $.content[0].image_url: found 3",
    ),
    Case("image url without url", user([{"type": "image_url", "image_url": {}}]), "found no 'url'"),
    Case("image without source", user([{"type": "image"}]), "at $.content[0]: found no 'source'"),
    Case("image without data", user([{"type": "image", "source": {"type": "base64"}}]), "found no 'data'"),
    Case("call without a name", assistant([{"type": "tool_use", "input": {}}]), "found no 'name'"),
    Case("thinking without text", assistant([{"type": "thinking"}]), "found no 'thinking'"),
    Case("a call by the user", user([{"type": "tool_use", "name": "f", "input": {}}]), "at $.content[0].type"),
    Case("calls by the user", {"role": "user", "content": "x", "tool_calls": [{}]}, "at $.tool_calls"),
    Case("a result by the model", assistant([{"type": "tool_result"}]), "at $.content[0].type"),
    Case("a result by the operator", {"role": "system", "content": [{"type": "tool_result"}]}, "at $.content[0].type"),
    Case(
        "bad block in a result",
        user([{"type": "tool_result", "content": [{"type": "text"}]}]),
        "at $.content[0].content[0]: found no 'text'",
    ),
    Case(
        "result with a number",
        {"role": "tool", "content": 3},
        "at $.content: found 3; expected string or array",
    ),
    Case("tool_calls as an object", {"role": "assistant", "tool_calls": {}}, "at $.tool_calls: found {}"),
    Case("call as text", calls("f"), 'at $.tool_calls[0]: found "f"; expected object'),
    Case("call without function", calls({"id": "a"}), "at $.tool_calls[0]: found no 'function'"),
    Case("function without a name", calls({"function": {}}), "at $.tool_calls[0].function: found no 'name'"),
    Case("custom call without a name", calls({"custom": {}}), "at $.tool_calls[0].custom: found no 'name'"),
    Case(
        "function as text beside a custom call",
        calls({"function": "f", "custom": {"name": "f"}}),
        ".function: found",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_schema_and_reader_agree_and_the_schema_names_the_place(case: Case) -> None:
    assert taken_by_reader(case.wire) is (not case.says)
    if not case.says:
        validate("message", case.wire)
        return
    with pytest.raises(InputError) as refused:
        validate("message", case.wire)
    assert case.says in str(refused.value)


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


good_wires = st.one_of(
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
@settings(deadline=None, derandomize=True, database=None)
def test_both_take_every_well_formed_wire(wire: dict[str, Any]) -> None:
    Message.from_wire(wire)
    validate("message", wire)


@given(good_wires, st.data())
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
def test_both_say_the_same_of_a_wire_with_one_thing_changed(wire: dict[str, Any], data: st.DataObject) -> None:
    container, key = data.draw(st.sampled_from(places(wire)))
    if isinstance(container, dict) and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(odd)

    assert taken_by_schema(wire) is taken_by_reader(wire)


@pytest.mark.skipif(not RUNS.is_file(), reason="the real data (../shared/data) is not here")
def test_every_message_of_real_agent_runs_is_taken_by_both() -> None:
    runs = [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()[:20]]
    wires = [wire for run in runs for wire in run["traj"]]

    assert len(wires) > 200
    assert [wire for wire in wires if not (taken_by_reader(wire) and taken_by_schema(wire))] == []
