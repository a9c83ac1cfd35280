"""`Store.chat`: a chat, turn by turn, for an application that calls the model itself.

    chat = store.chat("trip-42", model="gpt-4o", system="You plan trips.")
    with chat.turn("And which hotel did we choose?") as turn:
        reply = client.chat.completions.create(**turn.request)
        turn.finish(reply)
    turn.lost, turn.recalled, turn.cost, chat["§5"]

The user's message is in the log when the block begins. `finish` appends the reply, corrects the token estimates by its
usage, and compares the request with the envelope. If the reply calls tools, answer each of `turn.calls`, and send
`turn.request` again. Reply and results are appended together, so the log never contains calls without results:

    with chat.turn("Where is order 17?") as turn:
        while not turn.is_finished:
            for call in turn.finish(client.chat.completions.create(**turn.request)):
                turn.answer(call, look_up(call.arguments))

After an exception in the block the log has the user's message, and nothing of an unfinished reply. To continue, repeat
the turn with the same ``id``. A turn whose id was answered before is finished when it opens, with that reply.

`turn.ask` is that loop: it calls the model and the tools, and yields the text as it arrives (`tool_loop`).

`turn.stream` reads a stream and finishes the turn at its end. With ``async with``, a thread writes the log and builds
the envelope; `finish` and a later `request` take some milliseconds (``await
asyncio.to_thread(turn.finish, reply)`` keeps them off the event loop).

If others append to the log during the turn, its reply is kept behind their messages, with the finding
`reply_behind_others`. Raises `InputError` for wrong use, `Conflict` if the turn was answered elsewhere or erased
meanwhile, and the errors of `Store.session`, `Session.append` and `EnvelopeBuilder.build`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ctxsteward.schemas import Finding, InputError, Message, ToolCallPart, UnknownModel
from ctxsteward.schemas.arguments import check_argument, check_callable, known_options
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import Loss
from ctxsteward.store import process_forks as forking

from ..building.builder import EnvelopeBuilder
from ..envelope import PROVIDERS, Envelope, Provider
from ..history.session import MemoryScope, Profile, Session
from ..history.tool_groups import LogEntry, NewMessage
from ..tokens.budgets import Budgets
from ..tokens.models import model_info
from .answers import CompleteAnswer, read_reply, read_stream
from .builder_cache import BuilderCache
from .session_call import NO_COST, PromptCost, SessionCall
from .tool_loop import ReplyText

if TYPE_CHECKING:
    from ..store import Store

_log = logging.getLogger("ctxsteward.envelope.integrations")
_REPLY = "#reply"
"""End of the id of a turn's reply."""
_OPEN_IT = "write `with chat.turn(…) as turn:`"


class ChatOptions(TypedDict, total=False):
    """Options of `Store.chat`."""

    tools: Sequence[Wire] | None
    provider: Provider | None
    tenant: str
    principal: str | None
    profile: Profile | None
    budgets: Budgets | None
    builder: EnvelopeBuilder | None
    memory: MemoryScope | None


def open_chat(
    store: Store,
    id: str,
    *,
    model: str | None = None,
    system: str | Sequence[str | Wire] | None = (),
    tools: Sequence[Wire] | None = (),
    provider: Provider | None = None,
    tenant: str = "default",
    principal: str | None = None,
    profile: Profile | None = None,
    budgets: Budgets | None = None,
    builder: EnvelopeBuilder | None = None,
    memory: MemoryScope | None = None,
) -> Chat:
    """Open a chat; see `Store.chat`."""
    check_argument("builder", builder, EnvelopeBuilder, 'pass EnvelopeBuilder("gpt-4o"), or a model', optional=True)
    if builder is not None and budgets is not None:
        raise InputError("both builder and budgets are given; give the budgets to the builder")
    model = builder.model if model is None and builder is not None else model
    provider = provider_of(model) if provider is None else provider
    if provider not in PROVIDERS:
        raise InputError(f"unknown provider {provider!r:.40}; one of: {', '.join(PROVIDERS)}")
    if builder is None:
        builder = store.kept(BuilderCache).of(model, budgets)
    session = store.session(
        id,
        tenant=tenant,
        profile=profile,
        tools=tools,
        system=system,
        counter=builder.counter,
        memory=memory,
    )
    return Chat(session, builder, model=model, provider=provider, principal=principal)


