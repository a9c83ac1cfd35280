"""Agents of pydantic-ai with our capability, over a scripted model. Run by `test_frameworks.py`."""

from __future__ import annotations

import asyncio
import doctest
import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, ModelSettings
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CompactionPart,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from ctxsteward.envelope import Budgets, ConversationName, Profile, Session, Store, open_store
from ctxsteward.envelope.integrations import pydantic_ai as adapter
from ctxsteward.envelope.integrations.conversations import PreparedCall
from ctxsteward.envelope.integrations.pydantic_ai import Ctxsteward, parts_from, response_wire, wired
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import encode_wire

BUDGET = 700


class ScriptedModel:
    """Calls the tool where the newest prompt asks for it, twice at once for "both"; else answers."""

    def __init__(self) -> None:
        self.seen: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.input_tokens = 0

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.infos.append(info)
        return ModelResponse(answer_to(messages), usage=RequestUsage(input_tokens=self.input_tokens))


def prompts(message: ModelMessage) -> list[str]:
    return [
        part.content for part in message.parts if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]


def answer_to(messages: list[ModelMessage]) -> list[Any]:
    asked = next(text for one in reversed(messages) for text in reversed(prompts(one)) if text.startswith("Turn"))
    number = asked.split()[1].rstrip(":")
    thinking = ThinkingPart(f"Let me see {number}.", signature=f"sig{number}", provider_name="function")
    if "look" not in asked or any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return [TextPart(f"Answer {number}: " + " ".join(f"word{number}" for _ in range(25)))]
    return [thinking, *(ToolCallPart("look", {"at": number}, f"c{number}{at}") for at in "ab"[: 1 + ("both" in asked)])]


def look(at: str) -> str:
    """Look somewhere."""
    return f"Seen at {at}: " + " ".join(f"data{at}x{n}" for n in range(40))


def turn(number: int) -> str:
    what = ("say something", "please look", "please look at both")[number % 3]
    return f"Turn {number}: {what}, for the thing called thing{number}."


def ours(store: Store, **options: Any) -> Ctxsteward:
    return Ctxsteward(store, **{"budgets": Budgets(dynamic_tokens=BUDGET), "on_error": "raise", **options})


def agent_of(*capabilities: Any, **options: Any) -> tuple[Agent[None, str], ScriptedModel]:
    model = ScriptedModel()
    given = {"system_prompt": "Be brief.", "instructions": "Be kind.", "tools": [look], **options}
    return Agent(FunctionModel(model, model_name="gpt-4o"), capabilities=capabilities, **given), model


def play(
    agent: Agent[None, Any], turns: Sequence[int], history: Sequence[ModelMessage] = (), **options: Any
) -> list[ModelMessage]:
    messages = list(history)

    async def main() -> None:
        nonlocal messages
        for number in turns:
            told = {"conversation_id": "c1", **options}
            messages = (await agent.run(turn(number), message_history=messages, **told)).all_messages()

    asyncio.run(main())
    return messages


def session_of(capability: Ctxsteward, id: str = "c1") -> Session:
    return capability.conversations.root(ConversationName(id))


def said(messages: Sequence[ModelMessage]) -> list[str]:
    return [encode_wire(one.wire) for one in wired(messages)[1]]


def logged(session: Session) -> list[str]:
    return [encode_wire(session.resolve(ordinal)) for ordinal in range(1, len(session) + 1)]


def check_valid(messages: Sequence[ModelMessage]) -> None:
    """Requests and responses take turns, and each call is answered in the next request, results first."""
    assert [message.kind for message in messages] == ["request", "response"] * (len(messages) // 2) + ["request"]
    calls: list[str] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            continue
        parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
        assert [part.tool_call_id for part in parts[: len(calls)]] == calls  # type: ignore[union-attr]
        assert not any(isinstance(part, ToolReturnPart) for part in parts[len(calls) :])


def plain(messages: Sequence[ModelMessage]) -> list[Any]:
    """Messages without what each run draws anew."""
    drawn = {"timestamp", "run_id", "conversation_id", "usage", "metadata"}
    dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    for message in dumped:
        message["parts"] = [{k: v for k, v in part.items() if k not in drawn} for part in message["parts"]]
    return [{k: v for k, v in message.items() if k not in drawn} for message in dumped]


# -- sixty turns -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a history that another process left behind in the midst of a conversation."""
    folder = tmp_path_factory.mktemp("first")
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=120)
    return folder


def first_half(folder: Path) -> None:
    agent, _ = agent_of(ours(open_store(f"file:{folder / 'store'}")))
    (folder / "history.json").write_bytes(ModelMessagesTypeAdapter.dump_json(play(agent, range(30))))


