"""Microsoft agent-framework: an agent's history in our store, and a bounded view of it for each call of the model.

    history = CtxstewardHistory(store, builder=EnvelopeBuilder("gpt-4o"))
    agent = Agent(client, "You are …", context_providers=[history])
    await agent.run("…", session=agent.create_session(session_id="chat-1"))

`CtxstewardHistory` is a `HistoryProvider`: it keeps the framework's messages unchanged (`EntryLog`), and returns all of
them. It also adds a `CtxstewardView`, a `ChatMiddleware`, to each run. Before each call of the model, in tool loops
too, the session follows the call's messages, and the call gets an envelope. This changes `context.messages` of this one
call; the framework's state, its session and its messages stay unchanged. A message that is shown whole is the
framework's own object; for any other the context records which messages it replaces. A `CtxstewardView` alone
(``Agent(…, middleware=[CtxstewardView(store)])``) leaves the history to the framework.

The session in our store has the name of the framework's session, or of `with conversation("chat-1"):` around the run.
Instructions and leading system messages are the head. Messages that other context providers add for one run are shown
and not logged. A service that keeps the history itself (`conversation_id`) gets the call unchanged; so does a client
under `require_per_service_call_history_persistence`, which loads histories after all middleware.

A view that fails falls back to the framework's own request, with a warning. A history that cannot be read or kept
raises, because the framework must not continue without it. Raises `InputError` if no session is named.
Source: `ChatContext` and `HistoryProvider` of agent-framework-core 1.23.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionTool,
    HistoryProvider,
    Message,
)

from ctxsteward.schemas import ImagePart, TextPart
from ctxsteward.schemas.message import Wire, encode_wire

from ..history.tool_groups import LogEntry
from ..layout.composition import BULLETS_LABEL
from ..layout.fragments import MessageStep, ToolResult
from ..recall.model_tools import model_tools
from ..render.units import wires_of_steps
from ..store import Store
from .conversations import ConversationName, Conversations, PreparedCall, named_conversation
from .entry_log import EntryLog, kept_open

_ROLES = frozenset(("system", "user", "assistant", "developer"))
_UNSENT = frozenset(("text_reasoning", "usage"))
"""Contents that are no part of a conversation."""


class CtxstewardHistory(HistoryProvider):
    """Keeps the messages of each session in our store, and adds the view to each run of the agent."""

    DEFAULT_SOURCE_ID: ClassVar[str] = "ctxsteward"

    def __init__(
        self,
        store: Store | Conversations,
        *,
        source_id: str = DEFAULT_SOURCE_ID,
        view: bool = True,
        model_tools: bool = False,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        **options: Any,
    ) -> None:
        """`view`: model calls get an envelope. `model_tools`: the model may search and read messages outside it.

        `options` are those of `Conversations`: builder, budgets, profile, on_error, on_call.
        """
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_outputs=store_outputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
        )
        self.conversations: Conversations = Conversations.of(store, **options)
        self._view = CtxstewardView(self.conversations, history_sources=(source_id,)) if view else None
        self._tools = model_tools
        self._logs: OrderedDict[str, EntryLog] = OrderedDict()

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Load the history; add the view and the model's tools to the run."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        if self._view is not None:
            context.extend_middleware(self.source_id, self._view)
        if self._tools:
            context.extend_tools(self.source_id, self._model_tools(_name(context.session_id)))

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return all messages of the session, as they were saved."""
        kept = await asyncio.to_thread(self._entries(session_id).read)
        return [Message.from_dict(entry) for entry in kept or ()]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append these messages to the session."""
        name = _name(session_id)
        entries = [message.to_dict() for message in messages]
        await asyncio.to_thread(self._entries(session_id).append, entries, principal=name.principal)

    def _entries(self, session_id: str | None) -> EntryLog:
        name = _name(session_id)
        id = f"{name.id}/{self.source_id}"
        open_log = partial(EntryLog, self.conversations.store, id, tenant=name.tenant)
        return kept_open(self._logs, f"{name.tenant}/{id}", open_log)

    def _model_tools(self, name: ConversationName) -> list[FunctionTool]:
        def answering(tool: str) -> Callable[..., str]:
            return lambda **arguments: self.conversations.answer_tool(name, tool, arguments) or ""

        schemas = [schema["function"] for schema in model_tools()]
        return [
            FunctionTool(
                name=schema["name"],
                description=schema["description"],
                input_model=schema["parameters"],
                func=answering(schema["name"]),
                approval_mode="never_require",
            )
            for schema in schemas
        ]


class CtxstewardView(ChatMiddleware):
    """Sends an envelope of its session with each call of the model."""

    def __init__(self, store: Store | Conversations, *, history_sources: Collection[str] = (), **options: Any) -> None:
        """`history_sources`: ids of providers whose messages are part of the conversation, like the framework's own.

        `options` are those of `Conversations`.
        """
        self.conversations: Conversations = Conversations.of(store, **options)
        self._sources = frozenset(history_sources)

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Give the call its view, and keep the answer."""
        # with a conversation's id the service keeps the history, and the call contains new messages only
        if (context.options or {}).get("conversation_id") or context.kwargs.get("conversation_id"):
            await call_next()
            return
        name = _name(None if context.session is None else context.session.session_id)
        call = await asyncio.to_thread(self._show, context, name)
        if call is None:
            await call_next()
        elif context.stream:
            context.stream_result_hooks.append(lambda response: self._finished(call, response))
            await call_next()
        else:
            await call_next()
            if isinstance(context.result, ChatResponse):
                await self._finished(call, context.result)

    def _show(self, context: ChatContext, name: ConversationName) -> PreparedCall | None:
        """Replace the call's messages with the envelope; return None, with nothing changed, if the build failed."""
        messages = list(context.messages)
        told = [message for message in messages if not self._is_aside(message)]
        aside = [message for message in messages if self._is_aside(message)]
        options = dict(context.options or {})
        try:
            handed = [(message, wire) for message in told for wire in wires_of(message)]
            wires = [wire for _, wire in handed]
            call = self.conversations.prepare(
                name,
                wires,
                system=_texts(options.get("instructions")),
                tools=tool_schemas(options.get("tools")),
                model=options.get("model") or getattr(context.client, "model", None),
            )
            if call is None:
                return None
            sources = [message for message, _ in handed[len(wires) - len(call.history) :]]
            view = ShownView(call, sources)
            shown = view.messages()
            head = told[: len(wires) - len(call.history)]  # the leading system messages
            said = _said(head, options.get("instructions"))
            unsaid = [one.text for one in call.envelope.head.fragments if one.text not in said]
            for replacement, replaced in view.replaced:
                context.record_message_replacement(replacement, replaced)
        except Exception as error:
            what = "could not build the view of this call; the agent's own request is sent"
            self.conversations.fall_back(what, error)
            return None
        if unsaid:  # our profile adds to the agent's instructions
            context.options = {**options, "instructions": "\n\n".join([*unsaid, *_texts(options.get("instructions"))])}
        context.messages = [*head, *_with_aside(view, shown, aside, told)]
        return call

    async def _finished(self, call: PreparedCall, response: ChatResponse[Any]) -> None:
        usage = response.usage_details or {}
        tokens = usage.get("input_token_count")
        try:
            answers = [wire for message in response.messages for wire in wires_of(message)]
        except Exception as error:
            self.conversations.failed("could not read the answer; the next history brings it", error)
            answers = []
        reported = None if tokens is None else {"prompt_tokens": tokens}
        await asyncio.to_thread(self.conversations.finish, call, answers, usage=reported)

    def _is_aside(self, message: Message) -> bool:
        """Return whether a context provider added the message for this run only, outside the conversation."""
        mark = message.additional_properties.get("_attribution")
        if not isinstance(mark, Mapping) or mark.get("source_id") in self._sources:
            return False
        return not str(mark.get("source_type", "")).endswith("HistoryProvider")


