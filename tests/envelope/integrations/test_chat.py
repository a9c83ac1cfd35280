"""`Store.chat`: turns of an application that calls a model itself."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Store, model_tools, open_store, what_was_dropped
from ctxsteward.envelope.envelope import PROVIDERS, Envelope
from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.integrations.answers import ANSWERS
from ctxsteward.envelope.integrations.chat import Chat, Turn
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import BudgetExceeded, Erased, InputError, InvalidMessage, ReferenceNotFound, ToolCallPart
from ctxsteward.schemas.errors import Conflict, InputTooLarge
from ctxsteward.store.erasure.forget import forget

from ...model_server import ModelServer, Reply, SeenRequest, Wire
from .loops import ANTHROPIC_TOOL, CHAT_TOOL, LOOPS, SYSTEM, responses_faults

NARROW = Budgets(dynamic_tokens=300)
MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-opus-4-1",
    "gemini": "gemini-2.5-pro",
    "text": "gpt-4o",
}
GEMINI_CALLS = [{"function_call": {"name": "look", "args": {"at": at}}} for at in (1, 2)]
REPLIES: dict[str, Wire] = {
    "openai-chat": {
        "choices": [{"message": {"role": "assistant", "content": "The blue one.", "refusal": None}}],
        "usage": {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 16}},
    },
    "openai-responses": {
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The blue one."}]},
        ],
        "usage": {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 16}},
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "The blue one."}],
        "usage": {"input_tokens": 24, "cache_read_input_tokens": 16},
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "The blue one."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 40, "cachedContentTokenCount": 16},
    },
    "text": {"choices": [{"text": "The blue one.", "finish_reason": "stop"}], "usage": {"prompt_tokens": 40}},
}
CALLING: dict[str, Wire] = {
    "openai-chat": {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": f"c{at}",
                            "type": "function",
                            "function": {"name": "look", "arguments": f'{{"at": {at}}}'},
                        }
                        for at in (1, 2)
                    ],
                }
            }
        ]
    },
    "openai-responses": {
        "status": "completed",
        "output": [
            {"type": "function_call", "call_id": f"c{at}", "name": "look", "arguments": f'{{"at": {at}}}'}
            for at in (1, 2)
        ],
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": at}} for at in (1, 2)],
    },
    "gemini": {"candidates": [{"content": {"role": "model", "parts": GEMINI_CALLS}, "finish_reason": "STOP"}]},
}
STREAMS: dict[str, list[Any]] = {
    "openai-chat": [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "The "}}]},
        {"choices": [{"index": 0, "delta": {"content": "blue one."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 40}},
    ],
    "openai-responses": [{"type": "response.completed", "response": REPLIES["openai-responses"]}],
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 40}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "The "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "blue one."}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "The "}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": "blue one."}]}, "finish_reason": "STOP"}],
            "usage_metadata": {"prompt_token_count": 40},
        },
    ],
    "text": [
        {"choices": [{"text": "The ", "index": 0, "finish_reason": None}]},
        {"choices": [{"text": "blue one.", "index": 0, "finish_reason": "stop"}], "usage": {"prompt_tokens": 40}},
    ],
}


@pytest.fixture
def memory() -> Iterator[Store]:
    with open_store("memory:") as store:
        yield store


def chat_of(store: Store, provider: Any = "openai-chat", **more: Any) -> Chat:
    return store.chat("s", model=MODELS[provider], provider=provider, **{"system": SYSTEM, **more})


def said(chat: Chat) -> list[tuple[str, str]]:
    return [(entry.message.role, entry.message.text) for entry in chat.session.entries()]


# -- the loop ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_sends_the_envelope_and_keeps_the_reply(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider)
    with chat.turn("Which hat?") as turn:
        assert turn.request == {"model": MODELS[provider], **turn.envelope.render(provider)}  # type: ignore[arg-type]
        assert said(chat) == [("user", "Which hat?")]
        assert turn.finish(REPLIES[provider]) == ()
    assert said(chat) == [("user", "Which hat?"), ("assistant", "The blue one.")]
    assert chat["§2"].text == "The blue one."
    assert turn.cost.prompt_tokens == 40
    assert turn.cost.cached_tokens == (0 if provider == "text" else 16)
    assert [finding for finding in turn.findings if finding.kind != "window_guard"] == []
    assert chat.builder.calibration != 1.0


def test_the_provider_is_chosen_by_the_model(memory: Store) -> None:
    names = {"gpt-4o": "openai-chat", "claude-sonnet-4-5": "anthropic", "models/gemini-2.5-pro": "gemini"}
    assert {model: memory.chat(f"s{at}", model=model).provider for at, model in enumerate(names)} == names


@pytest.mark.parametrize("provider", CALLING)
def test_replies_with_calls_are_kept_with_their_results(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider, tools=[ANTHROPIC_TOOL if provider == "anthropic" else CHAT_TOOL])
    with chat.turn("Where is order 17?") as turn:
        first, second = turn.finish(CALLING[provider])
        assert (first.name, json.loads(first.arguments)) == ("look", {"at": 1})
        assert len(chat) == 1
        turn.answer(second, {"row": "lost"})
        turn.answer(first, "shipped")
        request = turn.request
        assert len(chat) >= 3
        turn.finish(REPLIES[provider])
    results = [result.text for entry in chat.session.entries() for result in entry.message.tool_results]
    assert [text for text in results if "shipped" in text or "lost" in text] == results
    assert ["shipped" in results[0], "lost" in results[1]] == [True, True]
    assert not chat.session.state.open_calls
    assert said(chat)[-1] == ("assistant", "The blue one.")
    faults: dict[str, Callable[[Wire], list[str]]] = {
        "openai-chat": openai_faults,
        "openai-responses": responses_faults,
        "anthropic": anthropic_faults,
    }
    assert faults.get(provider, lambda request: [])(request) == []
    assert "shipped" in json.dumps(request)


@pytest.mark.parametrize("provider", STREAMS)
def test_a_stream_finishes_the_turn_at_its_end(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider)
    with chat.turn("Which hat?") as turn:
        assert list(turn.stream(iter(STREAMS[provider]))) == STREAMS[provider]
    assert said(chat)[-1] == ("assistant", "The blue one.")
    assert turn.cost.prompt_tokens == 40


@pytest.mark.parametrize("provider", STREAMS)
def test_an_async_stream_finishes_the_turn_at_its_end(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider)

    async def chunks() -> AsyncIterator[Any]:
        for chunk in STREAMS[provider]:
            yield chunk

    async def ask() -> list[Any]:
        async with chat.turn("Which hat?") as turn:
            return [chunk async for chunk in turn.stream(chunks())]

    assert asyncio.run(ask()) == STREAMS[provider]
    assert said(chat)[-1] == ("assistant", "The blue one.")


@pytest.mark.parametrize("provider", STREAMS)
def test_of_a_stream_that_breaks_off_nothing_is_kept(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider)
    with pytest.raises(InputError, match="broke off"), chat.turn("Which hat?") as turn:
        list(turn.stream(iter(STREAMS[provider][: -2 if provider == "openai-chat" else -1] or [{"type": "ping"}])))
    assert said(chat) == [("user", "Which hat?")]


@pytest.mark.parametrize("kind", LOOPS)
def test_thirty_turns_with_tools_over_a_restart(kind: str, tmp_path: Path) -> None:
    """The SDKs' own objects, whole and streamed; every request is valid, within budget and as it was built."""
    provider: Any = {"chat": "openai-chat", "responses": "openai-responses"}.get(kind, kind)
    tool = ANTHROPIC_TOOL if kind == "anthropic" else CHAT_TOOL
    turns: list[Turn] = []

    def script(request: SeenRequest) -> Reply:
        newest = request.body.get("messages", request.body.get("input"))[-1]
        is_result = newest.get("role") == "tool" or "output" in newest or "tool_result" in json.dumps(newest)
        calls = () if is_result or request.number % 3 else (("look", {"at": request.number}), ("look", {"at": 7}))
        return Reply(text=f"Order {request.number} went out without any trouble at all.", calls=calls)

    with ModelServer(script) as server:
        client = LOOPS[kind].client(server)
        create = {"chat": lambda: client.chat.completions.create, "responses": lambda: client.responses.create}
        send = create.get(kind, lambda: client.messages.create)()
        more: Wire = {"max_tokens": 100} if kind == "anthropic" else {}
        for half in range(2):
            with open_store(tmp_path) as store:
                chat = chat_of(store, provider, tools=[tool], budgets=Budgets(dynamic_tokens=900))
                for number in range(half * 15, half * 15 + 15):
                    with chat.turn(f"Turn {number}: what became of order {number * 37}?") as turn:
                        while not turn.is_finished:
                            if number % 2:
                                turn.finish(send(**turn.request, **more))
                            else:
                                list(turn.stream(send(**turn.request, **more, stream=True)))
                            for call in turn.calls:
                                turn.answer(call, f"row {call.arguments}: " + "shipped on time; " * 12)
                    turns.append(turn)
    assert [fault for request in server.requests for fault in LOOPS[kind].faults(request.body)] == []
    assert len(server.requests) == sum(len(turn.model_calls) for turn in turns) > 40
    assert max(call.envelope.section("dynamic").overflow_tokens for turn in turns for call in turn.model_calls) == 0
    assert any(turn.lost for turn in turns)


