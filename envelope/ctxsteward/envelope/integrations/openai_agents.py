"""openai-agents: a durable `Session` over the log, and a filter that gives the model a bounded view of it.

    session = CtxstewardSession("chat-1", store)
    config = RunConfig(call_model_input_filter=session.bounded_input)
    await Runner.run(agent, "…", session=session, run_config=config, hooks=session.hooks)

The session returns every item unchanged, ids and encrypted reasoning byte for byte. Nothing is ever deleted: `pop_item`
and `clear_session` make an earlier state of the log current, and later items go into a fork. `add_items` recognises
items that already end the session, so a repeated call adds nothing. A log of its own, ``ID~branches``, records the
current branch. Errors of reading and writing are raised, as by any store.

The filter receives the whole input before each call of the model, in tool loops too. A run of output items is one
message, so reasoning stays with its calls; a system or developer item stays in the window for good. Agents that are
tools of others inherit the filter; their input is a session of its own. If the build fails, the input is sent
unchanged. Session and filter work without each other. Do not use the filter with a conversation that the server keeps
(`conversation_id`, `previous_response_id`), because its input contains new items only. Tools of the agent count against
the head's budget; tools of MCP servers are not visible here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunContextWrapper, RunHooks, SessionSettings
from agents.memory.session_settings import resolve_session_limit
from agents.run_config import CallModelData, ModelInputData

from ctxsteward.schemas import Erased, Message
from ctxsteward.schemas.message import Wire, encode_wire

from ..history.session import Session
from ..history.tool_groups import LogEntry, NewMessage
from ..recall.model_tools import model_tools as tool_schemas
from ..render.openai_responses import item_groups, items_of, items_of_message, messages_of_items, own_items
from .conversations import ConversationName, Conversations, PreparedCall, SessionSource, checked_conversation

FIELD = "openai_agents"
"""Field of a wire dict with its items, if they cannot be rebuilt from it byte for byte."""
BRANCHES = "~branches"
"""Suffix of a session's id: the log that records the current branch."""
LOOK_BACK = 200
"""Number of newest messages that an input is compared with if it does not begin like the session."""
MAX_ID_CHARS = 150
WHOLE = "*"
"""Marks a branch that stays current with all later items."""


