"""What each provider is sent, whole: one conversation and its payload; cache marks; tools; own fields back.

Source of the shapes: the providers' published API references (OpenAI chat completions and responses, Anthropic
messages, Gemini generate_content).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxsteward.envelope import PROVIDERS, Budgets, Envelope, Profile, Session
from ctxsteward.envelope.layout.rows import fenced
from ctxsteward.envelope.render.request import dropped_fields
from ctxsteward.envelope.render.units import as_anthropic_tool, as_gemini_tool, as_openai_tool, as_responses_tool
from ctxsteward.schemas import Finding

from ...tables import table
from ..histories import NONCE, Wire
from ..messages import call, char_builder, result, session_of

WIDE = Budgets(dynamic_tokens=100_000, system_tokens=1_000)
MARK = {"type": "ephemeral"}


def built(session: Session, budgets: Budgets = WIDE) -> Envelope:
    return char_builder(budgets).build(session)


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


SCHEMA: Wire = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Wire = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather of a city.", "parameters": SCHEMA},
}
PROFILE = Profile.from_yaml("persona: Be brief.\nrails: {kind: be kind}\n")

REQUESTS = table(__file__, "requests.yaml")


@pytest.mark.parametrize("case", REQUESTS["sent"])
def test_a_provider_is_sent_exactly_this(case: str) -> None:
    dialect, provider = case.lower().split(" to ")
    session = session_of(*REQUESTS[dialect], profile=PROFILE, system="Use °C.", tools=[TOOL])
    session.note("plan", "answer")
    assert built(session).render(provider, cache=False) == REQUESTS["sent"][case]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_head_tools_and_notes_a_request_is_its_messages(provider: Any) -> None:
    request = built(session_of({"role": "user", "content": "hi"})).render(provider, cache=False)
    assert (
        request
        == {
            "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
            "openai-responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
            "anthropic": {"messages": [{"role": "user", "content": [text("hi")]}]},
            "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "config": {}},
            "text": {"prompt": f"<{NONCE} dynamic user §1>\nhi\n</{NONCE}>\n"},
        }[provider]
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_rendering_twice_and_changing_the_outer_lists_changes_nothing(provider: Any) -> None:
    session = session_of(*REQUESTS["anthropic"], profile=PROFILE, tools=[TOOL])
    session.note("plan", "answer")
    envelope = built(session)
    first = envelope.render(provider)
    kept = json.dumps(first)
    for value in first.values():
        if isinstance(value, list):
            value.append("noise")
    assert json.dumps(envelope.render(provider)) == kept


# -- own fields back, other provider's fields said ---------------------------------------------------------

UNKNOWN: tuple[Wire, ...] = (
    {"role": "user", "content": [{"type": "x_new_block", "x": 1}, text("hi")], "x_trace": {"a": [1, None]}},
    {
        "role": "assistant",
        "content": [
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "text", "text": "found", "citations": [{"type": "web", "url": "https://example.org"}]},
        ],
        "stop_reason": "end_turn",
    },
    {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}, text("and?")]},
)


def test_an_anthropic_session_with_unknown_fields_goes_back_unchanged() -> None:
    session = session_of(*UNKNOWN)
    envelope = built(session)
    assert envelope.render("anthropic", cache=False)["messages"] == list(UNKNOWN)
    assert dropped_fields(envelope, "anthropic") == ()


def test_what_another_provider_has_no_place_for_is_a_finding_each() -> None:
    found = dropped_fields(built(session_of(*UNKNOWN)), "openai-chat")
    assert [(finding.kind, finding.ref, finding.field) for finding in found] == [
        ("field_dropped", "§1", "x_trace"),
        ("field_dropped", "§1", "content[0] (x_new_block)"),
        ("field_dropped", "§2", "stop_reason"),
        ("field_dropped", "§2", "content[0] (thinking)"),
        ("field_dropped", "§2", "content[1] (server_tool_use)"),
        ("field_dropped", "§3", "content[0] (document)"),
    ]
    assert all(isinstance(finding, Finding) and "openai-chat" in finding.text for finding in found)


def test_an_openai_session_with_unknown_fields_goes_back_unchanged() -> None:
    messages: tuple[Wire, ...] = (
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}],
            "x": 1,
        },
        {"role": "assistant", "content": "yes", "refusal": None, "annotations": [], "audio": {"id": "a_1"}},
        {"role": "user", "content": "hi", "name": "dana"},
    )
    assert built(session_of(*messages)).render("openai-chat")["messages"] == list(messages)


# -- ids ---------------------------------------------------------------------------------------------------


def _openai_calls(*ids: str) -> tuple[Wire, ...]:
    return call(*ids, arguments='{"n": 1}'), *(result(id, f"answer {n}") for n, id in enumerate(ids))


def _anthropic_calls(*ids: str) -> tuple[Wire, ...]:
    calls = [{"type": "tool_use", "id": id, "name": "f", "input": {"n": 1}} for id in ids]
    answers = [{"type": "tool_result", "tool_use_id": id, "content": f"answer {n}"} for n, id in enumerate(ids)]
    return {"role": "assistant", "content": calls}, {"role": "user", "content": answers}


def paired(provider: str, request: Wire) -> tuple[list[str], list[tuple[str, str]]]:
    """Ids of the calls of a request, and of its results with their text, in order."""
    calls, answers = [], []
    match provider:
        case "openai-chat":
            for message in request["messages"]:
                calls += [each["id"] for each in message.get("tool_calls", ())]
                answers += [(message["tool_call_id"], message["content"])] if message["role"] == "tool" else []
        case "openai-responses":
            calls = [item["call_id"] for item in request["input"] if item.get("type") == "function_call"]
            outputs = [item for item in request["input"] if item.get("type") == "function_call_output"]
            answers = [(item["call_id"], item["output"]) for item in outputs]
        case "anthropic":
            blocks = [block for message in request["messages"] for block in message["content"]]
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            results = [block for block in blocks if block["type"] == "tool_result"]
            answers = [(block["tool_use_id"], block["content"]) for block in results]
        case "gemini":
            parts = [part for content in request["contents"] for part in content["parts"]]
            calls = [part["function_call"]["id"] for part in parts if "function_call" in part]
            responses = [part["function_response"] for part in parts if "function_response" in part]
            answers = [(response["id"], response["response"]["output"]) for response in responses]
    return calls, answers


@pytest.mark.parametrize("provider", [provider for provider in PROVIDERS if provider != "text"])
@pytest.mark.parametrize("turn", [_openai_calls, _anthropic_calls])
def test_an_id_that_is_used_again_is_another_one_for_the_provider_and_its_results_follow_it(
    provider: Any, turn: Any
) -> None:
    envelope = built(session_of(HI, *turn("a", "c"), *turn("b", "c"), *turn("a")))
    calls, answers = paired(provider, envelope.render(provider))
    assert calls[:3] == ["a", "c", "b"], "as they came where they are the first"
    assert len(set(calls)) == len(calls) == 5
    texts = [text if isinstance(text, str) else text[0]["text"] for _, text in answers]
    assert [id for id, _ in answers] == calls
    assert texts == ["answer 0", "answer 1", "answer 0", "answer 1", "answer 0"]


def test_a_result_that_answers_no_call_is_text_and_what_came_with_it_stays() -> None:
    lost = {"type": "tool_result", "tool_use_id": "nobody", "content": "42"}
    envelope = built(session_of(HI, {"role": "user", "content": [lost, text("and?")]}))
    (_, message, rest) = envelope.render("anthropic", cache=False)["messages"]
    assert message["content"] == [text(fenced(NONCE, "tool result §2", "42"))]
    assert rest["content"] == [text("and?")]


# -- cache marks -------------------------------------------------------------------------------------------


def marks(request: Wire) -> list[str]:
    """Where the cache marks are, by place."""
    found = [f"system[{n}]" for n, block in enumerate(request.get("system", ())) if "cache_control" in block]
    found += [f"tools[{n}]" for n, tool in enumerate(request.get("tools", ())) if "cache_control" in tool]
    for n, message in enumerate(request["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [f"messages[{n}][{m}]" for m, block in enumerate(blocks) if "cache_control" in block]
    return found


def _call(id: str) -> Wire:
    return {"role": "assistant", "content": [text("I look."), {"type": "tool_use", "id": id, "name": "f", "input": {}}]}


def _result(id: str) -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "42"}]}


THINKING: Wire = {"type": "thinking", "thinking": "hm", "signature": "s"}
HI: Wire = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("messages", "head", "expected"),
    [
        pytest.param([HI], {}, ["messages[0][0]"], id="one message: where the next call goes on"),
        pytest.param([HI], {"system": "You help."}, ["system[0]", "messages[0][0]"], id="the end of the head"),
        pytest.param([HI], {"system": ["a", "b"], "tools": [TOOL]}, ["system[1]", "messages[0][0]"], id="only its end"),
        pytest.param([HI], {"tools": [TOOL, TOOL]}, ["tools[1]", "messages[0][0]"], id="else the tools"),
        pytest.param(
            [HI, _call("a"), _result("a")],
            {},
            ["messages[0][0]", "messages[2][0]"],
            id="where the call before ended, and where this one does",
        ),
        pytest.param(
            [HI, _call("a"), _result("a"), _call("b"), _result("b")],
            {"system": "x"},
            ["system[0]", "messages[2][0]", "messages[4][0]"],
            id="the newest two of a loop",
        ),
        pytest.param(
            [HI, {"role": "assistant", "content": [text("Well"), THINKING]}],
            {},
            ["messages[0][0]", "messages[1][0]"],
            id="not on thinking: at an end it goes",
        ),
    ],
)
def test_cache_marks_stand_at_the_ends_of_what_is_reused(
    messages: list[Wire], head: dict[str, Any], expected: list[str]
) -> None:
    assert marks(built(session_of(*messages, **head)).render("anthropic")) == expected


REDACTED: Wire = {"type": "redacted_thinking", "data": "AAAA"}


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        pytest.param([text("Well"), THINKING], [text("Well")], id="one at the end"),
        pytest.param([text("Well"), THINKING, REDACTED], [text("Well")], id="several of both kinds"),
        pytest.param([THINKING, text("Well")], [THINKING, text("Well")], id="in front it stays"),
        pytest.param([THINKING, text("Well"), REDACTED], [THINKING, text("Well")], id="only the one at the end"),
        pytest.param([THINKING, REDACTED], None, id="nothing else: no message"),
        pytest.param([text(" ")], None, id="nothing but white space: no message"),
        pytest.param([text("Well"), THINKING, text(" ")], [text("Well")], id="nothing but white space behind it"),
    ],
)
def test_no_message_ends_with_thinking(content: list[Wire], sent: list[Wire] | None) -> None:
    session = session_of(HI, {"role": "assistant", "content": content}, HI)
    messages = built(session).render("anthropic", cache=False)["messages"]
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    assert said == ([] if sent is None else [sent])


def test_notes_come_after_the_mark_and_carry_none() -> None:
    session = session_of(HI, _call("a"), _result("a"))
    session.note("plan", "go")
    request = built(session).render("anthropic")
    assert marks(request) == ["messages[0][0]", "messages[2][0]"]
    assert request["messages"][2]["content"][1] == text(fenced(NONCE, "notes", "plan: go"))


def test_bullets_are_marked_and_there_are_never_more_than_four_marks() -> None:
    session = session_of(system="You help.", tools=[TOOL])
    maker = char_builder(Budgets(dynamic_tokens=1_500))
    most = 0
    for n in range(40):
        session.append({"role": "user", "content": f"question {n} " + "word " * 10})
        for m in range(3):
            session.extend((_call(f"c{n}_{m}"), _result(f"c{n}_{m}")))
            envelope = maker.build(session)
            request = envelope.render("anthropic")
            found = marks(request)
            most = max(most, len(found))
            assert len(found) <= 4
            assert found[0] == "system[0]"
            assert found[-1] == f"messages[{len(request['messages']) - 1}][0]"
            if envelope.dynamic.bullets is not None:
                assert found[1] == "messages[1][0]"  # the task stands before them
                assert request["messages"][1]["content"][0]["text"] == envelope.dynamic.bullets.text
    assert most == 4


def test_the_mark_of_a_call_is_the_previous_mark_of_the_next() -> None:
    """So that the next call finds what this one wrote."""
    session = session_of(HI)
    before = ""
    for n in range(5):
        newest = marks(built(session).render("anthropic"))
        if before:
            assert before in newest
        before = newest[-1]
        session.extend((_call(f"c{n}"), _result(f"c{n}")))


def test_marks_change_no_other_byte_and_the_caller_s_own_are_the_renderer_s_to_place() -> None:
    own = {"role": "user", "content": [{**text("hi"), "cache_control": MARK}]}
    session = session_of(own, _call("a"), _result("a"), own, own, own, own, system="x")
    envelope = built(session)
    plain, marked = envelope.render("anthropic", cache=False), envelope.render("anthropic")
    assert marks(plain) == []
    assert json.loads(json.dumps(marked).replace(', "cache_control": {"type": "ephemeral"}', "")) == plain


# -- tools -------------------------------------------------------------------------------------------------

FLAT: Wire = {"type": "function", "name": "weather", "description": "Weather of a city.", "parameters": SCHEMA}
NATIVE: Wire = {"name": "weather", "description": "Weather of a city.", "input_schema": SCHEMA}
MCP: Wire = {"name": "weather", "description": "Weather of a city.", "inputSchema": SCHEMA}
STRICT: Wire = {"type": "function", "function": {**TOOL["function"], "strict": True}}
BARE: Wire = {"type": "function", "name": "ping"}
EMPTY: Wire = {"type": "object", "properties": {}}


@pytest.mark.parametrize("given", [TOOL, FLAT, NATIVE, MCP], ids=["chat", "responses", "anthropic", "MCP"])
def test_a_tool_in_any_form_reaches_every_provider_in_its_own(given: Wire) -> None:
    assert as_openai_tool(given) == TOOL
    assert as_responses_tool(given) == (FLAT if given is FLAT else {**FLAT, "strict": False})
    assert as_anthropic_tool(given) == NATIVE
    assert as_gemini_tool(given) == {
        "name": "weather",
        "description": "Weather of a city.",
        "parameters_json_schema": SCHEMA,
    }


@pytest.mark.parametrize(
    ("convert", "given"),
    [
        pytest.param(as_openai_tool, STRICT, id="a chat tool with strict"),
        pytest.param(as_anthropic_tool, {**NATIVE, "x_new": 1}, id="an Anthropic tool with a new field"),
        pytest.param(as_anthropic_tool, {"type": "bash_20250124", "name": "bash"}, id="Anthropic's own tool"),
        pytest.param(as_responses_tool, {"type": "web_search"}, id="OpenAI's own tool"),
    ],
)
def test_a_tool_of_its_own_provider_goes_back_as_it_is(convert: Any, given: Wire) -> None:
    assert convert(given) == given


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    assert as_openai_tool(BARE)["function"]["parameters"] == EMPTY
    assert as_anthropic_tool(BARE) == {"name": "ping", "description": "", "input_schema": EMPTY}
    assert as_responses_tool(BARE)["parameters"] == EMPTY


def test_a_strict_tool_stays_strict_for_openai_responses() -> None:
    assert as_responses_tool(STRICT)["strict"] is True
    assert as_responses_tool({**FLAT, "strict": True})["strict"] is True
