"""`Turn.ask`: the loop over replies and calls of tools, sync and async, whole and streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from ctxsteward.envelope import Store, model_tools, open_store, resolve_reference_tool
from ctxsteward.envelope.integrations.chat import Chat
from ctxsteward.schemas import InputError

from ...model_server import Wire
from .loops import ANTHROPIC_TOOL, CHAT_TOOL
from .test_chat import CALLING, REPLIES, STREAMS, chat_of, said

STREAMED = {
    **STREAMS,
    "openai-responses": [
        {"type": "response.output_text.delta", "delta": "The "},
        {"type": "response.output_text.delta", "delta": "blue one."},
        *STREAMS["openai-responses"],
    ],
}


@pytest.fixture
def memory() -> Iterator[Store]:
    with open_store("memory:") as store:
        yield store


def scripted(*replies: Any) -> tuple[Callable[..., Any], list[Wire]]:
    """Return a client's method that gives these replies in order, a list as a stream, and the list of requests."""
    requests: list[Wire] = []

    def create(**request: Any) -> Any:
        requests.append(request)
        reply = replies[len(requests) - 1]
        return iter(reply) if isinstance(reply, list) else reply

    return create, requests


def as_async(create: Callable[..., Any]) -> Callable[..., Any]:
    async def chunks(reply: Iterator[Any]) -> AsyncIterator[Any]:
        for chunk in reply:
            yield chunk

    async def ask(**request: Any) -> Any:
        reply = create(**request)
        return reply if isinstance(reply, dict) else chunks(reply)

    return ask


def calling(*calls: tuple[str, Any]) -> Wire:
    """Return a reply that calls these tools."""
    return {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for at, (name, arguments) in enumerate(calls)
        ],
    }


def ask(chat: Chat, replies: list[Any], tools: dict[str, Callable[..., object]], **more: Any) -> list[str]:
    create, _ = scripted(*replies)
    with chat.turn("Which hat?") as turn:
        return list(turn.ask(create, tools, **more))


def results(chat: Chat) -> list[str]:
    return [result.text for entry in chat.session.entries() for result in entry.message.tool_results]


@pytest.mark.parametrize("provider", CALLING)
def test_tools_run_until_the_model_replies(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider, tools=[ANTHROPIC_TOOL if provider == "anthropic" else CHAT_TOOL])
    create, requests = scripted(CALLING[provider], STREAMED[provider])
    with chat.turn("Which hat?") as turn:
        texts = list(turn.ask(create, {"look": lambda at: {"row": at}}, stream=True))
    assert texts == ["The ", "blue one."]
    assert turn.reply.text == "The blue one."
    assert [json.loads(text) for text in results(chat)] == [
        {"row": 1},
        {"row": 2},
    ]
    assert [request["stream"] for request in requests] == [True, True]
    assert turn.findings == ()


@pytest.mark.parametrize("provider", STREAMED)
def test_an_async_client_is_asked_in_the_same_way(provider: str, memory: Store) -> None:
    chat = chat_of(memory, provider)
    replies: list[Any] = [STREAMED[provider]]
    if provider in CALLING:
        chat = chat_of(memory, provider, tools=[ANTHROPIC_TOOL if provider == "anthropic" else CHAT_TOOL])
        replies = [CALLING[provider], *replies]
    create, _ = scripted(*replies)

    async def look(at: int) -> str:
        return f"row {at}"

    async def run() -> str:
        async with chat.turn("Which hat?") as turn:
            return "".join([text async for text in turn.ask(as_async(create), {"look": look})])

    assert asyncio.run(run()) == "The blue one."
    assert said(chat)[-1] == ("assistant", "The blue one.")
    assert len(results(chat)) == (2 if provider in CALLING else 0)


def test_text_beside_calls_is_yielded_and_the_model_s_own_tools_need_no_function(memory: Store) -> None:
    chat = chat_of(memory, tools=[*model_tools()])
    texts = ask(chat, [calling(("resolve_reference", {"ref": "§1"})), REPLIES["openai-chat"]], {})
    assert texts == ["Let me look.", "The blue one."]
    assert results(chat) == ["Which hat?"]


WRONG_CALLS: dict[str, tuple[tuple[str, Any], str]] = {
    "no such tool": (("lok", {"at": 1}), "error: there is no tool 'lok'; there are: look"),
    "no such argument": (("look", {"where": 1}), "error: the arguments do not fit: missing a required argument: 'at'"),
    "no object": (("look", [1]), "error: the arguments do not fit: "),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_call_that_the_model_got_wrong_is_answered_with_an_error(name: str, memory: Store) -> None:
    call, says = WRONG_CALLS[name]
    chat = chat_of(memory, tools=[CHAT_TOOL])
    ask(chat, [calling(call), REPLIES["openai-chat"]], {"look": lambda at: at})
    assert results(chat)[0].startswith(says)


def test_what_a_tool_raises_ends_the_turn_and_the_same_id_repeats_it(memory: Store) -> None:
    chat = chat_of(memory, tools=[CHAT_TOOL])

    def broken(at: int) -> str:
        raise OSError("the desk is closed")

    create, _ = scripted(calling(("look", {"at": 1})))
    with pytest.raises(OSError, match="closed"), chat.turn("Which hat?", id="m-1") as turn:
        list(turn.ask(create, {"look": broken}))
    assert said(chat) == [("user", "Which hat?")]
    again, requests = scripted(REPLIES["openai-chat"])
    for _ in range(2):  # the second time, the turn is answered already
        with chat.turn("Which hat?", id="m-1") as turn:
            assert list(turn.ask(again)) == ["The blue one."]
    assert len(requests) == 1


async def _async_tool(at: int) -> str:
    return "row"


MISTAKES: dict[str, tuple[Callable[[Chat], object], str]] = {
    "what the client returned": (
        lambda chat: _begun(chat, REPLIES["openai-chat"]),
        "create is dict; pass the client's method",
    ),
    "a list of tools": (
        lambda chat: _begun(chat, print, [print]),
        'tools is list; pass functions by name: {"weather": weather}',
    ),
    "an async client": (
        lambda chat: _begun(chat, as_async(scripted(REPLIES["openai-chat"])[0])),
        "this client is async; write `async for text in turn.ask(…)`",
    ),
    "an async tool": (
        lambda chat: _begun(chat, scripted(calling(("look", {"at": 1})))[0], {"look": _async_tool}),
        "tool 'look' is async; write `async for text in turn.ask(…)`",
    ),
    "tools without end": (
        lambda chat: _begun(
            chat, scripted(*[calling(("look", {"at": 1}))] * 9)[0], {"look": lambda at: at}, max_calls=3
        ),
        "the model still calls tools after 3 calls in one turn; raise max_calls",
    ),
}


def _begun(chat: Chat, create: Any, tools: Any = None, **more: Any) -> list[str]:
    with chat.turn("Which hat?") as turn:
        return list(turn.ask(create, tools, **more))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_its_remedy(name: str, memory: Store) -> None:
    act, says = MISTAKES[name]
    with pytest.raises(InputError) as error:
        act(chat_of(memory, tools=[CHAT_TOOL, resolve_reference_tool()]))
    assert str(error.value).startswith(says)


def test_a_sync_client_in_an_async_loop_names_the_remedy(memory: Store) -> None:
    chat = chat_of(memory)

    async def run() -> None:
        async with chat.turn("Which hat?") as turn:
            async for _ in turn.ask(scripted(REPLIES["openai-chat"])[0]):
                pass

    with pytest.raises(InputError, match=r"this client is not async; write `for text in turn\.ask"):
        asyncio.run(run())
