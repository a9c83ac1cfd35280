"""The structural check of requests refuses what providers refuse."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.evals.prompt_cost import anthropic_faults, call_faults, openai_faults

USER = {"role": "user", "content": "Hi"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}


def _tool(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


def _results(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


RESULT = {"type": "tool_result", "tool_use_id": "a"}
TEXT = {"type": "text", "text": "and?"}


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        pytest.param([USER, CALL, _tool("b"), _tool("a"), USER], 0, id="answered in any order"),
        pytest.param([USER, CALL, _tool("a"), USER], 1, id="a call without result"),
        pytest.param([USER, CALL, _tool("a")], 1, id="pending at the end"),
        pytest.param([USER, _tool("a")], 1, id="a result without call"),
        pytest.param([USER, CALL, _tool("a"), _tool("a"), _tool("b")], 1, id="answered twice"),
        pytest.param([USER, {"role": "assistant", "content": ""}], 1, id="nothing in it"),
    ],
)
def test_openai(messages: list[dict[str, Any]], problems: int) -> None:
    assert len(openai_faults({"messages": messages})) == problems
    assert len(call_faults({"messages": messages})) == problems


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "You mend things."}]])
def test_in_a_call_somebody_speaks(messages: list[dict[str, Any]]) -> None:
    assert openai_faults({"messages": messages}) == []
    assert call_faults({"messages": messages}) == ["no message but the system's"]


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        pytest.param([USER, USE, _results(RESULT, TEXT)], 0, id="answered, then text"),
        pytest.param([USER, USE, _results(TEXT, RESULT)], 1, id="results are not first"),
        pytest.param([USER, USE, USER], 1, id="a call without result"),
        pytest.param([USER, USE], 1, id="pending at the end"),
        pytest.param([USER, _results(RESULT)], 1, id="a result without call"),
        pytest.param([USE, _results(RESULT)], 1, id="the assistant begins"),
        pytest.param([USER, {"role": "assistant", "content": []}], 1, id="nothing in it"),
        pytest.param([], 1, id="no messages"),
    ],
)
def test_anthropic(messages: list[dict[str, Any]], problems: int) -> None:
    assert len(anthropic_faults({"messages": messages})) == problems