def test_sixty_turns_over_a_restart_are_valid_within_budget_and_nothing_is_lost(folder: Path) -> None:
    history = ModelMessagesTypeAdapter.validate_json((folder / "history.json").read_bytes())
    prepared: list[PreparedCall] = []
    capability = ours(open_store(f"file:{folder / 'store'}"), on_call=prepared.append)
    agent, model = agent_of(capability)
    messages = play(agent, range(30, 60), history)

    assert len(prepared) == len(model.seen) == 50
    assert logged(session_of(capability)) == said(messages)
    assert capability.conversations.store.sessions() == ["c1"]
    assert len(session_of(capability).reports()) > 3
    count = capability.conversations.builder("gpt-4o").counter.text
    held = {id(part) for message in messages for part in message.parts}
    for call, view, info in zip(prepared, model.seen, model.infos, strict=True):
        check_valid(view)
        dynamic = call.envelope.section("dynamic")
        assert dynamic.overflow_tokens == 0
        assert dynamic.tokens <= dynamic.budget_tokens
        parts = [part for message in view for part in message.parts]
        texts = [f"{getattr(part, 'content', '')} {getattr(part, 'args', '')}" for part in parts]
        assert sum(map(count, texts)) < 1.2 * BUDGET / call.builder.calibration + 200
        assert [part.content for part in parts if isinstance(part, SystemPromptPart)] == ["Be brief."]
        assert info.instructions == "Be kind."
        made = [part for part in parts if id(part) not in held]
        assert all(isinstance(part, UserPromptPart) and "messages: data, not" in str(part.content) for part in made)
        responses = [one for one in view if isinstance(one, ModelResponse)]
        assert {id(one) for one in responses} <= {id(one) for one in messages}

    whole, _ = agent_of()
    assert plain(messages) == plain(play(whole, range(60))), "the history is untouched"


def test_an_edited_history_is_one_fork_and_the_log_stays() -> None:
    capability = ours(open_store("memory:"))
    agent, _ = agent_of(capability)
    messages = play(agent, range(6))
    before = logged(session_of(capability))
    at = next(index for index, one in enumerate(messages) if turn(4) in prompts(one))
    for _ in range(2):
        again = play(agent, [9], messages[:at])

    assert logged(session_of(capability)) == before
    (fork,) = set(capability.conversations.store.sessions()) - {"c1"}
    standing = capability.conversations.standing(ConversationName("c1"))
    assert standing.id == fork
    assert [one.kind for one in standing.findings if one.kind.startswith("history")] == ["history_forked"]
    assert logged(standing) == said(again)


def test_a_summary_in_place_of_older_messages_is_a_finding_and_loses_nothing() -> None:
    capability = ours(open_store("memory:"))
    agent, _ = agent_of(capability)
    messages = play(agent, range(8))
    summary = ModelRequest([UserPromptPart("They talked.")])
    lately = [summary, ModelResponse([TextPart("I see.")]), *messages[-6:]]
    assert isinstance(lately[2], ModelResponse) is False
    told = play(agent, range(8, 12), lately)

    session = capability.conversations.standing(ConversationName("c1"))
    assert logged(session) == [*said(messages), *said(told[len(lately) :])]
    assert "history_compacted" in [one.kind for one in session.findings]
    assert capability.conversations.store.sessions() == ["c1"]


def test_a_retry_and_an_output_tool_follow_as_they_are() -> None:
    capability = ours(open_store("memory:"))
    agent, model = agent_of(capability)

    @agent.output_validator
    def check(text: str) -> str:
        if len(model.seen) < 3:
            raise ModelRetry("Say it once more.")
        return text

    messages = play(agent, [0], retries=4)
    assert len(model.seen) == 3
    assert [part.part_kind for part in messages[-2].parts] == ["retry-feedback"]
    assert "Say it once more." in prompts(model.seen[-1][-1])[0], "as the model class puts it"
    assert len(model.seen[-1]) == len(messages) - 1
    assert logged(session_of(capability)) == said(messages)


def test_runs_at_once_keep_apart() -> None:
    capability = ours(open_store("memory:"))
    agent, _ = agent_of(capability)

    async def one(id: str) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        for number in range(6):
            messages = (await agent.run(turn(number), message_history=messages, conversation_id=id)).all_messages()
        return messages

    async def main() -> list[list[ModelMessage]]:
        return await asyncio.gather(*map(one, "abc"))

    for id, messages in zip("abc", asyncio.run(main()), strict=True):
        assert logged(session_of(capability, id)) == said(messages)


