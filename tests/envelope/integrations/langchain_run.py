"""Agents of LangChain over our middleware, with a scripted model. Run by `test_frameworks.py` where LangChain is."""

from __future__ import annotations

import asyncio
import doctest
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from ctxsteward.envelope import Budgets, ConversationName, Profile, Session, Store, open_store
from ctxsteward.envelope.integrations import langchain as adapter
from ctxsteward.envelope.integrations.conversations import PreparedCall
from ctxsteward.envelope.integrations.langchain import CtxstewardMiddleware, message_from, wire_of
from ctxsteward.schemas import InputError, Message
from ctxsteward.schemas.message import encode_wire

BUDGET = 700
THREAD: Any = {"configurable": {"thread_id": "t1"}}


class ScriptedModel(BaseChatModel):
    """Calls the tool where the newest user message asks for it, twice at once for "both"; else answers."""

    model_name: str = "gpt-4o"
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    tells_usage: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        answer = answer_to(messages)
        usage: Any = {"input_tokens": 3000, "output_tokens": 9, "total_tokens": 3009} if self.tells_usage else None
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(update={"usage_metadata": usage}))])


def answer_to(messages: list[BaseMessage]) -> AIMessage:
    asked = next(
        one.text for one in reversed(messages) if isinstance(one, HumanMessage) and one.text.startswith("Turn")
    )
    number = asked.split()[1].rstrip(":")
    if isinstance(messages[-1], ToolMessage) or "look" not in asked:
        return AIMessage(f"Answer {number}: " + " ".join(f"word{number}" for _ in range(25)))
    calls = [{"id": f"c{number}{at}", "name": "look", "args": {"at": number}} for at in "ab"[: 1 + ("both" in asked)]]
    return AIMessage(
        [{"type": "thinking", "thinking": f"Let me see {number}.", "signature": f"sig{number}"}], tool_calls=calls
    )


def look(at: str) -> str:
    """Look somewhere."""
    return f"Seen at {at}: " + " ".join(f"data{at}x{n}" for n in range(40))


def turn(number: int) -> str:
    what = ("say something", "please look", "please look at both")[number % 3]
    return f"Turn {number}: {what}, for the thing called thing{number}."


class Spy(AgentMiddleware[Any, Any, Any]):
    """Keeps the requests that pass it."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest[Any]] = []

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        self.requests.append(request)
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        self.requests.append(request)
        return await handler(request)


class Before(Spy):
    pass


def ours(store: Store, **options: Any) -> CtxstewardMiddleware:
    return CtxstewardMiddleware(store, **{"budgets": Budgets(dynamic_tokens=BUDGET), "on_error": "raise", **options})


def agent_of(*middleware: Any, tools: Any = (look,), **options: Any) -> Any:
    model = ScriptedModel(seen=[])
    agent = create_agent(model, list(tools), system_prompt="Be brief.", middleware=middleware, **options)
    return agent, model


def play(agent: Any, turns: range, history: list[BaseMessage] | None = None) -> list[BaseMessage]:
    messages = list(history or ())
    for number in turns:
        messages = agent.invoke({"messages": [*messages, HumanMessage(turn(number))]}, THREAD)["messages"]
    return messages


def session_of(middleware: CtxstewardMiddleware, id: str = "t1") -> Session:
    return middleware.conversations.root(ConversationName(id))


def said(messages: list[BaseMessage]) -> list[str]:
    return [encode_wire(wire_of(message)) for message in messages]


def logged(session: Session) -> list[str]:
    return [encode_wire(session.resolve(ordinal)) for ordinal in range(1, len(session) + 1)]


def check_valid(messages: list[BaseMessage]) -> None:
    """Every call is answered at once, and every answer has its call."""
    waiting: list[str] = []
    speakers = [message for message in messages if not isinstance(message, SystemMessage)]
    assert isinstance(speakers[0], HumanMessage)
    for message in speakers:
        if isinstance(message, ToolMessage):
            waiting.remove(message.tool_call_id)
            continue
        assert waiting == [], message
        if isinstance(message, AIMessage):
            assert message.text or message.tool_calls
            waiting = [str(call["id"]) for call in message.tool_calls]
            assert len(set(waiting)) == len(waiting)
    assert waiting == []


def plain(message: BaseMessage) -> tuple[Any, ...]:
    """A message without what each run draws anew."""
    return message.type, message.content, getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)


# -- sixty turns -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a history that another process left behind in the midst of a conversation."""
    folder = tmp_path_factory.mktemp("first")
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=120)
    return folder


