"""Requests to the three endpoints of a wrapped client, as bodies on the wire.

`ENDPOINTS` has a row for each endpoint, with the function that reads its request (`HandedRequest`). `built_request`
replaces the caller's context with the built one and leaves every other field unchanged. A tool without a form in a
rendering keeps its own.

Source: the providers' published API references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctxsteward.schemas.message import Wire

from ..envelope import Provider
from ..render.openai_responses import messages_of_items
from .conversations import ConversationName, Conversations, PreparedCall


class HandedRequest(NamedTuple):
    """The context that a caller's request contains."""

    messages: Sequence[Wire]
    system: str | Sequence[str | Wire] | None
    tools: Sequence[Wire]
    model: str | None
    prefill: Wire | None = None
    """The last message of the request, if the answer is to continue its text."""


class Endpoint(NamedTuple):
    """One kind of request."""

    provider: Provider
    path: str
    """End of its URL's path."""
    read: Callable[[Wire], HandedRequest | None]
    """Reads a request; returns None if the request does not contain its context, or has an unknown form."""


def endpoint_of(path: str) -> Endpoint | None:
    """Return the endpoint of a URL's path, or None if requests to it are sent unchanged."""
    return next((endpoint for endpoint in ENDPOINTS.values() if path.endswith(endpoint.path)), None)


class BuiltRequest(NamedTuple):
    """A prepared call, and the body to send."""

    endpoint: Endpoint
    call: PreparedCall
    handed: HandedRequest
    body: Wire


def built_request(
    conversations: Conversations, endpoint: Endpoint, name: ConversationName, body: Wire | None
) -> BuiltRequest | None:
    """Return the request with a built context, or None if the caller's own is to be sent."""
    try:
        handed = None if body is None else endpoint.read(body)
    except Exception as error:
        conversations.fall_back("a request could not be read; it is sent as it is", error)
        return None
    if body is None or handed is None:
        conversations.say_once(
            f"a request to {endpoint.path} holds no history of its own (the provider keeps it, or a template has it): "
            "such requests are sent as they are"
        )
        return None
    call = conversations.prepare(name, handed.messages, system=handed.system, tools=handed.tools, model=handed.model)
    if call is None:
        return None
    marks = "cache_control" not in body  # else the provider places one for the caller, and there are four at most
    rendered = call.render(endpoint.provider, cache=marks)
    made = _with_context(body, handed, rendered, conversations.own_tools(endpoint.provider))
    return BuiltRequest(endpoint, call, handed, made)


def _with_context(body: Wire, handed: HandedRequest, rendered: Wire, ours: Sequence[Wire]) -> Wire:
    """Return the body with the built context in place of its own."""
    own = {"tools", *(body.keys() & {"prompt_cache_key", "prompt_cache_options"})}
    made = {**body, **{key: value for key, value in rendered.items() if key not in own}}
    if handed.prefill is not None:
        made["messages"] = [*made["messages"], handed.prefill]
    tools = rendered.get("tools", [])
    if len(tools) < len(handed.tools) + len(ours):
        unmarked = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in handed.tools]
        tools = [*unmarked, *ours]
    return {**made, "tools": tools} if tools else made


def _read_chat(body: Wire) -> HandedRequest | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    return HandedRequest(messages, (), body.get("tools") or (), body.get("model"))


def _read_responses(body: Wire) -> HandedRequest | None:
    if body.get("previous_response_id") or body.get("conversation"):
        return None
    items = body.get("input")
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    if not isinstance(items, list):
        return None
    return HandedRequest(messages_of_items(items), body.get("instructions"), body.get("tools") or (), body.get("model"))


def _read_anthropic(body: Wire) -> HandedRequest | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    prefill = messages[-1] if messages and _is_prefill(messages[-1]) else None
    history = messages if prefill is None else messages[:-1]
    return HandedRequest(history, body.get("system"), body.get("tools") or (), body.get("model"), prefill)


def _is_prefill(message: Wire) -> bool:
    """Return whether the answer is to continue this text. A paused turn contains more than text."""
    content = message.get("content")
    is_text = isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(block, dict) and block.get("type") == "text" for block in content)
    )
    return message.get("role") == "assistant" and is_text


def with_prefill(message: Wire, prefill: Wire) -> Wire:
    """Return the answer with the prefilled text before it, as its user would keep it.

    >>> hat = {"role": "assistant", "content": [{"type": "text", "text": " hat"}]}
    >>> with_prefill(hat, {"role": "assistant", "content": "A"})["content"]
    [{'type': 'text', 'text': 'A hat'}]
    """
    content = prefill["content"]
    before = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks = list(message["content"])
    if before and blocks and blocks[0].get("type") == "text":
        blocks[0] = {**blocks[0], "text": before.pop()["text"] + blocks[0]["text"]}
    return {**message, "content": [*before, *blocks]}


ENDPOINTS: dict[Provider, Endpoint] = {
    "openai-chat": Endpoint("openai-chat", "/chat/completions", _read_chat),
    "openai-responses": Endpoint("openai-responses", "/responses", _read_responses),
    "anthropic": Endpoint("anthropic", "/v1/messages", _read_anthropic),
}

__all__ = ["ENDPOINTS", "BuiltRequest", "Endpoint", "HandedRequest", "built_request", "endpoint_of", "with_prefill"]