# -- the same bytes as without it ----------------------------------------------------------------------------------

WORDS = st.text("abc é7", min_size=1, max_size=80).filter(str.strip)
TURNS = st.lists(st.tuples(WORDS, st.integers(0, 2), WORDS, st.integers(1, 400)), min_size=1, max_size=12)


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
@settings(max_examples=25, deadline=None)
@given(turns=TURNS)
def test_the_loop_builds_the_bytes_that_sessions_and_builders_build(
    provider: Any, turns: list[tuple[str, int, str, int]]
) -> None:
    budgets = Budgets(dynamic_tokens=200)
    model = MODELS[provider]
    chat = memory_store().chat("s", model=model, provider=provider, system=SYSTEM, budgets=budgets)
    builder = EnvelopeBuilder(model, budgets=budgets)
    session = memory_store().session("s", system=SYSTEM, counter=builder.counter)
    for number, (asked, calls, answered, usage) in enumerate(turns):
        tool_calls = [
            {"id": f"{number}-{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for at in range(calls)
        ]
        session.append({"role": "user", "content": asked})
        with chat.turn(asked) as turn:
            if calls:
                envelope = builder.build(session)
                assert turn.request == {"model": model, **envelope.render(provider)}
                calling = {"role": "assistant", "content": None, "tool_calls": tool_calls}
                session.append(calling)
                for call in turn.finish(calling):
                    session.append({"role": "tool", "tool_call_id": call.id, "content": answered})
                    turn.answer(call, answered)
            envelope = builder.build(session)
            assert json.dumps(turn.request) == json.dumps({"model": model, **envelope.render(provider)})
            assert turn.envelope.address == envelope.address
            reply = (
                {
                    "choices": [{"message": {"role": "assistant", "content": answered}}],
                    "usage": {"prompt_tokens": usage},
                }
                if provider == "openai-chat"
                else {
                    "type": "message",
                    "content": [{"type": "text", "text": answered}],
                    "usage": {"input_tokens": usage},
                }
            )
            turn.finish(reply)
        content = answered if provider == "openai-chat" else [{"type": "text", "text": answered}]
        session.append({"role": "assistant", "content": content})
        builder.calibrate(reply["usage"], envelope)
        assert chat.builder.calibration == builder.calibration
    assert [entry.event.wire for entry in chat.session.entries()] == [entry.event.wire for entry in session.entries()]


# -- what came of it -----------------------------------------------------------------------------------------------


def test_a_turn_says_what_was_lost_recalled_and_paid(memory: Store) -> None:
    chat = chat_of(memory, budgets=Budgets(dynamic_tokens=200))
    lost = []
    for text in [
        "A week in Kyoto.",
        "My sister Hana joins us on day 3.",
        *(f"Add sight {at}, please." for at in range(30)),
    ]:
        with chat.turn(text) as turn:
            turn.finish("Noted.")
        lost += turn.lost
    with chat.turn("From which day does Hana join us?") as turn:
        turn.finish(REPLIES["openai-chat"])
    assert "§3" in turn.recalled
    assert chat[turn.recalled[0]].text
    assert {loss.ref for loss in lost} >= {"§3"}
    assert all(loss.text in chat[loss.ref].text for loss in lost if loss.span is not None)
    assert turn.cost.whole_tokens > turn.cost.prompt_tokens
    assert turn.cost.priced_tokens == 40
    assert turn.cost.dollars == pytest.approx(40 * 2.5 / 1e6)
    assert "what the originals say" in what_was_dropped(chat.session)


def test_costs_of_several_calls_are_added_and_unknown_prices_stay_unknown(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])
    with chat.turn("Where?") as turn:
        for call in turn.finish(CALLING["openai-chat"]):
            turn.answer(call, "shipped")
        _ = turn.request
        turn.finish(REPLIES["openai-chat"])
    first, second = (call.cost for call in turn.model_calls)
    assert turn.cost == first + second
    assert turn.cost.prompt_tokens == first.prompt_tokens + 40
    unknown = memory.chat("other", model="house-model", provider="openai-chat")
    with unknown.turn("Hello?") as turn:
        turn.finish("Hello.")
    assert turn.cost.dollars is None