def first_half(folder: Path) -> None:
    middleware = ours(open_store(f"file:{folder / 'store'}"))
    agent, _ = agent_of(middleware)
    (folder / "history.json").write_text(json.dumps(messages_to_dict(play(agent, range(30)))), encoding="utf-8")


def test_sixty_turns_over_a_restart_are_valid_within_budget_and_nothing_is_lost(folder: Path) -> None:
    history = messages_from_dict(json.loads((folder / "history.json").read_text("utf-8")))
    prepared: list[PreparedCall] = []
    middleware = ours(open_store(f"file:{folder / 'store'}"), on_call=prepared.append)
    before, after = Before(), Spy()
    agent, model = agent_of(before, middleware, after)
    messages = play(agent, range(30, 60), history)

    assert len(prepared) == len(model.seen) == 50
    assert logged(session_of(middleware)) == said(messages)
    assert middleware.conversations.store.sessions() == ["t1"]
    assert len(session_of(middleware).reports()) > 3
    count = middleware.conversations.builder("gpt-4o").counter.text
    for call, view, handed in zip(prepared, after.requests, before.requests, strict=True):
        check_valid(view.messages)
        dynamic = call.envelope.section("dynamic")
        assert dynamic.overflow_tokens == 0
        assert dynamic.tokens <= dynamic.budget_tokens
        texts = [f"{message.text} {getattr(message, 'tool_calls', '')}" for message in view.messages]
        assert sum(map(count, texts)) < 1.2 * BUDGET + 200
        assert view.messages[-1] is handed.messages[-1]
        assert view.system_message is handed.system_message
    shown = [message for view in after.requests for message in view.messages]
    held = {id(message) for handed in before.requests for message in handed.messages}
    assert {message.type for message in shown if id(message) not in held} == {"human"}, "our own texts alone"
    assert any("thing31" in message.text for message in after.requests[-1].messages) is False

    whole, _ = agent_of()
    assert [plain(one) for one in messages] == [plain(one) for one in play(whole, range(60))], "the state is untouched"


def test_async_agents_see_the_same() -> None:
    middleware, after = ours(open_store("memory:")), Spy()
    agent, model = agent_of(middleware, after, checkpointer=InMemorySaver())

    async def main() -> None:
        for number in range(24):
            await agent.ainvoke({"messages": [{"role": "user", "content": turn(number)}]}, THREAD)

    asyncio.run(main())
    state = agent.get_state(THREAD).values["messages"]
    assert logged(session_of(middleware)) == said(state)
    assert len(model.seen[-1]) < len(state) / 2
    for view in after.requests:
        check_valid(view.messages)


def test_a_checkpointed_thread_is_one_session_and_a_named_sub_agent_its_own() -> None:
    middleware = ours(open_store("memory:"))
    helper, _ = agent_of(middleware, name="helper")

    def ask_helper(at: str) -> str:
        """Ask the other agent."""
        return str(helper.invoke({"messages": [HumanMessage("Turn 0: help")]})["messages"][-1].text)

    ask_helper.__name__ = "look"
    agent, _ = agent_of(middleware, tools=[ask_helper], checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage(turn(1))]}, THREAD)
    agent.invoke({"messages": [HumanMessage(turn(3))]}, THREAD)

    assert sorted(middleware.conversations.store.sessions()) == ["t1", "t1-helper"]
    assert len(session_of(middleware)) == 6
    assert len(session_of(middleware, "t1-helper")) == 2


