"""The means by which `wrap` changes requests: an HTTP client for OpenAI's SDK, a middleware for Anthropic's.

Both send through `httpx2` and use threads of `anyio`; the extras ``openai`` and ``anthropic`` install both.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, cast

import anyio.to_thread
import httpx2

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .answers import CompleteAnswer, plain_body, read_answer
from .conversations import ConversationName, Conversations, named_conversation
from .requests import BuiltRequest, Endpoint, built_request, endpoint_of, with_prefill

MAX_ATTEMPTED = 64
"""Most calls under way whose bytes are kept for another attempt."""
_RETRIES = "x-stainless-retry-count"
_log = logging.getLogger("ctxsteward.envelope.integrations")


def wrapped(client: object, conversations: Conversations, default: ConversationName | None) -> object:
    """Return the client with the part that routes its calls through sessions; see `clients.wrap`."""
    calls = ClientCalls(conversations, default)
    sdk, is_async = _kind(client)
    return _wrapped_openai(client, calls) if sdk == "openai" else _wrapped_anthropic(client, calls, is_async)


def _kind(client: object) -> tuple[str, bool]:
    """Return the client's SDK, and whether the client is async."""
    for base in type(client).__mro__:
        sdk = base.__module__.partition(".")[0]
        if (sdk, base.__name__.removeprefix("Async")) in (("openai", "OpenAI"), ("anthropic", "Anthropic")):
            return sdk, base.__name__.startswith("Async")
        if sdk == "anthropic" and base.__name__ in ("SyncAPIClient", "AsyncAPIClient"):
            return sdk, base.__name__.startswith("Async")
    expected = "OpenAI(), AsyncOpenAI(), Anthropic() or AsyncAnthropic()"
    raise InputError(f"client is {type(client).__name__}; pass one of {expected}")


def _wrapped_openai(client: Any, calls: ClientCalls) -> object:
    inner = client._client  # the SDK has no public name for it
    if isinstance(inner, (SessionClient, AsyncSessionClient)):
        raise InputError("this client is wrapped already; wrap the one it was made from")
    if isinstance(inner, httpx2.Client):
        return client.copy(http_client=SessionClient(inner, calls))
    if isinstance(inner, httpx2.AsyncClient):
        return client.copy(http_client=AsyncSessionClient(inner, calls))
    found = f"{type(inner).__module__.partition('.')[0]}.{type(inner).__name__}"
    raise InputError(f"the client sends through {found}; give it an httpx2 client: OpenAI(http_client=httpx2.Client())")


def _wrapped_anthropic(client: Any, calls: ClientCalls, is_async: bool) -> object:
    if not hasattr(client, "with_middleware"):
        raise InputError("this version of anthropic has no middleware; pip install 'ctxsteward[anthropic]'")
    if any(isinstance(middleware, SessionMiddleware) for middleware in client.middleware):
        raise InputError("this client is wrapped already; wrap the one it was made from")
    return client.with_middleware(AsyncSessionMiddleware(calls) if is_async else SessionMiddleware(calls))


# -- one call of either SDK ----------------------------------------------------------------------------------------


class ClientCalls:
    """Calls of a wrapped client."""

    def __init__(self, conversations: Conversations, default: ConversationName | None) -> None:
        self.conversations: Conversations = conversations
        self.default: ConversationName | None = default
        self.under_way: OrderedDict[object, BuiltRequest | None] = OrderedDict()