class CtxstewardSession:
    """A conversation of agents, kept in a log."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: SessionSource,
        *,
        tenant: str = "default",
        principal: str | None = None,
        **options: Any,
    ) -> None:
        """`principal` is the author of its user messages; `options` are those of `Conversations`."""
        self.session_id = session_id
        self.conversations: Conversations = Conversations.of(store, **options)
        self.name: ConversationName = checked_conversation(ConversationName(session_id, tenant, principal))
        self.hooks: UsageHooks = UsageHooks(self)
        self._call: PreparedCall | None = None
        self._read: tuple[object, int, list[Wire]] | None = None
        """The branch read last, the number of messages read from it, and their items."""

    # -- as a session -------------------------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return all items, or the latest `limit` of them, oldest first."""
        return await asyncio.to_thread(self._items, resolve_session_limit(limit, self.session_settings))

    async def add_items(self, items: list[Any]) -> None:
        """Add items after the current ones, except items that are already there."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Remove the newest item from the current branch and return it; None if there is no item."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Begin anew. Earlier items stay in the log."""
        await asyncio.to_thread(self._clear)

    def _items(self, limit: int | None = None) -> list[Wire]:
        try:
            current = self._current()
        except Erased:
            return []  # the conversation was forgotten
        standing = (current.id, current.origin_of_past, current.generation)
        if self._read is None or self._read[0] != standing or self._read[1] > len(current):
            self._read = standing, 0, []
        _, known, items = self._read
        items = items + [item for entry in current.entries(known + 1) for item in _items_of(entry)]
        self._read = standing, len(current), items
        return items[-limit:] if limit else [] if limit == 0 else list(items)

    def _add(self, items: Sequence[Any]) -> None:
        with self._unless_forgotten(), self.conversations.root(self.name).lock:
            current = self._items()
            known = next(size for size in range(len(items), -1, -1) if current[len(current) - size :] == items[:size])
            if known < len(items):
                self._go_to([*current, *items[known:]])

    def _pop(self) -> Wire | None:
        with self._unless_forgotten(), self.conversations.root(self.name).lock:
            *rest, newest = [None, *self._items()]
            if newest is not None:
                self._go_to(rest[1:])
            return newest
        return None

    @contextmanager
    def _unless_forgotten(self) -> Iterator[None]:
        """Keep nothing more of a forgotten conversation or person, and warn of it once."""
        try:
            yield
        except Erased as gone:
            self.conversations.say_once(f"{gone}: items of it are not kept")

    def _clear(self) -> None:
        with self._unless_forgotten():
            self._go_to([])

    def _go_to(self, items: Sequence[Any]) -> None:
        """Make the branch with exactly these items the current one."""
        root = self.conversations.root(self.name)
        with root.lock:
            stood = root.follow(messages_for(items), principal=self.name.principal)
            branch = f"{len(stood)} {stood.id}" if len(stood) < len(self._session(stood.id)) else f"{WHOLE} {stood.id}"
            if branch != self._branch():
                log = self.conversations.store.session(self.session_id + BRANCHES, tenant=self.name.tenant)
                block = {"type": "branch", "branch": branch}
                log.append({"role": "assistant", "content": [block]}, origin="entries")

    def _branch(self) -> str:
        id, tenant = self.session_id + BRANCHES, self.name.tenant
        if not self.conversations.store.exists(id, tenant=tenant):
            return f"{WHOLE} {self.session_id}"
        log = self.conversations.store.at(tenant, id)
        branch: str = log.entry(len(log)).message.wire["content"][0]["branch"]
        return branch

    def _session(self, id: str) -> Session:
        root = self.conversations.root(self.name)
        return root if id == root.id else self.conversations.store.session(id, tenant=self.name.tenant)

    def _current(self) -> Session:
        upto, _, id = self._branch().partition(" ")
        session = self._session(id)
        session.refresh()
        return session if upto == WHOLE else session.past(int(upto))

    # -- as a filter --------------------------------------------------------------------------------------------

    async def bounded_input(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the bounded view of an input; use it as the `call_model_input_filter` of a `RunConfig`."""
        return await asyncio.to_thread(self._bounded, data)

    def _bounded(self, data: CallModelData[Any]) -> ModelInputData:
        own = data.model_data
        self._call = None
        try:
            messages = messages_for(own.input)
            wires = [encode_wire(one.message) for one in messages]
            name = self._name(wires, data.agent.name)
            model = getattr(data.agent.model, "model", data.agent.model)
            call = self.conversations.prepare(
                name,
                messages,
                system=own.instructions or (),
                model=model if isinstance(model, str) else None,
                tools=[_schema(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)],
            )
            if call is None:
                return own
            sources = dict(zip(wires, item_groups(own.input), strict=True))

            def kept(entry: LogEntry) -> list[Wire] | None:
                return sources.get(entry.event.wire) or entry.message.wire.get(FIELD)

            items: list[Any] = [one for part in call.envelope.dynamic.fragments for one in items_of(part, kept)]
            head = "\n\n".join(fragment.text for fragment in call.envelope.head.fragments)
            self._call = call
            return ModelInputData(input=items, instructions=head or own.instructions)
        except Exception as error:
            self.conversations.fall_back("could not build the view of this call; the whole input is sent", error)
            return own

    def _name(self, wires: Sequence[str], agent: str) -> ConversationName:
        """Return the session of this input. An agent that is a tool of another inherits the filter but has its own."""
        try:
            root, current = self.conversations.root(self.name), self._current()
        except Erased:
            return self.name
        if not len(root) or not len(current) or wires[:1] == [root.shown(1).event.wire]:
            return self.name
        latest = current.entries(max(1, len(current) - LOOK_BACK))
        known = {current.shown(1).event.wire, *(entry.event.wire for entry in latest)}
        if not known.isdisjoint(wires[:-1] or wires):
            return self.name
        asked = hashlib.blake2s(wires[0].encode(), digest_size=6).hexdigest()
        return ConversationName(f"{self.session_id}~{agent}-{asked}"[:MAX_ID_CHARS], self.name.tenant)

    def learn(self, response: ModelResponse) -> None:
        """Keep the answer, and correct the estimates by its usage."""
        call, self._call = self._call, None
        if call is not None:
            read = response.usage.input_tokens
            answers = messages_of_items(response.to_input_items())
            self.conversations.finish(call, answers, usage={"prompt_tokens": read} if read else None)

    @property
    def model_tools(self) -> list[FunctionTool]:
        """Tools with which the model searches and reads messages that left the window."""
        return [self._tool(schema["function"]) for schema in tool_schemas()]

    def _tool(self, function: Wire) -> FunctionTool:
        async def answer(context: Any, arguments: str) -> str:
            ask = self.conversations.answer_tool
            return await asyncio.to_thread(ask, self.name, function["name"], arguments) or ""

        return FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=answer,
            strict_json_schema=False,
        )


class UsageHooks(RunHooks[Any]):
    """Reports the usage of model calls to a session."""

    def __init__(self, session: CtxstewardSession) -> None:
        self.session = session

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Keep the answer of a model call."""
        try:
            await asyncio.to_thread(self.session.learn, response)
        except Exception as error:
            self.session.conversations.failed("could not read the answer; the next history brings it", error)


def _schema(tool: FunctionTool) -> Wire:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": tool.strict_json_schema,
        "parameters": tool.params_json_schema,
    }


# -- items and messages ------------------------------------------------------------------------------------------


def messages_for(items: Sequence[Any]) -> list[NewMessage]:
    """Convert items to messages that return each item unchanged. A developer's messages stay in the window.

    >>> messages_for([{"type": "message", "role": "user", "content": "hi"}])[0].message
    {'role': 'user', 'content': 'hi', 'openai_agents': [{'type': 'message', 'role': 'user', 'content': 'hi'}]}
    """
    messages = []
    for wire, group in zip(messages_of_items(items), item_groups(items), strict=True):
        if wire["role"] in ("system", "developer"):
            messages.append(_operator_message(group[0]))
        else:
            messages.append(NewMessage(message=wire if own_items(wire) == group else {**wire, FIELD: group}))
    return messages


def _operator_message(item: Wire) -> NewMessage:
    """Make a message of the application's text within a conversation: pinned at its place, said by no person."""
    text = Message.from_wire({"role": item["role"], "content": item["content"]}).text
    blocks = [{"type": "text", "text": text}, {"type": item["role"]}]
    return NewMessage(message={"role": "assistant", "content": blocks, FIELD: [item]}, pin="keep", origin="operator")


def _items_of(entry: LogEntry) -> list[Wire]:
    wire = json.loads(entry.event.wire)
    return wire.get(FIELD) or own_items(wire) or items_of_message(entry.message)


__all__ = ["CtxstewardSession", "UsageHooks", "messages_for"]
