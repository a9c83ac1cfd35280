"""`Conversations`: the steps of every adapter around a model call in another framework's loop.

An adapter turns its framework's history into wire dicts (OpenAI chat or Anthropic messages; Responses items go through
`render.openai_responses.messages_of_items`), and takes three steps around each call of the model:

    conversations = Conversations.of(store, **options)          # once; `store` may be Conversations that are shared
    call = conversations.prepare(ConversationName("chat-1"), history, system=…, tools=…, model="gpt-4o")
    if call is None:                                     # the build failed, with a warning
        …                                                # send the framework's own request, unchanged
    request = call.render("openai-chat")                 # {"messages": […], "tools": […]}: put it in place of theirs
    conversations.finish(call, [answer], usage=usage, sent=request, provider="openai-chat")

`prepare` opens the session (sessions stay open in a bounded cache), takes the request's system texts and tools as the
operator's head, lets the session follow the history, and builds. Leading system and developer messages of a history
belong to the head, too. `finish` lets the session follow the history again with the answer appended, calibrates by the
usage, compares the sent request with the envelope, and calls `on_call`. Call it once an answer is complete. If a stream
was aborted or the model failed, call it without answers, or not at all: the next history shows how things continued.
Build once per call: keep `call` over retries, and send its rendering again.

Neither raises for a failure of ours, unless `on_error="raise"`: a caller's request never fails because of us. A mistake
of the caller raises `InputError` with its full text in any case: an option of a wrong type when it is given, no session
named, an invalid message or tool schema. Sending the whole history instead would hide it at every call.

Erased messages are never sent again, even if the caller still has them. Messages of a forgotten conversation or person
are skipped, the rest is built, and a finding (`erased_skipped`) and a warning give their number. Nothing more is kept
of a forgotten conversation; a call without any other message raises `Erased`.

Both block for some milliseconds (a build, an fsync). Async adapters: ``await asyncio.to_thread(conversations.prepare,
…)``. Threads and tasks may share one `Conversations`; calls of one conversation build one after the other.

The application names sessions (`ConversationName`, or `with conversation("chat-1"):` around a call). Nothing is
guessed: a call without a named session raises `InputError` (`named_conversation`). A turn costs a digest of the
history that was handed over and the work on its new messages, however old the session is.
"""

from __future__ import annotations

import json
import logging
import marshal
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from ctxsteward.schemas import BudgetExceeded, Erased, Finding, InputError, WindowExceeded
from ctxsteward.schemas.arguments import check_argument, check_callable, known_options
from ctxsteward.schemas.errors import TokenizerUnavailable
from ctxsteward.schemas.message import Wire
from ctxsteward.store import process_forks as forking
from ctxsteward.store.journal.events import SessionHead
from ctxsteward.store.names import checked_name
from ctxsteward.store.profiles.text import Profile

from ..building.builder import EnvelopeBuilder
from ..envelope import Envelope, Provider
from ..history.follow import CONTEXT_PASTED, ERASED_SKIPPED
from ..history.session import Session
from ..history.session_head import head_of
from ..history.tool_groups import NewMessage, check_meta
from ..recall.model_tools import answer_call, model_tools
from ..store import Store, open_store
from ..tokens.budgets import Budgets
from .builder_cache import BuilderCache
from .session_call import SessionCall

MAX_OPEN = 1000
"""Number of sessions that stay open. Another one is opened again from its newest compaction."""
FORKS_IN_ROW = 2
"""Consecutive calls that each make a fork, before a warning. A single one was edited, or asked again."""
OnError = Literal["fallback", "raise"]
_SAYS_NUMBERS = (BudgetExceeded, WindowExceeded, TokenizerUnavailable)
"""Errors whose text names sections, models and numbers; other errors' texts may name a session or quote a message."""
_ONE_MESSAGE_EACH = (
    "calls hand over one message each and nothing of what was said before. Where these are conversations of their own, "
    'name each: `with conversation("chat-1"):` around its calls; where they are one, hand over its whole history at '
    "each call"
)
_REWRITTEN = (
    "each call hands over a history that differs from the one before it, in messages that were said long ago: "
    "something rewrites them. Hand over the messages as they were; the finding history_forked says where they differ"
)
_log = logging.getLogger("ctxsteward.envelope.integrations")