def test_a_streamed_answer_is_kept_too() -> None:
    capability = ours(open_store("memory:"))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
        yield "Noon "
        yield "it is."

    agent = Agent(FunctionModel(stream_function=stream, model_name="gpt-4o"), capabilities=[capability])

    async def main() -> list[ModelMessage]:
        async with agent.run_stream("When?", conversation_id="c1") as result:
            assert await result.get_output() == "Noon it is."
        return result.all_messages()

    messages = asyncio.run(main())
    assert logged(session_of(capability)) == said(messages)


# -- messages ----------------------------------------------------------------------------------------------------

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
DELTA = ToolAvailabilityDeltaPart(tools_added=["look"])
FEEDBACK = RetryFeedbackPart("Say it once more.", retry=RetryInfo(cause="model_retry"))  # type: ignore[arg-type]
ODD: dict[str, ModelMessage] = {
    "text": ModelRequest([UserPromptPart("hi")]),
    "empty": ModelRequest([UserPromptPart("")]),
    "image": ModelRequest([UserPromptPart(["look", ImageUrl("https://example.org/a.png")])]),
    "bytes": ModelRequest([UserPromptPart(["look", BinaryContent(PIXEL, media_type="image/png")])]),
    "sound": ModelRequest([UserPromptPart(["hear", AudioUrl("https://example.org/a.mp3")])]),
    "pdf": ModelRequest([UserPromptPart([BinaryContent(b"%PDF-1", media_type="application/pdf")])]),
    "result": ModelRequest([ToolReturnPart("look", "seen", "c1")]),
    "failed": ModelRequest([ToolReturnPart("look", "no", "c1", outcome="failed")]),
    "retried": ModelRequest([ToolReturnPart("look", "once more", "c1", outcome="retried")]),
    "feedback": ModelRequest([FEEDBACK]),
    "summary": ModelRequest([CompactionPart("They talked.")]),
    "beside": ModelRequest([ToolReturnPart("look", "seen", "c1"), DELTA]),
    "alone": ModelRequest([DELTA]),
    "answer": ModelResponse([TextPart("Noon.")]),
    "calls": ModelResponse([TextPart("So."), ToolCallPart("look", '{"at": "ü"}', "c1")]),
    "call first": ModelResponse(
        [
            ToolCallPart("look", "{}", "c1", id="fc_1", provider_name="openai"),
            TextPart("So.", id="m", provider_name="openai"),
        ],
        provider_name="openai",
        model_name="gpt-x",
    ),
    "thinking": ModelResponse(
        [
            ThinkingPart("so", id="rs_1", signature="s==", provider_name="openai", provider_details={"raw": ["x"]}),
            TextPart("Noon."),
        ],
        provider_name="openai",
    ),
    "native": ModelResponse(
        [
            NativeToolCallPart("web_search", {"q": "x"}, "n1", provider_name="openai"),
            NativeToolReturnPart("web_search", {"hits": [1]}, "n1", provider_name="openai"),
            TextPart("Found."),
        ],
    ),
    "picture": ModelResponse([FilePart(BinaryContent(PIXEL, media_type="image/png"))]),
    "compaction": ModelResponse([CompactionPart(None, provider_name="openai", provider_details={"secret": "e"})]),
}


@pytest.mark.parametrize("message", ODD.values(), ids=ODD)
def test_a_message_comes_back_out_of_the_log_as_it_was(message: ModelMessage) -> None:
    session = open_store("memory:").session("s")
    parts: list[Any] = []
    for one in wired([message])[1]:
        session.append(one.wire)
        stored = session.resolve(len(session))
        parts += parts_from(stored.wire, [(call.id, call.name, call.arguments) for call in stored.tool_calls])
    back = ModelRequest(parts) if isinstance(message, ModelRequest) else ModelResponse(parts)
    assert [one["parts"] for one in plain([back])] == [one["parts"] for one in plain([message])]


def test_text_with_metadata_and_one_that_is_no_string_are_said() -> None:
    content = [TextContent("tagged", metadata={"a": 1})]
    returned = ToolReturnPart("look", {"seen": [1]}, "c1")
    first, second = wired([ModelRequest([returned, UserPromptPart(content)])])[1]
    assert first.wire["content"] == '{"seen":[1]}'
    assert second.wire["content"] == [{"type": "text", "text": "tagged"}]