def test_a_request_that_was_changed_is_a_finding(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    chat = chat_of(memory)
    with chat.turn("Which hat?") as turn:
        sent = {**turn.request, "temperature": 0, "messages": [{"role": "system", "content": "Be rude."}]}
        turn.finish("The blue one.", sent=sent)
    assert {finding.kind for finding in turn.findings} == {"altered_text", "missing_section"}
    assert "what was sent is not the envelope" in caplog.text


def test_a_usage_report_that_cannot_be_read_costs_no_reply(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    chat = chat_of(memory)
    with chat.turn("Which hat?") as turn:
        turn.finish({**REPLIES["openai-chat"], "usage": {"words": 7}})
    assert said(chat)[-1] == ("assistant", "The blue one.")
    assert "could not read the usage report" in caplog.text
    assert turn.cost.prompt_tokens == turn.envelope.tokens


def test_reprs_are_one_line_and_quote_nobody(memory: Store) -> None:
    chat = chat_of(memory, budgets=NARROW)
    turn = chat.turn("secret words")
    assert repr(turn) == "<Turn of s: new, replies 0>"
    with turn:
        assert repr(chat) == "<Chat s: messages 1, gpt-4o, openai-chat, a turn is open>"
        turn.finish("Noted.")
    assert repr(turn) == "<Turn of s: finished, replies 1>"
    assert repr(chat.session) == "<Session s: messages 2, compactions 0>"
    assert repr(memory) == "<Store memory:>"
    assert repr(chat.builder) == "<EnvelopeBuilder gpt-4o: dynamic_tokens=300>"
    assert repr(turn.envelope).startswith(f"<Envelope {turn.envelope.address[:12]} of s: ")
    assert "secret" not in repr(turn.envelope)


def test_chats_of_one_model_share_a_builder(memory: Store) -> None:
    first, second, other = (memory.chat(id, model="gpt-4o", budgets=NARROW) for id in "abc")
    assert first.builder is second.builder is other.builder
    assert memory.chat("d", model="gpt-4o").builder is not first.builder
    own = EnvelopeBuilder("gpt-4o")
    assert memory.chat("e", builder=own).builder is own


def test_a_chat_s_principal_is_who_wrote_its_messages(memory: Store) -> None:
    chat = chat_of(memory, principal="ada")
    for name in (None, "bob"):
        with chat.turn("Hello?", principal=name) as turn:
            turn.finish("Hello.")
    assert [entry.event.principal for entry in chat.session.entries()] == ["ada", None, "bob", None]


def test_a_person_who_was_forgotten_writes_no_more(memory: Store) -> None:
    chat = chat_of(memory, principal="ada")
    with chat.turn("Hello?") as turn:
        turn.finish("Hello.")
    forget(memory, principal="ada", who="op", why="asked", when="2026-11-29T00:00:00Z")
    with pytest.raises(Erased), chat.turn("Hello again?"):
        pass


# -- what goes wrong -----------------------------------------------------------------------------------------------


class Timeout(Exception):
    """Of a client."""


def test_after_an_exception_the_user_s_message_is_kept_and_nothing_half_finished(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])
    with pytest.raises(Timeout), chat.turn("Where?", id="m-1"):
        raise Timeout

    def fail(turn: Turn) -> None:
        first, _ = turn.finish(CALLING["openai-chat"])
        turn.answer(first, "shipped")
        raise Timeout

    with pytest.raises(Timeout), chat.turn("Where?", id="m-1") as turn:
        fail(turn)
    assert said(chat) == [("user", "Where?")]
    with chat.turn("Where?", id="m-1") as turn:
        turn.finish("At home.")
    assert said(chat) == [("user", "Where?"), ("assistant", "At home.")]


def test_a_turn_that_is_sent_again_is_finished_when_it_opens(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])
    with chat.turn("Where?", id="m-1") as turn:
        for call in turn.finish(CALLING["openai-chat"]):
            turn.answer(call, "shipped")
        assert turn.request
        turn.finish("It was shipped.")
    assert turn.reply.text == "It was shipped."
    with chat.turn("Thanks.") as turn:
        turn.finish("You are welcome.")
    with chat.turn("Where?", id="m-1") as turn:
        assert turn.is_finished
        assert turn.reply.text == "It was shipped."
    assert (turn.cost.prompt_tokens, turn.cost.dollars, turn.lost, turn.recalled) == (0, 0, (), ())
    with pytest.raises(InputError, match="no model was called in this turn"):
        _ = turn.envelope
    assert len(chat) == 7


