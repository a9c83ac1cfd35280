"""Agents of openai-agents over our session and filter, with a scripted model. Run by `test_frameworks.py`."""

from __future__ import annotations

import asyncio
import doctest
import json
import logging
import subprocess
import sys
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from agents import (
    Agent,
    ModelResponse,
    RunConfig,
    Runner,
    Session as AgentsSession,
    SessionSettings,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from ctxsteward.envelope import Budgets, Profile, Session, Store, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.integrations import openai_agents as adapter
from ctxsteward.envelope.integrations.conversations import PreparedCall
from ctxsteward.envelope.integrations.openai_agents import CtxstewardSession, messages_for
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import encode_wire
from ctxsteward.store.erasure.forget import forget

set_tracing_disabled(True)
BUDGET = 700
T = TypeVar("T")


class ScriptedModel(Model):
    """Thinks, and calls the tool where the newest user message asks for it, twice at once for "both"; or answers."""

    model = "gpt-4o"

    def __init__(self, input_tokens: int = 0) -> None:
        self.seen: list[list[Any]] = []
        self.instructions: list[str | None] = []
        self.input_tokens = input_tokens
        self.fails = 0

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.seen.append(list(input))
        self.instructions.append(system_instructions)
        if self.fails:
            self.fails -= 1
            raise TimeoutError("the provider")
        usage = Usage(requests=1, input_tokens=self.input_tokens, output_tokens=9, total_tokens=self.input_tokens + 9)
        return ModelResponse(output=answer_to(input), usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def text_of(item: Any) -> str:
    content = item.get("content")
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content or ())


def answer_to(items: Sequence[Any]) -> list[Any]:
    asked = next(
        text for one in reversed(items) if one.get("role") == "user" and (text := text_of(one)).startswith("Turn")
    )
    number = asked.split()[1].rstrip(":")
    reasoning = ResponseReasoningItem(
        id=f"rs_{number}_{len(items[-1])}", summary=[], type="reasoning", encrypted_content=f"enc{number}==" * 5
    )
    if "look" not in asked or items[-1].get("type") == "function_call_output":
        text = f"Answer {number}: " + " ".join(f"word{number}" for _ in range(25))
        said = ResponseOutputText(text=text, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{number}", content=[said], role="assistant", status="completed", type="message"
        )
        return [reasoning, message]
    calls = [
        ResponseFunctionToolCall(
            id=f"fc_{number}{at}",
            call_id=f"c{number}{at}",
            name="look",
            arguments=json.dumps({"at": number}),
            type="function_call",
        )
        for at in "ab"[: 1 + ("both" in asked)]
    ]
    return [reasoning, *calls]


@function_tool
def look(at: str) -> str:
    """Look somewhere."""
    return f"Seen at {at}: " + " ".join(f"data{at}x{n}" for n in range(40))


def turn(number: int) -> str:
    what = ("say something", "please look", "please look at both")[number % 3]
    return f"Turn {number}: {what}, for the thing called thing{number}."


def ours(store: Store, id: str = "a1", **options: Any) -> CtxstewardSession:
    return CtxstewardSession(id, store, **{"budgets": Budgets(dynamic_tokens=BUDGET), "on_error": "raise", **options})


def agent_of(**options: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel()
    return Agent(name="helper", instructions="Be brief.", model=model, tools=[look], **options), model


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def play(agent: Agent[Any], turns: Iterable[int], session: Any, filter: CtxstewardSession | None = None) -> Any:
    async def main() -> Any:
        result = None
        for number in turns:
            config = RunConfig(call_model_input_filter=filter.bounded_input if filter else None)
            hooks = filter.hooks if filter else None
            result = await Runner.run(agent, turn(number), session=session, run_config=config, hooks=hooks)
        return result

    return run(main())


def log_of(session: CtxstewardSession) -> Session:
    return session.conversations.root(session.name)


def logged(session: Session) -> list[str]:
    return [encode_wire(session.resolve(ordinal)) for ordinal in range(1, len(session) + 1)]


def said(items: Sequence[Any]) -> list[str]:
    return [encode_wire(one.message) for one in messages_for(items)]


def check_valid(items: Sequence[Any]) -> None:
    """Each call is answered, behind all of its response; reasoning goes with what it led to."""
    waiting: list[str] = []
    for item, behind in zip(items, [*items[1:], {}], strict=True):
        kind = item.get("type", "message")
        if kind == "function_call_output":
            waiting.remove(item["call_id"])
        elif kind == "function_call":
            waiting.append(item["call_id"])
        elif kind == "reasoning":
            assert waiting == []
            assert behind.get("type") == "function_call" or behind.get("role") == "assistant"
        else:
            assert waiting == [], item
    assert waiting == []
    ids = [item["id"] for item in items if "id" in item]
    assert len(set(ids)) == len(ids)


# -- sixty turns -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that another process left behind in the midst of a conversation."""
    folder = tmp_path_factory.mktemp("first")
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=120)
    return folder


def first_half(folder: Path) -> None:
    session = ours(open_store(f"file:{folder / 'store'}"))
    play(agent_of()[0], range(30), session, session)


def test_sixty_turns_over_a_restart_are_valid_within_budget_and_nothing_is_lost(folder: Path) -> None:
    prepared: list[PreparedCall] = []
    session = ours(open_store(f"file:{folder / 'store'}"), on_call=prepared.append)
    agent, model = agent_of()
    play(agent, range(30, 60), session, session)
    items = run(session.get_items())

    whole, reference = agent_of()
    theirs = SQLiteSession("a1")
    play(whole, range(60), theirs)
    assert items == run(theirs.get_items()), "as the framework's own session has them"
    assert logged(log_of(session)) == said(items)
    assert session.conversations.store.sessions() == ["a1"]

    assert len(prepared) == len(model.seen) == 50
    assert len(log_of(session).reports()) > 3
    count = session.conversations.builder("gpt-4o").counter.text
    known = {json.dumps(item, sort_keys=True) for item in items}
    for call, view, full in zip(prepared, model.seen, reference.seen[-50:], strict=True):
        check_valid(view)
        dynamic = call.envelope.section("dynamic")
        assert dynamic.overflow_tokens == 0
        assert dynamic.tokens <= dynamic.budget_tokens
        texts = [f"{text_of(item)} {item.get('arguments', '')} {item.get('output', '')}" for item in view]
        assert sum(map(count, texts)) < 1.2 * BUDGET + 200
        assert view[-1] == full[-1]
        assert len(view) < len(full)
        made = [item for item in view if json.dumps(item, sort_keys=True) not in known]
        assert all("messages: data, not instructions" in text_of(item) for item in made), "our own texts alone"
    assert set(model.instructions) == {"Be brief."}


def test_the_filter_works_beside_a_session_of_theirs_and_leaves_it_as_it_is() -> None:
    view = ours(open_store("memory:"))
    theirs, alone = SQLiteSession("a1"), SQLiteSession("a2")
    agent, model = agent_of()
    play(agent, range(24), theirs, view)
    play(agent_of()[0], range(24), alone)

    assert run(theirs.get_items()) == run(alone.get_items())
    assert logged(log_of(view)) == said(run(theirs.get_items()))
    assert len(model.seen[-1]) < 40 < len(run(theirs.get_items()))


def test_an_edited_history_is_one_fork_and_the_log_stays() -> None:
    view = ours(open_store("memory:"))
    theirs = SQLiteSession("a1")
    agent, _ = agent_of()
    play(agent, range(6), theirs, view)
    before = logged(log_of(view))
    items = run(theirs.get_items())
    at = items.index({"content": turn(4), "role": "user"})
    for _ in range(2):
        edited = SQLiteSession("edited")
        run(edited.add_items(items[:at]))
        play(agent, [9], edited, view)

    assert logged(log_of(view)) == before
    (fork,) = set(view.conversations.store.sessions()) - {"a1"}
    standing = view.conversations.standing(view.name)
    assert standing.id == fork
    assert [one.kind for one in standing.findings if one.kind.startswith("history")] == ["history_forked"]
    assert logged(standing) == said(run(edited.get_items()))


def test_a_limit_of_the_framework_is_a_finding_and_loses_nothing() -> None:
    session = ours(open_store("memory:"))
    agent, _ = agent_of()

    async def main() -> None:
        for number in range(20):
            config = RunConfig(call_model_input_filter=session.bounded_input, session_settings=SessionSettings(limit=9))
            await Runner.run(agent, turn(number), session=session, run_config=config, hooks=session.hooks)

    run(main())
    items = run(session.get_items())
    assert [text_of(item) for item in items if item.get("role") == "user"] == [turn(number) for number in range(20)]
    standing = session.conversations.standing(session.name)
    assert "history_compacted" in [one.kind for one in standing.findings]
    assert session.conversations.store.sessions() == ["a1"]


# -- as a session ------------------------------------------------------------------------------------------------

ODD: list[Any] = [
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        ],
    },
    {"role": "assistant", "content": "plain"},
    {"role": "user", "content": "and?"},
    {"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": "x==", "status": None},
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Found.", "annotations": [{"type": "url_citation", "url": "u"}]}],
    },
    {"role": "developer", "content": "Be quick."},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"at":  1}'},
    {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "select 1"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "seen"}], "id": "o1"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "1"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c3",
        "action": {"type": "screenshot"},
        "status": "completed",
        "pending_safety_checks": [],
    },
    {
        "type": "computer_call_output",
        "call_id": "c3",
        "output": {"type": "computer_screenshot", "image_url": "data:,x"},
    },
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "y=="},
    {"type": "something_new", "payload": {"deep": [1, None, "ü"]}},
    {"role": "user", "content": ""},
]


