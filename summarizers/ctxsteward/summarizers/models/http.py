"""The HTTP client for all calls of a model: bounded answers, without compression and redirects.

This client reads the whole answer before an SDK sees it. The wall-clock deadline of a call is a cancel scope around
this client (`providers`), so it also limits a server that sends one byte at a time, headers included. Compression is
declined and a compressed answer refused, because one chunk of it can expand a thousandfold before its length can be
checked. A redirect is an error with its status: following it would send the conversation, perhaps the key, elsewhere.
"""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import httpx2

MAX_ANSWER_BYTES = 8 * 2**20
"""Several times the length of the longest reply of a model."""


class AnswerRefused(Exception):
    """An answer was not read to its end. The message is safe to log."""


def bounded_client(through: httpx2.AsyncClient | httpx2.Client | None = None) -> httpx2.AsyncClient:
    """Return a client that reads at most `MAX_ANSWER_BYTES`. `through`, a client of the caller, sends if given."""
    return _BoundedClient(through)


class _BoundedClient(httpx2.AsyncClient):
    def __init__(self, through: httpx2.AsyncClient | httpx2.Client | None = None) -> None:
        transport = _InThread(through) if isinstance(through, httpx2.Client) else None
        super().__init__(transport=transport)
        self._through = through if isinstance(through, httpx2.AsyncClient) else None

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send the request and read its answer within the bounds."""
        request.headers["accept-encoding"] = "identity"
        how |= {"stream": True, "follow_redirects": False}
        send = super().send if self._through is None else self._through.send
        response = await send(request, **how)
        body = bytearray()
        try:
            _refuse_compression(response)
            async for chunk in response.aiter_bytes():
                body += chunk
                _refuse_length(body)
        finally:
            await response.aclose()
        return _read(response, body, request)


class _InThread(httpx2.AsyncBaseTransport):
    """Sends through a synchronous client. After the deadline only that client's timeouts end the thread of a call."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return await anyio.to_thread.run_sync(self._send, request, abandon_on_cancel=True)

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            extensions=request.extensions,
        )
        response = self._client.send(sent, stream=True, follow_redirects=False)
        body = bytearray()
        try:
            _refuse_compression(response)
            for chunk in response.iter_bytes():
                body += chunk
                _refuse_length(body)
        finally:
            response.close()
        return _read(response, body, request)


def _refuse_compression(response: httpx2.Response) -> None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise AnswerRefused(f"its answer is compressed ({encoding[:40]!r}), which was declined; turn compression off")


def _refuse_length(body: bytearray) -> None:
    if len(body) > MAX_ANSWER_BYTES:
        raise AnswerRefused(f"its answer is longer than {MAX_ANSWER_BYTES:,} bytes; no reply of a model is")


def _read(response: httpx2.Response, body: bytearray, request: httpx2.Request) -> httpx2.Response:
    headers = [(name, value) for name, value in response.headers.multi_items() if name != "transfer-encoding"]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)
