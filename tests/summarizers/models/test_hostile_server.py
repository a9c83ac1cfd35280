"""A model server that means harm costs a call its deadline at most, a few megabytes, and learns or shows no key.

The servers are sockets on the loopback that write what no HTTP library would.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import threading
import time
import traceback
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

import httpx2
import pytest

from ctxsteward.envelope.recall.selection import FELL_BACK
from ctxsteward.envelope.recall.strategies import ModelSelector
from ctxsteward.schemas import ChatReply, ChatRequest, ModelUnavailable
from ctxsteward.summarizers.models import AnthropicModel, OpenAIModel, model_at
from ctxsteward.summarizers.models.http import MAX_ANSWER_BYTES

from ...envelope.recall.sessions import TALK, request_for, session_of

KEY = "sk-live-9f8e7d6c5b4a"
DEADLINE = 0.6
SLACK = 5.0
"""Seconds over the deadline that a loaded machine may take."""
Serve = Callable[[socket.socket], None]
Model = OpenAIModel | AnthropicModel
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@contextmanager
def listening(serve: Serve) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers each connection with `serve`, and the requests that it got."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []
    taken: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        with suppress(OSError):  # the client has gone
            seen.append(request_of(connection))
            serve(connection)
        connection.close()

    def accept() -> None:
        with suppress(OSError):  # closed: the test is over
            while True:
                connection, _ = listener.accept()
                taken.append(connection)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        for one in (listener, *taken):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        thread.join(5)


def request_of(connection: socket.socket) -> bytes:
    """The whole request: its head, and the body that its head announces."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def drip(before: bytes, byte: bytes) -> Serve:
    """A beginning, and then a byte at a time: no wait for one is longer than any time limit of a read."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(before)
        for _ in range(200):
            connection.sendall(byte)
            time.sleep(0.05)

    return serve


def flood(before: bytes, piece: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(piece)

    return serve


def whole(body: bytes, head: bytes = JSON_HEAD) -> Serve:
    return lambda connection: connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)


@cache
def blanks_packed(deflated: bool) -> bytes:
    blanks = b" " * (64 * 2**20)
    return zlib.compress(blanks, 1) if deflated else gzip.compress(blanks, 1)


def bomb(encoding: bytes) -> Serve:
    """Nobody has to decode what is refused: Brotli's name is enough."""
    head = JSON_HEAD + b"content-encoding: " + encoding + b"\r\n"
    return lambda connection: whole(blanks_packed(encoding == b"deflate"), head)(connection)