def _name(session_id: str | None) -> ConversationName:
    return named_conversation(None if session_id is None else ConversationName(session_id))


# -- messages to wire dicts ---------------------------------------------------------------------------------------


def wires_of(message: Message) -> list[Wire]:
    """Convert a message to wire dicts: one per tool result, and one for its other contents.

    >>> wires_of(Message("assistant", ["Look.", Content.from_function_call("c1", "look", arguments={"at": 1})]))
    [{'role': 'assistant', 'content': 'Look.', 'tool_calls': [{'id': 'c1', 'type': 'function', 'function': {...}}]}]
    """
    results = [content for content in message.contents if content.type == "function_result"]
    wires: list[Wire] = [
        {"role": "tool", "tool_call_id": result.call_id or "", "content": _result(result)} for result in results
    ]
    rest = [content for content in message.contents if content.type != "function_result"]
    if rest or not results:
        role = message.role if message.role in _ROLES else "user"
        wires.append(_spoken(role, rest))
    return wires


def _spoken(role: str, contents: Sequence[Content]) -> Wire:
    is_call = [content.type == "function_call" and role == "assistant" for content in contents]
    calls = [_call(content) for content, called in zip(contents, is_call, strict=True) if called]
    blocks = [
        _block(content)
        for content, called in zip(contents, is_call, strict=True)
        if not called and content.type not in _UNSENT
    ]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    content: Any = blocks if len(blocks) > 1 or len(texts) < len(blocks) else "".join(texts)
    wire: Wire = {"role": role, "content": content}
    return {**wire, "content": content or None, "tool_calls": calls} if calls else wire