class ConversationName(NamedTuple):
    """The session that a call belongs to, as the application names it."""

    id: str
    tenant: str = "default"
    principal: str | None = None
    """Author of its user messages."""


_CURRENT: ContextVar[ConversationName | None] = ContextVar("ctxsteward_conversation", default=None)


@contextmanager
@known_options()
def conversation(id: str, *, tenant: str = "default", principal: str | None = None) -> Iterator[ConversationName]:
    """Assign calls of the model inside to this session: in this thread or task, and in tasks started there.

    Raises `InputError` for an invalid name.
    """
    name = checked_conversation(ConversationName(id, tenant, principal))
    token = _CURRENT.set(name)
    try:
        yield name
    finally:
        _CURRENT.reset(token)


def current_conversation() -> ConversationName | None:
    """Return the name that the surrounding `conversation` gives, or None."""
    return _CURRENT.get()


def named_conversation(default: ConversationName | None = None) -> ConversationName:
    """Return the name that the surrounding `conversation` gives, else the default; else raise `InputError`."""
    name = _CURRENT.get() or default
    if name is None:
        hint = 'write `with conversation("chat-1"):` around the call, or name one session for all with session="chat-1"'
        raise InputError(f"no session is named for this call of the model; {hint}")
    return name


@dataclass(slots=True, kw_only=True, eq=False)
class PreparedCall(SessionCall):
    """A call of the model in another framework's loop."""

    name: ConversationName
    history: Sequence[object]
    """The history that was followed: without the leading system messages."""


def checked_conversation(name: ConversationName) -> ConversationName:
    """Return the name if it is valid for a session; else raise `InputError`."""
    checked_name("session", name.id)
    checked_name("tenant", name.tenant)
    check_meta(NewMessage(message=None, principal=name.principal))
    return name


class OpenConversation:
    """An open session, and its last head."""

    def __init__(self, root: Session) -> None:
        self.root: Session = root
        self.standing: Session = root
        self.told: tuple[bytes, SessionHead] | None = None
        self.calls: int = 0
        self.forks: int = 0
        """Forks that histories of this conversation had made at the last call."""
        self.forks_in_row: int = 0
        """Consecutive calls that made a fork."""
        self._warned: set[str] = set()

    def is_new(self, kind: str) -> bool:
        """Return whether there was no warning of this kind of finding here yet."""
        is_new = kind not in self._warned
        self._warned.add(kind)
        return is_new


class ConversationOptions(TypedDict, total=False):
    """Options of `Conversations`, which adapters pass on."""

    builder: EnvelopeBuilder | None
    budgets: Budgets | None
    profile: Profile | None
    tools: bool
    on_error: OnError
    on_call: Callable[[PreparedCall], object] | None
    max_open: int


