"""pydantic-ai: a capability that gives the model a bounded view of the whole history.

    agent = Agent("openai:gpt-4o", capabilities=[Ctxsteward(store)])
    agent.run_sync("…", message_history=history, conversation_id="chat-1")

The message history stays unchanged. The view is made for each attempt at a request (`prepare_model_request`) and is
never persisted. Parts that are shown whole are the history's own objects; consecutive requests are joined to one, as in
pydantic-ai itself. A message that a later history no longer has is rebuilt from the log.

In the log a response is an OpenAI chat dict with Anthropic's block for thinking; a request is one dict for each tool
return, user prompt and retry. Images are the only media with a wire form; other content is an opaque block, verbatim.
Data without a wire form (ids, signatures and details of a provider, changes of tools and instructions, later system
prompts) is in the field ``pydantic_ai``, which no provider is sent. Changes of tools and instructions, and system
prompts, stay in the view after their message has left it, because they are the operator's, and small.

The session is that of `conversation_id`, which pydantic-ai takes from the run's argument or from the history.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, NamedTuple

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset

from ctxsteward.schemas.message import Wire, encode_wire

from ..layout.fragments import MessageStep, ToolResult
from ..recall.model_tools import model_tools as tool_schemas
from ..render.units import wires_of_steps
from .conversations import (
    ConversationName,
    Conversations,
    PreparedCall,
    SessionSource,
    checked_conversation,
    named_conversation,
)

FIELD = "pydantic_ai"
"""Field of a wire dict for pydantic-ai's other data."""
_SAID = frozenset(("content", "args", "tool_name", "tool_call_id", "part_kind", "timestamp", "metadata"))
"""Fields of a part that its wire contains, or that no model is shown."""
_NOTHING: tuple[Any, ...] = (None, [], {}, "success")


_KEPT_WHOLE = frozenset(("retry-prompt", "retry-feedback", "speech", "compaction"))
"""Kinds of parts that a wire dict only paraphrases."""


class WiredParts(NamedTuple):
    """A wire dict, and the parts of the history that it represents."""

    wire: Wire
    message: ModelMessage
    parts: Sequence[Any]
    """The part with the wire first, then those without one."""


class Ctxsteward(AbstractCapability[Any]):
    """Sends an envelope of its conversation with each request of an agent's model."""

    def __init__(
        self, store: SessionSource, *, session: str | None = None, model_tools: bool = False, **options: Any
    ) -> None:
        """`session` names one session for all runs. `model_tools`: the model may search and read older messages.

        `options` are those of `Conversations`: builder, budgets, profile, on_error, on_call.
        """
        self.conversations: Conversations = Conversations.of(store, **options)
        self._session = None if session is None else checked_conversation(ConversationName(session)).id
        self._has_tools = model_tools
        self._call: PreparedCall | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None, because a store cannot be part of a spec."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> Ctxsteward:
        """Return a copy for each run, because it holds the call under way."""
        own = copy.copy(self)
        own._call = None
        return own

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Return the bounded view, for this attempt alone."""
        name = self._name(ctx)
        self._call, bounded = await asyncio.to_thread(self._bounded, name, request_context)
        return request_context if bounded is None else replace(request_context, messages=bounded)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Keep the answer, and learn from its usage."""
        call, self._call = self._call, None
        if call is not None:
            await asyncio.to_thread(self._finish, call, response)
        return response

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the model's two tools, if enabled."""
        return FunctionToolset([self._tool(one["function"]) for one in tool_schemas()]) if self._has_tools else None

    def _name(self, ctx: RunContext[Any]) -> ConversationName:
        id = self._session or ctx.conversation_id
        return named_conversation(None if id is None else ConversationName(id))

    def _bounded(
        self, name: ConversationName, context: ModelRequestContext
    ) -> tuple[PreparedCall | None, list[ModelMessage] | None]:
        try:
            system, told = wired(context.messages)
            parameters = context.model_request_parameters
            instructions = [part.content for part in parameters.instruction_parts or ()]
            call = self.conversations.prepare(
                name,
                [one.wire for one in told],
                model=context.model.model_name,
                system=[*(part.content for part in system), *instructions],
                tools=[
                    {
                        "type": "function",
                        "function": {
                            "name": tool.name,
                            "description": tool.description or "",
                            "parameters": tool.parameters_json_schema,
                        },
                    }
                    for tool in (*parameters.function_tools, *parameters.output_tools)
                ],
            )
            if call is None:
                return None, None
            known = {part.content: part for part in system}
            heads = [one.text for one in call.envelope.head.fragments if one.text not in instructions]
            return call, messages_of(call, told, [known.get(text) or SystemPromptPart(text) for text in heads])
        except Exception as error:
            self.conversations.fall_back("could not build the view of this call; the whole history is sent", error)
            return None, None

    def _finish(self, call: PreparedCall, response: ModelResponse) -> None:
        try:
            answers = [response_wire(response)]
        except Exception as error:
            self.conversations.failed("could not read the answer; the next history brings it", error)
            answers = []
        read = response.usage.input_tokens
        self.conversations.finish(call, answers, usage={"prompt_tokens": read} if read else None)

    def _tool(self, function: Wire) -> Tool[Any]:
        def answer(ctx: RunContext[Any], **arguments: Any) -> str:
            return self.conversations.answer_tool(self._name(ctx), function["name"], arguments) or ""

        return Tool.from_schema(
            answer, function["name"], function["description"], function["parameters"], takes_ctx=True
        )