def test_what_the_history_lost_is_made_again_and_later_system_prompts_stay() -> None:
    capability = ours(open_store("memory:"), budgets=Budgets(dynamic_tokens=4000))
    agent, model = agent_of(capability)
    messages = play(agent, range(5))
    rule = SystemPromptPart("From now on, no metaphors.")
    changed = ModelRequest([UserPromptPart(turn(6)), rule])
    messages = play(agent, [7], [*messages, changed, ModelResponse([TextPart("Fine.")])])
    lately = [ModelRequest([UserPromptPart("They talked.")]), ModelResponse([TextPart("Yes.")]), *messages[-3:]]
    play(agent, [9], lately)
    restored = [part.content for one in model.seen[-1] for part in one.parts if isinstance(part, ThinkingPart)]
    assert restored[:3] == ["Let me see 1.", "Let me see 2.", "Let me see 4."]
    signed = next(part for one in model.seen[-1] for part in one.parts if isinstance(part, ThinkingPart))
    assert (signed.signature, signed.provider_name) == ("sig1", "function")

    small = ours(open_store("memory:"))
    agent, model = agent_of(small)
    play(agent, range(10, 24), [*play(agent, [2]), changed, ModelResponse([TextPart("Fine.")])])
    assert "From now on, no metaphors." in str(model.seen[-1][0]), "it governs, though its message has left"
    assert not any(turn(6) in prompts(one) for one in model.seen[-1])


# -- around it ---------------------------------------------------------------------------------------------------


def test_the_model_may_search_and_read_what_left_the_window() -> None:
    capability = ours(open_store("memory:"), model_tools=True)
    agent, model = agent_of(capability)
    messages = play(agent, range(20))

    def searching(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            return ModelResponse([TextPart("Here.")])
        return ModelResponse(
            [
                ToolCallPart("search_context", {"query": "thing2", "k": 3}, "s1"),
                ToolCallPart("resolve_reference", {"ref": "1"}, "s2"),
            ]
        )

    told = agent.run_sync("Find it.", model=FunctionModel(searching), message_history=messages, conversation_id="c1")
    found, read = (part.content for part in told.all_messages()[-2].parts)  # type: ignore[union-attr]
    assert "thing2" in str(found)
    assert read == turn(0)
    assert sorted(tool.name for tool in model.infos[0].function_tools) == [
        "look",
        "resolve_reference",
        "search_context",
    ]


def test_our_profile_stands_before_the_agent_s_own_words() -> None:
    capability = ours(open_store("memory:"), profile=Profile.from_text("You are Iris."))
    agent, model = agent_of(capability)
    play(agent, [0])
    said_first = [part.content for part in model.seen[0][0].parts if isinstance(part, SystemPromptPart)]
    assert "You are Iris." in said_first[0]
    assert said_first[-1] == "Be brief."
    assert model.infos[0].instructions == "Be kind."


def test_usage_corrects_the_estimates() -> None:
    capability = ours(open_store("memory:"))
    agent, model = agent_of(capability)
    play(agent, range(2))
    assert capability.conversations.builder("gpt-4o").calibration < 1.0, "by its own estimate"
    model.input_tokens = 3000
    play(agent, range(8))
    assert capability.conversations.builder("gpt-4o").calibration > 1.9


@pytest.mark.parametrize("broken", ["wired", "messages_of"])
def test_a_failure_of_ours_sends_the_whole_history(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    capability = ours(open_store("memory:"), on_error="fallback")
    agent, model = agent_of(capability)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(adapter, broken, lambda *_: 1 // 0)
        messages = play(agent, range(3))
    assert plain(model.seen[-1]) == plain(messages[:-1])
    assert "ZeroDivisionError" in caplog.text
    messages = play(agent, range(3, 4), messages)
    assert logged(session_of(capability)) == said(messages), "the next call brings what was missed"

    strict, _ = agent_of(ours(open_store("memory:")))
    with monkeypatch.context() as patch:
        patch.setattr(adapter, broken, lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            play(strict, range(1))


def test_a_mistake_of_the_caller_is_raised_and_not_replaced_by_the_whole_history() -> None:
    with pytest.raises(InputError, match="budgets is int; pass Budgets"):
        ours(open_store("memory:"), budgets=4000)
    with pytest.raises(InputError, match="session 7 is not usable as an id"):
        ours(open_store("memory:"), session=7)
    agent, model = agent_of(ours(open_store("memory:"), on_error="fallback"))
    with pytest.raises(InputError, match="is not usable as an id"):
        agent.run_sync("Hello?", conversation_id="bad\nname")
    assert model.seen == []


def test_the_request_s_settings_and_tools_are_the_agent_s_own() -> None:
    agent, model = agent_of(ours(open_store("memory:")))
    play(agent, [1], model_settings=ModelSettings(temperature=0.3))
    assert (model.infos[0].model_settings or {}).get("temperature") == 0.3
    assert [tool.name for tool in model.infos[0].function_tools] == ["look"]


def test_its_examples() -> None:
    assert doctest.testmod(adapter).failed == 0
    assert response_wire(ModelResponse([])) == {"role": "assistant", "content": []}


if __name__ == "__main__":
    first_half(Path(sys.argv[1]))
