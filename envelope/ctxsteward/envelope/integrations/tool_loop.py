"""`Turn.ask`: call the model until it replies, run the tools that it calls, and yield its text as it arrives.

    with chat.turn("Where is order 17?") as turn:
        for text in turn.ask(client.chat.completions.create, {"look_up": look_up}, stream=True):
            print(text, end="", flush=True)

`create` is called as ``create(**turn.request, **arguments)``. It returns a reply, whose text is yielded whole, or a
stream. A tool gets the call's arguments by keyword; `search_context` and `resolve_reference` run without being named. A
call that the model got wrong (no such tool, no such argument) is answered with an error that the model can read. What a
tool raises ends the turn: nothing of it is kept but the user's message.

With ``async for``, `create` is an async client's, a tool may be async, and other tools run in threads.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import InputError, Message, ToolCallPart
from ctxsteward.schemas.message import Wire

from ..recall.model_tools import answer_call
from .answers import is_stream, read_reply, text_of_chunk

if TYPE_CHECKING:
    from .chat import Turn


class ReplyText:
    """The text of a turn's replies, for one `for` or `async for`."""

    def __init__(
        self,
        turn: Turn,
        create: Callable[..., Any],
        tools: Mapping[str, Callable[..., object]],
        max_calls: int,
        arguments: Wire,
    ) -> None:
        self._turn, self._create, self._tools = turn, create, tools
        self._max_calls, self._arguments = max_calls, arguments

    def __iter__(self) -> Iterator[str]:
        turn = self._turn
        if turn.is_finished:
            yield turn.reply.text
        while not turn.is_finished:
            sent = self._next_request()
            reply = _in_sync("this client", self._create(**sent))
            if is_stream(reply):
                for chunk in turn.stream(reply, sent=sent):
                    if text := text_of_chunk(turn.chat.provider, chunk):
                        yield text
            else:
                text = self._text_of(reply)
                turn.finish(reply, sent=sent)
                if text:
                    yield text
            for call in turn.calls:
                turn.answer(call, _in_sync(f"tool {call.name!r}", self._run(call)))

    async def __aiter__(self) -> AsyncIterator[str]:
        turn = self._turn
        if turn.is_finished:
            yield turn.reply.text
        while not turn.is_finished:
            sent = await asyncio.to_thread(self._next_request)
            reply = self._create(**sent)
            if not inspect.isawaitable(reply):
                raise InputError("this client is not async; write `for text in turn.ask(…)`, or pass an async client")
            reply = await reply
            if is_stream(reply):
                async for chunk in turn.stream(reply, sent=sent):
                    if text := text_of_chunk(turn.chat.provider, chunk):
                        yield text
            else:
                text = self._text_of(reply)
                await asyncio.to_thread(turn.finish, reply, sent=sent)
                if text:
                    yield text
            for call in turn.calls:
                result = await asyncio.to_thread(self._run, call)
                turn.answer(call, await result if isinstance(result, Awaitable) else result)

    def _next_request(self) -> Wire:
        turn = self._turn
        if len(turn.model_calls) > self._max_calls:
            raise InputError(
                f"the model still calls tools after {self._max_calls} calls in one turn; raise max_calls, or look at "
                "what the tools answer"
            )
        return {**turn.request, **self._arguments}

    def _text_of(self, reply: object) -> str:
        messages = read_reply(self._turn.chat.provider, reply).messages
        return "".join(Message.from_wire(message).text for message in messages)

    def _run(self, call: ToolCallPart) -> object:
        """Run the tool that a call names; return a result, or an error for the model to read."""
        tool = self._tools.get(call.name)
        if tool is None:
            ours = answer_call(self._turn.chat.session, call.name, call.arguments)
            if ours is not None:
                return ours
            return f"error: there is no tool {call.name!r:.60}; there are: {', '.join(self._tools) or 'none'}"
        try:
            arguments = json.loads(call.arguments or "{}")
            inspect.signature(tool).bind(**arguments)
        except (TypeError, ValueError, RecursionError) as error:
            return f"error: the arguments do not fit: {error}"
        return tool(**arguments)


def _in_sync(what: str, value: object) -> object:
    """Return a value that is no coroutine; raise `InputError` for one."""
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()  # else Python warns that it was never awaited
    raise InputError(f"{what} is async; write `async for text in turn.ask(…)`")


__all__ = ["ReplyText"]
