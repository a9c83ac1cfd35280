"""How `wrap` gets between a client and its provider: an HTTP client for OpenAI's SDK, a middleware for Anthropic's.

Both send through `httpx2` and take threads of `anyio`, which the extras ``openai`` and ``anthropic`` bring.
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

from .answers import (
    BuiltRequest,
    CompleteAnswer,
    Endpoint,
    built_request,
    endpoint_of,
    plain_body,
    read_answer,
    with_prefill,
)
from .conversations import ConversationName, Conversations, named_conversation

MAX_ATTEMPTED = 64
"""Calls under way whose bytes are kept for another attempt."""
_RETRIES = "x-stainless-retry-count"
_log = logging.getLogger("ctxsteward.envelope.integrations")


def wrapped(client: object, conversations: Conversations, default: ConversationName | None) -> object:
    """The client with what sends its calls through sessions; see `clients.wrap`."""
    calls = ClientCalls(conversations, default)
    sdk, is_async = _kind(client)
    return _wrapped_openai(client, calls) if sdk == "openai" else _wrapped_anthropic(client, calls, is_async)


def _kind(client: object) -> tuple[str, bool]:
    """Whose client it is, and whether it is an async one."""
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
    if any(isinstance(one, (SessionMiddleware, AsyncSessionMiddleware)) for one in client.middleware):
        raise InputError("this client is wrapped already; wrap the one it was made from")
    return client.with_middleware(AsyncSessionMiddleware(calls) if is_async else SessionMiddleware(calls))


# -- one call, whichever SDK ---------------------------------------------------------------------------------------


class ClientCalls:
    """The calls of a wrapped client."""

    def __init__(self, conversations: Conversations, default: ConversationName | None) -> None:
        self.conversations: Conversations = conversations
        self.default: ConversationName | None = default
        self._under_way: OrderedDict[object, BuiltRequest | None] = OrderedDict()
        self._lock = conversations.lock

    def name(self) -> ConversationName:
        """Of the session that a call made here belongs to."""
        return named_conversation(self.default)

    def begin(
        self, endpoint: Endpoint, name: ConversationName, key: object, retries: int, body: Callable[[], Wire | None]
    ) -> BuiltRequest | None:
        """What to send for this attempt; None: the caller's own request. `key` is the same for all of a call's."""
        with self._lock:
            if retries and (name, key) in self._under_way:
                return self._under_way[name, key]
        own = body()
        prepared = built_request(self.conversations, endpoint, name, own)
        if prepared is not None and own is not None:
            prepared.call.arguments = own
        with self._lock:
            self._under_way[name, key] = prepared
            if len(self._under_way) > MAX_ATTEMPTED:
                self._under_way.popitem(last=False)
        return prepared

    def end(
        self, name: ConversationName, key: object, under_way: BuiltRequest, response: httpx2.Response, raw: bytes | None
    ) -> None:
        """Once the response was read: `raw` is a stream's content as it came; None: the response holds it."""
        with self._lock:
            self._under_way.pop((name, key), None)
        answer = self._answer(under_way.endpoint, response, raw)
        messages = [] if answer is None else list(answer.messages)
        prefill = under_way.handed.prefill
        if prefill is not None:
            messages = [with_prefill(message, prefill) for message in messages]
        usage = None if answer is None else answer.usage
        self.conversations.finish(
            under_way.call, messages, usage=usage, sent=_sent(response, prefill), provider=under_way.endpoint.provider
        )

    def _answer(self, endpoint: Endpoint, response: httpx2.Response, raw: bytes | None) -> CompleteAnswer | None:
        content_type = response.headers.get("content-type", "")
        try:
            if raw is None:
                data = response.content
            else:
                coded = {"content-encoding": response.headers.get("content-encoding", "identity")}
                data = httpx2.Response(200, headers=coded, content=raw).content
            return read_answer(endpoint, content_type, data)
        except Exception as error:
            _log.warning(
                "an answer could not be read (%s, %s); the next history brings it",
                content_type.partition(";")[0],
                type(error).__name__,
            )
            return None