class CallAttempt:
    """One attempt at a call of the model: begun before it is sent, ended with its response."""

    def __init__(
        self, calls: ClientCalls, endpoint: Endpoint, key: object, retries: int, body: Callable[[], Wire | None]
    ) -> None:
        """`key` is the same for all attempts of one call."""
        self._calls, self._endpoint, self._retries, self._body = calls, endpoint, retries, body
        self._key = named_conversation(calls.default), key
        self._built: BuiltRequest | None = None

    def begin(self) -> Wire | None:
        """Return the body to send, None for the caller's own; later attempts send the bytes of the first."""
        calls, lock, (name, _) = self._calls, self._calls.conversations.lock, self._key
        with lock:
            is_known = bool(self._retries) and self._key in calls.under_way
            self._built = calls.under_way[self._key] if is_known else None
        if not is_known:
            own = self._body()
            self._built = built_request(calls.conversations, self._endpoint, name, own)
            if self._built is not None and own is not None:
                self._built.call.arguments = own
            with lock:
                calls.under_way[self._key] = self._built
                if len(calls.under_way) > MAX_ATTEMPTED:
                    calls.under_way.popitem(last=False)
        return None if self._built is None else self._built.body

    def hear(self, response: httpx2.Response) -> None:
        """End the call with its response; a stream's call when it is read or closed."""
        if response.is_success and response.is_closed:
            self.end(response, None)
        elif response.is_success:
            response.stream = HeardStream(response, self)

    async def hear_async(self, response: httpx2.Response) -> None:
        """Do the same as `hear` for async clients; our own work runs in a thread."""
        if response.is_success and response.is_closed:
            await anyio.to_thread.run_sync(self.end, response, None)
        elif response.is_success:
            response.stream = HeardStream(response, self)

    def end(self, response: httpx2.Response, raw: bytes | None) -> None:
        """Keep the answer; `raw` is a stream's content as received, None if the response contains it."""
        built, conversations = self._built, self._calls.conversations
        assert built is not None
        with conversations.lock:
            self._calls.under_way.pop(self._key, None)
        answer = _answer(built.endpoint, response, raw)
        messages = [] if answer is None else list(answer.messages)
        prefill = built.handed.prefill
        if prefill is not None:
            messages = [with_prefill(message, prefill) for message in messages]
        usage, sent = None if answer is None else answer.usage, _sent(response, prefill)
        conversations.finish(built.call, messages, usage=usage, sent=sent, provider=built.endpoint.provider)


def _answer(endpoint: Endpoint, response: httpx2.Response, raw: bytes | None) -> CompleteAnswer | None:
    content_type = response.headers.get("content-type", "")
    try:
        if raw is None:
            data = response.content
        else:
            coded = {"content-encoding": response.headers.get("content-encoding", "identity")}
            data = httpx2.Response(200, headers=coded, content=raw).content
        return read_answer(endpoint.provider, content_type, data)
    except Exception as error:
        _log.warning(
            "an answer could not be read (%s, %s); the next history brings it",
            content_type.partition(";")[0],
            type(error).__name__,
        )
        return None