class Chat:
    """A session with the builder and the provider of its model. Made by `Store.chat`."""

    def __init__(
        self,
        session: Session,
        builder: EnvelopeBuilder,
        *,
        model: str | None,
        provider: Provider,
        principal: str | None,
    ) -> None:
        self.session: Session = session
        self.builder: EnvelopeBuilder = builder
        self.model: str | None = model
        self.provider: Provider = provider
        self.principal: str | None = principal
        self._open_turn: Turn | None = None
        self._lock = forking.lock()

    @known_options()
    def turn(self, message: str | object, *, id: str | None = None, principal: str | None = None) -> Turn:
        """Return the turn that begins with this user message (a text, or a message in a provider's form).

        The same `id` twice is one message: to repeat a failed turn, use its id again.
        """
        wire = {"role": "user", "content": message} if isinstance(message, str) else message
        role = Message.from_wire(cast(Wire, wire)).role if isinstance(wire, dict) else "user"
        if role != "user":
            raise InputError(
                f"a turn begins with a user's message, not with one of role {role!r}; pass the user's text"
            )
        if isinstance(message, str) and not message.strip():
            raise InputError("the user's message is empty; pass what the user wrote")
        return Turn(self, NewMessage(message=wire, id=id, principal=principal or self.principal))

    def __getitem__(self, ref: str | int) -> Message:
        """Return the original that a reference such as ``§5`` names; raises the errors of `Session.resolve`."""
        return self.session.resolve(ref)

    def __len__(self) -> int:
        """Return the number of messages so far."""
        return len(self.session)

    def __repr__(self) -> str:
        state = ", a turn is open" if self._open_turn else ""
        return f"<Chat {self.session.id}: messages {len(self):,}, {self.model or 'no model'}, {self.provider}{state}>"

    def _begin(self, turn: Turn) -> None:
        with self._lock:
            if self._open_turn is not None:
                raise InputError(
                    f"chat {self.session.id!r} has an open turn; finish it first, or open another chat for another "
                    "conversation"
                )
            self._open_turn = turn

    def _end(self, turn: Turn) -> None:
        with self._lock:
            if self._open_turn is turn:
                self._open_turn = None


