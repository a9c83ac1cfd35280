"""Wrapped clients of OpenAI and Anthropic against a model's server on the loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import runpy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict

from ctxsteward.envelope import Budgets, Conversations, EnvelopeBuilder, Session, Store, conversation, open_store, wrap
from ctxsteward.envelope.audit.auditor import KINDS
from ctxsteward.envelope.history.follow import said_message
from ctxsteward.envelope.integrations.answers import ANSWERS as ANSWER_FORMS, events
from ctxsteward.envelope.integrations.conversations import PreparedCall
from ctxsteward.envelope.render.openai_responses import messages_of_items
from ctxsteward.schemas import InputError, Message
from ctxsteward.store.erasure.forget import forget

from ...examples import drawn
from ...model_server import ANSWERS, STREAMS, Fault, ModelServer, Reply, SeenRequest, Wire
from .loops import ANTHROPIC_TOOL, CHAT_TOOL, LOOPS, SYSTEM, anthropic_client, ask, ask_async, openai_client

NARROW = Budgets(dynamic_tokens=900)
PLACES = ["Arles", "Basel", "Cadiz", "Delft", "Evora", "Fulda", "Genoa", "Huelva", "Ivrea", "Jena", "Kotor", "Lucca"]


@pytest.fixture
def memory() -> Iterator[Store]:
    with open_store("memory:") as store:
        yield store


def script(request: SeenRequest) -> Reply:
    """Every third turn looks two rows up, thinking; other answers are text."""
    newest = request.body.get("messages", request.body.get("input"))[-1]
    is_result = newest.get("role") == "tool" or "output" in newest or "tool_result" in json.dumps(newest)
    if request.number % 3 == 0 and not is_result:
        calls = (("look", {"at": request.number}), ("look", {"at": request.number + 1}))
        return Reply(text="Let me look.", calls=calls, thinking=f"hidden {request.number}")
    return Reply(text=f"Order {request.number} went to {PLACES[request.number % 12]} without any trouble at all.")


def question(turn: int) -> str:
    return f"Turn {turn}: what became of order {turn * 37} to {PLACES[turn % 12]}? It was due on day {turn}."


def said(messages: list[Any], kind: str) -> list[bytes]:
    """What a history says, message by message."""
    if kind == "responses":
        messages = messages_of_items(messages)
    return [said_message(Message.from_wire(message)).said for message in plain(messages)]


def plain(messages: list[Any]) -> list[Wire]:
    """Objects of the SDK as the dicts that they are on the wire."""
    made: list[Wire] = json.loads(
        json.dumps(messages, default=lambda one: one.model_dump(mode="json", exclude_unset=True))
    )
    return made


def originals(session: Session) -> list[bytes]:
    return [said_message(session.resolve(ordinal)).said for ordinal in range(1, len(session) + 1)]


@pytest.mark.parametrize("kind", LOOPS)
def test_sixty_turns_with_tools_over_a_restart(kind: str, tmp_path: Path) -> None:
    """Every other turn is streamed. Valid, within budget, as it was built; and nothing is lost.

    One SDK, another each time, and all with CTXSTEWARD_SOAK=1; else it is twenty turns.
    """
    loop, history, finished = LOOPS[kind], list[Any](), list[PreparedCall]()
    turns = 60 if kind in drawn(tuple(LOOPS), 1, "sixty turns") else 20
    with ModelServer(script) as server:
        for half in range(2):
            with open_store(f"file:{tmp_path / 'store'}") as store:
                client = wrap(
                    loop.client(server),
                    store,
                    session="chat-1",
                    budgets=NARROW,
                    on_error="raise",
                    on_call=finished.append,
                )
                for turn in range(half * turns // 2, (half + 1) * turns // 2):
                    ask(loop, client, history, question(turn), stream=turn % 2 == 1)
                client.close()
        with open_store(f"file:{tmp_path / 'store'}") as store:
            assert store.sessions() == ["chat-1"]
            session = store.session("chat-1")
            assert originals(session) == said(history, kind)
            assert session.reports()

    assert len(server.requests) == len(finished) > turns * 5 // 4
    assert [fault for request in server.requests for fault in loop.faults(request.body)] == []
    assert {finding.kind for call in finished for finding in call.findings}.isdisjoint(KINDS)
    assert max(call.envelope.section("dynamic").overflow_tokens for call in finished) == 0
    assert max(len(request.raw) for request in server.requests) < 14_000
    cached = [call.cached_tokens for call in finished]
    assert cached == [request.cached_tokens for request in server.requests] or (kind == "chat" and None not in cached)
    assert sum(1 for tokens in cached if tokens) > turns


@pytest.mark.parametrize("kind", LOOPS)
def test_what_is_not_context_stays_as_it_is(kind: str, memory: Store) -> None:
    loop = LOOPS[kind]
    with ModelServer(script) as server:
        ask(loop, loop.client(server), [], "Hello?", stream=False)
        plain = [request.body for request in server.requests]
        server.requests.clear()
        server.answered = 0
        ask(loop, wrap(loop.client(server), memory, session="s"), [], "Hello?", stream=False)
    wrapped = [request.body for request in server.requests]
    context = ("messages", "input", "system", "instructions")
    assert [_without(body, context) for body in wrapped] == [_without(body, context) for body in plain]
    assert len(wrapped) == 2


def _without(body: Wire, keys: tuple[str, ...]) -> Wire:
    return {key: value for key, value in body.items() if key not in keys}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_short_history_goes_out_as_it_was_handed_over(kind: str, memory: Store) -> None:
    """Thinking and reasoning too, byte for byte."""
    loop, history = LOOPS[kind], list[Any]()
    with ModelServer(script) as server:
        client = wrap(loop.client(server), memory, session="s")
        for turn in range(3):
            ask(loop, client, history, question(turn), stream=turn == 1)
        body = server.requests[-1].body
    key = "input" if kind == "responses" else "messages"
    sent = [message for message in body[key] if message.get("role") != "system"]
    assert said(sent, kind) == said(history, kind)[: len(said(sent, kind))]
    handed = plain(history)
    if kind == "responses":
        thinking = [item for item in handed if item.get("type") == "reasoning"]
        assert [item for item in sent if item.get("type") == "reasoning"] == thinking != []
    elif kind == "anthropic":
        thinking = [block for message in handed for block in _blocks(message) if block["type"] == "thinking"]
        shown = [block for message in sent for block in _blocks(message) if block["type"] == "thinking"]
        assert shown == thinking != []
    else:
        thinking = [message.get("reasoning_content") for message in handed]
        assert [message.get("reasoning_content") for message in sent] == thinking[: len(sent)]
        assert any(thinking)


def _blocks(message: Wire) -> list[Wire]:
    return message["content"] if isinstance(message["content"], list) else []


# -- retries and failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize(
    "fault",
    [Fault("status", 2, status=429), Fault("status", 1, status=500), Fault("cut", 1)],
    ids=["429", "500", "cut"],
)
def test_a_retried_call_is_built_once_and_sends_the_same_bytes(
    kind: str, fault: Fault, memory: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds, build = list[Session](), EnvelopeBuilder.build

    def counted(self: EnvelopeBuilder, session: Session, **more: Any) -> Any:
        builds.append(session)
        return build(self, session, **more)

    monkeypatch.setattr(EnvelopeBuilder, "build", counted)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    loop, history, times = LOOPS[kind], list[Any](), fault.times
    with ModelServer(lambda request: Reply(text="Fine."), faults=[Fault(**vars(fault))]) as server:
        client = wrap(loop.client(server), memory, session="s", on_error="raise")
        ask(loop, client, history, "Hello?", stream=False)
    assert len(server.requests) == times + 1
    assert len({request.raw for request in server.requests}) == 1
    assert len(builds) == 1
    assert originals(memory.session("s")) == said(history, kind)


@pytest.mark.parametrize("kind", LOOPS)
def test_a_stream_that_broke_off_leaves_nothing_and_the_next_history_follows(kind: str, memory: Store) -> None:
    import anthropic
    import httpx2
    import openai

    loop, history = LOOPS[kind], [{"role": "user", "content": "Hello?"}]
    errors = (openai.OpenAIError, anthropic.AnthropicError, httpx2.HTTPError)
    with ModelServer(lambda request: Reply(text="A fine day to you."), faults=[Fault("cut")]) as server:
        client = wrap(loop.client(server), memory, session="s", on_error="raise")
        with pytest.raises(errors):
            loop.send(client, history, True)
        assert originals(memory.session("s")) == said(history, kind)
        history.append({"role": "assistant", "content": "A fi"})  # what the user saw
        ask(loop, client, history, "You broke off.", stream=True)
    assert originals(memory.session("s")) == said(history, kind)
    assert memory.sessions() == ["s"]


@pytest.mark.parametrize("kind", LOOPS)
def test_a_stream_that_its_reader_leaves_early_is_not_kept(kind: str, memory: Store) -> None:
    loop, history = LOOPS[kind], [{"role": "user", "content": "Hello?"}]
    with ModelServer(lambda request: Reply(text="A fine day to you, and to all of yours.")) as server:
        client = wrap(loop.client(server), memory, session="s", on_error="raise")
        if kind == "anthropic":
            events: Any = client.messages.create(model="claude-opus-4-1", max_tokens=9, messages=history, stream=True)
        elif kind == "chat":
            events = client.chat.completions.create(model="gpt-4o", messages=history, stream=True)
        else:
            events = client.responses.create(model="gpt-4o", input=history, stream=True)
        with events:
            next(iter(events))
        assert len(memory.session("s")) == 1


@pytest.mark.parametrize("kind", LOOPS)
def test_a_page_instead_of_an_answer_is_the_callers_to_handle(
    kind: str, memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    loop = LOOPS[kind]
    with ModelServer(faults=[Fault("type")]) as server:
        client = wrap(loop.client(server), memory, session="s", on_error="raise")
        with caplog.at_level(logging.WARNING), pytest.raises((AttributeError, TypeError)):
            loop.send(client, [{"role": "user", "content": "Hello?"}], False)
    assert [record.getMessage() for record in caplog.records] == [
        "an answer could not be read (text/html, JSONDecodeError); the next history brings it"
    ]


def test_timeouts_are_the_clients_own(memory: Store) -> None:
    import openai

    with ModelServer(faults=[Fault("slow", seconds=2)]) as server:
        client = wrap(openai_client(server, max_retries=0), memory, session="s")
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.2).chat.completions.create(
                model="gpt-4o", messages=[{"role": "user", "content": "Hello?"}]
            )


@pytest.mark.parametrize("kind", LOOPS)
def test_where_ours_fails_the_callers_own_request_is_sent(
    kind: str, memory: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, history = LOOPS[kind], list[Any]()
    with ModelServer() as server:
        ask(loop, loop.client(server), list(history), "Hello?", stream=False)
        client = wrap(loop.client(server), memory, session="s")
        monkeypatch.setattr(EnvelopeBuilder, "build", _disk_full)
        with caplog.at_level(logging.WARNING):
            ask(loop, client, list(history), "Hello?", stream=False)
        plain, fallback = (request.raw for request in server.requests)
        assert fallback == plain
        strict = wrap(loop.client(server), memory, session="s", on_error="raise")
        with pytest.raises(OSError, match="disk full"):
            ask(loop, strict, list(history), "Hello?", stream=False)
    said_so = "could not build the context of this call; the caller's own request is sent: OSError"
    assert [record.getMessage() for record in caplog.records] == [said_so]


def _disk_full(*_: object, **__: object) -> None:
    raise OSError("disk full")


# -- which session -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOOPS)
def test_threads_on_one_client_keep_their_sessions_apart(kind: str, memory: Store) -> None:
    loop, histories = LOOPS[kind], {f"chat-{number}": list[Any]() for number in range(6)}
    with ModelServer(script) as server:
        client = wrap(loop.client(server), memory, budgets=NARROW, on_error="raise")

        def talk(name: str) -> None:
            with conversation(name, tenant=f"t-{name[-1]}", principal=f"user of {name}"):
                for turn in range(4):
                    ask(loop, client, histories[name], f"{name}: {question(turn)}", stream=turn % 2 == 0)

        threads = [threading.Thread(target=talk, args=(name,)) for name in histories]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    for name, history in histories.items():
        session = memory.session(name, tenant=f"t-{name[-1]}")
        assert originals(session) == said(history, kind)
        people = {entry.event.principal for entry in session.entries() if entry.message.role == "user"}
        assert f"user of {name}" in people
    foreign = [name for request in server.requests for name in histories if name in request.prompt]
    assert len(foreign) >= len(server.requests)
    assert all(sum(f"{name}:" in request.prompt for name in histories) == 1 for request in server.requests)


@pytest.mark.parametrize("kind", LOOPS)
def test_tasks_on_one_async_client(kind: str, memory: Store) -> None:
    loop, histories = LOOPS[kind], {f"chat-{number}": list[Any]() for number in range(5)}

    async def talk(client: Any, name: str) -> None:
        with conversation(name):
            for turn in range(4):
                await ask_async(loop, client, histories[name], f"{name}: {question(turn)}", stream=turn % 2 == 0)

    async def everybody() -> None:
        async with wrap(loop.async_client(server), memory, budgets=NARROW, on_error="raise") as client:
            await asyncio.gather(*(talk(client, name) for name in histories))

    with ModelServer(script) as server:
        asyncio.run(everybody())
    for name, history in histories.items():
        assert originals(memory.session(name)) == said(history, kind)
    assert [fault for request in server.requests for fault in loop.faults(request.body)] == []


@pytest.mark.parametrize("kind", LOOPS)
def test_a_stream_whose_task_is_cancelled(kind: str, memory: Store) -> None:
    """Nothing is kept of it, and the session goes on."""
    loop, history = LOOPS[kind], [{"role": "user", "content": "Hello?"}]

    async def run() -> None:
        async with wrap(loop.async_client(server), memory, session="s", on_error="raise") as client:
            task = asyncio.ensure_future(loop.send_async(client, history, True))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await ask_async(loop, client, history, "Still there?", stream=False)

    with ModelServer(faults=[Fault("slow", seconds=0.5)]) as server:
        asyncio.run(run())
    assert originals(memory.session("s")) == said(history, kind)


def test_a_client_is_of_its_own_type_and_copies_stay_wrapped(memory: Store) -> None:
    with ModelServer() as server:
        for kind, loop in LOOPS.items():
            for made in (loop.client(server), loop.async_client(server)):
                client = wrap(made, memory, session="s")
                assert type(client) is type(made)
                assert (client.base_url, client.api_key, client.max_retries) == (made.base_url, "none", 3)
                assert type(client.with_options(timeout=3)) is type(made)
            loop.send(wrap(loop.client(server), memory, session=kind).copy(), [{"role": "user", "content": "?"}], False)
            assert len(memory.session(kind)) == 2


def test_other_requests_pass_through_untouched(memory: Store) -> None:
    with ModelServer() as server:
        chat = wrap(openai_client(server), memory)
        messages = wrap(anthropic_client(server), memory)
        chat.embeddings.with_raw_response.create(model="e", input="text")
        chat.models.list()
        messages.messages.count_tokens(model="claude-opus-4-1", messages=[{"role": "user", "content": "?"}])
    paths = ["/v1/embeddings", "/v1/models", "/v1/messages/count_tokens"]
    assert [request.path for request in server.requests] == paths
    assert memory.sessions() == []


def test_raw_and_streamed_responses(memory: Store) -> None:
    hello: Any = [{"role": "user", "content": "Hello?"}]
    with ModelServer() as server:
        chat = wrap(openai_client(server), memory)
        with conversation("raw"):
            raw = chat.chat.completions.with_raw_response.create(model="gpt-4o", messages=hello)
            assert raw.parse().choices[0].message.content == "Answer 0."
        with (
            conversation("streamed"),
            chat.chat.completions.with_streaming_response.create(model="gpt-4o", messages=hello) as streamed,
        ):
            assert json.loads(b"".join(streamed.iter_bytes()))["choices"][0]["message"]["content"] == "Answer 1."
        claude = wrap(anthropic_client(server), memory, session="claude")
        answer = claude.messages.with_raw_response.create(model="claude-opus-4-1", max_tokens=9, messages=hello)
        assert answer.parse().content[0].text == "Answer 2."  # type: ignore[union-attr]
    assert {name: len(memory.session(name)) for name in memory.sessions()} == {"claude": 2, "raw": 2, "streamed": 2}


class Parcel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int


def test_parsed_answers(memory: Store) -> None:
    hello: Any = [{"role": "user", "content": "Which parcel?"}]
    with ModelServer(lambda request: Reply(text='{"number": 7}')) as server:
        chat = wrap(openai_client(server), memory, session="chat", on_error="raise")
        parsed = chat.chat.completions.parse(model="gpt-4o", messages=hello, response_format=Parcel)
        items = chat.responses.parse(model="gpt-4o", input=hello, text_format=Parcel)
        claude = wrap(anthropic_client(server), memory, session="claude", on_error="raise")
        message = claude.messages.parse(model="claude-opus-4-1", max_tokens=9, messages=hello, output_format=Parcel)
    assert parsed.choices[0].message.parsed == items.output_parsed == message.parsed_output == Parcel(number=7)
    assert len(memory.session("claude")) == 2


def test_clients_of_clouds(memory: Store) -> None:
    """Azure names the model in the path; Bedrock does, too, and signs the bytes that are sent."""
    import anthropic
    import openai

    hello: Any = [{"role": "user", "content": "Hello?"}]
    with ModelServer() as server:
        azure = openai.AzureOpenAI(azure_endpoint=server.url, api_key="none", api_version="2026-01-01")
        bedrock = anthropic.AnthropicBedrock(
            base_url=server.url, aws_access_key="none", aws_secret_key="none", aws_region="eu-central-1"
        )
        server.closing += [azure.close, bedrock.close]
        azured = wrap(azure, memory, session="azure", on_error="raise")
        azured.chat.completions.create(model="gpt-4o", messages=hello)
        wrap(bedrock, memory, session="bedrock", on_error="raise").messages.create(
            model="anthropic.claude-opus-4-1", max_tokens=9, messages=hello
        )
        first, second = server.requests
    assert (type(azured), first.path) == (
        openai.AzureOpenAI,
        "/openai/deployments/gpt-4o/chat/completions?api-version=2026-01-01",
    )
    assert second.path == "/model/anthropic.claude-opus-4-1/invoke"
    assert second.body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}  # it was built
    assert "Signature=" in second.headers["authorization"]
    assert {name: len(memory.session(name)) for name in memory.sessions()} == {"azure": 2, "bedrock": 2}


# -- heads, choices, odd requests --------------------------------------------------------------------------


def chat_client(server: ModelServer, store: Store, **options: Any) -> Any:
    return wrap(openai_client(server), store, session="s", **options)


def test_other_tools_and_system_texts_in_the_midst_of_a_session(memory: Store) -> None:
    other = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}
    history: Any = [{"role": "developer", "content": "Be brief."}]
    kinds = set[str]()
    with ModelServer() as server:
        client = chat_client(
            server, memory, on_error="raise", on_call=lambda call: kinds.update(map(_kind, call.findings))
        )
        for turn, tools in enumerate([[CHAT_TOOL], [CHAT_TOOL, other], None, [other]]):
            history.append({"role": "user", "content": f"{turn}?"})
            if turn == 3:
                history[0] = {"role": "developer", "content": "Be long."}
            given = {} if tools is None else {"tools": tools}
            message = client.chat.completions.create(model="gpt-4o", messages=history, **given).choices[0].message
            history.append({"role": "assistant", "content": message.content})
            assert server.requests[-1].body.get("tools") == tools
            assert server.requests[-1].body["messages"][0]["content"] == history[0]["content"]
    assert kinds == {"head_replaced"}
    assert len(memory.session("s")) == 8
    assert memory.sessions() == ["s"]


def _kind(finding: Any) -> str:
    return str(finding.kind)


@pytest.mark.parametrize("stream", [False, True])
def test_of_several_choices_the_next_history_tells_which_was_taken(stream: bool, memory: Store) -> None:
    history: Any = [{"role": "user", "content": "Two ideas?"}]
    with ModelServer(lambda request: Reply(text="One idea.", choices=request.body.get("n") or 1)) as server:
        client = chat_client(server, memory, on_error="raise")
        made = client.chat.completions.create(model="gpt-4o", messages=history, n=2, stream=stream)
        assert len(list(made) if stream else made.choices) >= 2
        assert len(memory.session("s")) == 1
        history += [{"role": "assistant", "content": "The second."}, {"role": "user", "content": "Thanks."}]
        client.chat.completions.create(model="gpt-4o", messages=history)
    assert [memory.session("s").resolve(at).text for at in (1, 2, 3)] == ["Two ideas?", "The second.", "Thanks."]


def test_a_regenerated_answer_is_a_fork_that_is_found_again(memory: Store) -> None:
    with ModelServer() as server:
        client = chat_client(server, memory, on_error="raise")

        def send(*texts: str) -> str:
            roles = ("user", "assistant")
            messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
            return str(client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content)

        first = send("Hello?")
        again = send("Hello?")
        assert first != again
        send("Hello?", again, "And now?")
        send("Hello?", first, "And then?")
        newest = [request.body["messages"] for request in server.requests[-2:]]
    assert [[message["content"] for message in messages] for messages in newest] == [
        ["Hello?", again, "And now?"],
        ["Hello?", first, "And then?"],
    ]
    assert len(memory.sessions()) == 2


def test_an_answer_that_goes_on_from_given_words(memory: Store) -> None:
    history: Any = [{"role": "user", "content": "Name a hat."}, {"role": "assistant", "content": "A bowler"}]
    findings = list[Any]()
    with ModelServer(lambda request: Reply(text=" hat.")) as server:
        client = wrap(
            anthropic_client(server),
            memory,
            session="s",
            on_error="raise",
            on_call=lambda call: findings.extend(call.findings),
        )
        client.messages.create(model="claude-opus-4-1", max_tokens=9, messages=history)
        assert server.requests[-1].body["messages"][-1] == history[-1]
        history[-1] = {"role": "assistant", "content": "A bowler hat."}
        history.append({"role": "user", "content": "Another."})
        client.messages.create(model="claude-opus-4-1", max_tokens=9, messages=history)
    assert [memory.session("s").resolve(at).text for at in (1, 2, 3)] == ["Name a hat.", "A bowler hat.", "Another."]
    assert findings == []


def test_cache_marks_leave_room_for_the_callers_own(memory: Store) -> None:
    hello: Any = [{"role": "user", "content": "Hello?"}]
    tool: Any = {**ANTHROPIC_TOOL, "cache_control": {"type": "ephemeral"}}
    with ModelServer() as server:
        client = wrap(anthropic_client(server), memory, session="s")
        client.messages.create(model="claude-opus-4-1", max_tokens=9, messages=hello, system=SYSTEM, tools=[tool])
        client.messages.create(
            model="claude-opus-4-1", max_tokens=9, messages=hello, cache_control={"type": "ephemeral"}
        )
        marked, automatic = (request.raw.count(b"cache_control") for request in server.requests)
    assert 1 <= marked <= 4
    assert automatic == 1


def test_pictures_and_files_go_out_whole(memory: Store) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    file = {"type": "file", "file": {"file_id": "f-1", "x_new": 1}}
    content = [{"type": "text", "text": "What is this?"}, picture, sound, file]
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}
    with ModelServer() as server:
        client = chat_client(server, memory, on_error="raise")
        client.chat.completions.create(
            model="gpt-4o",
            messages=[{"role": "user", "content": content}],
            response_format=schema,
            max_completion_tokens=50,
            extra_body={"x_vendor": {"deep": [1]}},
        )
        body = server.requests[-1].body
    assert body["messages"] == [{"role": "user", "content": content}]
    assert (body["response_format"], body["max_completion_tokens"], body["x_vendor"]) == (schema, 50, {"deep": [1]})


def test_a_history_that_the_provider_keeps_is_left_to_it(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer() as server, caplog.at_level(logging.WARNING):
        client = chat_client(server, memory)
        client.responses.create(model="gpt-4o", input="And?", previous_response_id="resp_1")
        client.responses.create(model="gpt-4o", input="And?", conversation="conv_1")
        client.responses.create(model="gpt-4o", prompt={"id": "pmpt_1"})
        bodies = [request.body for request in server.requests]
    assert bodies[0] == {"model": "gpt-4o", "input": "And?", "previous_response_id": "resp_1"}
    assert bodies[1]["conversation"] == "conv_1"
    assert memory.sessions() == []
    assert [record.getMessage() for record in caplog.records] == [
        "a request to /responses holds no history of its own (the provider keeps it, or a template has it): "
        "such requests are sent as they are"
    ]


def test_an_input_of_one_text(memory: Store) -> None:
    with ModelServer() as server:
        chat_client(server, memory, on_error="raise").responses.create(model="gpt-4o", input="Hello?")
    assert [memory.session("s").resolve(at).text for at in (1, 2)] == ["Hello?", "Answer 0."]


def test_tools_of_ours_are_offered_where_they_are_asked_for(memory: Store) -> None:
    conversations = Conversations(memory, tools=True, on_error="raise")
    with ModelServer() as server:
        client = wrap(openai_client(server), conversations)
        with conversation("s") as name:
            client.chat.completions.create(
                model="gpt-4o", messages=[{"role": "user", "content": "Order 7?"}], tools=[CHAT_TOOL]
            )
            answer = conversations.answer_tool(name, "resolve_reference", '{"ref": "§1"}')
    offered = [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
    assert offered == ["look", "search_context", "resolve_reference"]
    assert "Order 7?" in str(answer)
    assert conversations.answer_tool(name, "look", "{}") is None


def test_a_model_that_nobody_knows(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer() as server, caplog.at_level(logging.WARNING):
        client = chat_client(server, memory, on_error="raise")
        for _ in range(2):
            client.chat.completions.create(model="my-own-9b", messages=[{"role": "user", "content": "Hello?"}])
    assert len([record for record in caplog.records if "no window or encoding is known" in record.getMessage()]) == 1


def test_the_usage_corrects_the_estimates(memory: Store) -> None:
    builder = EnvelopeBuilder("gpt-4o")
    with ModelServer() as server:
        client = chat_client(server, memory, builder=builder, on_error="raise")
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello? " * 50}])
    assert builder.calibration != 1.0


@pytest.mark.parametrize("kind", LOOPS)
def test_the_usage_is_told_to_telemetry(kind: str, memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[dict[str, Any]]()
    where = "ctxsteward.envelope.integrations.session_call.usage_reported"
    monkeypatch.setattr(where, lambda *_, **usage: told.append(usage))
    loop, history = LOOPS[kind], list[Any]()
    with ModelServer() as server:
        client = wrap(loop.client(server), memory, session="s", on_error="raise")
        for turn in range(2):
            ask(loop, client, history, question(turn), stream=False)
        sent = server.requests
    assert [one["input_tokens"] for one in told] == [request.prompt_tokens for request in sent]
    assert [one["cache_read"] for one in told] == [request.cached_tokens for request in sent]
    assert told[1]["cache_read"] > 0
    assert {one["cache_creation"] for one in told} == {0 if kind == "anthropic" else None}


def test_open_sessions_are_bounded_and_found_again(memory: Store) -> None:
    conversations = Conversations(memory, max_open=3, on_error="raise")
    with ModelServer() as server:
        client = wrap(openai_client(server), conversations)
        histories: dict[str, Any] = {f"s-{number}": [] for number in range(8)}
        for turn in range(2):
            for name, history in histories.items():
                history.append({"role": "user", "content": f"{turn} {name}"})
                with conversation(name):
                    made = client.chat.completions.create(model="gpt-4o", messages=history)
                history.append({"role": "assistant", "content": made.choices[0].message.content})
    assert len(conversations._open) == 3
    assert {name: originals(memory.session(name)) for name in histories} == {
        name: said(history, "chat") for name, history in histories.items()
    }


# -- what was erased ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [{"session": "s"}, {"principal": "ann"}], ids=["session", "principal"])
@pytest.mark.parametrize("kind", LOOPS)
def test_a_client_that_sends_what_was_erased_has_the_rest_sent(
    kind: str, what: dict[str, str], memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """At every later call, whoever still holds the old history; with tool calls in it."""
    loop, history = LOOPS[kind], list[Any]()
    with ModelServer(script) as server:
        client = wrap(loop.client(server), memory, session="s", principal="ann", budgets=NARROW)
        for turn in range(4):
            ask(loop, client, history, question(turn), stream=turn % 2 == 1)
        forget(memory, **what, who="dpo", why="request 7", when="2026-11-22")
        server.requests.clear()
        for turn in range(4, 7):
            ask(loop, client, history, question(turn), stream=turn % 2 == 1)
        requests = list(server.requests)
    assert len(requests) >= 3
    assert [fault for request in requests for fault in loop.faults(request.body)] == []
    assert not any(f"Turn {turn}: " in request.prompt for request in requests for turn in range(4))
    assert all("Turn 6: " in request.prompt for request in requests[-1:])
    assert "erased" in caplog.text
    assert "is sent" not in caplog.text


# -- bad use -----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    act: Callable[[ModelServer, Store], object]
    says: str


def _hello(client: Any) -> object:
    return client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello?"}])


def _over_legacy(server: ModelServer, store: Store) -> object:
    client: Any = LOOPS["chat"].client(server)
    server.closing[-1] = client._client.close  # the client itself can no longer close it
    client._client = object()
    return wrap(client, store, session="s")


BAD_USE = {
    "no session": Case(
        lambda server, store: _hello(wrap(LOOPS["chat"].client(server), store)),
        'no session is named for this call of the model; write `with conversation("chat-1"):` around the call, or name '
        'one session for all with session="chat-1"',
    ),
    "no client": Case(
        lambda server, store: wrap("gpt-4o", store),
        "client is str; pass one of OpenAI(), AsyncOpenAI(), Anthropic() or AsyncAnthropic()",
    ),
    "no store": Case(
        lambda server, store: wrap(LOOPS["chat"].client(server), "file:here"),  # type: ignore[arg-type]
        'store is str; pass open_store("file:./.ctxsteward")',
    ),
    "wrapped twice": Case(
        lambda server, store: wrap(wrap(LOOPS["chat"].client(server), store), store),
        "this client is wrapped already; wrap the one it was made from",
    ),
    "wrapped twice, Anthropic": Case(
        lambda server, store: wrap(wrap(LOOPS["anthropic"].client(server), store), store),
        "this client is wrapped already; wrap the one it was made from",
    ),
    "another HTTP client": Case(
        _over_legacy,
        "the client sends through builtins.object; give it an httpx2 client: OpenAI(http_client=httpx2.Client())",
    ),
    "options beside shared conversations": Case(
        lambda server, store: wrap(LOOPS["chat"].client(server), Conversations(store), tools=True),
        "options stand beside shared Conversations; give them to Conversations(store, …)",
    ),
    "builder and budgets": Case(
        lambda server, store: wrap(
            LOOPS["chat"].client(server), store, builder=EnvelopeBuilder("gpt-4o"), budgets=NARROW
        ),
        "both builder and budgets are given; give the budgets to the builder",
    ),
    "budgets is a number": Case(
        lambda server, store: wrap(LOOPS["chat"].client(server), store, budgets=4000),  # type: ignore[arg-type]
        "budgets is int; pass Budgets(dynamic_tokens=4000)",
    ),
    "a message that is none": Case(
        lambda server, store: LOOPS["chat"].send(
            wrap(LOOPS["chat"].client(server), store, session="s"), [{"role": "nobody", "content": "x"}], False
        ),
        "message field `role`: found 'nobody'; expected system, developer, user, assistant or tool",
    ),
    "a message that is none, for Anthropic": Case(
        lambda server, store: LOOPS["anthropic"].send(
            wrap(LOOPS["anthropic"].client(server), store, session="s"), [{"role": "nobody", "content": "x"}], False
        ),
        "message field `role`: found 'nobody'; expected system, developer, user, assistant or tool",
    ),
    "a principal without a session": Case(
        lambda server, store: wrap(LOOPS["chat"].client(server), store, principal="ada"),
        'tenant and principal are of a session, and none is named; add session="chat-1", or write '
        '`with conversation("chat-1", principal=…):` around each call',
    ),
    "on_error": Case(
        lambda server, store: wrap(LOOPS["chat"].client(server), store, on_error="ignore"),  # type: ignore[arg-type]
        "on_error is 'ignore'; write 'fallback' or 'raise'",
    ),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_bad_use_says_what_to_do(name: str, memory: Store) -> None:
    with ModelServer() as server, pytest.raises(InputError) as error:
        BAD_USE[name].act(server, memory)
    assert str(error.value) == BAD_USE[name].says
    assert server.requests == []


# -- streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai-chat", "openai-responses", "anthropic"])
def test_a_stream_says_what_the_whole_answer_says(kind: Any) -> None:
    form = ANSWER_FORMS[kind]
    reply = Reply(text="Größe 7, “so”.", calls=(("look", {"at": 7, "of": "ü" * 9}), ("look", {})), thinking="hmm, ja")
    name: Any = {"openai-chat": "chat", "openai-responses": "responses"}.get(kind, kind)
    request = SeenRequest(name, "", {}, b"", {"model": "m", "stream_options": {"include_usage": True}}, 0, 3)
    whole = ANSWERS[name](request, reply)
    streamed = list(events("".join(STREAMS[name](request, whole)).encode()))
    assert form.whole(whole) == form.assemble(streamed)
    assert all(form.assemble(streamed[:stop]) is None for stop in range(len(streamed) - 2))


# -- examples ----------------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "integrations"
PRINTED = {
    "wrap_openai": [
        "60 messages handed over, 466 tokens sent",
        "in the log, word for word: Bicycle 7 has frame number FN-5173 and squeaks.",
    ],
    "wrap_anthropic": [
        "30 calls, the last one 408 tokens, 112 of them cached",
        "differences between what was built and what was sent: 0",
    ],
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_is_written_here(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = Reply(text="Oil the chain, and see whether it still squeaks on the way home.")
    with ModelServer(lambda request: reply) as server:
        for variable, value in {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}.items():
            monkeypatch.setenv(variable, value)
            monkeypatch.setenv(variable.replace("BASE_URL", "API_KEY"), "none")
        left = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        if name == "wrap_openai":
            left["client"].close()
    assert capsys.readouterr().out.splitlines() == PRINTED[name]


def documented(name: str) -> list[tuple[str, str]]:
    """The fences of a document that need no SDK or a client's, and what it says that they print."""
    text = (EXAMPLES.parents[2] / name).read_text(encoding="utf-8")
    fence = r"^```python( no-run)?\n(.*?)^```(?:\n\n```text\n(.*?)^```)?"
    found = re.findall(fence, text, re.MULTILINE | re.DOTALL)
    of_client = re.compile("^from (openai|anthropic) ", re.MULTILINE)
    return [(code, printed) for apart, code, printed in found if not apart or of_client.search(code)]


def test_the_readme_shows_how_to_adopt_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (code,) = [code for code, _ in documented("README.md") if "from openai " in code]
    assert len(code.splitlines()) <= 10
    assert _printed(code, capsys, monkeypatch, tmp_path, reaches=True) == ""


def test_the_guide_is_true(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fences = documented("docs/guide-integrations.md")
    assert sum("wrap(" in code for code, _ in fences) == 2
    assert len(fences) >= 3
    for code, printed in fences:
        assert _printed(code, capsys, monkeypatch, tmp_path, reaches="import OpenAI" in code) == printed


def _printed(
    code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, *, reaches: bool
) -> str:
    """What it prints, in a process where both providers are the model's server."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "document", "history": [{"role": "user", "content": "Hello?"}]}
    with ModelServer() as server:
        for variable, value in {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}.items():
            monkeypatch.setenv(variable, value)
            monkeypatch.setenv(variable.replace("BASE_URL", "API_KEY"), "none")
        exec(compile(code, "document", "exec"), names)
        for client in ("client", "claude", "gpt"):
            if client in names:
                names[client].close()
        assert bool(server.requests) == reaches
    return capsys.readouterr().out