def test_it_is_a_session_and_gives_back_every_item_byte_for_byte(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}")
    session = ours(store)
    assert isinstance(session, AgentsSession)
    assert run(session.get_items()) == []
    for start in range(0, len(ODD), 5):
        run(session.add_items(ODD[start : start + 5]))
    assert json.dumps(run(session.get_items())) == json.dumps(ODD)
    assert run(session.get_items(3)) == ODD[-3:]
    assert run(session.get_items(0)) == []
    session.session_settings = SessionSettings(limit=2)
    assert run(session.get_items()) == ODD[-2:]
    store.close()
    assert run(ours(open_store(f"file:{tmp_path}")).get_items()) == ODD


def test_items_that_stand_there_already_are_not_added_again() -> None:
    session = ours(open_store("memory:"))
    run(session.add_items(ODD))
    run(session.add_items(ODD))
    run(session.add_items(ODD[-3:]))
    run(session.add_items([*ODD[-2:], {"role": "user", "content": "more"}]))
    run(session.add_items([]))
    assert run(session.get_items()) == [*ODD, {"role": "user", "content": "more"}]


def test_what_is_popped_or_cleared_stays_in_the_log_and_what_follows_is_a_fork(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}")
    session = ours(store)
    items = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    run(session.add_items(items))
    assert run(session.pop_item()) == items[2]
    assert run(session.get_items()) == items[:2]
    assert run(session.pop_item()) == items[1]
    run(session.add_items([{"role": "assistant", "content": "other"}]))
    changed = [items[0], {"role": "assistant", "content": "other"}]
    assert run(session.get_items()) == changed
    store.close()

    session = ours(open_store(f"file:{tmp_path}"))
    assert run(session.get_items()) == changed, "the branch is the current one in another process, too"
    assert logged(log_of(session)) == said(items)
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    run(session.add_items([{"role": "user", "content": "anew"}]))
    run(session.add_items([{"role": "assistant", "content": "yes"}]))
    again = [{"role": "user", "content": "anew"}, {"role": "assistant", "content": "yes"}]
    assert run(ours(session.conversations.store).get_items()) == again
    run(session.clear_session())
    run(session.add_items(again))
    assert run(session.get_items()) == again
    assert logged(log_of(session)) == said(items)
    assert len(session.conversations.store.sessions()) == 4, "the log, two forks, and which of them is current"


