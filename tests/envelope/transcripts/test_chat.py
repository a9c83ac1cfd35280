"""OpenAI and Anthropic messages in every layout: read verbatim, told apart, the operator's words lifted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope.render.openai_responses import messages_of_items
from ctxsteward.envelope.transcripts.files import FORMATS, parse_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript

USER = {"role": "user", "content": "hi", "x_unknown": [1, {"é": None}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
    USER,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
    {"role": "system", "content": "Late."},
]
ANTHROPIC = [
    USER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "found"}]},
]
GEMINI = [
    {"parts": [{"text": "hi"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look_up", "args": {}}, "thoughtSignature": "c2ln"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look_up", "response": {"output": "found"}}}]},
]
ITEMS = [
    {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
]
ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}
OPENAI_STUB = {"type": "function", "function": {"name": "look_up", "description": "", "parameters": ANYTHING}}
ANTHROPIC_STUB = {"name": "look_up", "description": "", "input_schema": ANYTHING}
ITEMS_STUB = {"type": "function", "name": "look_up", "description": "", "parameters": ANYTHING}
GEMINI_STUB = {"name": "look_up", "description": "", "parameters_json_schema": ANYTHING}


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def read(data: str | bytes, format: str = "auto") -> list[Transcript]:
    return list(parse_transcripts(data, "chats/day one.jsonl", format=format))


def wires(transcript: Transcript) -> list[dict[str, Any]]:
    return [entry.wire for entry in transcript.entries()]


@pytest.mark.parametrize("data", [lines(OPENAI), json.dumps(OPENAI), json.dumps(OPENAI, indent=1)])
def test_openai_messages_are_verbatim_and_leading_system_messages_are_lifted(data: str) -> None:
    (transcript,) = read(data)
    assert (transcript.format, transcript.session) == ("openai", "day one")
    assert transcript.system == ("Be brief.", "Be kind.")
    assert wires(transcript) == OPENAI[2:]
    assert list(wires(transcript)[0]) == ["role", "content", "x_unknown"]


@pytest.mark.parametrize("data", [lines(ANTHROPIC), json.dumps(ANTHROPIC)])
def test_anthropic_messages_are_told_by_their_blocks(data: str) -> None:
    (transcript,) = read(data)
    assert transcript.format == "anthropic"
    assert wires(transcript) == ANTHROPIC


@pytest.mark.parametrize("data", [lines(GEMINI), json.dumps(GEMINI), json.dumps({"contents": GEMINI})])
def test_gemini_contents_are_told_by_their_parts(data: str) -> None:
    (transcript,) = read(data)
    assert transcript.format == "gemini"
    assert wires(transcript) == GEMINI


@pytest.mark.parametrize("data", [lines(ITEMS), json.dumps(ITEMS), json.dumps({"input": ITEMS})])
def test_items_of_responses_are_read_as_messages(data: str) -> None:
    (transcript,) = read(data)
    assert transcript.format == "openai-responses"
    assert wires(transcript) == messages_of_items(ITEMS)


def test_a_request_of_responses_brings_its_instructions_and_its_tools() -> None:
    (transcript,) = read(json.dumps({"input": ITEMS, "instructions": "Be brief.", "tools": [ITEMS_STUB]}))
    assert (transcript.system, transcript.tools) == (("Be brief.",), (ITEMS_STUB,))


@pytest.mark.parametrize("system", ["Be brief.", {"parts": [{"text": "Be brief."}]}])
@pytest.mark.parametrize("place", ["body", "config"])
def test_a_gemini_request_brings_its_instruction_and_its_tools(system: Any, place: str) -> None:
    tools = [{"functionDeclarations": [{"name": "look_up"}]}]
    head = {"systemInstruction": system, "tools": tools}
    (transcript,) = read(json.dumps({"contents": GEMINI, **(head if place == "body" else {"config": head})}))
    assert (transcript.system, transcript.tools) == (("Be brief.",), tuple(tools))


@pytest.mark.parametrize(
    ("messages", "stub"),
    [(OPENAI, OPENAI_STUB), (ANTHROPIC, ANTHROPIC_STUB), (GEMINI, GEMINI_STUB), (ITEMS, ITEMS_STUB)],
)
@pytest.mark.parametrize("layout", [lines, json.dumps])
def test_tools_that_are_not_declared_are_inferred_in_the_dialect_of_the_call(
    messages: list[Any], stub: dict[str, Any], layout: Any
) -> None:
    (transcript,) = read(layout(messages))
    assert transcript.tools == (stub,)
    assert [(finding.kind, finding.field) for finding in transcript.findings] == [("tools_inferred", "tools")]
    assert "look_up" in transcript.findings[0].text


def test_a_request_body_brings_its_system_and_its_tools() -> None:
    tool = {"name": "look_up", "description": "Look.", "input_schema": {"type": "object"}}
    body = {
        "model": "m",
        "system": [
            {"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "B"},
        ],
        "tools": [tool],
        "messages": ANTHROPIC,
    }
    (transcript,) = read(json.dumps(body, indent=2))
    assert (transcript.format, transcript.session) == ("anthropic", "day one")
    assert transcript.system == ("A", "B")
    assert transcript.tools == (tool,)
    assert transcript.findings == ()


@pytest.mark.parametrize(
    ("body", "format", "decided"),
    [
        ({"messages": [USER]}, "auto", "openai"),
        ({"messages": [USER], "system": "S"}, "auto", "anthropic"),
        ({"messages": [USER], "tools": [ANTHROPIC_STUB]}, "auto", "anthropic"),
        ({"messages": [USER], "tools": [OPENAI_STUB]}, "auto", "openai"),
        ({"messages": [USER]}, "anthropic", "anthropic"),
        ({"messages": [USER, {"role": "assistant", "content": []}]}, "anthropic", "anthropic"),
        ({"messages": OPENAI, "system": "S"}, "auto", "openai"),
    ],
    ids=["plain", "system key", "tool schema", "function", "forced", "empty content is nobody's", "messages win"],
)
def test_the_provider_is_decided_by_messages_then_by_the_request(body: Any, format: str, decided: str) -> None:
    assert [transcript.format for transcript in read(json.dumps(body), format)] == [decided]


@pytest.mark.parametrize(
    "data",
    [
        lines([OPENAI, ANTHROPIC]),
        lines([{"messages": OPENAI}, {"messages": ANTHROPIC}]),
        json.dumps([{"messages": OPENAI}, {"messages": ANTHROPIC}]),
        json.dumps([OPENAI, ANTHROPIC], indent=2),
    ],
    ids=["lines of arrays", "lines of requests", "array of requests", "array of arrays"],
)
def test_a_file_of_many_transcripts_numbers_their_sessions(data: str) -> None:
    first, second = read(data)
    assert [(one.session, one.format) for one in (first, second)] == [
        ("day one-0", "openai"),
        ("day one-1", "anthropic"),
    ]
    assert wires(first) == OPENAI[2:]
    assert wires(second) == ANTHROPIC


@pytest.mark.parametrize("data", [json.dumps(USER), json.dumps(USER, indent=2)])
def test_a_lone_message_is_a_transcript_of_one(data: str) -> None:
    (transcript,) = read(data)
    assert wires(transcript) == [USER]


def test_a_document_may_have_a_message_on_each_of_its_lines() -> None:
    (transcript,) = read('{"messages": [\n' + ",\n".join(json.dumps(one) for one in ANTHROPIC[:1]) + "\n]}\n")
    assert wires(transcript) == ANTHROPIC[:1]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + lines(OPENAI).encode(),
        lines(OPENAI).replace("\n", "\r\n").encode(),
        b"\n  \n" + lines(OPENAI).replace("\n", "\n\n").encode(),
        lines(OPENAI).rstrip().encode(),
        b"\xef\xbb\xbf" + json.dumps(OPENAI, indent=2).replace("\n", "\r\n").encode(),
    ],
    ids=["byte-order mark", "CRLF", "blank lines", "no newline at the end", "document with mark and CRLF"],
)
def test_harmless_variations_of_a_file_read_equal(data: bytes) -> None:
    (transcript,) = read(data)
    assert transcript.system == ("Be brief.", "Be kind.")
    assert wires(transcript) == OPENAI[2:]


def test_escapes_line_separators_and_huge_integers_are_kept() -> None:
    message = {"role": "user", "content": "😀 \u2028 中", "n": 2**200}
    (transcript,) = read(json.dumps(message) + "\n" + json.dumps(message, ensure_ascii=False))
    assert wires(transcript) == [message, message]


def test_a_broken_history_is_not_the_readers_business() -> None:
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "x"}
    (transcript,) = read(json.dumps([orphan, orphan]))
    assert wires(transcript) == [orphan, orphan]


def test_only_system_messages_leave_no_entries() -> None:
    (transcript,) = read(lines(OPENAI[:2]))
    assert transcript.system == ("Be brief.", "Be kind.")
    assert wires(transcript) == []


def test_standard_input_gets_a_session_name() -> None:
    (transcript,) = parse_transcripts(lines(OPENAI))
    assert (transcript.source, transcript.session) == ("-", "stdin")


def test_the_formats_are_pinned() -> None:
    assert FORMATS == ("auto", "openai", "openai-responses", "anthropic", "gemini", "tau-bench", "swe-agent", "locomo")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLOCKS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT), min_size=1, max_size=3)
MESSAGES = st.lists(
    st.one_of(
        st.builds(
            lambda role, content: {"role": role, "content": content},
            st.sampled_from(["system", "developer", "user", "assistant"]),
            st.one_of(TEXT, BLOCKS),
        ),
        st.builds(
            lambda name, id: {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}],
            },
            st.sampled_from(["a", "b", "c"]),
            TEXT,
        ),
        st.builds(lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}, TEXT, TEXT),
    ),
    min_size=1,
    max_size=8,
)


@given(messages=MESSAGES, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_an_array_and_jsonl_of_the_same_messages_read_equal(
    messages: list[Any], ascii_only: bool, indent: int | None
) -> None:
    jsonl = "\n".join(json.dumps(message, ensure_ascii=ascii_only) for message in messages)
    (streamed,) = read(jsonl)
    (whole,) = read(json.dumps(messages, ensure_ascii=ascii_only, indent=indent))
    assert streamed == whole
    assert list(streamed.entries()) == list(whole.entries()) == list(streamed.entries())
