"""A user's own loops over the three endpoints, as an application writes them: the whole history at every call.

The two SDKs are imported where a client is made: their import takes seconds, for which only tests of clients wait.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults

from ...model_server import ModelServer, Wire

if TYPE_CHECKING:
    import anthropic
    import openai

SYSTEM = "You answer questions about orders, briefly."
SCHEMA = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
CHAT_TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": SCHEMA}}
RESPONSES_TOOL = {"type": "function", "name": "look", "description": "Look.", "parameters": SCHEMA, "strict": False}
LONG = 25
ANTHROPIC_TOOL = {"name": "look", "description": "Look.", "input_schema": SCHEMA}

Send = Callable[[Any, list[Any], bool], Any]


class Loop(NamedTuple):
    """One endpoint."""

    client: Callable[[ModelServer], Any]
    send: Send
    """Call the model with this history; what is to be appended to it, and the calls in it."""
    result: Callable[[str, str], Wire]
    faults: Callable[[Wire], list[str]]
    send_async: Callable[[Any, list[Any], bool], Awaitable[Any]]
    async_client: Callable[[ModelServer], Any]


def ask(loop: Loop, client: Any, history: list[Any], text: str, *, stream: bool) -> None:
    """A turn: the user's text, and calls of the model until it calls no tool."""
    history.append({"role": "user", "content": text})
    while True:
        added, calls = loop.send(client, history, stream)
        history += added
        if not calls:
            return
        answers = [loop.result(id, f"row {arguments['at']}: " + "shipped on time; " * 12) for id, arguments in calls]
        history += merged(answers)


async def ask_async(loop: Loop, client: Any, history: list[Any], text: str, *, stream: bool) -> None:
    """`ask` of an async client."""
    history.append({"role": "user", "content": text})
    while True:
        added, calls = await loop.send_async(client, history, stream)
        history += added
        if not calls:
            return
        history += merged([loop.result(id, f"row {arguments['at']}") for id, arguments in calls])


def merged(answers: list[Wire]) -> list[Wire]:
    """Anthropic takes all results in one message."""
    if not answers or answers[0].get("role") != "user":
        return answers
    return [{"role": "user", "content": [block for answer in answers for block in answer["content"]]}]


# -- chat completions --------------------------------------------------------------------------------------


def _chat_arguments(history: list[Any]) -> Any:
    """A long history goes around the SDK's own walk over `messages`, which takes it milliseconds a message."""
    messages = [{"role": "system", "content": SYSTEM}, *history]
    told = {"messages": messages} if len(history) < LONG else {"messages": [], "extra_body": {"messages": messages}}
    return {"model": "gpt-4o", **told, "tools": [CHAT_TOOL], "temperature": 0.5, "user": "u-1"}


