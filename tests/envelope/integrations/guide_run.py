"""The blocks of the guide to integrations that need a framework, against a model's server on the loopback.

Run by `test_frameworks.py` where the frameworks are. A block finds the names that its reader has by then: an agent's
tools, a history, a model.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.model_server import ModelServer  # noqa: E402

GUIDE = (ROOT / "docs" / "guide-integrations.md").read_text(encoding="utf-8")
BLOCKS = [
    (found[0], code)
    for code in re.findall(r"^```python no-run\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    if (found := re.findall(r"^(?:from|import) (litellm|langchain|pydantic_ai|agents|agent_framework)\b", code, re.M))
]


def readers_names(framework: str) -> dict[str, Any]:
    """What a reader of a block has already."""
    names: dict[str, Any] = {"tools": [], "history": [{"role": "user", "content": "Hello?"}]}
    if framework == "langchain":
        from langchain_core.language_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langgraph.checkpoint.memory import InMemorySaver

        names |= {"model": GenericFakeChatModel(messages=iter([AIMessage("fine")])), "checkpointer": InMemorySaver()}
    elif framework == "agents":
        from agents import Agent, set_tracing_disabled

        set_tracing_disabled(True)
        names["agent"] = Agent("desk", instructions="You answer.", model="gpt-4o")
    elif framework == "pydantic_ai":
        names["history"] = []
    elif framework == "agent_framework":
        from tests.envelope.integrations.agent_framework_run import ScriptedClient

        names["client"] = ScriptedClient(1.0, fails=False)
    return names


@pytest.mark.parametrize(("framework", "code"), BLOCKS, ids=[framework for framework, _ in BLOCKS])
def test_a_block_of_the_guide_runs(framework: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        names = readers_names(framework)
        code = code.replace('agent.run("…"', 'agent.run("turn 1."')  # the script of agent-framework asks for a turn
        made = eval(compile(code, "guide", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    assert list(tmp_path.iterdir()), "the session was kept"


def test_every_framework_of_the_environment_has_a_block() -> None:
    assert {framework for framework, _ in BLOCKS} == {
        "litellm",
        "langchain",
        "pydantic_ai",
        "agents",
        "agent_framework",
    }