# -- history to wire dicts ---------------------------------------------------------------------------------------


def wired(messages: Iterable[ModelMessage]) -> tuple[list[SystemPromptPart], list[WiredParts]]:
    """Return the system prompts that open a history, and the rest of it as wire dicts."""
    system: list[SystemPromptPart] = []
    told: list[WiredParts] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            told.append(WiredParts(response_wire(message), message, message.parts))
            continue
        groups: list[list[Any]] = []
        beside: list[Any] = []
        for part in message.parts:
            if isinstance(part, SystemPromptPart) and not told and not groups and not beside:
                system.append(part)
            elif _request_wire(part) is not None:
                groups.append([part, *beside])
                beside = []
            elif groups:
                groups[-1].append(part)
            else:
                beside.append(part)
        told += [
            WiredParts(_grouped_wire(group), message, group) for group in [*groups, *([[*beside]] if beside else ())]
        ]
    return system, told


def _grouped_wire(parts: list[Any]) -> Wire:
    own, *beside = parts
    wire = _request_wire(own)
    if wire is None:
        return {"role": "user", "content": [{"type": part.part_kind, FIELD: _dump("request", part)} for part in parts]}
    left = _dump("request", own) if own.part_kind in _KEPT_WHOLE else _unsaid("request", own)
    if left is None and not beside:
        return wire
    kept = [left or {"part_kind": own.part_kind}, *(_dump("request", part) for part in beside)]
    return {**wire, FIELD: {"parts": kept}}


def _request_wire(part: Any) -> Wire | None:
    """Convert a part of a request to a wire dict; None if it has no wire form."""
    if isinstance(part, ToolReturnPart):
        files = [_block(file) for file in part.files]
        text = part.model_response_str(wrap_if_error=False)
        content: Any = [*([{"type": "text", "text": text}] if text else ()), *files] if files else text
        return {"role": "tool", "tool_call_id": part.tool_call_id, "name": part.tool_name, "content": content}
    if isinstance(part, UserPromptPart):
        if isinstance(part.content, str):
            return {"role": "user", "content": part.content}
        return {"role": "user", "content": [_block(item) for item in part.content]}
    if part.part_kind == "retry-prompt" and part.tool_name:  # in versions before 2.0 this is a tool return
        text = part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "name": part.tool_name, "content": text}
    if part.part_kind in ("retry-prompt", "retry-feedback"):
        return {"role": "user", "content": part.model_response()}
    if part.part_kind in ("speech", "compaction"):
        return {"role": "user", "content": getattr(part, "transcript", None) or getattr(part, "content", None) or ""}
    return None


def _block(item: Any) -> Wire:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, BinaryContent) and item.is_image:
        return {"type": "image_url", "image_url": {"url": item.data_uri}}
    if item.kind == "text-content":
        return {"type": "text", "text": item.content}
    return {"type": item.kind, FIELD: _dump("request", UserPromptPart([item]))["content"][0]}


