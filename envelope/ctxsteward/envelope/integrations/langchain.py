"""LangChain: middleware of `create_agent` (and deepagents) that gives the model a bounded view of the whole history.

    agent = create_agent("openai:gpt-4o", tools, checkpointer=…, middleware=[CtxstewardMiddleware(store)])

The state keeps every message unchanged; `request.override` passes the view to the model. A message that is shown whole
is the state's own object; a shortened one is a copy. A message that the state no longer has (because another
middleware summarized it) is rebuilt from the log, with its content blocks unchanged.

In the log a message is an OpenAI chat dict. Its content blocks are verbatim, thinking and signatures included; a block
without a wire form is an opaque block of type ``langchain``. Other data that a provider's adapter needs
(`additional_kwargs`, and the provider that wrote the message) is in the field ``langchain``, which no provider is sent.
Ids and usage stay LangChain's own.

The session is the thread's (`configurable.thread_id`). A named agent has its own, because sub-agents share their
caller's thread. Raises `InputError` if neither a thread nor a session is named.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from ctxsteward.schemas import InvalidMessage, Message
from ctxsteward.schemas.message import Wire, encode_wire

from ..layout.fragments import MessageStep, ToolResult
from ..recall.model_tools import model_tools as tool_schemas
from ..render.openai_chat import image_url
from ..render.units import wires_of_steps
from .conversations import (
    ConversationName,
    Conversations,
    PreparedCall,
    SessionSource,
    checked_conversation,
    named_conversation,
)

FIELD = "langchain"
"""Field of a wire dict for LangChain's other data; also the type of a block without a wire form."""
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_CALL_BLOCKS = frozenset(("tool_use", "tool_call", "function_call"))
_REASONING = frozenset(("thinking", "redacted_thinking", "reasoning"))
_ADAPTER_METADATA = ("model_provider", "output_version")


class CtxstewardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends an envelope of the agent's thread with each model call."""

    def __init__(
        self, store: SessionSource, *, session: str | None = None, model_tools: bool = False, **options: Any
    ) -> None:
        """`session` names one session for all calls. `model_tools`: the model may search and read older messages.

        `options` are those of `Conversations`: builder, budgets, profile, on_error, on_call.
        """
        self.conversations: Conversations = Conversations.of(store, **options)
        self._session = None if session is None else checked_conversation(ConversationName(session)).id
        self.tools: Sequence[Any] = [self._tool(schema["function"]) for schema in tool_schemas()] if model_tools else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Return the model's answer to the bounded view."""
        bounded, call = self._bounded(request, self._name())
        response = handler(bounded)
        self._finish(call, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Do the same as `wrap_model_call` for async agents; the build runs in a thread."""
        bounded, call = await asyncio.to_thread(self._bounded, request, self._name())
        response = await handler(bounded)
        await asyncio.to_thread(self._finish, call, response)
        return response

    def _name(self) -> ConversationName:
        config = get_config()
        thread, agent = config.get("configurable", {}).get("thread_id"), config.get("metadata", {}).get("lc_agent_name")
        of_thread = None if thread is None else f"{thread}-{agent}" if agent else str(thread)
        id = self._session or of_thread
        return named_conversation(None if id is None else ConversationName(id))

    def _bounded(
        self, request: ModelRequest[Any], name: ConversationName
    ) -> tuple[ModelRequest[Any], PreparedCall | None]:
        """Return the request for the model, and its call; None and the agent's own request if the build failed."""
        try:
            wires = [wire_of(message) for message in request.messages]
            todos = request.state.get("todos") or ()
            notes = {"todos": "\n".join(f"[{todo.get('status')}] {todo.get('content')}" for todo in todos)}
            call = self.conversations.prepare(
                name,
                wires,
                system=_head_texts(request.system_message),
                notes=notes,
                tools=[convert_to_openai_tool(tool) if not isinstance(tool, dict) else tool for tool in request.tools],
                model=getattr(request.model, "model_name", None) or getattr(request.model, "model", None),
            )
            if call is None:
                return request, None
            sources = {encode_wire(wire): message for wire, message in zip(wires, request.messages, strict=True)}
            head = _system_message(request.system_message, [one.text for one in call.envelope.head.fragments])
            return request.override(messages=messages_of(call, sources), system_message=head), call
        except Exception as error:
            what = "could not build the view of this call; the agent's own request is sent"
            self.conversations.fall_back(what, error)
            return request, None

    def _finish(self, call: PreparedCall | None, response: Any) -> None:
        if call is None:
            return
        try:
            response = getattr(response, "model_response", response)
            answers: list[Any] = list(response.result) if isinstance(response, ModelResponse) else [response]
            told = next((one.usage_metadata for one in answers if getattr(one, "usage_metadata", None)), None)
            usage = None if told is None else {"prompt_tokens": told["input_tokens"]}
            self.conversations.finish(call, [wire_of(message) for message in answers], usage=usage)
        except Exception as error:
            self.conversations.failed("could not read the answer; the next history brings it", error)

    def _tool(self, function: Wire) -> StructuredTool:
        def answer(**arguments: Any) -> str:
            return self.conversations.answer_tool(self._name(), function["name"], arguments) or ""

        return StructuredTool(
            name=function["name"], description=function["description"], args_schema=function["parameters"], func=answer
        )


# -- messages to wire dicts --------------------------------------------------------------------------------------


def wire_of(message: BaseMessage) -> Wire:
    """Convert a message to a wire dict.

    >>> wire_of(AIMessage("", tool_calls=[{"id": "c1", "name": "look", "args": {"at": 1}}]))["tool_calls"]
    [{'id': 'c1', 'type': 'function', 'function': {'name': 'look', 'arguments': '{"at": 1}'}}]
    """
    role = _ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")
    wire: Wire = {"role": role}
    beside: Wire = {}
    if isinstance(message, ToolMessage):
        wire["tool_call_id"] = message.tool_call_id
        beside["status"] = message.status if message.status != "success" else None
    if message.name is not None:
        wire["name"] = message.name
    calls = _calls(message) if isinstance(message, AIMessage) else []
    wire["content"] = _content(message.content, role, {call["id"] for call in calls})
    if calls:
        wire["tool_calls"] = calls
    known = ("tool_calls", "function_call") if calls else ()
    beside["additional_kwargs"] = {key: value for key, value in message.additional_kwargs.items() if key not in known}
    beside["response_metadata"] = {
        key: message.response_metadata[key] for key in _ADAPTER_METADATA if key in message.response_metadata
    }
    said = {key: _plain(value) for key, value in beside.items() if value}
    return {**wire, FIELD: said} if said else wire


def _calls(message: AIMessage) -> list[Wire]:
    calls: list[tuple[str | None, str | None, str]] = [
        (call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls
    ]
    calls += [(call.get("id"), call.get("name"), call.get("args") or "") for call in message.invalid_tool_calls]
    return [
        {"id": id or "", "type": "function", "function": {"name": name or "", "arguments": arguments}}
        for id, name, arguments in calls
    ]


def _content(content: str | list[str | dict[Any, Any]], role: str, called: set[str]) -> str | list[Any]:
    if isinstance(content, str):
        return content
    return [_block(block, role) for block in content if not _is_call(block, called)]


def _is_call(block: Any, called: set[str]) -> bool:
    """Return whether a block repeats a call of `tool_calls`."""
    if not isinstance(block, dict) or block.get("type") not in _CALL_BLOCKS:
        return False
    return bool({block.get("id"), block.get("call_id")} & called)


def _block(block: Any, role: str) -> Any:
    if isinstance(block, dict) and block.get("type") == "image" and (block.get("url") or block.get("base64")):
        media = block.get("mime_type") or "image/png"
        url = block.get("url") or f"data:{media};base64,{block['base64']}"
        return {"type": "image_url", "image_url": {"url": url}}
    try:
        Message.from_wire({"role": role, "content": [block], "tool_call_id": ""})
        return block
    except InvalidMessage:
        return {"type": FIELD, "value": _plain(block)}


def _plain(value: Any) -> Any:
    """Return a value as JSON; values without a JSON form become text."""
    return json.loads(json.dumps(value, default=str))


# -- wire dicts to messages --------------------------------------------------------------------------------------


def messages_of(call: PreparedCall, sources: Mapping[str, BaseMessage]) -> list[Any]:
    """Return the view of a call; `sources` are the agent's own messages, by the text of their wire dict."""

    def say(step: MessageStep) -> list[Any]:
        wire = step.entry.message.wire
        if step.aliases or step.arguments or step.without_results or step.entry.is_shortened:
            return [message_from(_altered(wire), step.calls)]
        return [sources.get(step.entry.event.wire) or message_from(wire, step.calls)]

    def results(answers: Sequence[ToolResult]) -> list[Any]:
        return [_tool_message(answer, sources) for answer in answers]

    return [
        message
        for fragment in call.envelope.dynamic.fragments
        for message in wires_of_steps(fragment, lambda text: [HumanMessage(text)], say, results)
    ]


def _altered(wire: Wire) -> Wire:
    """Return the wire without fields that are valid in the provider's own answer only: its reasoning and ids."""
    content = wire.get("content")
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, str) or block.get("type") not in _REASONING]
    return {**{key: value for key, value in wire.items() if key != FIELD}, "content": content}


