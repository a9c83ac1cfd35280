"""A model's server on the loopback, for tests of clients: OpenAI chat and responses, Anthropic messages.

    with ModelServer(lambda request: Reply(text="fine", calls=(("look", {"at": 1}),))) as server:
        OpenAI(base_url=f"{server.url}/v1", api_key="none").chat.completions.create(…)
    server.requests[-1].body

Answers come whole, or as server-sent events where the request says ``"stream": true``. `usage` counts four characters
of the prompt (tools, system, messages) as a token; cached tokens are the longest beginning that it shares with one seen
before, in whole blocks. For Anthropic it is the longest that a cache mark of one seen before ends. A `Fault` comes
before the script is asked: ``status`` answers with a status (429 with Retry-After), ``cut`` breaks off in the middle of
the answer, ``slow`` waits first, ``type`` answers with HTML.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

Wire = dict[str, Any]
CHARS_PER_TOKEN = 4
BLOCK_TOKENS = 16
Kind = Literal["chat", "responses", "anthropic", "other"]
PATHS: dict[str, Kind] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/v1/messages": "anthropic",
    "/invoke": "anthropic",
}
"""By the end of a path; the last one is Bedrock's, with the model in the path."""


@dataclass(frozen=True)
class SeenRequest:
    """A request as it came."""

    kind: Kind
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Wire
    cached_tokens: int
    number: int
    """How many requests of a model were answered before."""

    @cached_property
    def prompt(self) -> str:
        """What the model would read, in order."""
        parts = [self.body.get(key) for key in ("tools", "system", "instructions", "messages", "input")]
        return "\n".join(json.dumps(part, sort_keys=True) for part in parts if part)

    @cached_property
    def blocks(self) -> tuple[tuple[str, bool], ...]:
        """Each block of an Anthropic prompt in order, and whether a cache mark ends it."""
        texts = [{"content": self.body.get("tools", [])}, {"content": self.body.get("system", [])}]
        rows: list[tuple[str, bool]] = []
        for message in (*texts, *self.body.get("messages", [])):
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                own = {key: value for key, value in block.items() if key != "cache_control"}
                rows.append((json.dumps([message.get("role"), own], sort_keys=True), "cache_control" in block))
        return tuple(rows)

    def shared_chars(self, before: SeenRequest) -> int:
        """Count the characters of the beginning that the provider's cache has from a request before."""
        if self.kind != "anthropic":
            return _common(self.prompt, before.prompt)
        chars = marked = 0
        for (own, _), (other, is_marked) in zip(self.blocks, before.blocks, strict=False):
            if own != other:
                break
            chars += len(own)
            marked = chars if is_marked else marked
        return marked

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt) // CHARS_PER_TOKEN + 1


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model says."""

    text: str = ""
    calls: tuple[tuple[str, Wire], ...] = ()
    """Names and arguments; ids are the server's."""
    thinking: str = ""
    choices: int = 1


@dataclass
class Fault:
    """What goes wrong with the next requests."""

    kind: Literal["status", "cut", "slow", "type"]
    times: int = 1
    status: int = 500
    seconds: float = 0.0


Script = Callable[[SeenRequest], Reply]


