"""The two tools of a model in each provider's own form, and its calls answered."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.recall.model_tools import model_tools
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what to look for, in the words you would expect"},
        "k": {"type": "integer", "minimum": 1, "maximum": 25},
    },
    "required": ["query"],
    "additionalProperties": False,
}
RESOLVE = {
    "type": "object",
    "properties": {
        "ref": {"type": "string", "description": "§12, 12, §12.2, §12.2-4, tool:3, or a range: §11-§18"},
        "offset": {"type": "integer", "minimum": 0, "description": "first character to return"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20_000},
        "grep": {"type": "string", "description": "only lines that contain this text"},
    },
    "required": ["ref"],
    "additionalProperties": False,
}
FINDS = "Find earlier messages of this conversation that bear on a question; gives references."
READS = "Read an earlier message of this conversation in full, by its reference; or several in a row, by a range."
BOTH = (("search_context", FINDS, SEARCH), ("resolve_reference", READS, RESOLVE))


def test_openai_chat_takes_a_function_inside_a_tool() -> None:
    assert model_tools("openai-chat") == tuple(
        {"type": "function", "function": {"name": name, "description": says, "parameters": schema}}
        for name, says, schema in BOTH
    )
    assert model_tools() == model_tools("openai-chat")


def test_openai_responses_takes_a_flat_function() -> None:
    """Not strict: a strict schema may have no optional argument."""
    assert model_tools("openai-responses") == tuple(
        {"type": "function", "name": name, "description": says, "parameters": schema, "strict": False}
        for name, says, schema in BOTH
    )


def test_anthropic_takes_an_input_schema() -> None:
    assert model_tools("anthropic") == tuple(
        {"name": name, "description": says, "input_schema": schema} for name, says, schema in BOTH
    )


def test_gemini_takes_declarations_inside_one_tool() -> None:
    assert model_tools("gemini") == (
        {
            "function_declarations": [
                {"name": name, "description": says, "parameters_json_schema": schema} for name, says, schema in BOTH
            ]
        },
    )


def tools_sent(provider: Any) -> list[Wire]:
    session = memory_store().session("s", tools=[*model_tools()])
    session.append({"role": "user", "content": "hi"})
    request = EnvelopeBuilder(tokenizer=CharTokenizer()).build(session).render(provider, cache=False)
    found: list[Wire] = request["config"]["tools"] if provider == "gemini" else request["tools"]
    return found


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_a_session_s_tools_are_sent_in_the_same_form(provider: str) -> None:
    assert tools_sent(provider) == list(model_tools(provider))


def test_both_schemas_are_json_schemas() -> None:
    for schema in (SEARCH, RESOLVE):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_what_is_returned_may_be_changed_without_changing_the_next() -> None:
    model_tools()[0]["function"]["name"] = "mine"
    assert model_tools()[0]["function"]["name"] == "search_context"


@pytest.mark.parametrize("provider", ["text", "", "acme"])
def test_an_unknown_provider_is_refused_with_those_there_are(provider: str) -> None:
    with pytest.raises(InputError, match="one of: openai-chat, openai-responses, anthropic, gemini"):
        model_tools(provider)