def _call(content: Content) -> Wire:
    arguments = content.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}), ensure_ascii=False)
    return {
        "id": content.call_id or "",
        "type": "function",
        "function": {"name": content.name or "", "arguments": text},
    }


def _block(content: Content) -> Wire:
    """Convert a content to a block; a content without a wire form becomes an opaque one."""
    if content.type == "text":
        return {"type": "text", "text": content.text or ""}
    if content.type in ("data", "uri") and content.uri and (content.media_type or "").startswith("image/"):
        return {"type": "image_url", "image_url": {"url": content.uri}}
    return {"type": content.type, "value": json.loads(json.dumps(content.to_dict(), default=str))}


def _result(content: Content) -> Any:
    items = list(content.items or ())
    if items and all(item.type == "text" for item in items):
        return "\n".join(item.text or "" for item in items)
    if items:
        return [_block(item) for item in items]
    value = content.result if content.result is not None else ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _texts(instructions: Any) -> list[str]:
    """Return instructions as texts. They may be one text, several, or blocks with texts."""
    listed = [instructions] if isinstance(instructions, str | Mapping) else list(instructions or ())
    texts = [one.get("text") if isinstance(one, Mapping) else one for one in listed]
    return [text for text in texts if isinstance(text, str) and text.strip()]


def tool_schemas(tools: Any) -> list[Wire]:
    listed = tools if isinstance(tools, Iterable) and not isinstance(tools, str | Mapping) else [tools]
    return [tool.to_json_schema_spec() for tool in listed if isinstance(tool, FunctionTool)]


# -- the view's messages ------------------------------------------------------------------------------------------


class ShownPiece(NamedTuple):
    """A part of the view, made from one wire dict or from a text of ours."""

    role: str
    contents: list[Content]
    source: int | None = None
    """Index of the call's message that it came from; None for our own text, or a message that the call lacks."""
    is_whole: bool = False