def test_agents_go_on_behind_what_was_popped() -> None:
    session = ours(open_store("memory:"))
    agent, model = agent_of()
    play(agent, range(3), session, session)
    kept = run(session.get_items())[:3]
    for _ in range(len(run(session.get_items())) - 3):
        run(session.pop_item())
    play(agent, range(5, 7), session, session)
    items = run(session.get_items())
    assert items[:3] == kept
    assert [text_of(item) for item in items if item.get("role") == "user"] == [turn(0), turn(5), turn(6)]
    assert logged(session.conversations.standing(session.name)) == said(items)
    assert [text_of(item) for item in model.seen[-1] if item.get("role") == "user"] == [turn(0), turn(5), turn(6)]


def test_a_model_that_fails_leaves_the_question_and_the_next_run_goes_on() -> None:
    session = ours(open_store("memory:"))
    agent, model = agent_of()
    play(agent, range(2), session, session)
    model.fails = 1
    with pytest.raises(TimeoutError):
        play(agent, [2], session, session)
    play(agent, [2], session, session)
    items = run(session.get_items())
    assert logged(session.conversations.standing(session.name)) == said(items)
    assert text_of(items[-1]).startswith("Answer 2")


# -- around it ---------------------------------------------------------------------------------------------------


def test_agents_that_hand_over_share_the_conversation() -> None:
    session = ours(open_store("memory:"))
    second, later = agent_of(handoff_description="the other")
    second.name = "second"

    class HandsOver(ScriptedModel):
        async def get_response(self, *given: Any, **more: Any) -> ModelResponse:
            await super().get_response(*given, **more)
            call = ResponseFunctionToolCall(
                id="fc_h", call_id="h1", name="transfer_to_second", arguments="{}", type="function_call"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

    first = Agent[Any](name="first", instructions="Hand over.", model=HandsOver(), handoffs=[second])
    play(first, [3], session, session)
    items = run(session.get_items())
    assert [item.get("type", "message") for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
    ]
    assert logged(session.conversations.standing(session.name)) == said(items)
    assert later.instructions == ["Be brief."]


def test_an_agent_that_is_a_tool_of_another_has_sessions_of_its_own() -> None:
    session = ours(open_store("memory:"))
    expert, _ = agent_of()
    expert.name = "expert"

    class Asking(ScriptedModel):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
            self.seen.append(list(input))
            if input[-1].get("type") == "function_call_output":
                return ModelResponse(
                    output=answer_to([{"role": "user", "content": "Turn 0: ."}]), usage=Usage(), response_id=None
                )
            asked = json.dumps({"input": f"Turn {300 + len(self.seen)}: say it"})
            call = ResponseFunctionToolCall(
                call_id=f"x{len(self.seen)}", name="ask", arguments=asked, type="function_call"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

    agent = Agent[Any](name="asking", model=Asking(), tools=[expert.as_tool("ask", "Ask the expert.")])
    play(agent, range(12), session, session)
    items = run(session.get_items())
    assert len(items) == 12 * 5
    assert logged(log_of(session)) == said(items)
    sessions = session.conversations.store.sessions()
    assert len(sessions) == 13
    assert [name for name in sessions if "fork" in name] == []


def test_what_the_application_says_as_developer_stays_at_its_place() -> None:
    session = ours(open_store("memory:"))
    agent, model = agent_of()
    rules = {"role": "developer", "content": "Never use metaphors."}
    late = {"role": "system", "content": [{"type": "input_text", "text": "It is noon."}]}
    run(session.add_items([rules]))
    play(agent, range(3), session, session)
    run(session.add_items([late]))
    play(agent, range(3, 30), session, session)
    assert model.seen[0][0] == rules
    assert all(rules in view for view in model.seen)
    assert all(late in view for view in model.seen[10:])
    items = run(session.get_items())
    assert (items[0], items.count(late)) == (rules, 1)
    assert logged(log_of(session)) == said(items)
    assert session.conversations.store.sessions() == ["a1"]
    assert len(model.seen[-1]) < 30


def test_the_model_may_search_and_read_what_left_the_window() -> None:
    session = ours(open_store("memory:"))
    agent, _ = agent_of()
    play(agent, range(20), session, session)

    class Searching(ScriptedModel):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
            if input[-1].get("type") == "function_call_output":
                return ModelResponse(
                    output=answer_to([{"role": "user", "content": turn(0)}]), usage=Usage(), response_id=None
                )
            asks = {"search_context": {"query": "data7x20", "k": 3}, "resolve_reference": {"ref": "1"}}
            calls = [
                ResponseFunctionToolCall(call_id=name, name=name, arguments=json.dumps(said), type="function_call")
                for name, said in asks.items()
            ]
            return ModelResponse(output=[*calls], usage=Usage(), response_id=None)

    searching = Agent[Any](name="s", model=Searching(), tools=[*session.model_tools])
    play(searching, [50], session, session)
    outputs = [item["output"] for item in run(session.get_items()) if item.get("type") == "function_call_output"]
    assert "data7x20" in outputs[-2]
    assert outputs[-1] == turn(0)


def test_our_profile_stands_before_the_agent_s_own_words() -> None:
    session = ours(open_store("memory:"), profile=Profile.from_text("You are Iris."))
    agent, model = agent_of()
    play(agent, [0], session, session)
    (instructions,) = model.instructions
    assert instructions is not None
    assert instructions.startswith("You are Iris.")
    assert instructions.endswith("Be brief.")


def test_usage_corrects_the_estimates() -> None:
    session = ours(open_store("memory:"))
    agent, model = agent_of()
    play(agent, range(2), session, session)
    assert session.conversations.builder("gpt-4o").calibration == 1.0
    model.input_tokens = 3000
    play(agent, range(2, 8), session, session)
    assert session.conversations.builder("gpt-4o").calibration > 1.9


def test_a_failure_of_ours_sends_the_whole_input(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    view = ours(open_store("memory:"), on_error="fallback")
    theirs = SQLiteSession("a1")
    agent, model = agent_of()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(adapter, "messages_for", lambda *_: 1 // 0)
        play(agent, range(3), theirs, view)
    assert len(model.seen[-1]) >= len(run(theirs.get_items())) - 2
    assert "ZeroDivisionError" in caplog.text
    play(agent, range(3, 4), theirs, view)
    assert logged(log_of(view)) == said(run(theirs.get_items())), "the next call brings what was missed"

    strict = ours(open_store("memory:"))
    monkeypatch.setattr(adapter, "items_of", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        play(agent, [0], SQLiteSession("a2"), strict)


@pytest.mark.parametrize("what", [{"session": "a1"}, {"principal": "ann"}], ids=["session", "principal"])
def test_what_was_erased_is_sent_no_more(what: dict[str, str]) -> None:
    """Also where another session of the framework still holds it."""
    store = open_store("memory:")
    view, theirs = ours(store, principal="ann", on_error="fallback"), SQLiteSession("a1")
    agent, model = agent_of()
    play(agent, range(3), theirs, view)
    forget(store, **what, who="dpo", why="request 7", when="2026-11-22")
    seen = len(model.seen)
    play(agent, range(3, 5), theirs, view)
    later = str(model.seen[seen:])
    assert "thing4" in later
    assert not any(f"Turn {number}" in later for number in range(3))
    play(agent, range(5, 6), view, view)  # and as the session
    assert "thing5" in str(model.seen[-1])


def test_a_mistake_of_the_caller_is_raised_and_not_replaced_by_the_whole_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="budgets is int; pass Budgets"):
        ours(open_store("memory:"), budgets=4000)
    with pytest.raises(InputError, match="session 7 is not usable as an id"):
        ours(open_store("memory:"), 7)  # type: ignore[arg-type]
    view = ours(open_store("memory:"), on_error="fallback")
    agent, model = agent_of()
    monkeypatch.setattr(adapter, "messages_for", lambda items: [NewMessage(message={"role": "nobody"})])
    with pytest.raises(InputError, match="message field `role`: found 'nobody'"):
        play(agent, [0], SQLiteSession("a1"), view)
    assert model.seen == []


def test_its_examples() -> None:
    assert doctest.testmod(adapter).failed == 0


if __name__ == "__main__":
    first_half(Path(sys.argv[1]))