def response_wire(response: ModelResponse) -> Wire:
    """Convert a response to one assistant message.

    >>> response_wire(ModelResponse([TextPart("Noon."), ToolCallPart("now", {}, "c1")]))["content"]
    [{'type': 'text', 'text': 'Noon.'}]
    """
    blocks: list[Wire] = []
    calls: list[Wire] = []
    left: list[Wire | None] = []
    for part in response.parts:
        left.append(None)
        if isinstance(part, TextPart):
            blocks.append({"type": "text", "text": part.content})
        elif isinstance(part, ThinkingPart):
            blocks.append({"type": "thinking", "thinking": part.content})
        elif isinstance(part, ToolCallPart):
            arguments = part.args if isinstance(part.args, str) and part.args else part.args_as_json_str()
            function = {"name": part.tool_name, "arguments": arguments}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
        else:
            blocks.append({"type": part.part_kind, FIELD: _dump("response", part)})
            continue
        left[-1] = _unsaid("response", part)
    wire: Wire = {"role": "assistant", "content": blocks}
    if calls:
        wire["tool_calls"] = calls
    if any(left):
        keys = ("provider_name", "provider_url", "canonical_system", "model_name")
        beside = {key: value for key in keys if (value := getattr(response, key))}
        kept = [one or {"part_kind": part.part_kind} for one, part in zip(left, response.parts, strict=True)]
        wire[FIELD] = {"parts": kept, **beside}
    return wire


def _unsaid(kind: str, part: Any) -> Wire | None:
    """Return the fields of a part that its wire lacks; None if it lacks none."""
    kind_of_part: Any = type(part)
    names = [name for name in _fields(kind_of_part) if getattr(part, name) not in _NOTHING]
    if not names:
        return None
    dump = _dump(kind, part)
    return {"part_kind": part.part_kind, **{name: dump[name] for name in names if name in dump}}


@cache
def _fields(part: Any) -> tuple[str, ...]:
    """Return the names of a part's fields that its wire lacks."""
    return tuple(one.name for one in fields(part) if one.name not in _SAID)


def _dump(kind: str, part: Any) -> Wire:
    message = ModelRequest([part]) if kind == "request" else ModelResponse([part])
    dumped: Wire = ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]["parts"][0]
    return dumped


# -- wire dicts to history ---------------------------------------------------------------------------------------


class ViewPiece(NamedTuple):
    """Parts of one request or response, and the message they come from."""

    parts: Sequence[Any]
    message: ModelMessage | None = None
    is_response: bool = False


def messages_of(
    call: PreparedCall, told: Sequence[WiredParts], system: Sequence[SystemPromptPart] = ()
) -> list[ModelMessage]:
    """Return the view of a call under these system prompts; `told` is the history it was made from."""
    sources = {encode_wire(one.wire): one for one in told}
    shown: set[str] = set()

    def say(step: MessageStep) -> list[ViewPiece]:
        stored = step.entry.event.wire
        shown.add(stored)
        own = sources.get(stored)
        is_response = step.entry.message.role == "assistant"
        wire = step.entry.message.wire
        if step.aliases or step.arguments or step.without_results or step.entry.is_shortened:
            return [ViewPiece(parts_from(_altered(wire), step.calls), None, is_response)]
        if own is None:
            return [ViewPiece(parts_from(wire, step.calls), None, is_response)]
        return [ViewPiece(own.parts, own.message, is_response)]

    def results(answers: Sequence[ToolResult]) -> list[ViewPiece]:
        pieces = []
        for answer in answers:
            own = None if answer.entry is None else sources.get(answer.entry.event.wire)
            if answer.entry is not None:
                shown.add(answer.entry.event.wire)
            pieces.append(_result(answer, own))
        return pieces

    pieces = [
        piece
        for fragment in call.envelope.dynamic.fragments
        for piece in wires_of_steps(fragment, lambda text: [ViewPiece([UserPromptPart(text)])], say, results)
    ]
    kept = [part for one in told if encode_wire(one.wire) not in shown for part in _governing(one)]
    return _joined([ViewPiece([*system, *kept]), *pieces])


def _altered(wire: Wire) -> Wire:
    """Return the wire without fields valid in the provider's own answer only: ids, signatures, reasoning."""
    content = wire.get("content")
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, str) or block.get("type") != "thinking"]
    return {**{key: value for key, value in wire.items() if key != FIELD}, "content": content}


def _governing(one: WiredParts) -> list[Any]:
    """Return the parts that stay in force after their message has left the window."""
    if isinstance(one.message, ModelResponse):
        return []
    parts = one.parts if _request_wire(one.parts[0]) is None else one.parts[1:]
    return [part for part in parts if getattr(part, "scope", "conversation") == "conversation"]