def _sent(response: httpx2.Response, prefill: Wire | None) -> Wire | None:
    """The request's arguments, as they went out."""
    try:
        sent = json.loads(response.request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    if prefill is not None:
        sent["messages"] = sent["messages"][:-1]
    return cast(Wire, sent)


# -- responses, whole or as streams --------------------------------------------------------------------------------

End = Callable[[httpx2.Response, bytes | None], None]


class HeardStream(httpx2.SyncByteStream):
    """A response's stream that keeps what passes, and ends the call when it is read or closed."""

    def __init__(self, response: httpx2.Response, end: End) -> None:
        self._inner = cast(httpx2.SyncByteStream, response.stream)
        self._response, self._end, self._chunks = response, end, list[bytes]()
        self._is_ended = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            self._chunks.append(chunk)
            yield chunk
        self._finish()

    def close(self) -> None:
        """Also where it was not read to its end: SDKs stop at the last event."""
        self._inner.close()
        self._finish()

    def _finish(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._end(self._response, b"".join(self._chunks))


class AsyncHeardStream(httpx2.AsyncByteStream):
    """`HeardStream` of an async client."""

    def __init__(self, response: httpx2.Response, end: End) -> None:
        self._inner = cast(httpx2.AsyncByteStream, response.stream)
        self._response, self._end, self._chunks = response, end, list[bytes]()
        self._is_ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._chunks.append(chunk)
            yield chunk
        await self._finish()

    async def aclose(self) -> None:
        """Also where it was not read to its end."""
        await self._inner.aclose()
        await self._finish()

    async def _finish(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            with anyio.CancelScope(shield=True):  # what was answered is kept, though its reader is cancelled
                await anyio.to_thread.run_sync(self._end, self._response, b"".join(self._chunks))


# -- OpenAI: an HTTP client around the client's own ----------------------------------------------------------------


class SessionClient(httpx2.Client):
    """Sends through another client, with built contexts."""

    def __init__(self, inner: httpx2.Client, calls: ClientCalls) -> None:
        super().__init__(transport=httpx2.MockTransport(_unused), trust_env=False, timeout=inner.timeout)
        self._through, self._calls = inner, calls

    def build_request(self, *args: Any, **arguments: Any) -> httpx2.Request:
        """As the inner client does."""
        return self._through.build_request(*args, **arguments)

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send the request, with a context that was built where it is one for a model."""
        endpoint = _endpoint(request)
        if endpoint is None:
            return self._through.send(request, **how)
        name, key, retries = self._calls.name(), _digest(request), _retries(request)
        under_way = self._calls.begin(endpoint, name, key, retries, partial(_body, request))
        if under_way is None:
            return self._through.send(request, **how)
        response = self._through.send(_with_body(request, under_way.body), **how)
        end = partial(self._calls.end, name, key, under_way)
        if response.is_success and response.is_closed:
            end(response, None)
        elif response.is_success:
            response.stream = HeardStream(response, end)
        return response

    def close(self) -> None:
        """Close the inner client, too."""
        self._through.close()
        super().close()

    @property
    def is_closed(self) -> bool:
        return self._through.is_closed


class AsyncSessionClient(httpx2.AsyncClient):
    """`SessionClient` for tasks: builds run in threads."""

    def __init__(self, inner: httpx2.AsyncClient, calls: ClientCalls) -> None:
        super().__init__(transport=httpx2.MockTransport(_unused), trust_env=False, timeout=inner.timeout)
        self._through, self._calls = inner, calls

    def build_request(self, *args: Any, **arguments: Any) -> httpx2.Request:
        """As the inner client does."""
        return self._through.build_request(*args, **arguments)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send the request, with a context that was built where it is one for a model."""
        endpoint = _endpoint(request)
        if endpoint is None:
            return await self._through.send(request, **how)
        name, key, retries = self._calls.name(), _digest(request), _retries(request)
        begin = partial(self._calls.begin, endpoint, name, key, retries, partial(_body, request))
        under_way = await anyio.to_thread.run_sync(begin)
        if under_way is None:
            return await self._through.send(request, **how)
        response = await self._through.send(_with_body(request, under_way.body), **how)
        end = partial(self._calls.end, name, key, under_way)
        if response.is_success and response.is_closed:
            await anyio.to_thread.run_sync(end, response, None)
        elif response.is_success:
            response.stream = AsyncHeardStream(response, end)
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


def _endpoint(request: httpx2.Request) -> Endpoint | None:
    is_json = request.headers.get("content-type", "").startswith("application/json")
    endpoint = endpoint_of(request.url.path) if request.method == "POST" and is_json else None
    return None if endpoint is None or endpoint.provider == "anthropic" else endpoint


def _digest(request: httpx2.Request) -> bytes:
    """The same for all attempts of a call."""
    return hashlib.blake2b(request.content, digest_size=16).digest()


def _retries(request: httpx2.Request) -> int:
    taken = request.headers.get(_RETRIES, "0")
    return int(taken) if taken.isdecimal() else 0


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
    """A middleware of a sync client; runs once an attempt."""

    def __init__(self, calls: ClientCalls) -> None:
        self._calls = calls

    def __call__(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        if not _is_messages(request):
            return call_next(request)
        name, key = self._calls.name(), request.options.idempotency_key
        under_way = self._calls.begin(_ANTHROPIC, name, key, request.retries_taken, partial(plain_body, request.json))
        if under_way is None:
            return call_next(request)
        response = call_next(request.copy(body=under_way.body))
        http, end = response.http_response, partial(self._calls.end, name, key, under_way)
        if http.is_success and http.is_closed:
            end(http, None)
        elif http.is_success:
            http.stream = HeardStream(http, end)
        return response


class AsyncSessionMiddleware:
    """A middleware of an async client; builds run in threads."""

    def __init__(self, calls: ClientCalls) -> None:
        self._calls = calls

    async def __call__(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        if not _is_messages(request):
            return await call_next(request)
        name, key = self._calls.name(), request.options.idempotency_key
        begin = partial(
            self._calls.begin, _ANTHROPIC, name, key, request.retries_taken, partial(plain_body, request.json)
        )
        under_way = await anyio.to_thread.run_sync(begin)
        if under_way is None:
            return await call_next(request)
        response = await call_next(request.copy(body=under_way.body))
        http, end = response.http_response, partial(self._calls.end, name, key, under_way)
        if http.is_success and http.is_closed:
            await anyio.to_thread.run_sync(end, http, None)
        elif http.is_success:
            http.stream = AsyncHeardStream(http, end)
        return response


def _is_messages(request: Any) -> bool:
    path = str(request.url).partition("?")[0]
    return request.method.lower() == "post" and path.endswith(_ANTHROPIC.path)


_ANTHROPIC = cast(Endpoint, endpoint_of("/v1/messages"))

__all__ = ["ClientCalls", "wrapped"]