def test_an_edited_history_is_one_fork_and_the_log_stays() -> None:
    middleware = ours(open_store("memory:"))
    agent, _ = agent_of(middleware)
    messages = play(agent, range(6))
    before = logged(session_of(middleware))
    at = next(index for index, one in enumerate(messages) if one.text == turn(4))
    edited = [*messages[:at], HumanMessage("Turn 4: something else.")]
    for _ in range(2):
        again = agent.invoke({"messages": edited}, THREAD)["messages"]

    assert logged(session_of(middleware)) == before
    (fork,) = set(middleware.conversations.store.sessions()) - {"t1"}
    standing = middleware.conversations.standing(ConversationName("t1"))
    assert standing.id == fork
    assert [one.kind for one in standing.findings if one.kind.startswith("history")] == ["history_forked"]
    assert logged(standing) == said(again)


def test_a_regenerated_answer_is_one_fork() -> None:
    middleware = ours(open_store("memory:"))
    agent, _ = agent_of(middleware)
    messages = play(agent, range(4))

    class Otherwise(ScriptedModel):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Another answer."))])

    told = create_agent(Otherwise(), [look], middleware=[middleware]).invoke({"messages": messages[:-1]}, THREAD)
    assert len(middleware.conversations.store.sessions()) == 2
    assert logged(middleware.conversations.standing(ConversationName("t1"))) == said(told["messages"])
    assert logged(session_of(middleware)) == said(messages)


def test_a_summary_of_the_framework_beside_ours_is_a_finding_and_loses_nothing() -> None:
    class Summarizer(ScriptedModel):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("They talked."))])

    middleware = ours(open_store("memory:"))
    summaries = SummarizationMiddleware(Summarizer(), trigger=("messages", 20), keep=("messages", 8))
    agent, _ = agent_of(summaries, middleware, checkpointer=InMemorySaver())
    heard: list[str] = []
    for number in range(40):
        state = agent.invoke({"messages": [HumanMessage(turn(number))]}, THREAD)["messages"]
        newest = max(at for at, one in enumerate(state) if one.text == turn(number))
        heard += said(state[newest:])

    session = middleware.conversations.standing(ConversationName("t1"))
    assert "They talked." in state[0].text
    assert logged(session) == heard
    assert middleware.conversations.store.sessions() == ["t1"]
    assert "history_compacted" in [one.kind for one in session.findings]


# -- messages ----------------------------------------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ODD: dict[str, BaseMessage] = {
    "text": HumanMessage("hi", name="ada"),
    "empty": HumanMessage(""),
    "blocks": HumanMessage(["hi", {"type": "text", "text": "there", "cache_control": {"type": "ephemeral"}}]),
    "image url": HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]),
    "file": HumanMessage([{"type": "file", "file": {"file_id": "f-1"}}]),
    "no type": HumanMessage([{"cachePoint": {"type": "default"}}, {"text": "bedrock"}]),
    "text that is none": HumanMessage([{"type": "text", "text": None}]),
    "thinking": AIMessage(
        [{"type": "thinking", "thinking": "so", "signature": "s=="}, {"type": "text", "text": "Noon."}],
        response_metadata={"model_provider": "anthropic"},
    ),
    "redacted": AIMessage([{"type": "redacted_thinking", "data": "x=="}, {"type": "text", "text": "Noon."}]),
    "reasoning": AIMessage(
        [{"type": "reasoning", "id": "rs_1", "encrypted_content": "e==", "summary": []}, {"type": "text", "text": "1"}],
        additional_kwargs={"reasoning": {"id": "rs_1"}, "__kept__": {"a": [1]}},
    ),
    "calls": AIMessage("", tool_calls=[{"id": "c1", "name": "look", "args": {"at": "ü", "n": 1}}]),
    "a call that is no JSON": AIMessage(
        "", invalid_tool_calls=[{"id": "c2", "name": "look", "args": "{", "error": None}]
    ),
    "result": ToolMessage("seen", tool_call_id="c1", name="look"),
    "error": ToolMessage("no", tool_call_id="c1", name="look", status="error"),
    "result blocks": ToolMessage(
        [{"type": "text", "text": "seen"}, {"type": "tool_reference", "x": 1}], tool_call_id="c"
    ),
    "system": SystemMessage("Be kind."),
}