class Turn:
    """One user message, the calls of the model for it, and the reply. Made by `Chat.turn`."""

    def __init__(self, chat: Chat, message: NewMessage) -> None:
        self.chat: Chat = chat
        self._message = message
        self._finished: list[SessionCall] = []
        self._call: SessionCall | None = None
        """The call that is built, and not finished yet."""
        self._request: Wire = {}
        self._stands_at = 0
        """Number of messages from which the call's envelope is built."""
        self._unwritten: Sequence[Wire] = ()
        """A reply with calls, until it has all results."""
        self._results: list[tuple[ToolCallPart, str | None]] = []
        self._state: str = "new"
        self._was_entered = False
        self._user: LogEntry | None = None
        self._noticed: list[Finding] = []
        """Findings that belong to no call of the model."""
        self._reply: Message | None = None

    # -- the block ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Turn:
        if self._was_entered or self._state == "closed":
            raise InputError(f"this turn was opened before; begin another one: {_OPEN_IT}")
        if self._state == "new":
            self.open()
        self._was_entered = True
        return self

    def open(self) -> Turn:
        """Append the message and build now, for a caller that enters the block later; errors of both come here."""
        if self._state != "new":
            raise InputError(f"this turn was opened before; begin another one: {_OPEN_IT}")
        self.chat._begin(self)
        self._state = "open"
        try:
            if self._append_user():
                self._build()
            else:
                self._end()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        was_open = self._state == "open"
        self._close()
        if was_open and kind is None:
            raise InputError(f"{self._where} ended without a reply; {self._next_step}")

    async def __aenter__(self) -> Turn:
        opened: Future[None] = Future()

        def enter() -> Turn:
            try:
                return self.__enter__()
            finally:
                opened.set_result(None)

        try:
            return await asyncio.shield(asyncio.to_thread(enter))
        except asyncio.CancelledError:  # the thread runs on, even after the event loop, and then closes the turn
            opened.add_done_callback(lambda _: self._close())
            raise

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.__exit__(kind)

    # -- calls of the model -------------------------------------------------------------------------------------

    @property
    def request(self) -> Wire:
        """Arguments of the provider's client, the model included, for the next call of this turn."""
        self._check_open()
        if self._call is None:
            if self.calls:
                raise InputError(f"{self._where} has calls of tools without results; {self._next_step}")
            self._build()
        return self._request

    def finish(self, reply: object, *, sent: Wire | None = None) -> tuple[ToolCallPart, ...]:
        """Take the reply of a call, and return its calls of tools; without any, the turn is finished.

        `reply` is the client's return value, an assistant's message, or a text. `sent` are the arguments of its call,
        if they are not `request` alone.
        """
        self._sent_call()
        check_argument("sent", sent, dict, "pass the arguments of the client's call", optional=True)
        return self._finish(read_reply(self.chat.provider, reply), sent)

    def stream(self, chunks: Any, *, sent: Wire | None = None) -> Any:
        """Yield the chunks of a stream, and `finish` with them at its end; an async stream stays async."""
        self._sent_call()
        is_whole = isinstance(chunks, (str, bytes, Mapping)) or hasattr(chunks, "model_dump")
        if is_whole or not (hasattr(chunks, "__aiter__") or hasattr(chunks, "__iter__")):
            hint = "pass what the client returned with stream=True (awaited, if async); a whole reply goes to `finish`"
            raise InputError(f"the stream is {type(chunks).__name__}; {hint}")
        return self._passed_on_async(chunks, sent) if hasattr(chunks, "__aiter__") else self._passed_on(chunks, sent)

    def ask(
        self,
        create: Callable[..., Any],
        tools: Mapping[str, Callable[..., object]] | None = None,
        *,
        max_calls: int = 20,
        **arguments: Any,
    ) -> ReplyText:
        """Call the model until it replies, run the tools that it calls, and yield its text; see `tool_loop`.

        `create` is the client's method, `tools` the functions by name. `arguments` go to the client beside
        `request`, such as ``stream=True``. More than `max_calls` calls of the model raise `InputError`. A turn that
        was answered before yields that reply.
        """
        check_callable("create", create, "pass the client's method, such as client.chat.completions.create")
        check_argument("tools", tools, Mapping, 'pass functions by name: {"weather": weather}', optional=True)
        return ReplyText(self, create, tools or {}, max_calls, arguments)

    def answer(self, call: ToolCallPart | str, result: object) -> None:
        """Answer a call of a tool, given as such or by its id. A result that is no text becomes JSON.

        A second answer replaces the first until `request` appends it, because the first may be too large to keep.
        """
        self._check_open()
        places = [place for place, (known, _) in enumerate(self._results) if call in (known, known.id)]
        if not places:
            ids = ", ".join(f"{waiting.name} ({waiting.id})" for waiting in self.calls) or "none"
            named = call if isinstance(call, str) else getattr(call, "id", type(call).__name__)
            raise InputError(f"no call of a tool {named!r:.60} waits in this turn; waiting: {ids}")
        place = next((place for place in places if self._results[place][1] is None), places[0])
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
        self._results[place] = self._results[place][0], text

    # -- results ------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> tuple[ToolCallPart, ...]:
        """Calls of tools without a result."""
        return tuple(call for call, result in self._results if result is None)

    @property
    def is_finished(self) -> bool:
        return self._state == "finished"

    @property
    def reply(self) -> Message:
        """The model's last message of the turn; raises `InputError` before the turn is finished."""
        if self._reply is None:
            raise InputError(f"{self._where} has no reply yet; {self._next_step}")
        return self._reply

    @property
    def model_calls(self) -> tuple[SessionCall, ...]:
        """All calls of the model so far, including the one under way."""
        return (*self._finished, *([] if self._call is None else [self._call]))

    @property
    def envelope(self) -> Envelope:
        """Envelope of the newest call."""
        if not self.model_calls:
            raise InputError(f"no model was called in this turn, so nothing is built; {_OPEN_IT}")
        return self.model_calls[-1].envelope

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the log, of builds and of audits, each once."""
        found = (finding for call in self.model_calls for finding in call.findings)
        return tuple(dict.fromkeys((*self._noticed, *found)))

    @property
    def lost(self) -> tuple[Loss, ...]:
        """Losses of this turn's compactions: originals left out of its prompts, as ``chat[loss.ref]``."""
        return tuple(loss for call in self.model_calls for loss in call.lost)

    @property
    def recalled(self) -> tuple[str, ...]:
        """References of older messages that this turn's prompts brought back."""
        return tuple(dict.fromkeys(ref for call in self.model_calls for ref in call.recalled))

    @property
    def cost(self) -> PromptCost:
        """Cost of this turn's prompts; zero if the turn was answered before."""
        if self._state == "new":
            raise InputError(f"this turn was not opened, so nothing was sent; {_OPEN_IT}")
        return reduce(add, (call.cost for call in self.model_calls), NO_COST)

    def __repr__(self) -> str:
        waiting = f", calls of tools that wait {len(self.calls)}" if self.calls else ""
        return f"<Turn of {self.chat.session.id}: {self._state}, replies {len(self._finished)}{waiting}>"

    # -- internal steps -----------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"the turn of chat {self.chat.session.id!r} at §{len(self.chat)}"

    @property
    def _next_step(self) -> str:
        if self.calls:
            names = ", ".join(call.name for call in self.calls)
            return f"call turn.answer(call, result) for each of turn.calls ({names}), and send turn.request again"
        if self._results:
            return "send turn.request again: it holds the results"
        return "call turn.finish(reply) inside the block"

    def _check_open(self) -> None:
        if self._state == "finished":
            raise InputError(f"{self._where} is finished; begin another one: {_OPEN_IT}")
        if self._state != "open":
            raise InputError(f"{self._where} is not open; {_OPEN_IT}")

    def _sent_call(self) -> SessionCall:
        self._check_open()
        if self._call is None:
            raise InputError(f"{self._where} has that reply already; {self._next_step}")
        return self._call

    def _end(self) -> None:
        self._state = "finished"
        self.chat._end(self)

    def _close(self) -> None:
        if self._state != "finished":
            self._state = "closed"
        self.chat._end(self)

    def _append_user(self) -> bool:
        """Append the user's message; return False if it was appended and answered before."""
        session = self.chat.session
        session.refresh()
        known = len(session.findings)
        self._user = session.append(self._message)
        self._noticed += [finding for finding in session.findings[known:] if finding.ref == self._user.ref]
        if not self._user.is_new:
            self._reply, is_passed = self._answer_in_log(self._user)
            if is_passed:
                raise InputError(
                    f"the message with id {self._message.id!r} is {self._user.ref}, and the log goes on behind it "
                    "without a reply; give a new message another id"
                )
        return self._reply is None

    def _answer_in_log(self, user: LogEntry) -> tuple[Message | None, bool]:
        """Return the reply to the user's message if the log has it, and whether the log goes on without one."""
        session = self.chat.session
        kept = session.replica.by_id(self._reply_id)
        if kept is not None:
            return kept.message, False
        reply = None
        for later in session.entries(user.ordinal + 1):
            if later.message.role == "assistant" and not later.message.tool_calls:
                reply = reply if (later.event.id or "").endswith(_REPLY) else later.message
            elif later.message.role == "user" and not later.message.tool_results:
                return reply, reply is None
        return reply, False

    @property
    def _reply_id(self) -> str:
        """Id of the reply; others may append before it does, so its place does not say whose reply it is."""
        assert self._user is not None
        return f"{self._message.id or self._user.ref}{_REPLY}"

    def _build(self) -> None:
        self._write(self._unwritten)
        chat = self.chat
        envelope = chat.builder.build(chat.session)
        self._stands_at = int(envelope.metrics["messages"])
        self._call = SessionCall(
            session=chat.session,
            envelope=envelope,
            model=chat.model,
            builder=chat.builder,
            findings=envelope.findings,
        )
        self._request = {**({} if chat.model is None else {"model": chat.model}), **self._call.render(chat.provider)}

    def _finish(self, answer: CompleteAnswer, sent: Wire | None) -> tuple[ToolCallPart, ...]:
        call = self._sent_call()
        messages = [Message.from_wire(wire) for wire in answer.messages]
        answered = {result.call_id for message in messages for result in message.tool_results}
        calls = [call for message in messages for call in message.tool_calls if not call.id or call.id not in answered]
        if calls:
            self._unwritten = answer.messages
            self._results = [(call, None) for call in calls]
        else:
            self._write(answer.messages)
            self._reply = messages[-1]
            self._end()
        self._finished.append(call)
        self._call = None
        self._learn(call, answer, sent)
        return self.calls

    def _learn(self, call: SessionCall, answer: CompleteAnswer, sent: Wire | None) -> None:
        """Record usage and audit. A failure here is only a warning, because the reply is in the log already."""
        call.sent = self._request if sent is None else sent
        call.arguments = {key: value for key, value in call.sent.items() if key not in self._request}
        if answer.usage is not None:
            call.usage = answer.usage
            try:
                call.learn()
            except InputError as error:
                call.usage = None
                _log.warning("could not read the usage report: %s", error)
        try:
            call.audit(self.chat.provider)
        except InputError as error:
            _log.warning("could not compare what was sent with the envelope: %s", error)

    def _write(self, messages: Sequence[Wire]) -> None:
        """Append a reply and its results, behind what others have appended since the call was built."""
        wires = [*messages, *_result_messages(self.chat.provider, self._results)]
        if not wires:
            return
        session, new = self.chat.session, [NewMessage(message=wire) for wire in wires]
        if not self._results:
            new[-1] = replace(new[-1], id=self._reply_id)
        try:
            session.extend_at(self._stands_at, new)
        except Conflict:
            session.refresh()
            self._check_still_asked()
            first = session.extend(new)[0]
            others = first.ordinal - self._stands_at - 1
            text = f"others appended {others} messages to the log in this turn; its reply is kept behind them"
            self._noticed.append(Finding(kind="reply_behind_others", ref=first.ref, text=text))
        self._unwritten, self._results = (), []

    def _check_still_asked(self) -> None:
        """Raise `Conflict` if the user's message was erased or moved, or was answered meanwhile."""
        session, user = self.chat.session, self._user
        assert user is not None
        gone = len(session) < user.ordinal or session.entry(user.ordinal).event.address != user.event.address
        if gone or (self._message.id is not None and self._answer_in_log(user)[0] is not None):
            what = "was erased, or moved to another session" if gone else "was answered by another turn with its id"
            text = f"chat {session.id!r}: the message {user.ref} {what} meanwhile; this reply is not kept"
            raise Conflict(session.id, session.state.position, text)

    def _passed_on(self, chunks: Iterable[object], sent: Wire | None) -> Iterator[object]:
        seen: list[object] = []
        for chunk in chunks:
            seen.append(chunk)
            yield chunk
        self._finish(read_stream(self.chat.provider, seen), sent)

    async def _passed_on_async(self, chunks: AsyncIterator[object], sent: Wire | None) -> AsyncIterator[object]:
        seen: list[object] = []
        async for chunk in chunks:
            seen.append(chunk)
            yield chunk
        await asyncio.to_thread(self._finish, read_stream(self.chat.provider, seen), sent)


