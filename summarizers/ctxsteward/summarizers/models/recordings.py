"""Recorded calls of a model's API, for replay: `httpx2` transports for the SDKs' clients.

    OpenAIModel("gpt-4o-mini", http_client=httpx2.Client(transport=RecordingTransport("calls.jsonl")))
    OpenAIModel("gpt-4o-mini", api_key="none", http_client=httpx2.Client(transport=ReplayTransport("calls.jsonl")))

Each row of the file is one call: the request's method, path and body, and the whole answer. Headers of requests are
not written, because they contain keys. A request is found by method, path and body as JSON, keys in any order. Its n-th
repetition gets the n-th recorded answer, and the last one after that. The file is as secret as the conversation in it.

A file that is no recording raises `InputError`, and a request that is not in it `NotRecorded`. Both transports also
serve an async client.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx2

from ctxsteward.schemas import InputError


class NotRecorded(InputError):
    """No recording contains the request."""


class RecordingTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Sends each request and records its answer."""

    def __init__(self, path: str | Path, inner: Any = None) -> None:
        """`inner` is the transport that sends; by default the network."""
        self._path, self._lock = Path(path), threading.Lock()
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self._inner = self._inner or httpx2.HTTPTransport()
        response = self._inner.handle_request(request)
        response.read()
        return self._written(request, response)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self._inner = self._inner or httpx2.AsyncHTTPTransport()
        response = await self._inner.handle_async_request(request)
        await response.aread()
        return self._written(request, response)

    def _written(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        told = {"status": response.status_code, "type": response.headers.get("content-type", "")}
        row = {
            **_question(request),
            **told,
            "retry_after": response.headers.get("retry-after"),
            "answer": response.text,
        }
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return _answer(row, request)

    def close(self) -> None:
        if self._inner is not None and hasattr(self._inner, "close"):
            self._inner.close()


class ReplayTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers from a recording and sends nothing."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._lock = Path(path), threading.Lock()
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._asked: dict[str, int] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"recording {self._path}: {error}") from error
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                self._rows.setdefault(_key(row), []).append(row)
                _ = row["status"], row["type"], row["answer"]
            except (ValueError, LookupError, TypeError) as error:
                raise InputError(f"recording {self._path}: line {number} is no call; record it anew") from error

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return self._found(request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return self._found(request)

    def _found(self, request: httpx2.Request) -> httpx2.Response:
        key = _key(_question(request))
        with self._lock:
            rows, asked = self._rows.get(key, []), self._asked.get(key, 0)
            self._asked[key] = asked + 1
        if not rows:
            raise NotRecorded(f"recording {self._path}: no call of {request.method} {request.url.path} with this body")
        return _answer(rows[min(asked, len(rows) - 1)], request)


def _question(request: httpx2.Request) -> dict[str, Any]:
    text = request.content.decode("utf-8", "replace")
    try:
        body: Any = json.loads(text)
    except ValueError:
        body = text
    return {"method": request.method, "path": request.url.path, "body": body}


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["method"], row["path"], row["body"]], sort_keys=True, ensure_ascii=False)


def _answer(row: dict[str, Any], request: httpx2.Request) -> httpx2.Response:
    headers = {"content-type": row["type"]} | ({"retry-after": row["retry_after"]} if row.get("retry_after") else {})
    return httpx2.Response(row["status"], headers=headers, content=row["answer"].encode(), request=request)
