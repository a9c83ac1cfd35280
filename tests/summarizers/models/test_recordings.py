"""Recordings of a model's API: played again without a network, keys never in the file, bad files refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from ctxsteward.schemas import ChatRequest, InputError, ModelUnavailable
from ctxsteward.summarizers.models import OpenAIModel
from ctxsteward.summarizers.models.recordings import RecordingTransport, ReplayTransport

REQUEST = ChatRequest(purpose="summary", messages=({"role": "user", "content": "hi"},), max_output_tokens=9)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.count += 1  # type: ignore[attr-defined]
        said = {"role": "assistant", "content": f"answer {self.server.count}"}  # type: ignore[attr-defined]
        body: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.count = 0  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def model(address: str, transport: Any) -> OpenAIModel:
    return OpenAIModel("m", base_url=address, api_key="sk-secret", http_client=httpx2.Client(transport=transport))


def test_a_recording_plays_the_same_answers_in_their_order(address: str, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    recorded = model(address, RecordingTransport(file))
    first = [recorded.reply(REQUEST) for _ in range(2)]
    recorded.close()
    again = model("http://models.example/v1", ReplayTransport(file))
    played = [again.reply(REQUEST) for _ in range(3)]
    again.close()

    assert [reply.text for reply in first] == ["answer 1", "answer 2"]
    assert played == [*first, first[-1]]
    assert "sk-secret" not in file.read_text()


def test_async_callers_replay_the_same(address: str, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"

    async def ask(transport: Any, base_url: str) -> str:
        async with httpx2.AsyncClient(transport=transport) as client:
            asked = OpenAIModel("m", base_url=base_url, api_key="none", async_http_client=client)
            return (await asked.reply_async(REQUEST)).text

    assert asyncio.run(ask(RecordingTransport(file), address)) == "answer 1"
    assert asyncio.run(ask(ReplayTransport(file), "http://models.example/v1")) == "answer 1"


def test_what_was_not_recorded_is_told_and_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text("")
    asked = model("http://models.example/v1", ReplayTransport(tmp_path / "calls.jsonl"))
    with pytest.raises((InputError, ModelUnavailable), match="no call of POST /v1/chat/completions"):
        asked.reply(REQUEST)
    asked.close()


BAD_FILES = {
    "no JSON": ("{", "line 1 is no call"),
    "no call": ('{"status": 200}', "line 1 is no call"),
    "a list": ("[]", "line 1 is no call"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_recording_is_refused_with_its_line(tmp_path: Path, case: str) -> None:
    text, found = BAD_FILES[case]
    (tmp_path / "calls.jsonl").write_text(text)
    with pytest.raises(InputError, match=found):
        ReplayTransport(tmp_path / "calls.jsonl")
    with pytest.raises(InputError, match=r"absent\.jsonl"):
        ReplayTransport(tmp_path / "absent.jsonl")
