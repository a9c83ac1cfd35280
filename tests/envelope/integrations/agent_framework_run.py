"""Run by the tests in an environment that has agent-framework: agents with a scripted client, and what came of them.

    python agent_framework_run.py MODE FIRST LAST STORE [MODE …]      prints JSON, by mode

Modes: `ours` (our history and view), `theirs` (the framework's own history), `view` (its own history, our view),
`aside` (ours, and a provider that adds a message to each run), `profile`, `broken` (our builder fails), `per_call`
(histories are loaded behind all middleware), `dear` (the provider counts half as much again), `failing` and
`theirs_failing` (the model fails once within turn 6, and the turn is asked again).
The client is the framework's own stack over a script: some turns call a tool, some two at once, some twice in a row.
"""

from __future__ import annotations

import asyncio
import doctest
import json
import logging
import re
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
)

import ctxsteward.envelope.integrations.agent_framework as ours
from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, Profile, load_tokenizer, open_store
from ctxsteward.envelope.integrations.agent_framework import CtxstewardHistory, CtxstewardView
from ctxsteward.envelope.integrations.entry_log import EntryLog
from ctxsteward.schemas import Message as OurMessage

BUDGET_TOKENS = 700
COUNTER = Counter(load_tokenizer("o200k_base"))
HEAD = "You keep a shop's books."


def lines(at: int) -> str:
    """What the tool finds: now and then very much."""
    return "\n".join(f"row {at}-{row}: {row * at} pieces" for row in range(400 if at % 9 == 0 else 3))


def reply(messages: Sequence[Message]) -> list[Content]:
    """What the scripted model says, told by the newest turn and by what it called last."""
    asked = next(message.text for message in reversed(messages) if message.role == "user" and "turn " in message.text)
    turn = int(re.search(r"turn (\d+)", asked)[1])  # type: ignore[index]
    called = messages[-1].contents[-1].call_id or "" if messages[-1].role == "tool" else ""
    if not called and turn % 3 == 0:
        count = 2 if turn % 7 == 0 or turn % 12 == 0 else 1
        return [
            Content.from_function_call(f"call-{turn}-{n}", "look", arguments=json.dumps({"at": turn + n}))
            for n in range(count)
        ]
    if called and not called.endswith("x") and turn % 6 == 0:
        again = Content.from_function_call(f"call-{turn}-x", "look", arguments={"at": 1})
        return [Content.from_text("Once more."), again]
    return [Content.from_text(f"Noted what turn {turn} says; the till of that day holds {turn * 11} coins.")]


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc, type-arg]
    """The framework's layers over a script."""

    def __init__(self, factor: float, *, fails: bool) -> None:
        super().__init__()
        self.factor, self.fails = factor, fails
        self.requests: list[dict[str, Any]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        self.requests.append(
            {
                "wires": [wire for message in messages for wire in ours.wires_of(message)],
                "instructions": options.get("instructions"),
                "stream": stream,
            }
        )
        contents = reply(messages)
        if self.fails and messages[-1].role == "tool" and "turn 6." in str(self.requests[-1]["wires"]):
            self.fails = False
            raise ConnectionError("the model is away")
        tokens = (
            COUNTER.framed(str(options.get("instructions")))
            + COUNTER.tools(ours.tool_schemas(options.get("tools")))
            + 3
        )
        tokens += sum(COUNTER.message(OurMessage.from_wire(wire)) for wire in self.requests[-1]["wires"])
        usage = {"input_token_count": int(tokens * self.factor)}
        if not stream:
            return self._answer(contents, usage)

        async def updates() -> Any:
            for content in contents:
                yield ChatResponseUpdate(role="assistant", contents=[content], message_id="m")
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_usage(usage)], message_id="m")

        return self._build_response_stream(updates())

    def _answer(self, contents: list[Content], usage: Any) -> Awaitable[ChatResponse]:  # type: ignore[type-arg]
        async def answered() -> ChatResponse:  # type: ignore[type-arg]
            return ChatResponse(messages=[Message("assistant", contents)], usage_details=usage)

        return answered()