def _sent(response: httpx2.Response, prefill: Wire | None) -> Wire | None:
    """Return the arguments of the request that was sent, or None if it cannot be read."""
    try:
        sent = json.loads(response.request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    if prefill is not None:
        sent["messages"] = sent["messages"][:-1]
    return cast(Wire, sent)


class HeardStream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A response's stream that collects its chunks, and ends the call when it is read or closed.

    Closing counts, because SDKs stop reading at the last event.
    """

    def __init__(self, response: httpx2.Response, attempt: CallAttempt) -> None:
        self._inner: Any = response.stream
        self._response, self._attempt, self._chunks = response, attempt, list[bytes]()
        self._is_ended = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            self._chunks.append(chunk)
            yield chunk
        self._finish()

    def close(self) -> None:
        self._inner.close()
        self._finish()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._chunks.append(chunk)
            yield chunk
        await self._finish_async()

    async def aclose(self) -> None:
        await self._inner.aclose()
        await self._finish_async()

    def _finish(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._attempt.end(self._response, b"".join(self._chunks))

    async def _finish_async(self) -> None:
        if not self._is_ended:
            with anyio.CancelScope(shield=True):  # the answer is kept even if its reader is cancelled
                await anyio.to_thread.run_sync(self._finish)


# -- OpenAI: an HTTP client around the client's own ----------------------------------------------------------------


class SessionClient(httpx2.Client):
    """Sends through another client, with built contexts."""

    def __init__(self, inner: httpx2.Client, calls: ClientCalls) -> None:
        super().__init__(transport=httpx2.MockTransport(_unused), trust_env=False, timeout=inner.timeout)
        self._through, self._calls = inner, calls

    def build_request(self, *args: Any, **arguments: Any) -> httpx2.Request:
        """Build a request with the inner client."""
        return self._through.build_request(*args, **arguments)

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send the request; a request to a model gets a built context."""
        attempt = _attempt(self._calls, request)
        if attempt is None or (body := attempt.begin()) is None:
            return self._through.send(request, **how)
        response = self._through.send(_with_body(request, body), **how)
        attempt.hear(response)
        return response

    def close(self) -> None:
        """Close the inner client, too."""
        self._through.close()
        super().close()

    @property
    def is_closed(self) -> bool:
        return self._through.is_closed


class AsyncSessionClient(httpx2.AsyncClient):
    """`SessionClient` for async clients; builds run in threads."""

    def __init__(self, inner: httpx2.AsyncClient, calls: ClientCalls) -> None:
        super().__init__(transport=httpx2.MockTransport(_unused), trust_env=False, timeout=inner.timeout)
        self._through, self._calls = inner, calls

    def build_request(self, *args: Any, **arguments: Any) -> httpx2.Request:
        """Build a request with the inner client."""
        return self._through.build_request(*args, **arguments)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send the request; a request to a model gets a built context."""
        attempt = _attempt(self._calls, request)
        if attempt is None or (body := await anyio.to_thread.run_sync(attempt.begin)) is None:
            return await self._through.send(request, **how)
        response = await self._through.send(_with_body(request, body), **how)
        await attempt.hear_async(response)
        return response

    async def aclose(self) -> None:
        """Close the inner client, too."""
        await self._through.aclose()
        await super().aclose()

    @property
    def is_closed(self) -> bool:
        return self._through.is_closed


def _unused(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError("requests go through the inner client")


def _attempt(calls: ClientCalls, request: httpx2.Request) -> CallAttempt | None:
    """Return an attempt at a call of a model, or None for another request."""
    is_json = request.headers.get("content-type", "").startswith("application/json")
    endpoint = endpoint_of(request.url.path) if request.method == "POST" and is_json else None
    if endpoint is None or endpoint.provider == "anthropic":
        return None
    taken = request.headers.get(_RETRIES, "0")
    key = hashlib.blake2b(request.content, digest_size=16).digest()  # all attempts of a call have one content
    return CallAttempt(calls, endpoint, key, int(taken) if taken.isdecimal() else 0, partial(_body, request))


def _body(request: httpx2.Request) -> Wire | None:
    try:
        body = json.loads(request.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _with_body(request: httpx2.Request, body: Wire) -> httpx2.Request:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in _LENGTHS]
    return httpx2.Request(request.method, request.url, headers=headers, content=content, extensions=request.extensions)


_LENGTHS = (b"content-length", b"transfer-encoding")


# -- Anthropic: a middleware ---------------------------------------------------------------------------------------


class SessionMiddleware:
    """A middleware of a sync client; runs once per attempt."""

    def __init__(self, calls: ClientCalls) -> None:
        self._calls = calls

    def __call__(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        attempt = self._attempt(request)
        if attempt is None or (body := attempt.begin()) is None:
            return call_next(request)
        response = call_next(request.copy(body=body))
        attempt.hear(response.http_response)
        return response

    def _attempt(self, request: Any) -> CallAttempt | None:
        path = str(request.url).partition("?")[0]
        if request.method.lower() != "post" or not path.endswith(_ANTHROPIC.path):
            return None
        key, body = request.options.idempotency_key, partial(plain_body, request.json)
        return CallAttempt(self._calls, _ANTHROPIC, key, request.retries_taken, body)


class AsyncSessionMiddleware(SessionMiddleware):
    """A middleware of an async client; builds run in threads."""

    async def __call__(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        attempt = self._attempt(request)
        if attempt is None or (body := await anyio.to_thread.run_sync(attempt.begin)) is None:
            return await call_next(request)
        response = await call_next(request.copy(body=body))
        await attempt.hear_async(response.http_response)
        return response


_ANTHROPIC = cast(Endpoint, endpoint_of("/v1/messages"))

__all__ = ["ClientCalls", "wrapped"]
