"""Requests and answers of the three endpoints that a wrapped client is used for, as bodies on the wire.

`ENDPOINTS` has a row for each: how its request is read (`HandedRequest`), how what was built takes the place of the
caller's context in it (`built_request`; every other field stays as it is), and how its answer is read (`read_answer`),
from JSON or from server-sent events. A tool that has no form in a rendering keeps its own.

An answer is kept when it is complete: what a stream said before it broke off is none. It is also none where it cannot
be known which one the caller takes (``n`` above 1), or where the caller sends it back in another form (audio). Then the
next history says what was taken. Blocks and items are kept whole, unknown fields included: thinking with its signature,
reasoning with its encrypted content.

Source: the providers' published API references (streaming events).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxsteward.schemas.message import Wire

from ..envelope import Provider
from ..render.openai_responses import messages_of_items
from .conversations import ConversationName, Conversations, PreparedCall


class HandedRequest(NamedTuple):
    """The context of a caller's request."""

    messages: Sequence[Wire]
    system: str | Sequence[str | Wire] | None
    tools: Sequence[Wire]
    model: str | None
    prefill: Wire | None = None
    """Text that the answer begins with, as the request's last message."""


class CompleteAnswer(NamedTuple):
    """A complete answer."""

    messages: tuple[Wire, ...] = ()
    """None where it is not known, or not kept."""
    usage: Wire | None = None


class Endpoint(NamedTuple):
    """One kind of request."""

    provider: Provider
    path: str
    """How its URL ends."""
    read: Callable[[Wire], HandedRequest | None]
    """None: its context is not in the request, or has a form that is not known."""
    answer: Callable[[Wire], CompleteAnswer | None]
    """Of a whole answer; None: it is not complete."""
    assemble: Callable[[Sequence[Wire]], CompleteAnswer | None]
    """Of the events of a stream."""


def endpoint_of(path: str) -> Endpoint | None:
    """The endpoint that a URL's path names; None: requests there go as they are."""
    return next((endpoint for endpoint in ENDPOINTS.values() if path.endswith(endpoint.path)), None)


class BuiltRequest(NamedTuple):
    """A call that was prepared, and the body that it is sent with."""

    endpoint: Endpoint
    call: PreparedCall
    handed: HandedRequest
    body: Wire


def built_request(
    conversations: Conversations, endpoint: Endpoint, name: ConversationName, body: Wire | None
) -> BuiltRequest | None:
    """The request with a built context; None: the caller's own is to be sent."""
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
    marks = "cache_control" not in body  # the caller has the provider place one: there are four at most
    rendered = call.render(endpoint.provider, cache=marks)
    made = _with_context(body, handed, rendered, conversations.own_tools(endpoint.provider))
    return BuiltRequest(endpoint, call, handed, made)


def plain_body(body: object) -> Wire | None:
    """A body as plain JSON, since callers hand back objects of the SDK; None for what is none."""
    return json.loads(json.dumps(body, default=_dumped)) if isinstance(body, dict) else None


def _dumped(value: Any) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, (tuple, set, frozenset, Iterator)):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _with_context(body: Wire, handed: HandedRequest, rendered: Wire, ours: Sequence[Wire]) -> Wire:
    """The body with what was built in place of its context."""
    made = {**body, **{key: value for key, value in rendered.items() if key != "tools"}}
    if handed.prefill is not None:
        made["messages"] = [*made["messages"], handed.prefill]
    tools = rendered.get("tools", [])
    if len(tools) < len(handed.tools) + len(ours):
        unmarked = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in handed.tools]
        tools = [*unmarked, *ours]
    return {**made, "tools": tools} if tools else made


def read_answer(endpoint: Endpoint, content_type: str, data: bytes) -> CompleteAnswer | None:
    """The answer in a response's decoded content; None where it is not complete, or no answer of this endpoint."""
    if "text/event-stream" in content_type:
        return endpoint.assemble(list(events(data)))
    body = json.loads(data)
    return endpoint.answer(body) if isinstance(body, dict) else None


def events(data: bytes) -> Iterator[Wire]:
    """The JSON objects of a stream of server-sent events; one that was cut off is left out."""
    for block in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n")[:-1]:
        text = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if text and text != "[DONE]":
            event = json.loads(text)
            if isinstance(event, dict):
                yield event


# -- chat completions ----------------------------------------------------------------------------------------------

_SAID_ONCE = frozenset(("id", "type", "role", "name", "index"))
"""Fields of a delta that are whole in the first piece that has them."""


def _read_chat(body: Wire) -> HandedRequest | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    return HandedRequest(messages, (), body.get("tools") or (), body.get("model"))


def _chat_answer(body: Wire) -> CompleteAnswer | None:
    choices = body.get("choices") or []
    message = choices[0].get("message") if len(choices) == 1 else None
    return CompleteAnswer(_kept(message) if isinstance(message, dict) else (), body.get("usage"))


def _kept(message: Wire) -> tuple[Wire, ...]:
    """A message as it goes back: without fields that are null or empty; nothing where it is sound."""
    kept = {key: value for key, value in message.items() if value is not None and value != []}
    if "audio" in kept or not (kept.get("content") or kept.get("tool_calls") or kept.get("refusal")):
        return ()
    return ({"role": "assistant", **({"content": None} if "content" not in kept else {}), **kept},)