def _chat_added(message: Any) -> Any:
    calls = [(call.id, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return [message], calls


def _chat(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _chat_arguments(history)
    if not stream:
        return _chat_added(client.chat.completions.create(**arguments).choices[0].message)
    with client.chat.completions.stream(**arguments, stream_options={"include_usage": True}) as events:
        for _ in events:
            pass
        return _chat_added(events.get_final_completion().choices[0].message)


async def _chat_async(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _chat_arguments(history)
    if not stream:
        return _chat_added((await client.chat.completions.create(**arguments)).choices[0].message)
    async with client.chat.completions.stream(**arguments) as events:
        async for _ in events:
            pass
        return _chat_added((await events.get_final_completion()).choices[0].message)


# -- responses ---------------------------------------------------------------------------------------------


def _responses_arguments(history: list[Any]) -> Any:
    """A long history goes around the SDK's own walk over `input`."""
    told = {"input": history} if len(history) < LONG else {"extra_body": {"input": history}}
    return {
        "model": "gpt-5",
        **told,
        "instructions": SYSTEM,
        "tools": [RESPONSES_TOOL],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def _responses_added(response: Any) -> Any:
    calls = [(item.call_id, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    return list(response.output), calls  # objects of the SDK, as its users hand them back


def _responses(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _responses_arguments(history)
    if not stream:
        return _responses_added(client.responses.create(**arguments))
    last: Any = None
    for event in client.responses.create(**arguments, stream=True):
        last = event
    return _responses_added(last.response)


async def _responses_async(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _responses_arguments(history)
    if not stream:
        return _responses_added(await client.responses.create(**arguments))
    last: Any = None
    async for event in await client.responses.create(**arguments, stream=True):
        last = event
    return _responses_added(last.response)


def responses_faults(request: Wire) -> list[str]:
    """What the endpoint would refuse: calls and outputs in pairs, reasoning before what it led to."""
    items, found, waiting = request["input"], [], set()
    for index, item in enumerate(items):
        kind = item.get("type")
        if kind == "function_call":
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                found.append(f"input[{index}]: an output of no call")
            waiting.discard(item["call_id"])
        elif kind == "reasoning":
            after = items[index + 1] if index + 1 < len(items) else {}
            if after.get("role") != "assistant" and after.get("type") != "function_call":
                found.append(f"input[{index}]: reasoning without what it led to")
        elif waiting:
            found.append(f"input[{index}]: {len(waiting)} calls without output")
            waiting.clear()
    return [*found, *(["calls without output at the end"] if waiting else [])]


# -- Anthropic messages ------------------------------------------------------------------------------------


def _anthropic_arguments(history: list[Any]) -> Any:
    return {
        "model": "claude-opus-4-1",
        "max_tokens": 100,
        "system": SYSTEM,
        "messages": history,
        "tools": [ANTHROPIC_TOOL],
        "metadata": {"user_id": "u-1"},
    }


def _anthropic_added(message: Any) -> Any:
    calls = [(block.id, block.input) for block in message.content if block.type == "tool_use"]
    return [{"role": "assistant", "content": message.content}], calls


def _anthropic(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _anthropic_arguments(history)
    if not stream:
        return _anthropic_added(client.messages.create(**arguments))
    with client.messages.stream(**arguments) as events:
        for _ in events:
            pass
        return _anthropic_added(events.get_final_message())


async def _anthropic_async(client: Any, history: list[Any], stream: bool) -> Any:
    arguments = _anthropic_arguments(history)
    if not stream:
        return _anthropic_added(await client.messages.create(**arguments))
    async with client.messages.stream(**arguments) as events:
        async for _ in events:
            pass
        return _anthropic_added(await events.get_final_message())


def _result_block(id: str, text: str) -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}


def openai_client(server: ModelServer, **more: Any) -> openai.OpenAI:
    """OpenAI's client of this server; closed with it."""
    import openai

    made = openai.OpenAI(**{"base_url": f"{server.url}/v1", "api_key": "none", "max_retries": 3, **more})
    server.closing.append(made.close)
    return made


def anthropic_client(server: ModelServer) -> anthropic.Anthropic:
    """Anthropic's client of this server; closed with it."""
    import anthropic

    made = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=3)
    server.closing.append(made.close)
    return made


def _async_openai(server: ModelServer) -> openai.AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=3)


def _async_anthropic(server: ModelServer) -> anthropic.AsyncAnthropic:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=3)


LOOPS = {
    "chat": Loop(
        openai_client,
        _chat,
        lambda id, text: {"role": "tool", "tool_call_id": id, "content": text},
        openai_faults,
        _chat_async,
        _async_openai,
    ),
    "responses": Loop(
        openai_client,
        _responses,
        lambda id, text: {"type": "function_call_output", "call_id": id, "output": text},
        responses_faults,
        _responses_async,
        _async_openai,
    ),
    "anthropic": Loop(
        anthropic_client,
        _anthropic,
        _result_block,
        anthropic_faults,
        _anthropic_async,
        _async_anthropic,
    ),
}