class Tuesday(ContextProvider):  # type: ignore[misc]
    """Adds a message to each run that is no part of the conversation."""

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_messages(self, [Message("user", ["(Today is Tuesday.)"])])


def agent_for(mode: str, store: Any, client: Any, calls: list[Any]) -> Any:
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=BUDGET_TOKENS, system_tokens=240))
    if mode == "broken":
        builder.build = lambda session, **_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    profile = Profile.from_text("You count twice.") if mode == "profile" else None
    options = {"builder": builder, "profile": profile, "on_call": calls.append}
    providers: list[Any] = [] if mode in ("theirs", "theirs_failing", "view") else [CtxstewardHistory(store, **options)]
    providers += [InMemoryHistoryProvider()] if mode.startswith("theirs") else []
    providers += [Tuesday("day")] if mode == "aside" else []
    middleware = [CtxstewardView(store, **options)] if mode == "view" else None
    return Agent(
        client,
        HEAD,
        name="books",
        tools=[look],
        context_providers=providers,
        middleware=middleware,
        require_per_service_call_history_persistence=mode == "per_call",
    )


@contextmanager
def warnings_to(told: list[str]) -> Iterator[None]:
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("ctxsteward").addHandler(handler)
    yield
    logging.getLogger("ctxsteward").removeHandler(handler)


def look(at: int) -> str:
    """Look into the books."""
    return lines(at)


async def run(agent: Any, text: str, session: Any, *, stream: bool) -> None:
    if not stream:
        await agent.run(text, session=session)
        return
    updates = agent.run(text, session=session, stream=True)
    async for _ in updates:
        pass
    await updates.get_final_response()


async def played(mode: str, uri: str, first: int, last: int) -> dict[str, Any]:
    warned: list[str] = []
    client, calls = ScriptedClient(1.5 if mode == "dear" else 1.0, fails="failing" in mode), []  # type: ignore[var-annotated]
    with open_store(uri) as store, warnings_to(warned):
        agent = agent_for(mode, store, client, calls)
        session = AgentSession(session_id="chat-1")
        for turn in range(first, last + 1):
            text = f"This is turn {turn}. " + (
                "My budget is 4711 yen." if turn == 5 else "Go on with the books, please."
            )
            if turn == 50:
                text = "turn 50: what was my budget in yen?"
            try:
                await run(agent, text, session, stream=turn % 2 == 0)
            except Exception:  # the framework wraps what the client raises
                await run(agent, text, session, stream=False)
        log = store.session("chat-1")
        entries = EntryLog(store, "chat-1/ctxsteward").read()
        forks = [name for name in store.sessions() if "-fork-" in name]
        return {
            "requests": client.requests,
            "state": session.to_dict()["state"],
            "history": entries,
            "forks": forks,
            "log": [entry.message.wire for entry in log.entries()],
            "warned": warned,
            "tokens": [sum(COUNTER.message(OurMessage.from_wire(w)) for w in one["wires"]) for one in client.requests],
            "dynamic": [call.envelope.section("dynamic").tokens for call in calls],
            "overflow": [call.envelope.section("dynamic").overflow_tokens for call in calls],
            "calibration": calls[-1].builder.calibration if calls else None,
            "reports": len(log.reports()),
            "replaced": list(REPLACED),
        }


REPLACED: list[tuple[str, int]] = []
"""What contexts were told of: role of the replacement, how many messages it stands for."""


def spy() -> None:
    record = ours.ChatContext.record_message_replacement

    def recorded(self: Any, replacement: Any, sources: Any) -> Any:
        REPLACED.append((replacement.role, len(sources)))
        return record(self, replacement, sources)

    ours.ChatContext.record_message_replacement = recorded


def main(*specs: str) -> None:
    spy()
    told: dict[str, Any] = {"doctests_failed": doctest.testmod(ours, optionflags=doctest.ELLIPSIS).failed}
    for mode, first, last, uri in zip(*[iter(specs)] * 4, strict=True):
        REPLACED.clear()
        told[mode] = asyncio.run(played(mode, uri, int(first), int(last)))
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