def provider_of(model: str | None) -> Provider:
    """Return the provider whose requests a model takes; raises `InputError` for an unknown model.

    >>> provider_of("gpt-4o"), provider_of("claude-sonnet-4-5"), provider_of("gemini-2.5-pro")
    ('openai-chat', 'anthropic', 'gemini')
    """
    hint = f"pass provider=…, one of: {', '.join(PROVIDERS)}"
    if model is None:
        raise InputError(f"neither model nor provider is given; pass model='gpt-4o', or {hint}")
    try:
        maker = model_info(model).maker
    except UnknownModel as error:
        named = f"did you mean {' or '.join(error.near)}? Otherwise " if error.near else ""
        raise InputError(f"model {model!r:.60} is not known, so its provider is not either; {named}{hint}") from None
    return cast(Provider, "openai-chat" if maker == "openai" else maker)


def _result_messages(provider: Provider, results: Sequence[tuple[ToolCallPart, str | None]]) -> list[Wire]:
    """Convert results to messages; for Gemini in its own form and in order, because its calls may have no id."""
    if provider != "gemini" or not results:
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]
    responses = [
        {**({"id": call.id} if call.id else {}), "name": call.name, "response": {"output": text}}
        for call, text in results
    ]
    return [{"role": "user", "parts": [{"function_response": response} for response in responses]}]


__all__ = ["Chat", "ChatOptions", "Turn", "open_chat", "provider_of"]