def test_a_call_that_fails_after_results_keeps_the_results(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])

    def fail(turn: Turn) -> None:
        for call in turn.finish(CALLING["openai-chat"]):
            turn.answer(call, "shipped")
        assert turn.request
        raise Timeout

    with pytest.raises(Timeout), chat.turn("Where?", id="m-1") as turn:
        fail(turn)
    assert [role for role, _ in said(chat)] == ["user", "assistant", "tool", "tool"]
    assert not chat.session.state.open_calls
    with chat.turn("Where?", id="m-1") as turn:  # goes on behind the results
        assert "shipped" in json.dumps(turn.request)
        turn.finish("It was shipped.")
    assert [role for role, _ in said(chat)] == ["user", "assistant", "tool", "tool", "assistant"]


def test_a_head_that_does_not_fit_closes_the_turn(memory: Store) -> None:
    chat = memory.chat("s", model="gpt-4o", system="word " * 9000, budgets=Budgets(system_tokens=10))
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="system"), chat.turn("Hello?"):
            pass
    assert said(chat) == [("user", "Hello?"), ("user", "Hello?")]


def test_of_two_turns_on_one_log_both_replies_are_kept(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, open_store(tmp_path) as other:
        first, second = chat_of(store), chat_of(other)
        with first.turn("Which hat?", id="hat") as turn, second.turn("And which shoes?", id="shoes") as between:
            turn.finish("The blue one.")
            between.finish("The red ones.")
        first.session.refresh()
        kept = [
            ("user", "Which hat?"),
            ("user", "And which shoes?"),
            ("assistant", "The blue one."),
            ("assistant", "The red ones."),
        ]
        assert said(first) == kept
        assert [(each.kind, each.ref) for each in turn.findings] == [("reply_behind_others", "§3")]
        assert [(each.kind, each.ref) for each in between.findings] == [("reply_behind_others", "§4")]
        for asked, answer in (("Which hat?", "The blue one."), ("And which shoes?", "The red ones.")):
            with second.turn(asked, id="hat" if "hat" in asked else "shoes") as again:
                assert again.is_finished
            assert again.reply.text == answer
        assert said(second) == kept


def test_of_two_turns_with_one_id_the_second_to_finish_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, open_store(tmp_path) as other:
        first, second = chat_of(store), chat_of(other)
        turn = first.turn("Which hat?", id="hat").open()
        with second.turn("Which hat?", id="hat") as same:
            same.finish("The red one.")
        with pytest.raises(Conflict) as error:
            turn.finish("The blue one.")
        assert str(error.value) == (
            "chat 's': the message §1 was answered by another turn with its id meanwhile; this reply is not kept"
        )
        with chat_of(store).turn("Which hat?", id="hat") as again:
            assert (again.is_finished, again.reply.text) == (True, "The red one.")


def test_a_reply_to_an_erased_message_is_not_kept(memory: Store) -> None:
    turn = chat_of(memory).turn("Which hat?", principal="ann").open()
    forget(memory, tenant="default", principal="ann", who="ops", when="2026-12-01", why="asked")
    with pytest.raises(Conflict, match="§1 was erased"):
        turn.finish("The blue one.")
    assert "The blue one." not in str(said(chat_of(memory)))


def test_many_turns_of_one_chat_at_once_lose_nothing(memory: Store) -> None:
    def ask(number: int) -> str:
        with memory.chat("s", model="gpt-4o").turn(f"Question {number}?", id=f"m-{number}") as turn:
            if not turn.is_finished:
                turn.finish(f"Answer {number}.")
        return turn.reply.text

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(40)))
    texts = [text for _, text in said(memory.chat("s", model="gpt-4o"))]
    assert sorted(texts) == sorted([*(f"Question {n}?" for n in range(40)), *answers])
    assert [ask(number) for number in (0, 17, 39)] == ["Answer 0.", "Answer 17.", "Answer 39."]


