"""A scripted provider for the documents: it judges each request by the published rules, and answers a line.

Imported by tests, and by `tests.reader` in environments that have the wheel and nothing of the checkout.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from pydantic import BaseModel, ConfigDict

from ctxsteward.evals.prompt_cost import openai_faults


class Reply(BaseModel):
    """An SDK's answer: attributes outside, `model_dump` as the SDKs have it."""

    model_config = ConfigDict(extra="allow")


def reply(**fields: Any) -> Reply:
    made = {
        key: reply(**value)
        if isinstance(value, dict) and key != "input"
        else [reply(**item) if isinstance(item, dict) else item for item in value]
        if isinstance(value, list)
        else value
        for key, value in fields.items()
    }
    return Reply(**made)


class OpenAIChat:
    """Asks for a reference where it has a tool for it and has not asked yet in this turn."""

    def create(self, *, model: str, messages: list[Any], tools: list[Any] | None = None, **rest: Any) -> Reply:
        assert openai_faults({"messages": messages, "tools": tools or []}) == []
        usage = {"prompt_tokens": 1_000, "completion_tokens": 9}
        message: dict[str, Any] = {"role": "assistant", "content": "It is 2."}
        if tools and messages[-1]["role"] == "user":
            call = {"name": "resolve_reference", "arguments": json.dumps({"ref": "§1"})}
            calls = [{"id": f"call_{len(messages)}", "type": "function", "function": call}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        return reply(choices=[{"index": 0, "message": message}], usage=usage)


class Namespace:
    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


def install(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put a scripted client in the place of OpenAI's own; `patch` sets an attribute, as `setattr` does."""
    client = Namespace(chat=Namespace(completions=OpenAIChat()))
    with suppress(ModuleNotFoundError):
        # A class, because other packages name the SDK's client in annotations.
        patch(import_module("openai"), "OpenAI", type("OpenAI", (), {"__new__": lambda cls: client}))