def _joined(pieces: Sequence[ViewPiece]) -> list[ModelMessage]:
    """Join pieces to messages in which requests and responses alternate."""
    messages: list[ModelMessage] = []
    waiting: list[Any] = []
    origin: ModelMessage | None = None
    for piece in (*pieces, None):
        if piece is not None and not piece.is_response:
            waiting += piece.parts
            origin = piece.message or origin
            continue
        if waiting:
            request = origin if isinstance(origin, ModelRequest) else ModelRequest([])
            is_whole = list(map(id, request.parts)) == list(map(id, waiting))
            messages.append(request if is_whole else replace(request, parts=waiting))
            waiting, origin = [], None
        if piece is not None:
            own = piece.message
            messages.append(own if isinstance(own, ModelResponse) else ModelResponse(list(piece.parts)))
    return messages


def _result(answer: ToolResult, own: WiredParts | None) -> ViewPiece:
    outcome: Any
    if own is not None and answer.verbatim:
        return ViewPiece(own.parts, own.message)
    if own is not None:
        part, *beside = own.parts
        outcome = getattr(part, "outcome", "retried")
        return ViewPiece(
            [ToolReturnPart(answer.name, answer.text, answer.call_id, outcome=outcome), *beside], own.message
        )
    if answer.entry is not None and answer.verbatim:
        return ViewPiece(parts_from(answer.entry.message.wire))
    outcome = "interrupted" if answer.entry is None else "success"
    return ViewPiece([ToolReturnPart(answer.name, answer.text, answer.call_id, outcome=outcome)])


def parts_from(wire: Wire, calls: Sequence[tuple[str, str, str]] = ()) -> list[Any]:
    """Convert a wire dict with these calls to parts."""
    beside: Wire = dict(wire.get(FIELD, {}))
    kept = beside.pop("parts", None)
    content = wire.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if wire["role"] == "assistant":
        said = [_dump_of(block) for block in blocks]
        said += [
            {"part_kind": "tool-call", "tool_name": name, "args": arguments, "tool_call_id": id}
            for id, name, arguments in calls
        ]
        return list(_validated({"kind": "response", "parts": _in_order(said, kept or []), **beside}).parts)
    items = [_item(block) for block in blocks]
    plain: Any = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    own: Wire = {"part_kind": "user-prompt", "content": plain or ""}
    if wire["role"] == "tool":
        own = {
            "part_kind": "tool-return",
            "tool_name": wire.get("name") or "",
            "content": plain or "",
            "tool_call_id": wire.get("tool_call_id", ""),
        }
    first, *others = kept or [{}]
    if kept is None and blocks and all(FIELD in block and "part_kind" in block[FIELD] for block in blocks):
        return list(_validated({"kind": "request", "parts": [block[FIELD] for block in blocks]}).parts)
    return list(_validated({"kind": "request", "parts": [{**own, **first}, *others]}).parts)


def _in_order(said: list[Wire], kept: Sequence[Wire]) -> list[Wire]:
    """Return the parts of the wire with the kept fields of each, in their original order."""
    left = list(said)
    dumps: list[Wire] = []
    for beside in kept:
        own = next((one for one in left if one["part_kind"] == beside["part_kind"]), None)
        if own is not None:
            left.remove(own)
            dumps.append({**own, **beside})
    return dumps + left


def _dump_of(block: Any) -> Wire:
    if isinstance(block, str) or "text" in block:
        return {"part_kind": "text", "content": block if isinstance(block, str) else block["text"]}
    if block.get("type") == "thinking":
        return {"part_kind": "thinking", "content": block["thinking"]}
    return block.get(FIELD) or {"part_kind": "text", "content": str(block)}


def _item(block: Any) -> Any:
    if isinstance(block, str) or "text" in block:
        return block if isinstance(block, str) else block["text"]
    url = block["image_url"]["url"] if block.get("type") == "image_url" else ""
    if url.startswith("data:"):
        return BinaryContent.from_data_uri(url)
    return ImageUrl(url) if url else block.get(FIELD) or str(block)


def _validated(message: Wire) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_python([message])[0]


__all__ = ["Ctxsteward", "messages_of", "parts_from", "response_wire", "wired"]