def test_a_turn_may_be_opened_before_its_block(memory: Store) -> None:
    turn = chat_of(memory).turn("Which hat?").open()
    with turn:
        turn.finish("The blue one.")
    with pytest.raises(InputError, match="was opened before"), turn:
        pass
    with pytest.raises(InputError, match="was opened before"):
        turn.open()


def test_an_id_that_was_used_for_another_text_is_a_finding_of_the_turn(memory: Store) -> None:
    chat = chat_of(memory)
    with chat.turn("Which hat?", id="m-1") as turn:
        turn.finish("The blue one.")
    with chat.turn("Which shoes?", id="m-1") as turn:
        assert turn.is_finished
    assert [(each.kind, each.ref) for each in turn.findings] == [("id_reused", "§1")]


def test_an_async_turn_that_is_cancelled_while_it_opens_leaves_the_chat_free(memory: Store) -> None:
    chat = chat_of(memory)

    async def cancelled() -> None:
        opening = asyncio.create_task(chat.turn("Hello?").__aenter__())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        while "turn is open" in repr(chat) or not len(chat):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(cancelled(), 10))
    with chat.turn("Hello again?") as turn:
        turn.finish("Hello.")
    assert [role for role, _ in said(chat)] == ["user", "user", "assistant"]


@pytest.mark.parametrize("how", ["a timeout", "another task fails"])
def test_a_turn_that_opens_while_the_event_loop_ends_leaves_the_chat_free(
    how: str, memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    chat = chat_of(memory)
    building, ending = threading.Event(), threading.Event()
    session_append = chat.session.append

    def slow(*args: Any, **more: Any) -> Any:
        building.set()
        ending.wait(10)
        return session_append(*args, **more)

    chat.session.append = slow  # type: ignore[method-assign]

    async def main() -> None:
        opening = asyncio.create_task(chat.turn("Hello?").__aenter__())
        await asyncio.to_thread(building.wait, 10)
        asyncio.get_running_loop().call_later(0.1, ending.set)
        if how == "a timeout":
            await asyncio.wait_for(opening, 0.01)
        raise Timeout

    with pytest.raises((Timeout, TimeoutError)):
        asyncio.run(main())  # waits for the thread
    chat.session.append = session_append  # type: ignore[method-assign]
    assert caplog.text == ""
    with chat.turn("Hello again?") as turn:
        turn.finish("Hello.")


def test_a_reply_is_kept_behind_a_message_that_came_while_its_request_was_built(memory: Store) -> None:
    chat = chat_of(memory)
    build = chat.builder.build

    class Interrupted(EnvelopeBuilder):
        def build(self, session: Session, *args: Any, **more: Any) -> Envelope:
            envelope = build(session, *args, **more)
            session.append({"role": "user", "content": "And which shoes?"})
            return envelope

    chat.builder = Interrupted("gpt-4o")
    with chat.turn("Which hat?") as turn:
        turn.finish("The blue one.")
    assert said(chat) == [("user", "Which hat?"), ("user", "And which shoes?"), ("assistant", "The blue one.")]
    assert [each.kind for each in turn.findings] == ["reply_behind_others"]


def test_a_result_that_cannot_be_kept_is_answered_again(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])
    with chat.turn("Where?") as turn:
        for call, result in zip(turn.finish(CALLING["openai-chat"]), ("x" * 17_000_000, "shipped"), strict=True):
            turn.answer(call, result)
        with pytest.raises(InputTooLarge):
            _ = turn.request
        turn.answer("c1", "too long to show")
        assert "too long to show" in json.dumps(turn.request)
        with pytest.raises(InputError, match="no call of a tool 'c1' waits"):
            turn.answer("c1", "lost")
        turn.finish("It was shipped.")
    assert [role for role, _ in said(chat)] == ["user", "assistant", "tool", "tool", "assistant"]