class ShownView:
    """Converts the envelope of one call to messages."""

    def __init__(self, call: PreparedCall, sources: Sequence[Message]) -> None:
        """`sources`: the framework's message for each place in the history."""
        self._call = call
        self._texts = [encode_wire(wire) for wire in call.history]
        self._messages = list({id(message): message for message in sources}.values())
        numbers = {id(message): number for number, message in enumerate(self._messages)}
        self._numbers = [numbers[id(message)] for message in sources]
        self._by_text = {text: number for number, text in zip(self._numbers, self._texts, strict=True)}
        self.replaced: list[tuple[Message, list[Message]]] = []
        """Each changed message of the view, with the framework's messages that it replaces."""

    def messages(self) -> list[Message]:
        pieces = [
            piece
            for fragment in self._call.envelope.dynamic.fragments
            for piece in wires_of_steps(fragment, self._own_text, self._message, self._results)
        ]
        shown: list[Message] = []
        bullets: Message | None = None
        # consecutive pieces of one message are joined to one message again; others stand alone
        keyed = [((-1, piece.source) if piece.source is not None else (at, None)) for at, piece in enumerate(pieces)]
        for (_, number), group in groupby(zip(keyed, pieces, strict=True), key=itemgetter(0)):
            message = self._as_message(number, [piece for _, piece in group])
            shown.append(message)
            if bullets is None and number is None and f" {BULLETS_LABEL}>" in message.text.partition("\n")[0]:
                bullets = message
        seen = {piece.source for piece in pieces}
        hidden = [message for number, message in enumerate(self._messages) if number not in seen]
        if bullets is not None and hidden:
            self.replaced.append((bullets, hidden))
        return shown

    def _as_message(self, number: int | None, pieces: list[ShownPiece]) -> Message:
        contents = [content for piece in pieces for content in piece.contents]
        if number is None:
            return Message(pieces[0].role, contents)
        source = self._messages[number]
        if all(piece.is_whole for piece in pieces) and len(pieces) == self._numbers.count(number):
            return source
        other = copy.copy(source)
        other.contents = contents
        self.replaced.append((other, [source]))
        return other

    def _source(self, entry: LogEntry) -> int | None:
        """Return the index of the framework's message that this entry of the log came from."""
        at, stored = entry.ordinal - 1, entry.event.wire
        if at < len(self._texts) and self._texts[at] == stored:
            return self._numbers[at]
        return self._by_text.get(stored)

    def _own_text(self, text: str) -> list[ShownPiece]:
        return [ShownPiece("user", [Content.from_text(text)])]

    def _message(self, step: MessageStep) -> list[ShownPiece]:
        message, number = step.entry.message, self._source(step.entry)
        own = None if number is None else self._messages[number]
        is_changed = step.aliases or step.arguments or step.without_results
        if own is not None and not is_changed and encode_wire(message.wire) == step.entry.event.wire:
            said = [content for content in own.contents if content.type != "function_result"]
            return [ShownPiece(message.role, said, number, is_whole=True)]
        contents = [content for part in message.parts if (content := _content(part)) is not None]
        occurrences = [] if own is None else [one for one in own.contents if one.type == "function_call"]
        for index, (id, name, arguments) in enumerate(step.calls):
            occurrence = occurrences[index].id if index < len(occurrences) else None
            contents.append(Content.from_function_call(id, name, arguments=arguments, id=occurrence))
        return [ShownPiece(message.role, contents, number)] if contents else []

    def _results(self, answers: Sequence[ToolResult]) -> list[ShownPiece]:
        return [self._answer(answer) for answer in answers]

    def _answer(self, answer: ToolResult) -> ShownPiece:
        number = None if answer.entry is None else self._source(answer.entry)
        theirs = () if number is None else self._messages[number].contents
        own = next((c for c in theirs if c.type == "function_result" and c.call_id == answer.call_id), None)
        if own is not None and answer.verbatim:
            return ShownPiece("tool", [own], number, is_whole=True)
        items = [Content.from_text(answer.text), *filter(None, map(_content, answer.images))]
        occurrence = None if own is None else own.id
        result = Content.from_function_result(answer.call_id, id=occurrence, result=items)
        return ShownPiece("tool", [result], number)


def _content(part: object) -> Content | None:
    if isinstance(part, TextPart):
        return Content.from_text(part.text)
    if isinstance(part, ImagePart):
        url = part.url or (part.data and f"data:{part.media_type or 'image/png'};base64,{part.data}")
        return Content.from_uri(url, media_type=part.media_type or "image/png") if url else None
    return None


def _said(head: Sequence[Message], instructions: Any) -> list[str]:
    blocks = [content.text for message in head for content in message.contents if content.type == "text"]
    return [*_texts(instructions), *(text for text in blocks if text)]


def _with_aside(view: ShownView, shown: list[Message], aside: list[Message], told: Sequence[Message]) -> list[Message]:
    """Insert the messages that other providers added for this run, before the run's input."""
    first = next((message for message in told if "_attribution" not in message.additional_properties), None)
    stands = [first, *(replacement for replacement, replaced in view.replaced if first in replaced[:1])]
    at = next((at for at, message in enumerate(shown) if any(message is one for one in stands)), len(shown))
    return [*shown[:at], *aside, *shown[at:]]


__all__ = ["CtxstewardHistory", "CtxstewardView", "ShownView", "wires_of"]