def message_from(wire: Wire, calls: Sequence[tuple[str, str, str]] = ()) -> BaseMessage:
    """Convert a wire dict to a message with these calls."""
    content = wire.get("content") or ""
    if isinstance(content, list):
        content = [
            block["value"] if isinstance(block, dict) and block.get("type") == FIELD else block for block in content
        ]
    beside: Wire = {"name": wire.get("name"), **wire.get(FIELD, {})}
    match wire["role"]:
        case "assistant":
            good: list[Wire] = []
            bad: list[Wire] = []
            for id, name, arguments in calls:
                try:
                    good.append({"id": id, "name": name, "args": json.loads(arguments or "{}"), "type": "tool_call"})
                except ValueError:
                    bad.append({"id": id, "name": name, "args": arguments, "error": None, "type": "invalid_tool_call"})
            return AIMessage(content=content, tool_calls=good, invalid_tool_calls=bad, **beside)
        case "tool":
            return ToolMessage(content=content, tool_call_id=wire.get("tool_call_id", ""), **beside)
        case "system" | "developer":
            return SystemMessage(content=content, **beside)
        case _:
            return HumanMessage(content=content, **beside)


def _tool_message(answer: ToolResult, sources: Mapping[str, BaseMessage]) -> BaseMessage:
    if answer.entry is None:
        return ToolMessage(answer.text, tool_call_id=answer.call_id, name=answer.name or None, status="error")
    own = sources.get(answer.entry.event.wire)
    if answer.verbatim and own is not None:
        return own
    message = own or message_from(answer.entry.message.wire)
    if answer.verbatim:
        return message
    images = [{"type": "image_url", "image_url": {"url": url}} for one in answer.images if (url := image_url(one))]
    content: Any = [{"type": "text", "text": answer.text}, *images] if images else answer.text
    return message.model_copy(update={"content": content, "tool_call_id": answer.call_id})


def _head_texts(message: SystemMessage | None) -> list[str]:
    if message is None:
        return []
    if isinstance(message.content, str):
        return [message.content] if message.content else []
    return [
        block if isinstance(block, str) else block["text"]
        for block in message.content
        if isinstance(block, str) or isinstance(block.get("text"), str)
    ]


def _system_message(own: SystemMessage | None, texts: list[str]) -> SystemMessage | None:
    """Return the agent's own message if it contains the whole head; else put the rest of our profile before it."""
    theirs = _head_texts(own)
    ours = [text for text in texts if text not in theirs]
    if not ours:
        return own
    blocks: list[Any] = [{"type": "text", "text": text} for text in ours]
    kept = [] if own is None else [own.content] if isinstance(own.content, str) else list(own.content)
    blocks += [{"type": "text", "text": block} if isinstance(block, str) else block for block in kept]
    if all(set(block) == {"type", "text"} for block in blocks):
        return SystemMessage("\n\n".join(block["text"] for block in blocks))
    return SystemMessage(content=blocks)


__all__ = ["CtxstewardMiddleware", "message_from", "messages_of", "wire_of"]