class Conversations:
    """Sessions of a store, for an adapter."""

    @known_options()
    def __init__(
        self,
        store: Store,
        *,
        builder: EnvelopeBuilder | None = None,
        budgets: Budgets | None = None,
        profile: Profile | None = None,
        tools: bool = False,
        on_error: OnError = "fallback",
        on_call: Callable[[PreparedCall], object] | None = None,
        max_open: int = MAX_OPEN,
    ) -> None:
        """`builder` builds for all models; without it each has one, with `budgets` (default: scaled to its window).

        `tools`: the model may search and read older messages (`model_tools`); the code that runs its calls
        answers them with `answer_tool`. `on_call` receives each finished call.
        """
        if not isinstance(store, Store):
            raise InputError(f'store is {type(store).__name__}; pass open_store("file:./.ctxsteward")')
        if on_error not in ("fallback", "raise"):
            raise InputError(f"on_error is {on_error!r:.40}; write 'fallback' or 'raise'")
        check_argument("builder", builder, EnvelopeBuilder, "pass EnvelopeBuilder(model)", optional=True)
        check_argument("budgets", budgets, Budgets, "pass Budgets(dynamic_tokens=4000)", optional=True)
        hint = "pass Profile.load(path) or Profile.from_text(text)"
        check_argument("profile", profile, Profile, hint, optional=True)
        check_argument("tools", tools, bool, "pass True or False")
        check_callable("on_call", on_call, "pass a function that takes a PreparedCall", optional=True)
        check_argument("max_open", max_open, int, "pass a number of sessions, at least 1")
        if max_open < 1:
            raise InputError(f"max_open is {max_open}; pass a number of sessions, at least 1")
        if builder is not None and budgets is not None:
            raise InputError("both builder and budgets are given; give the budgets to the builder")
        self.store: Store = store
        self.profile: Profile | None = profile
        self.budgets: Budgets | None = budgets
        self.on_error: OnError = on_error
        self.on_call: Callable[[PreparedCall], object] | None = on_call
        self.max_open: int = max_open
        self._builder = builder
        self._own_tools = model_tools() if tools else ()
        self._builders = BuilderCache()
        self._open: OrderedDict[tuple[str, str], OpenConversation] = OrderedDict()
        self._aside: OrderedDict[tuple[str, str], OpenConversation] = OrderedDict()
        """In-memory sessions of forgotten conversations, for the call under way."""
        self.lock: Lock = forking.lock()
        """Held for moments only, by adapters too."""
        self._said: set[str] = set()

    @classmethod
    def of(cls, store: SessionSource, **options: Unpack[ConversationOptions]) -> Conversations:
        """Return the `Conversations` of this store. Shared ones, given in its place, already have their options."""
        if not isinstance(store, Conversations):
            return cls(store, **options)
        if options:
            raise InputError("options stand beside shared Conversations; give them to Conversations(store, …)")
        return store

    # -- before the call ----------------------------------------------------------------------------------------

    def prepare(
        self,
        name: ConversationName,
        messages: Sequence[object],
        *,
        system: str | Sequence[str | Wire] | None = (),
        tools: Sequence[Wire] | None = (),
        model: str | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> PreparedCall | None:
        """Return the call with an envelope of this history; None (send the caller's own request) if the build failed.

        Raises `InputError` for mistakes of the caller.

        `messages` are wire dicts, SDK objects or `NewMessage`s; `system` and `tools` are the request's. `notes` are
        parts of the framework's plan, each set if it differs from before.
        """
        try:
            leading, history = split_head(messages)
            texts = [*([system] if isinstance(system, str) else system or ()), *leading]
            try:
                opened = self._opened(name)
                return self._followed(opened, name, history, texts, tools, model, notes or {})
            except Erased as gone:
                aside, rest = self._after_erasure(name, history, gone)
                return self._followed(aside, name, rest, texts, tools, model, notes or {})
        except Exception as error:
            self.fall_back("could not build the context of this call; the caller's own request is sent", error)
            return None

    def _after_erasure(
        self, name: ConversationName, history: Sequence[object], gone: Erased
    ) -> tuple[OpenConversation, list[object]]:
        """Return an in-memory session for a forgotten conversation, and the messages of the history after it.

        Its name stays blocked, so nothing of this call is kept. Raises `Erased` if no message is left to send.
        """
        with self.lock:
            open_before = self._open.get((name.tenant, name.id))
        memory = open_store("memory:")
        root = memory.session(name.id, tenant=name.tenant, profile=self.profile)
        before = root if open_before is None else open_before.root
        with before.lock:
            rest = before.follower.beyond_last(history)
        if not rest:
            raise gone
        skipped = len(history) - len(rest)
        text = (
            f"{gone}: {skipped} of the {len(history)} messages handed over are not shown, and nothing of this call is "
            "kept. Name another conversation, and delete the history that you keep"
        )
        root.findings.append(Finding(kind=ERASED_SKIPPED, text=text))
        aside = OpenConversation(root)
        with self.lock:
            self._aside[name.tenant, name.id] = aside
            while len(self._aside) > self.max_open:
                self._aside.popitem(last=False)
        return aside, rest

    def _followed(
        self,
        opened: OpenConversation,
        name: ConversationName,
        history: Sequence[object],
        texts: list[str | Wire],
        tools: Sequence[Wire] | None,
        model: str | None,
        notes: Mapping[str, str],
    ) -> PreparedCall:
        with opened.root.lock:
            head = self._head(opened, texts, [*(tools or ()), *self._own_tools])
            session = opened.root.follow(history, principal=name.principal, forgotten="draft")
            take_head(session, head)
            for title, text in notes.items():
                if session.state.notes.get(title, "") != text:
                    session.note(title, text)
            builder = self.builder(model)
            envelope = builder.build(session)
            opened.standing = session
            opened.calls += 1
        self._tell_of_call(opened, name, history, envelope)
        return PreparedCall(
            name=name,
            session=session,
            envelope=envelope,
            model=model,
            builder=builder,
            history=history,
            findings=envelope.findings,
        )

    def _tell_of_call(
        self, opened: OpenConversation, name: ConversationName, history: Sequence[object], envelope: Envelope
    ) -> None:
        """Log the first call of a conversation, and warn of mistaken uses."""
        if opened.calls == 1:
            tokens = int(envelope.metrics["prompt_tokens"])
            _log.info(
                "conversation %r: the first call here handed over %d messages; %d tokens are sent",
                name.id,
                len(history),
                tokens,
            )
        for finding in envelope.findings:
            if finding.kind == ERASED_SKIPPED or (finding.kind == CONTEXT_PASTED and opened.is_new(finding.kind)):
                _log.warning("conversation %r: %s", name.id, finding.text)
        forks, opened.forks = opened.root.follower.forks_made - opened.forks, opened.root.follower.forks_made
        opened.forks_in_row = opened.forks_in_row + 1 if forks else 0
        if opened.forks_in_row == FORKS_IN_ROW and opened.is_new("history_forked"):
            why = _ONE_MESSAGE_EACH if len(history) == 1 else _REWRITTEN
            _log.warning("conversation %r is kept in a new fork at every call: %s", name.id, why)

    def own_tools(self, provider: Provider) -> tuple[Wire, ...]:
        """Return our own tools for the model, besides the request's, in this provider's form."""
        return model_tools(provider) if self._own_tools else ()

    def builder(self, model: str | None) -> EnvelopeBuilder:
        """Return the builder for this model."""
        return self._builder or self._builders.of(model, self.budgets)

    def _opened(self, name: ConversationName) -> OpenConversation:
        key = (name.tenant, name.id)
        with self.lock:
            opened = self._open.get(key)
            if opened is not None:
                self._open.move_to_end(key)
                return opened
        root = self.store.session(name.id, tenant=name.tenant, profile=self.profile)
        with self.lock:
            opened = self._open.setdefault(key, OpenConversation(root))
            while len(self._open) > self.max_open:
                self._open.popitem(last=False)
        return opened

    def _head(self, opened: OpenConversation, system: list[str | Wire], tools: list[Wire]) -> SessionHead:
        """Return the request's system texts and tools, checked; a digest of the input recognises unchanged ones."""
        digest = handed_bytes([system, tools])
        if opened.told is None or opened.told[0] != digest:
            opened.told = digest, head_of(None, system, tools)
        return opened.told[1]

    # -- after the call -----------------------------------------------------------------------------------------

    def finish(
        self,
        call: PreparedCall,
        answers: Sequence[object] = (),
        *,
        usage: object = None,
        sent: object = None,
        provider: Provider | None = None,
    ) -> None:
        """Keep the complete answer, learn from the usage, and audit the sent request (its arguments)."""
        if usage is not None:
            call.usage = usage
        call.sent = sent
        steps: list[tuple[str, Callable[[], object]]] = []
        if answers:
            steps.append(("could not keep the answer; the next history brings it", lambda: self._keep(call, answers)))
        if usage is not None:
            steps.append(("could not read the usage report", call.learn))
        if sent is not None:
            steps.append(("could not audit what was sent", lambda: call.audit(provider)))
        if (on_call := self.on_call) is not None:
            steps.append(("on_call failed", lambda: on_call(call)))
        for what, step in steps:
            try:
                step()
            except Exception as error:
                self.failed(what, error)

    def _keep(self, call: PreparedCall, answers: Sequence[object]) -> None:
        try:
            opened = self._opened(call.name)
            with opened.root.lock:
                said = [*call.history, *answers]
                opened.standing = opened.root.follow(said, principal=call.name.principal, forgotten="draft")
        except Erased:
            return  # nothing more is kept of a forgotten conversation

    def fall_back(self, what: str, error: Exception) -> None:
        """Raise a mistake of the caller; warn of a failure of ours, and that the call goes on without a build."""
        if isinstance(error, (InputError, Erased)):  # the caller's own request would send erased messages
            raise error
        self.failed(what, error)

    def failed(self, what: str, error: Exception) -> None:
        """Raise a failure of ours, or log it without any text of the conversation."""
        if self.on_error == "raise":
            raise error
        why = f"{type(error).__name__}: {error}" if isinstance(error, _SAYS_NUMBERS) else type(error).__name__
        _log.warning("%s: %s", what, why, exc_info=error if _log.isEnabledFor(logging.DEBUG) else None)

    def say_once(self, text: str) -> None:
        """Warn once of a cause common to many calls."""
        if text not in self._said:
            self._said.add(text)
            _log.warning(text)

    # -- for the model's tools ----------------------------------------------------------------------------------

    def root(self, name: ConversationName) -> Session:
        """Return the session of that name, which follows all its histories. Raises the errors of `Store.session`."""
        return self._opened(name).root

    def standing(self, name: ConversationName) -> Session:
        """Return the session after its newest call, for functions of tools. Raises the errors of `Store.session`."""
        aside = self._aside.get((name.tenant, name.id))  # in-memory session of a forgotten conversation
        return (self._opened(name) if aside is None else aside).standing

    def answer_tool(self, name: ConversationName, tool: str, arguments: str | Mapping[str, Any]) -> str | None:
        """Return the result of a model's call of `search_context` or `resolve_reference`; None for another tool."""
        return answer_call(self.standing(name), tool, arguments)


SessionSource = Store | Conversations
"""The source of an adapter's sessions: a store, or `Conversations` that several adapters share."""


def split_head(messages: Sequence[object]) -> tuple[list[str | Wire], list[object]]:
    """Return the texts of the leading system and developer messages, and the messages after them.

    >>> split_head([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])
    (['Be brief.'], [{'role': 'user', 'content': 'hi'}])
    """
    history = list(messages)
    texts: list[str | Wire] = []
    while history and isinstance(first := history[0], dict) and first.get("role") in ("system", "developer"):
        content: Any = first.get("content")
        texts += [_plain_text(block) for block in content] if isinstance(content, list) else [content]
        del history[0]
    return texts, history


def _plain_text(block: str | Wire) -> str | Wire:
    """Return an endpoint's text block as a plain one. Another block stays unchanged, and the head refuses it."""
    if isinstance(block, dict) and block.get("type") in ("input_text", "output_text") and "text" in block:
        return {"type": "text", "text": block["text"]}
    return block


def take_head(session: Session, head: SessionHead) -> None:
    """Continue a session under these system texts and tools, with a finding if they replace others."""
    now = session.state.head
    wanted = replace(now, system=head.system, tools=head.tools)
    if wanted == now:
        return
    for part in ("system", "tools"):
        was = getattr(now, part)
        if was and was != getattr(wanted, part):
            text = f"`{part}` is another one than before; it replaces that from here on, and the prefix is cached anew"
            finding = Finding(kind="head_replaced", field=part, text=text)
            if finding not in session.findings:
                session.findings.append(finding)
    session.record(wanted)


def handed_bytes(value: object) -> bytes:
    """Return the input as bytes; equal bytes mean equal values."""
    try:
        return marshal.dumps(value, 2)  # type: ignore[arg-type]  # other types raise ValueError
    except ValueError:
        return json.dumps(value, sort_keys=True, default=repr).encode("utf-8", "surrogatepass")


__all__ = [
    "ConversationName",
    "ConversationOptions",
    "Conversations",
    "PreparedCall",
    "SessionSource",
    "checked_conversation",
    "conversation",
    "current_conversation",
    "named_conversation",
    "split_head",
    "take_head",
]
