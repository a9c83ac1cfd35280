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
    Case(
        "openai call whose arguments are not text", calls({"function": {"name": "f", "arguments": {"a": 1}}})
    ),
    Case("openai custom call", calls({"id": "a", "custom": {"name": "f", "input": "x"}})),
    Case("openai tool result", {"role": "tool", "tool_call_id": "a", "content": "x"}),
    Case("openai tool result with nothing in it", {"role": "tool", "tool_call_id": "a"}),
    Case("tool_calls of a tool message are not looked at", {"role": "tool", "tool_calls": 3}),
    Case("image by url", user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}])),
    Case("image inline", user([{"type": "image", "source": {"type": "base64", "data": "AA"}}])),
    Case("image by file", user([{"type": "image", "source": {"type": "file", "file_id": "f"}}])),
    Case(
        "anthropic call", {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}
    ),
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
    Case(
        "block whose type is a number", user([{"type": 1}]), "at $.content[0].type: found 1; expected string"
    ),
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
    Case("call without a name", user([{"type": "tool_use", "input": {}}]), "found no 'name'"),
    Case("thinking without text", user([{"type": "thinking"}]), "found no 'thinking'"),
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


KINDS = [
    *("text", "input_text", "output_text", "refusal", "image_url", "image", "tool_use", "tool_result"),
    *("thinking", "redacted_thinking", "made_up"),
]
odd = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 1), st.just(""), st.just("x"), st.just([]), st.just({})
)


def now_and_then(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what it should be, sometimes something else."""
    return st.one_of(usual, usual, usual, odd)


text = now_and_then(st.text(max_size=3))
source = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["base64", "url", 1]), "data": text, "url": text, "file_id": text}
)
named = now_and_then(st.fixed_dictionaries({}, optional={"name": text, "arguments": odd, "input": odd}))
call = now_and_then(st.fixed_dictionaries({}, optional={"id": text, "function": named, "custom": named}))


def block_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("text", "refusal", "thinking", "name", "id", "tool_use_id"), text),
        "type": now_and_then(st.sampled_from(KINDS)),
        "image_url": st.one_of(text, st.fixed_dictionaries({}, optional={"url": text, "detail": text})),
        "source": now_and_then(source),
        "input": odd,
        "is_error": odd,
        "content": st.one_of(text, st.lists(inner, max_size=2)),
    }
    return st.fixed_dictionaries({}, optional=optional)


block = st.recursive(now_and_then(st.text(max_size=3)), block_of, max_leaves=4)
wires = st.fixed_dictionaries(
    {},
    optional={
        "role": now_and_then(
            st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])
        ),
        "content": now_and_then(st.one_of(st.text(max_size=3), st.lists(block, max_size=3))),
        "tool_calls": now_and_then(st.lists(call, max_size=2)),
        "tool_call_id": odd,
        "name": odd,
        "extra": odd,
    },
)


@given(wires)
@settings(max_examples=600, deadline=None)
def test_schema_and_reader_take_the_same_wires(wire: dict[str, Any]) -> None:
    assert taken_by_schema(wire) is taken_by_reader(wire)


@pytest.mark.skipif(not RUNS.is_file(), reason="the real data (../shared/data) is not here")
def test_every_message_of_real_agent_runs_is_taken_by_both() -> None:
    runs = [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()[:20]]
    wires = [wire for run in runs for wire in run["traj"]]

    assert len(wires) > 200
    assert [wire for wire in wires if not (taken_by_reader(wire) and taken_by_schema(wire))] == []