def _assemble_chat(chunks: Sequence[Wire]) -> CompleteAnswer | None:
    message: Wire = {}
    usage, is_finished, is_one = None, False, True
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            is_one = is_one and choice.get("index", 0) == 0
            _add(message, choice.get("delta") or {})
            is_finished = is_finished or choice.get("finish_reason") is not None
    if not is_finished:
        return None
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
    return CompleteAnswer(_kept(message) if is_one else (), usage)


def _add(whole: Wire, piece: Mapping[str, Any]) -> None:
    """Take in a piece of a message: texts grow, lists go by `index`."""
    for key, value in piece.items():
        known = whole.get(key)
        if value is None or (known is not None and key in _SAID_ONCE):
            continue
        if isinstance(value, list) and all(isinstance(item, dict) and "index" in item for item in value):
            items = whole.setdefault(key, [])
            for item in value:
                same = next((known for known in items if known.get("index") == item["index"]), None)
                if same is None:
                    items.append(same := {})
                _add(same, item)
        elif isinstance(value, dict):
            _add(whole.setdefault(key, {}), value)
        elif isinstance(known, str) and isinstance(value, str):
            whole[key] = known + value
        else:
            whole[key] = [*known, *value] if isinstance(known, list) and isinstance(value, list) else value


# -- responses -----------------------------------------------------------------------------------------------------


def _read_responses(body: Wire) -> HandedRequest | None:
    if body.get("previous_response_id") or body.get("conversation"):
        return None
    items = body.get("input")
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    if not isinstance(items, list):
        return None
    return HandedRequest(messages_of_items(items), body.get("instructions"), body.get("tools") or (), body.get("model"))


def _responses_answer(body: Wire) -> CompleteAnswer | None:
    if body.get("status") not in ("completed", "incomplete"):
        return None
    return CompleteAnswer(tuple(messages_of_items(body.get("output") or ())), body.get("usage"))


def _assemble_responses(stream: Sequence[Wire]) -> CompleteAnswer | None:
    ends = ("response.completed", "response.incomplete")
    last = next((event for event in reversed(stream) if event.get("type") in ends), None)
    return None if last is None else _responses_answer(last["response"])


# -- Anthropic messages --------------------------------------------------------------------------------------------


def _read_anthropic(body: Wire) -> HandedRequest | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    prefill = messages[-1] if messages and _is_prefill(messages[-1]) else None
    history = messages if prefill is None else messages[:-1]
    return HandedRequest(history, body.get("system"), body.get("tools") or (), body.get("model"), prefill)


def _is_prefill(message: Wire) -> bool:
    """Whether the answer is to go on with this text. A turn that was paused holds more than text."""
    content = message.get("content")
    is_text = isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(block, dict) and block.get("type") == "text" for block in content)
    )
    return message.get("role") == "assistant" and is_text


def _anthropic_answer(body: Wire) -> CompleteAnswer | None:
    content = body.get("content")
    if body.get("type") != "message" or not isinstance(content, list):
        return None
    return CompleteAnswer(({"role": "assistant", "content": content},) if content else (), body.get("usage"))


def with_prefill(message: Wire, prefill: Wire) -> Wire:
    """The answer with the text it goes on from, as its user would keep it.

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


def _assemble_anthropic(stream: Sequence[Wire]) -> CompleteAnswer | None:
    blocks: dict[int, Wire] = {}
    arguments: dict[int, str] = {}
    usage: Wire = {}
    for event in stream:
        match event.get("type"):
            case "message_start":
                usage |= event["message"].get("usage") or {}
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                if not _grow(blocks[event["index"]], event["delta"], arguments, event["index"]):
                    return None
            case "message_delta":
                usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            case "message_stop":
                for index, text in arguments.items():
                    blocks[index]["input"] = json.loads(text) if text else {}
                content = [blocks[index] for index in sorted(blocks)]
                return CompleteAnswer(({"role": "assistant", "content": content},) if content else (), usage or None)
    return None


def _grow(block: Wire, delta: Wire, arguments: dict[int, str], index: int) -> bool:
    """Take in a piece of a block; False where its kind is not known, for then the whole cannot be."""
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case _:
            return False
    return True


ENDPOINTS: dict[Provider, Endpoint] = {
    "openai-chat": Endpoint("openai-chat", "/chat/completions", _read_chat, _chat_answer, _assemble_chat),
    "openai-responses": Endpoint(
        "openai-responses", "/responses", _read_responses, _responses_answer, _assemble_responses
    ),
    "anthropic": Endpoint("anthropic", "/v1/messages", _read_anthropic, _anthropic_answer, _assemble_anthropic),
}

__all__ = [
    "ENDPOINTS",
    "BuiltRequest",
    "CompleteAnswer",
    "Endpoint",
    "HandedRequest",
    "built_request",
    "endpoint_of",
    "events",
    "plain_body",
    "read_answer",
    "with_prefill",
]