def test_calls_with_one_id_are_answered_in_their_order(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])
    same = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with chat.turn("Where?") as turn:
        for call, result in zip(
            turn.finish({"role": "assistant", "tool_calls": [same, same]}), ("lost", "found"), strict=True
        ):
            turn.answer(call, result)
        _ = turn.request
        turn.finish("It was found.")
    assert [result.text for entry in chat.session.entries() for result in entry.message.tool_results] == [
        "lost",
        "found",
    ]


def test_arguments_that_cannot_be_compared_cost_no_reply(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    chat = chat_of(memory)
    with chat.turn("Which hat?") as turn:
        turn.finish("The blue one.", sent={**turn.request, "response_format": Misuse})
    assert said(chat)[-1] == ("assistant", "The blue one.")
    assert "could not compare what was sent with the envelope" in caplog.text


CALL_CUT_OFF = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 4}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "look"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"at": "sh'}},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
    {"type": "message_stop"},
]
BROKEN: dict[str, tuple[str, object]] = {
    "a call cut off at max_tokens": ("anthropic", CALL_CUT_OFF),
    "a block without its start": ("anthropic", CALL_CUT_OFF[2:]),
    "a start without its message": ("anthropic", [{"type": "message_start"}]),
    "a choice that is null": ("openai-chat", [{"choices": [None]}]),
    "an end without its response": ("openai-responses", [{"type": "response.completed"}]),
    "a candidate that is null": ("gemini", [{"candidates": [None]}]),
    "choices that are a number": ("openai-chat", {"choices": 3}),
    "choices by name": ("openai-chat", {"choices": {"first": 1}}),
    "output that is a number": ("openai-responses", {"status": "completed", "output": 3}),
    "candidates that are text": ("gemini", {"candidates": ["Hello."]}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_of_an_answer_in_a_broken_form_nothing_is_kept(name: str, memory: Store) -> None:
    provider, answer = BROKEN[name]
    chat = chat_of(memory, provider)
    with chat.turn("Which hat?") as turn:
        with pytest.raises(InputError, match=f"the answer of {provider} broke off, or has another form"):
            list(turn.stream(answer)) if isinstance(answer, list) else turn.finish(answer)
        turn.finish(REPLIES[provider])
    assert said(chat)[-1] == ("assistant", "The blue one.")


class Misuse(NamedTuple):
    act: Callable[[Chat], object]
    says: str
    error: type[Exception] = InputError


def _finished(chat: Chat) -> Turn:
    with chat.turn("Hello?") as turn:
        turn.finish("Hello.")
    return turn


def _in(chat: Chat, act: Callable[[Turn], object]) -> None:
    with chat.turn("Hello?") as turn:
        act(turn)


def _twice(chat: Chat) -> None:
    with chat.turn("Hello?") as turn:
        turn.finish("Hello.")
        turn.finish("Hello.")


def _two_open(chat: Chat) -> None:
    with chat.turn("Hello?"), chat.turn("Hello again?"):
        pass


def _calls_left(chat: Chat) -> None:
    with chat.turn("Hello?") as turn:
        turn.finish(CALLING["openai-chat"])


def _request_too_early(chat: Chat) -> None:
    with chat.turn("Hello?") as turn:
        turn.finish(CALLING["openai-chat"])
        _ = turn.request


def _stale_request(chat: Chat) -> None:
    with chat.turn("Hello?") as turn:
        for call in turn.finish(CALLING["openai-chat"]):
            turn.answer(call, "shipped")
        turn.finish("Hello.")


def _answer_unknown(chat: Chat) -> None:
    with chat.turn("Hello?") as turn:
        turn.finish(CALLING["openai-chat"])
        turn.answer("c9", "shipped")


def _passed_by(chat: Chat) -> None:
    chat.session.append({"role": "user", "content": "Hello?"}, id="m-1")
    chat.session.append({"role": "user", "content": "Anybody?"})
    with chat.turn("Hello?", id="m-1"):
        pass


async def _coroutine() -> None:
    return None


def _unawaited(turn: Turn) -> None:
    made = _coroutine()
    try:
        turn.finish(made)
    finally:
        made.close()


MISUSE = {
    "no finish": Misuse(
        lambda chat: _in(chat, lambda turn: turn.request),
        "the turn of chat 's' at §1 ended without a reply; call turn.finish(reply) inside the block",
    ),
    "finish twice": Misuse(
        _twice,
        "the turn of chat 's' at §2 is finished; begin another one: write `with chat.turn(…) as turn:`",
    ),
    "finish after the block": Misuse(
        lambda chat: _finished(chat).finish("Hello."),
        "the turn of chat 's' at §2 is finished; begin another one: write `with chat.turn(…) as turn:`",
    ),
    "a second reply to one request": Misuse(
        lambda chat: _in(chat, lambda turn: [turn.finish(CALLING["openai-chat"]), turn.finish("Hello.")]),
        "the turn of chat 's' at §1 has that reply already; call turn.answer(call, result) for each of turn.calls "
        "(look, look), and send turn.request again",
    ),
    "a request that is sent without its results": Misuse(
        _stale_request,
        "the turn of chat 's' at §1 has that reply already; send turn.request again: it holds the results",
    ),
    "two open turns": Misuse(
        _two_open,
        "chat 's' has an open turn; finish it first, or open another chat for another conversation",
    ),
    "a turn that is entered twice": Misuse(
        lambda chat: _finished(chat).__enter__(),
        "this turn was opened before; begin another one: write `with chat.turn(…) as turn:`",
    ),
    "no with": Misuse(
        lambda chat: chat.turn("Hello?").request,
        "the turn of chat 's' at §0 is not open; write `with chat.turn(…) as turn:`",
    ),
    "cost of a turn that was not opened": Misuse(
        lambda chat: chat.turn("Hello?").cost,
        "this turn was not opened, so nothing was sent; write `with chat.turn(…) as turn:`",
    ),
    "calls without results": Misuse(
        _calls_left,
        "the turn of chat 's' at §1 ended without a reply; call turn.answer(call, result) for each of turn.calls "
        "(look, look), and send turn.request again",
    ),
    "a request before the results": Misuse(
        _request_too_early,
        "the turn of chat 's' at §1 has calls of tools without results; call turn.answer(call, result) for each of "
        "turn.calls (look, look), and send turn.request again",
    ),
    "a result of no call": Misuse(
        _answer_unknown, "no call of a tool 'c9' waits in this turn; waiting: look (c1), look (c2)"
    ),
    "an anthropic reply": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish(REPLIES["anthropic"])),
        "the reply has no `choices`, so it is no answer of openai-chat; it looks like one of anthropic: write "
        "chat(…, provider='anthropic')",
    ),
    "no reply at all": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish({"error": "rate limit"})),
        "the reply has no `choices`, so it is no answer of openai-chat; pass it whole",
    ),
    "a user's message for a reply": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish({"role": "user", "content": "Hello?"})),
        "the reply is a message of role 'user'; pass what the client returned",
    ),
    "a stream that is none": Misuse(
        lambda chat: _in(chat, lambda turn: turn.stream(None)),
        "the stream is NoneType; pass what the client returned with stream=True (awaited, if async); a whole reply "
        "goes to `finish`",
    ),
    "an empty reply": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish("  ")),
        "the reply is empty; pass what the client returned, or a text that says something",
    ),
    "None": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish(None)),
        "the reply is NoneType; pass what the client returned, or its text",
    ),
    "two choices": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish({"choices": REPLIES["openai-chat"]["choices"] * 2})),
        "the answer of openai-chat cannot be kept: it says and calls nothing, is audio, or there are several to choose "
        "from (n > 1); ask for one answer in text, or pass its text",
    ),
    "a coroutine": Misuse(
        lambda chat: _in(chat, _unawaited),
        "the reply is a coroutine; write `await` before the call of the client",
    ),
    "a stream": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish(iter(STREAMS["openai-chat"]))),
        "the reply is a stream; read it through the turn: `for chunk in turn.stream(stream):`",
    ),
    "sent is a list": Misuse(
        lambda chat: _in(chat, lambda turn: turn.finish("Hello.", sent=[])),  # type: ignore[arg-type]
        "sent is list; pass the arguments of the client's call",
    ),
    "an assistant's message": Misuse(
        lambda chat: chat.turn({"role": "assistant", "content": "Hello."}),
        "a turn begins with a user's message, not with one of role 'assistant'; pass the user's text",
    ),
    "a misspelt option": Misuse(
        lambda chat: chat.turn("Hello?", principle="ada"),  # type: ignore[call-arg]
        "turn has no option 'principle'; did you mean principal?",
    ),
    "an empty message": Misuse(
        lambda chat: chat.turn(" "),
        "the user's message is empty; pass what the user wrote",
    ),
    "a list of messages": Misuse(
        lambda chat: _in_turn_of(chat, [{"role": "user", "content": "Hello?"}]),
        "message field `(message)`: found list; expected a dict with `role` and `content`",
        InvalidMessage,
    ),
    "a message that was passed by": Misuse(
        _passed_by,
        "the message with id 'm-1' is §1, and the log goes on behind it without a reply; give a new message another id",
    ),
    "a reply that is not there yet": Misuse(
        lambda chat: _in(chat, lambda turn: turn.reply),
        "the turn of chat 's' at §1 has no reply yet; call turn.finish(reply) inside the block",
    ),
    "a reference that is none": Misuse(
        lambda chat: chat["§9"],
        "§9 names nothing in session 's'; it is empty",
        ReferenceNotFound,
    ),
}


