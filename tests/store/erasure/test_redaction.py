"""A redacted message is the skeleton and says nothing: checked over histories of every dialect, valid and broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.history.state import State
from ctxsteward.envelope.history.tool_groups import place
from ctxsteward.schemas import Message
from ctxsteward.schemas.message import decode_wire, encode_wire
from ctxsteward.store.erasure.redacted_log import ERASED_TEXT, NO_ARGUMENTS, redacted

from ...envelope.histories import PIXEL, Wire, histories
from ...examples import examples

KEPT = frozenset(("role", "type", "id", "tool_call_id", "tool_use_id"))
CONSTANTS = frozenset((ERASED_TEXT, NO_ARGUMENTS, "", " ", "\n", "\t"))
TYPES = frozenset(("text", "input_text", "output_text", "refusal", "tool_use", "tool_result", "function", "custom"))
any_history = st.one_of(*(histories(dialect) for dialect in ("openai", "anthropic", "gemini", "mixed")))


def said(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string in a wire dict, keys included, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from said(item, (*path, str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from said(item, path)


def is_a_tool_s_name(path: tuple[str, ...], wire: Wire) -> bool:
    return path[-1] == "name" and (wire["role"] == "tool" or len(path) > 1)


@settings(max_examples=examples(150))
@given(any_history)
def test_no_string_survives_but_roles_types_ids_and_names_of_tools(history: tuple[Wire, ...]) -> None:
    for wire in history:
        for path, text in said(redacted(wire)):
            if path[-1] == "type":
                assert text in TYPES
            elif path[-1] not in KEPT and not is_a_tool_s_name(path, wire):
                assert text in CONSTANTS, (path, text)


@settings(max_examples=examples(150))
@given(any_history)
def test_the_result_is_a_valid_message_and_redacting_again_changes_nothing(history: tuple[Wire, ...]) -> None:
    for wire in history:
        before = json.dumps(wire)
        made = redacted(wire)
        assert json.dumps(wire) == before
        assert decode_wire(encode_wire(made)).role == decode_wire(before).role
        assert redacted(made) == made
        assert json.dumps(redacted(json.loads(json.dumps(wire)))) == json.dumps(made)


@settings(max_examples=examples(150))
@given(any_history)
def test_calls_and_results_pair_as_before_and_turns_are_turns(history: tuple[Wire, ...]) -> None:
    before, after = State("s"), State("s")
    for ordinal, wire in enumerate(history, 1):
        one, two = Message.from_wire(wire), Message.from_wire(redacted(wire))
        assert [(call.id, call.name) for call in one.tool_calls] == [(call.id, call.name) for call in two.tool_calls]
        assert [r.call_id for r in one.tool_results] == [r.call_id for r in two.tool_results]
        assert [r.is_error for r in one.tool_results] == [r.is_error for r in two.tool_results]
        placed = [
            place(history.open_calls, history.call_ids, message, ordinal)
            for history, message in ((before, one), (after, two))
        ]
        assert placed[0].answers == placed[1].answers
        assert (one.role == "user" and bool(one.text.strip())) <= bool(two.text.strip())


class Case(NamedTuple):
    id: str
    wire: Wire
    expected: Wire


CASES = (
    Case(
        "of Gemini's parts ids and names of tools stay",
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "hello", "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c1", "name": "grep", "args": {"q": "x"}}, "thoughtSignature": "c2ln"},
                {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "[erased]"},
                {"functionCall": {"id": "c1", "name": "grep", "args": {}}},
                {"text": "[erased]"},
            ],
        },
    ),
    Case(
        "an error in Gemini's results stays one",
        {"parts": [{"function_response": {"name": "grep", "response": {"error": "no file of Ann's"}}}]},
        {"parts": [{"function_response": {"name": "grep", "response": {"error": "[erased]"}}}]},
    ),
    Case(
        "a participant's name goes",
        {"role": "user", "name": "Ann", "content": "hello"},
        {"role": "user", "content": "[erased]"},
    ),
    Case(
        "a tool's name stays",
        {"role": "tool", "tool_call_id": "c1", "name": "grep", "content": "secret"},
        {"role": "tool", "tool_call_id": "c1", "name": "grep", "content": "[erased]"},
    ),
    Case(
        "unknown fields go",
        {"role": "user", "content": "hello", "metadata": {"mail": "ann@example.org"}},
        {"role": "user", "content": "[erased]"},
    ),
    Case(
        "arguments go",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"to": "ann"}'}, "index": 0}
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "send", "arguments": "{}"}}],
        },
    ),
    Case(
        "arguments as an object go",
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "send", "arguments": {"to": "ann"}}}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "send", "arguments": "{}"}}],
        },
    ),
    Case(
        "a custom tool's input goes",
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "cat ann"}}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": ""}}],
        },
    ),
    Case(
        "a refusal's text goes",
        {"role": "assistant", "content": None, "refusal": "I will not call Ann"},
        {"role": "assistant", "content": "[erased]"},
    ),
    Case(
        "reasoning beside the content goes",
        {"role": "assistant", "content": "ok", "reasoning_content": "Ann said"},
        {"role": "assistant", "content": "[erased]"},
    ),
    Case(
        "images become text",
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "[erased]"}] * 3},
    ),
    Case(
        "other blocks become text",
        {
            "role": "user",
            "content": [{"type": "document", "title": "Ann", "source": {"type": "text", "data": "Ann"}}, "loose text"],
        },
        {"role": "user", "content": [{"type": "text", "text": "[erased]"}, "[erased]"]},
    ),
    Case(
        "thinking goes whole, the call stays",
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Ann wants", "signature": "c2lnbmF0dXJl"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "send",
                    "input": {"to": "ann"},
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "send", "input": {}}]},
    ),
    Case(
        "results keep call and error",
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no Ann"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [
                        {"type": "text", "text": "Ann"},
                        {"type": "image", "source": {"type": "url", "url": "https://ann.example"}},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "t3"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "[erased]", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "[erased]"}] * 2},
                {"type": "tool_result", "tool_use_id": "t3"},
            ],
        },
    ),
    Case("nothing said stays nothing", {"role": "assistant", "content": " \n"}, {"role": "assistant", "content": " "}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_left_of_a_message(case: Case) -> None:
    message = Message.from_wire(case.wire)
    assert redacted(case.wire) == case.expected
    made: Any = Message.from_wire(redacted(case.wire))
    assert made.role == message.role