@pytest.mark.parametrize("message", ODD.values(), ids=ODD)
def test_a_message_comes_back_out_of_the_log_as_it_was(message: BaseMessage) -> None:
    session = open_store("memory:").session("s")
    session.append(wire_of(message))
    stored = session.resolve(1)
    back = message_from(stored.wire, [(call.id, call.name, call.arguments) for call in stored.tool_calls])
    assert (type(back), back.model_dump()) == (type(message), message.model_dump())


def test_a_call_that_its_provider_also_has_as_a_block_is_one_call() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
    message = AIMessage(
        [{"type": "text", "text": "Let me see."}, block], tool_calls=[{"id": "c1", "name": "look", "args": {"at": 1}}]
    )
    assert [call.id for call in Message.from_wire(wire_of(message)).tool_calls] == ["c1"]


def test_what_cannot_be_json_is_kept_as_text_and_breaks_nothing() -> None:
    message = HumanMessage([{"type": "blob", "value": object()}, {"type": "image", "base64": PIXEL}])  # type: ignore[list-item]
    read = Message.from_wire(wire_of(message))
    assert [part.kind for part in read.parts] == ["opaque", "image"]


def test_messages_of_the_window_are_the_very_objects_and_what_the_state_lost_is_made_again() -> None:
    middleware, after = ours(open_store("memory:"), budgets=Budgets(dynamic_tokens=4000)), Spy()
    agent, _ = agent_of(middleware, after)
    messages = play(agent, range(5))
    handed = [*messages, HumanMessage(turn(6))]
    messages = agent.invoke({"messages": handed}, THREAD)["messages"]
    assert [*map(id, after.requests[-1].messages)] == [*map(id, handed)]
    lately = [HumanMessage("They talked."), *messages[-4:], HumanMessage(turn(9))]
    agent.invoke({"messages": lately}, THREAD)
    view = after.requests[-1].messages
    assert [plain(one) for one in view[: len(messages)]] == [plain(one) for one in messages]
    assert any(isinstance(one.content, list) and one.content[0]["type"] == "thinking" for one in view)  # type: ignore[index]


# -- around it ---------------------------------------------------------------------------------------------------


def test_the_model_may_search_and_read_what_left_the_window() -> None:
    middleware = ours(open_store("memory:"), model_tools=True)

    class Searching(ScriptedModel):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            calls: list[Any] = []
            if messages[-1].text.startswith("Find"):
                calls = [
                    {"id": "s1", "name": "search_context", "args": {"query": "thing2", "k": 3}},
                    {"id": "s2", "name": "resolve_reference", "args": {"ref": "1"}},
                ]
            answer = AIMessage("Here." if not calls else "", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=answer)])

    agent, _ = agent_of(middleware)
    messages = play(agent, range(20))
    searching = create_agent(Searching(), [look], middleware=[middleware])
    found = searching.invoke({"messages": [*messages, HumanMessage("Find it.")]}, THREAD)["messages"]
    results = [one.text for one in found if isinstance(one, ToolMessage)][-2:]
    assert "thing2" in results[0]
    assert "§" in results[0]
    assert results[1] == turn(0)
    names = [tool["function"]["name"] for tool in session_of(middleware).state.head.tools]
    assert names == ["search_context", "resolve_reference", "look"]


