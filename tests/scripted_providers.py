"""Scripted providers for the documents: they judge each request by the published rules, and answer a line.

Imported by tests, and by `tests.reader` in environments that have the wheel and nothing of the checkout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict

from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults


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


class OpenAIResponses:
    def create(self, *, model: str, input: list[Any], **rest: Any) -> Reply:
        assert input
        return reply(output_text="It is 2.", usage={"input_tokens": 1_000, "output_tokens": 9})


class AnthropicMessages:
    def create(self, *, model: str, max_tokens: int, messages: list[Any], **rest: Any) -> Reply:
        assert anthropic_faults({"messages": messages, **rest}) == []
        usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 9}
        return reply(role="assistant", content=[{"type": "text", "text": "It is 2."}], usage=usage)


class GeminiModels:
    def generate_content(self, *, model: str, contents: list[Any], config: Any) -> Reply:
        assert contents[0]["role"] == "user"
        return reply(text="It is 2.", usage_metadata={"prompt_token_count": 1_000})


class Namespace:
    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


def install(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put scripted clients in the place of the SDKs' own; `patch` sets an attribute, as `setattr` does."""
    clients = {
        "openai": ("OpenAI", Namespace(chat=Namespace(completions=OpenAIChat()), responses=OpenAIResponses())),
        "anthropic": ("Anthropic", Namespace(messages=AnthropicMessages())),
    }
    for package, (name, client) in clients.items():
        with suppress(ModuleNotFoundError):
            # A class, because other packages name the SDK's client in annotations.
            patch(import_module(package), name, type(name, (), {"__new__": lambda cls, client=client: client}))
    google = ModuleType("google")  # no extra brings its SDK
    google.genai = Namespace(Client=lambda: Namespace(models=GeminiModels()))  # type: ignore[attr-defined]
    sys.modules["google"] = google