ATTACKS: dict[str, Serve] = {
    "a body that drips": drip(JSON_HEAD + b"content-length: 100000\r\n\r\n", b" "),
    "headers that drip": drip(b"HTTP/1.1 200 OK\r\nx-long: ", b"a"),
    "a status line that drips": drip(b"", b"H"),
    "a head that never comes": lambda connection: time.sleep(10),
    "a body without end": flood(JSON_HEAD + b"\r\n", b" " * 65_536),
    "chunks without end": flood(
        JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n", b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    ),
    "headers without end": flood(b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"a" * 1000 + b"\r\n"),
    "interim answers without end": flood(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "an error body without end": flood(b"HTTP/1.1 500 No\r\n\r\n", b"e" * 65_536),
    "a gzip bomb": bomb(b"gzip"),
    "a deflate bomb": bomb(b"deflate"),
    "a brotli bomb": bomb(b"br"),
    "a bomb in a bomb": bomb(b"gzip, gzip"),
    "malformed JSON": whole(b'{"choices": [{"message": '),
    "deep JSON": whole(b"[" * 200_000),
    "another form of JSON": whole(b'{"choices": {"0": 1}, "content": 7}'),
    "no choices": whole(b'{"choices": [], "content": null}'),
    "HTML": whole(b"<html>hello</html>", b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"),
    "a content type that lies": whole(b"\x00\xff\xfe", JSON_HEAD),
    "no HTTP": whole(b"", b"220 mail.example ESMTP\r\n"),
}


def model_of(adapter: type[Model], url: str, **given: object) -> Model:
    base = f"{url}/v1" if adapter is OpenAIModel else url
    return adapter("small", base_url=base, api_key=KEY, **given)  # type: ignore[arg-type]


def question(deadline_seconds: float = DEADLINE) -> ChatRequest:
    said = ({"role": "user", "content": "Which valve?"},)
    return ChatRequest(purpose="selection", messages=said, max_output_tokens=50, deadline_seconds=deadline_seconds)


def shown(error: BaseException) -> str:
    """Everything that a log, or a service that collects errors, may show of it: causes and attributes too."""
    texts = [*traceback.format_exception(error)]
    chain: BaseException | None = error
    while chain is not None:
        texts += [str(chain), repr(chain), repr(vars(chain)), str(getattr(chain, "request", ""))]
        request = getattr(chain, "request", None)
        texts += [str(dict(request.headers))] if isinstance(request, httpx2.Request) else []
        chain = chain.__cause__ or chain.__context__
    return "\n".join(texts)


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The first call of a process imports an SDK, which takes seconds of a loaded machine and no server's doing."""
    blanks_packed(True), blanks_packed(False)  # so does packing 64 MB
    for adapter in (OpenAIModel, AnthropicModel):
        assert answered(adapter, None).text == "The red one."


@pytest.mark.parametrize("asks", ["threads", "tasks", "a client of the caller's"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_answer_costs_the_deadline_and_little_memory_and_shows_no_key(
    attack: str, asks: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = AnthropicModel if asks == "tasks" else OpenAIModel
    with listening(ATTACKS[attack]) as (url, seen), httpx2.Client() as own:
        model = model_of(adapter, url, **({"http_client": own} if asks.startswith("a client") else {}))
        tracemalloc.start()
        started = time.monotonic()
        try:
            with pytest.raises(ModelUnavailable) as caught:
                asyncio.run(model.reply_async(question())) if asks == "tasks" else model.reply(question())
            spent, peak = time.monotonic() - started, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert seen
    assert KEY.encode() in seen[0]
    assert spent < DEADLINE + SLACK
    assert peak < 8 * MAX_ANSWER_BYTES
    assert KEY not in shown(caught.value)
    assert KEY not in caplog.text
    assert KEY not in repr(model)


def test_the_selector_gives_up_at_its_deadline_and_recall_goes_on() -> None:
    request = request_for("What did I say about the bird?", session_of(TALK))
    with listening(ATTACKS["a body that drips"]) as (url, seen):
        selector = ModelSelector(model_of(OpenAIModel, url), deadline_seconds=DEADLINE)
        started = time.monotonic()
        ranking = selector(request)
        assert time.monotonic() - started < DEADLINE + SLACK
    assert seen
    assert [finding.kind for finding in ranking.findings] == [FELL_BACK]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("adapter", [OpenAIModel, AnthropicModel])
@pytest.mark.parametrize("given", [False, True], ids=["own client", "a client of the caller's that follows redirects"])
def test_a_redirect_is_an_error_and_the_other_host_hears_nothing(
    status: int, adapter: type[Model], given: bool
) -> None:
    with listening(whole(b"{}")) as (other, heard), httpx2.Client(follow_redirects=True) as own:
        there = other.replace("127.0.0.1", "localhost")
        head = f"HTTP/1.1 {status} Moved\r\nlocation: {there}/v1/chat/completions\r\n".encode()
        with listening(whole(b"", head)) as (url, seen):
            model = model_of(adapter, url, **({"http_client": own} if given else {}))
            with pytest.raises(ModelUnavailable, match=str(status)) as caught:
                model.reply(question(5.0))
    assert len(seen) == 1
    assert heard == []
    assert KEY not in shown(caught.value)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
@pytest.mark.parametrize("adapter", [OpenAIModel, AnthropicModel])
def test_a_key_that_a_server_sends_back_is_shown_nowhere(
    status: int, adapter: type[Model], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = json.dumps({"error": {"message": f"key {KEY} is wrong", "type": "auth", "code": None}}).encode()
    head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n".encode()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with listening(whole(body, head)) as (url, seen):
        base = f"{url}/v1" if adapter is OpenAIModel else url
        for model in (adapter("small", base_url=base, api_key=KEY), adapter("small", base_url=base)):
            with pytest.raises(ModelUnavailable, match=str(status)) as caught:
                model.reply(question(5.0))
            assert KEY not in shown(caught.value)
            assert "is wrong" in str(caught.value)
    assert len(seen) == 2
    assert all(KEY.encode() in request for request in seen)
    assert KEY not in caplog.text


def test_an_address_with_a_key_in_it_is_refused_without_showing_it() -> None:
    for address in (f"http://ann:{KEY}@host/v1", f"ftp://ann:{KEY}@host/v1#m", f"https://{KEY}@#m"):
        with pytest.raises(ValueError, match="address") as caught:
            model_at(address)
        assert KEY not in shown(caught.value)


OPENAI_GOOD = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
ANTHROPIC_GOOD = {"input_tokens": 10, "output_tokens": 5}
IMPOSSIBLE: list[tuple[type[Model], dict[str, object]]] = [
    *[(OpenAIModel, OPENAI_GOOD | {"prompt_tokens": value}) for value in (-1, 10**30, 1.5, None, [1])],
    *[(OpenAIModel, OPENAI_GOOD | {"completion_tokens": value}) for value in (-1, 10**30, 1.5)],
    *[(OpenAIModel, OPENAI_GOOD | {"total_tokens": value}) for value in (14, -15, 15.5)],
    (OpenAIModel, OPENAI_GOOD | {"prompt_tokens_details": {"cached_tokens": 11}}),
    (OpenAIModel, OPENAI_GOOD | {"prompt_tokens_details": {"cached_tokens": -1}}),
    *[(AnthropicModel, ANTHROPIC_GOOD | {"input_tokens": value}) for value in (-1, 10**30, 1.5)],
    *[(AnthropicModel, ANTHROPIC_GOOD | {"output_tokens": value}) for value in (-1, 10**30, 1.5)],
    *[(AnthropicModel, ANTHROPIC_GOOD | {"cache_read_input_tokens": value}) for value in (-1, 10**30)],
]


def answered(adapter: type[Model], usage: object) -> ChatReply:
    if adapter is OpenAIModel:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "The red one."}}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    else:
        said = [{"type": "text", "text": "The red one."}]
        answer = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": said}
        answer["stop_reason"] = "end_turn"
    with listening(whole(json.dumps(answer | {"usage": usage}).encode())) as (url, _):
        return model_of(adapter, url).reply(question(5.0))


@pytest.mark.parametrize(("adapter", "usage"), IMPOSSIBLE)
def test_usage_that_cannot_be_is_not_taken(adapter: type[Model], usage: dict[str, object]) -> None:
    reply = answered(adapter, usage)
    assert (reply.text, reply.usage) == ("The red one.", None)


def test_usage_that_can_be_is_taken() -> None:
    for adapter, usage in ((OpenAIModel, OPENAI_GOOD), (AnthropicModel, ANTHROPIC_GOOD)):
        reply = answered(adapter, usage)
        assert reply.usage is not None
        assert (reply.usage.prompt_tokens, reply.usage.output_tokens) == (10, 5)