@dataclass
class ModelServer:
    """Serves until the block ends; `requests` are all that came, failed ones included."""

    script: Script = lambda request: Reply(text=f"Answer {request.number}.")
    faults: list[Fault] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    answered: int = 0
    closing: list[Callable[[], object]] = field(default_factory=list)
    """What is called when the block ends, before the server goes: `close` of clients."""

    def __enter__(self) -> Self:
        server = self

        class Handler(_Handler):
            model = server

        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for close in self.closing:
            close()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def seen(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[SeenRequest, Fault | None]:
        """Take a request in; and what goes wrong with it."""
        kind = next((kind for end, kind in PATHS.items() if path.partition("?")[0].endswith(end)), "other")
        body = json.loads(raw) if raw else {}
        with self._lock:
            request = SeenRequest(kind, path, headers, raw, body, 0, self.answered)
            shared = max((request.shared_chars(old) for old in self.requests if old.kind == kind), default=0)
            cached = shared // CHARS_PER_TOKEN // BLOCK_TOKENS * BLOCK_TOKENS
            request = SeenRequest(kind, path, headers, raw, body, cached, self.answered)
            self.requests.append(request)
            fault = self.faults[0] if self.faults and kind != "other" else None
            if fault is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.pop(0)
            if fault is None or fault.kind not in ("status", "type"):
                self.answered += 1
        return request, fault


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, fault = self.model.seen(self.path, headers, raw)
        try:
            self._answer(request, fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self) -> None:
        request, _ = self.model.seen(self.path, {}, b"")
        self._whole(200, {"object": "list", "data": [], "path": request.path})

    def _answer(self, request: SeenRequest, fault: Fault | None) -> None:
        kind = None if fault is None else fault.kind
        if fault is not None and kind == "status":
            extra = {"retry-after": "0.01"} if fault.status == 429 else {}
            return self._whole(fault.status, {"error": {"type": "fault", "message": "a fault"}}, **extra)
        if kind == "type":
            return self._bytes(200, "text/html", b"<html>a proxy's page</html>")
        if fault is not None and kind == "slow":
            time.sleep(fault.seconds)
        if request.kind == "other":
            return self._whole(200, {"path": request.path, "input_tokens": request.prompt_tokens})
        reply = self.model.script(request)
        answer = ANSWERS[request.kind](request, reply)
        if request.body.get("stream"):
            return self._stream(STREAMS[request.kind](request, answer), cut=kind == "cut")
        return self._whole(200, answer, cut=kind == "cut")

    def _whole(self, status: int, body: Wire, *, cut: bool = False, **headers: str) -> None:
        self._bytes(status, "application/json", json.dumps(body).encode(), cut=cut, **headers)

    def _bytes(self, status: int, kind: str, data: bytes, *, cut: bool = False, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection = self.close_connection or cut

    def _stream(self, lines: list[str], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for line in lines[: max(1, len(lines) // 2)] if cut else lines:
            data = line.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        if cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


# -- answers -----------------------------------------------------------------------------------------------


def _chat(request: SeenRequest, reply: Reply) -> Wire:
    calls = [
        {
            "id": f"call_{request.number}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for at, (name, arguments) in enumerate(reply.calls)
    ]
    message: Wire = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = calls
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    choices = [
        {"index": at, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        for at in range(max(reply.choices, request.body.get("n") or 1))
    ]
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 1,
        "model": request.body["model"],
        "choices": choices,
        "usage": _openai_usage(request, "prompt", "completion"),
    }


def _openai_usage(request: SeenRequest, read: str, written: str) -> Wire:
    return {
        f"{read}_tokens": request.prompt_tokens,
        f"{written}_tokens": 7,
        "total_tokens": request.prompt_tokens + 7,
        f"{read}_tokens_details": {"cached_tokens": request.cached_tokens},
        f"{written}_tokens_details": {"reasoning_tokens": 0},
    }


def _responses(request: SeenRequest, reply: Reply) -> Wire:
    output: list[Wire] = []
    if reply.thinking:
        output.append(
            {"type": "reasoning", "id": f"rs_{request.number}", "summary": [], "encrypted_content": reply.thinking}
        )
    if reply.text:
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{request.number}",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    for at, (name, arguments) in enumerate(reply.calls):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{request.number}_{at}",
                "status": "completed",
                "call_id": f"call_{request.number}_{at}",
                "name": name,
                "arguments": json.dumps(arguments),
            }
        )
    return {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": request.body.get("instructions"),
        "metadata": {},
        "model": request.body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _openai_usage(request, "input", "output"),
    }


def _anthropic(request: SeenRequest, reply: Reply) -> Wire:
    content: list[Wire] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": f"sig+/{request.number}=="})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for at, (name, arguments) in enumerate(reply.calls):
        content.append({"type": "tool_use", "id": f"toolu_{request.number}_{at}", "name": name, "input": arguments})
    usage = {
        "input_tokens": request.prompt_tokens - request.cached_tokens,
        "cache_read_input_tokens": request.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 7,
    }
    return {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model"),
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


ANSWERS: dict[Kind, Callable[[SeenRequest, Reply], Wire]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
}


# -- streams -----------------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), 5):
        yield text[at : at + 5]


def _data(event: Wire) -> str:
    return f"data: {json.dumps(event)}\n\n"


def _event(event: Wire) -> str:
    return f"event: {event['type']}\r\ndata: {json.dumps(event)}\r\n\r\n"


def _chat_stream(request: SeenRequest, answer: Wire) -> list[str]:
    head = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: Wire, finish: str | None = None, index: int = 0) -> str:
        return _data({**head, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    lines = []
    for choice in answer["choices"]:
        message, at = choice["message"], choice["index"]
        lines.append(chunk({"role": "assistant", "content": None}, index=at))
        lines += [
            chunk({"reasoning_content": piece}, index=at) for piece in _pieces(message.get("reasoning_content", ""))
        ]
        lines += [chunk({"content": piece}, index=at) for piece in _pieces(message["content"] or "")]
        for number, call in enumerate(message.get("tool_calls", ())):
            function = {"name": call["function"]["name"], "arguments": ""}
            lines.append(chunk({"tool_calls": [{"index": number, **call, "function": function}]}, index=at))
            for piece in _pieces(call["function"]["arguments"]):
                more = {"index": number, "function": {"arguments": piece}}
                lines.append(chunk({"tool_calls": [more]}, index=at))
        lines.append(chunk({}, choice["finish_reason"], index=at))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        lines.append(_data({**head, "choices": [], "usage": answer["usage"]}))
    return [*lines, "data: [DONE]\n\n"]


def _responses_stream(request: SeenRequest, answer: Wire) -> list[str]:
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    made: list[Wire] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(answer["output"]):
        empty = {**item, **({"content": []} if item["type"] == "message" else {})}
        made.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        if item["type"] == "message":
            part = item["content"][0]
            where = {"item_id": item["id"], "output_index": index, "content_index": 0}
            made.append({"type": "response.content_part.added", **where, "part": {**part, "text": ""}})
            made += [
                {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
                for piece in _pieces(part["text"])
            ]
            made.append({"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []})
        made.append({"type": "response.output_item.done", "output_index": index, "item": item})
    made.append({"type": "response.completed", "response": answer})
    return [_event({**event, "sequence_number": number}) for number, event in enumerate(made)]


def _anthropic_stream(request: SeenRequest, answer: Wire) -> list[str]:
    usage = answer["usage"]
    made: list[Wire] = [{"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}]
    for index, block in enumerate(answer["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}[kind]
        made.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
        told = {"text": block.get("text", ""), "thinking": block.get("thinking", "")}
        for name in ("text", "thinking"):
            made += [
                {"type": "content_block_delta", "index": index, "delta": {"type": f"{name}_delta", name: piece}}
                for piece in _pieces(told[name])
            ]
        if kind == "thinking":
            delta: Wire = {"type": "signature_delta", "signature": block["signature"]}
            made.append({"type": "content_block_delta", "index": index, "delta": delta})
        for piece in _pieces(json.dumps(block["input"])) if kind == "tool_use" else ():
            delta = {"type": "input_json_delta", "partial_json": piece}
            made.append({"type": "content_block_delta", "index": index, "delta": delta})
        made.append({"type": "content_block_stop", "index": index})
    last = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    made.append({"type": "message_delta", "delta": last, "usage": {"output_tokens": usage["output_tokens"]}})
    return [_event(event) for event in [*made[:1], {"type": "ping"}, *made[1:], {"type": "message_stop"}]]


STREAMS: dict[Kind, Callable[[SeenRequest, Wire], list[str]]] = {
    "chat": _chat_stream,
    "responses": _responses_stream,
    "anthropic": _anthropic_stream,
}