def _in_turn_of(chat: Chat, message: object) -> None:
    with chat.turn(message):
        pass


@pytest.mark.parametrize("name", MISUSE)
def test_wrong_use_says_what_to_do(name: str, memory: Store) -> None:
    chat = chat_of(memory)
    with pytest.raises(MISUSE[name].error) as error:
        MISUSE[name].act(chat)
    assert str(error.value) == MISUSE[name].says
    with chat.turn("And now?", id="last") as turn:  # the chat is free
        turn.finish("Hello.")


OPENING: dict[str, tuple[Wire, str]] = {
    "no model": (
        {},
        "neither model nor provider is given; pass model='gpt-4o', or pass provider=…, one of: openai-chat, "
        "openai-responses, anthropic, gemini, text",
    ),
    "an unknown model": (
        {"model": "house-model"},
        "model 'house-model' is not known, so its provider is not either; pass provider=…, one of: openai-chat, "
        "openai-responses, anthropic, gemini, text",
    ),
    "an unknown provider": (
        {"model": "gpt-4o", "provider": "openai"},
        "unknown provider 'openai'; one of: openai-chat, openai-responses, anthropic, gemini, text",
    ),
    "builder and budgets": (
        {"builder": EnvelopeBuilder("gpt-4o"), "budgets": NARROW},
        "both builder and budgets are given; give the budgets to the builder",
    ),
}


@pytest.mark.parametrize("name", OPENING)
def test_a_chat_that_cannot_be_opened_says_what_to_do(name: str, memory: Store) -> None:
    arguments, says = OPENING[name]
    with pytest.raises(InputError) as error:
        memory.chat("s", **arguments)
    assert str(error.value) == says


def test_every_provider_is_read() -> None:
    assert tuple(ANSWERS) == PROVIDERS


def test_model_tools_are_answered_by_the_application(memory: Store) -> None:
    chat = chat_of(memory, tools=model_tools())
    with chat.turn("What did I say?") as turn:
        call = {"id": "c1", "type": "function", "function": {"name": "resolve_reference", "arguments": '{"ref": "§1"}'}}
        (asked,) = turn.finish({"role": "assistant", "tool_calls": [call]})
        assert isinstance(asked, ToolCallPart)
        turn.answer("c1", chat["§1"].text)
        _ = turn.request
        turn.finish("That.")
    assert [role for role, _ in said(chat)] == ["user", "assistant", "tool", "assistant"]


def test_nothing_is_logged_in_a_turn_that_goes_well(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    _finished(chat_of(memory))
    assert caplog.records == []