def test_the_agent_s_plan_is_a_note_at_the_end_of_the_window() -> None:
    class Planning(ScriptedModel):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            self.seen.append(list(messages))
            plan: Any = {"todos": [{"content": "book the ferry", "status": "in_progress"}]}
            first = not any(isinstance(one, ToolMessage) for one in messages)
            calls: Any = [{"id": "p1", "name": "write_todos", "args": plan}] if first else []
            return ChatResult(generations=[ChatGeneration(message=AIMessage("" if first else "Ok.", tool_calls=calls))])

    middleware = ours(open_store("memory:"))
    model = Planning(seen=[])
    agent = create_agent(model, [look], middleware=[TodoListMiddleware(), middleware], checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("Plan a trip.")]}, THREAD)
    assert "[in_progress] book the ferry" in model.seen[-1][-1].text
    assert session_of(middleware).state.notes == {"todos": "[in_progress] book the ferry"}


def test_our_profile_stands_before_the_agent_s_own_words() -> None:
    middleware, after = ours(open_store("memory:"), profile=Profile.from_text("You are Iris.")), Spy()
    agent, _ = agent_of(middleware, after)
    play(agent, range(1))
    (request,) = after.requests
    assert request.system_message is not None
    assert request.system_message.text.startswith("You are Iris.")
    assert request.system_message.text.endswith("Be brief.")


def test_usage_corrects_the_estimates() -> None:
    middleware = ours(open_store("memory:"))
    agent, model = agent_of(middleware)
    play(agent, range(2))
    assert middleware.conversations.builder("gpt-4o").calibration == 1.0
    model.tells_usage = True
    play(agent, range(8))
    assert middleware.conversations.builder("gpt-4o").calibration > 1.9


def test_a_failure_of_ours_sends_the_agent_s_own_messages(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for broken in ("wire_of", "messages_of"):
        middleware = ours(open_store("memory:"), on_error="fallback")
        agent, model = agent_of(middleware)
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(adapter, broken, lambda *_: 1 // 0)
            messages = play(agent, range(3))
        assert [plain(one) for one in model.seen[-1][1:]] == [plain(one) for one in messages[:-1]]
        assert "ZeroDivisionError" in caplog.text
        play(agent, range(3, 4), messages)
        assert len(session_of(middleware)) > len(messages), "the next call brings what was missed"

        strict, _ = agent_of(ours(open_store("memory:")))
        with monkeypatch.context() as patch:
            patch.setattr(adapter, broken, lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                play(strict, range(1))


def test_a_store_that_fails_does_not_stop_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    middleware = ours(open_store("memory:"), on_error="fallback")
    agent, model = agent_of(middleware)
    messages = play(agent, range(3))
    middleware.conversations.store.close()
    session_of(middleware).journal.append = lambda *_: 1 // 0  # type: ignore[method-assign,assignment]
    messages = play(agent, range(3, 6), messages)
    assert messages[-1].text.startswith("Answer 5")
    assert len(model.seen[-1]) >= len(messages) - 1


def test_a_mistake_of_the_caller_is_raised_and_not_replaced_by_the_whole_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="budgets is int; pass Budgets"):
        ours(open_store("memory:"), budgets=4000)
    with pytest.raises(InputError, match="session 7 is not usable as an id"):
        ours(open_store("memory:"), session=7)
    agent, model = agent_of(ours(open_store("memory:"), on_error="fallback"))
    monkeypatch.setattr(adapter, "wire_of", lambda message: {"role": "nobody"})
    with pytest.raises(InputError, match="message field `role`: found 'nobody'"):
        play(agent, range(1))
    assert model.seen == []


def test_without_a_thread_or_a_session_it_says_what_to_write() -> None:
    agent, _ = agent_of(ours(open_store("memory:"), on_error="fallback"))
    with pytest.raises(InputError, match="no session is named"):
        agent.invoke({"messages": [HumanMessage(turn(0))]})
    named, _ = agent_of(ours(open_store("memory:"), session="chat-1"))
    assert named.invoke({"messages": [HumanMessage(turn(0))]})["messages"][-1].text.startswith("Answer 0")


def test_its_examples() -> None:
    assert doctest.testmod(adapter).failed == 0


if __name__ == "__main__":
    first_half(Path(sys.argv[1]))
