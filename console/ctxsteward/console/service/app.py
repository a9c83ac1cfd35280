"""The HTTP application: the checks before every request, the routes, and the server.

    app = create_app(ServiceSettings(store=open_store("file:.ctxsteward")))      any ASGI server runs it

`RequestGate` handles every request, also those for pages. In this order it gives the request an id, checks the host
name (without tokens), the sender, the origin of a write, the tenant's rate and share of places, and the size and type
of the body. Every answer gets the id and the security headers. Every request is counted and becomes one row of the log
(no query, no body, no token). An exception becomes a problem (`access`); for a fault of the service, the log has the
traceback, and the client gets only the request id.

Paths in `PUBLIC` need no token and have small limits of their own. Each route declares the scope that it needs
(`access.needs`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
import threading
import traceback
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from importlib.metadata import version
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ctxsteward.schemas import ContextError
from ctxsteward.schemas.errors import without_secrets
from ctxsteward.schemas.publish import schema

from . import live_actions
from .access import (
    MEDIA_TYPE,
    Problem,
    Refusal,
    check_host,
    check_origin,
    field_faults,
    principal_of,
    refusal_of,
    refusal_of_status,
)
from .api import router
from .desk import Service, ServiceSettings

PUBLIC = frozenset(("/healthz", "/openapi.json", "/login"))
PUBLIC_FILES = "/assets/"
"""Paths below it are served without a token."""
STREAMS = frozenset(("/api/events",))
"""Paths with endless answers; the number of listeners bounds them."""
JSON_ROUTES = "/api/"
"""Paths below it take JSON bodies only."""
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with our forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of every answer, unless it sets them itself."""
_HEADERS = {name.encode(): value.encode() for name, value in HEADERS.items()}


class Exchange:
    """One request and its answer, on their way through `RequestGate`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, service: Service) -> None:
        self.scope, self._receive, self._send, self._service = scope, receive, send, service
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.named = dict(self.headers)
        asked = self.named.get(b"x-request-id", b"")
        self.id = asked.decode() if _REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex
        self.started = service.settings.clock()
        self.status, self.sent_bytes, self.read_bytes = 0, 0, 0
        self.tenant: str | None = None
        self.error: Exception | None = None
        """Error for the log, if the answer reports a fault of the service."""
        self._is_read = False
        limits = service.limits
        self.body_bytes, self.body_seconds = limits.body_bytes, limits.body_seconds
        self.holder: str | None = None
        """The tenant whose place this request takes, or None for `/healthz` and requests without a token."""
        self._waiting: asyncio.Timeout | None = None
        self._is_ended = False

    def end_waiting(self) -> None:
        """Stop waiting for the body, because a newer request takes the place."""
        self._is_ended = True
        if self._waiting is not None and self._waiting.when() is not None:
            self._waiting.reschedule(0)

    def leave(self) -> None:
        """Release the place and the body's bytes of the request."""
        if self.holder is not None:
            self._service.places.leave(self.holder, self.read_bytes)
        self._service.anonymous.leave(id(self))

    async def receive(self) -> Message:
        """Receive a piece of the body, within the limits of size and time."""
        if self._is_read:
            return await self._receive()
        left = self.started + self.body_seconds - self._service.settings.clock()
        try:
            async with asyncio.timeout(0 if self._is_ended else max(0.01, left)) as self._waiting:
                message = await self._receive()
        except TimeoutError:
            late = f"the body was not here within {self.body_seconds:g} s"
            why = "too many others without a token came meanwhile; ask again" if self._is_ended else late
            raise Refusal("timeout", why, headers={"Connection": "close"}) from None
        size = len(message.get("body", b""))
        self._is_read = not message.get("more_body", False)
        if self.read_bytes + size > self.body_bytes:
            raise self.too_large()
        if self.holder is not None:
            self._service.places.hold(self.holder, size)
        self.read_bytes += size
        return message

    def too_large(self) -> Refusal:
        return Refusal("too_large", f"a body may have {self.body_bytes:,} bytes", headers={"Connection": "close"})

    async def send(self, message: Message) -> None:
        """Send a piece of the answer; close the connection of a client that does not take it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in given}
            more = [(name, value) for name, value in _HEADERS.items() if name not in names]
            message = {**message, "headers": [*given, *more, (b"x-request-id", self.id.encode())]}
        else:
            self.sent_bytes += len(message.get("body", b""))
        seconds = self._service.limits.send_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._send(message)
        except TimeoutError:
            raise Refusal("timeout", f"the client took nothing of the answer for {seconds:g} s") from None

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a problem."""
        response = problem_response(refusal, self.id)
        await response(self.scope, self.receive, self.send)


def problem_response(refusal: Refusal, request_id: str) -> Response:
    """Return the HTTP response for a refusal."""
    body = refusal.problem(request_id).model_dump_json()
    return Response(body, refusal.status, media_type=MEDIA_TYPE, headers=refusal.headers)


class RequestGate:
    """ASGI middleware that checks and logs every request; the module lists the checks."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(Exchange(scope, receive, send, self._service))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, exchange: Exchange) -> None:
        scope = exchange.scope
        scope.setdefault("state", {})["exchange"] = exchange
        try:
            self._admit(exchange)
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as raised:
            refusal = refusal_of(raised)
            exchange.error = raised if refusal.status >= 500 else None
            if not exchange.status:
                with suppress(Refusal):  # the client does not take this answer either
                    await self._answer(exchange, refusal)
        finally:
            exchange.leave()
            self._log(exchange)

    async def _answer(self, exchange: Exchange, refusal: Refusal) -> None:
        """Redirect a browser without a login to the form; answer any other client with the problem."""
        wants_page = b"text/html" in exchange.named.get(b"accept", b"")
        path: str = exchange.scope["path"]
        if refusal.kind == "unauthorized" and wants_page and not path.startswith(JSON_ROUTES):
            await RedirectResponse("/login", 303)(exchange.scope, exchange.receive, exchange.send)
        else:
            await exchange.refuse(refusal)

    def _admit(self, exchange: Exchange) -> None:
        service, scope, headers = self._service, exchange.scope, exchange.named
        settings, path = service.settings, scope["path"]
        if settings.tokens is None:
            check_host(headers, settings.hosts)
        if path in PUBLIC or path.startswith(PUBLIC_FILES):
            exchange.body_bytes = service.limits.anonymous_body_bytes
            exchange.body_seconds = service.limits.anonymous_body_seconds
            if path != "/healthz":  # monitoring must always get an answer; it sends no body
                service.anonymous.take(id(exchange), exchange.end_waiting)
            check_origin(scope["method"], headers, scope["scheme"])
        else:
            who = principal_of(exchange.headers, settings.tokens, service.logins, settings.tenant)
            scope["state"]["principal"], exchange.tenant = who, who.tenant
            if who.is_browser:
                check_origin(scope["method"], headers, scope["scheme"])
            service.rates.take(who.tenant)
            if path not in STREAMS:
                service.places.take(who.tenant)
                exchange.holder = who.tenant
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > exchange.body_bytes:
            raise exchange.too_large()
        has_body = length != b"0" or b"transfer-encoding" in headers
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if has_body and path.startswith(JSON_ROUTES) and kind != b"application/json":
            raise Refusal("unsupported_media_type", "send the body as application/json")

    def _log(self, exchange: Exchange) -> None:
        service, scope = self._service, exchange.scope
        seconds = service.settings.clock() - exchange.started
        method = str(scope["method"]) if scope["method"] in _METHODS else "OTHER"
        route = str(getattr(scope.get("route"), "path_format", "-"))
        key = (method, route, exchange.status)
        number, total = service.counts.get(key, (0, 0.0))
        service.counts[key] = (number + 1, total + seconds)
        row = {
            "time": service.settings.now(),
            "request_id": exchange.id,
            "method": method,
            "path": scope["path"],
            "route": route,
            "status": exchange.status,
            "ms": round(seconds * 1000, 1),
            "bytes": exchange.sent_bytes,
            "tenant": exchange.tenant,
        }
        if exchange.error is not None:
            behind = exchange.error.__cause__ or exchange.error
            text = f"{type(behind).__name__}: {behind.detail if isinstance(behind, Refusal) else behind}"
            if exchange.status == 500:
                text = "".join(traceback.format_exception(exchange.error))
            row["error"] = without_secrets(text)
        service.settings.log(row)


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the application over an open store; `app.state.service` is the running service."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.hub.close()

    app = FastAPI(
        title="ctxsteward",
        version=version("ctxsteward"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(live_actions.router)
    app.add_middleware(RequestGate, service=service)
    for error in (Refusal, ContextError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, _problem)
    app.openapi = cache(partial(openapi_of, app))  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def described() -> dict[str, Any]:
        return app.openapi()

    return app


def _problem(request: Request, error: Exception) -> Response:
    exchange: Exchange = request.scope["state"]["exchange"]
    if isinstance(error, RequestValidationError):
        refusal = Refusal(
            "invalid", "the request does not fit; `errors` says where", errors=field_faults(error.errors())
        )
    elif isinstance(error, HTTPException) and not isinstance(error, Refusal):
        refusal = refusal_of_status(error.status_code, error.headers)
    else:
        refusal = refusal_of(error)
    if refusal.status >= 500:
        exchange.error = error
    return problem_response(refusal, exchange.id)


# -- the server -----------------------------------------------------------------------------------------------------

HEADER_SECONDS = 15.0
"""Seconds after which a connection without complete request headers is closed."""
HEADER_BYTES = 32 << 10
REQUESTS_FRACTION = 0.8
"""Share of the stop time for requests under way; the rest is for closing the store."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that waits `HEADER_SECONDS` for headers, and answers malformed requests with a problem."""

    header_seconds = HEADER_SECONDS
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._unwait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._unwait()
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwait()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer with a problem instead of a plain text."""
        problem = Refusal("bad_request", "this is no HTTP request, or its headers are too large")
        body = problem.problem(uuid.uuid4().hex).model_dump_json().encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.header_seconds, self.transport.close)

    def _unwait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class StoppableServer(uvicorn.Server):
    """Server that a signal stops in order: it takes no new requests, finishes those under way, and exits with 0.

    If anything still runs `stop_seconds` after the signal, the process exits with 1, because a thread cannot be ended
    otherwise. Everything acknowledged is on disk by then.
    """

    def __init__(self, app: FastAPI, stop_seconds: float) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PatientProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=int(HEADER_SECONDS),
                h11_max_incomplete_event_size=HEADER_BYTES,
                timeout_graceful_shutdown=max(1, int(stop_seconds * REQUESTS_FRACTION)),
            )
        )
        self._hub, self._stop_seconds = app.state.service.hub, stop_seconds
        self._log = app.state.service.settings.log
        self._is_stopping = False

    def serve_on(self, listening: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until a signal comes; `ready` is called once the signal handlers are installed."""
        logging.getLogger("uvicorn").setLevel(logging.ERROR)

        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            ready()
            self.run(sockets=[listening])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal. The server replaces the handlers with this method while it runs, too."""
        if not self._is_stopping:
            self._is_stopping = True
            timer = threading.Timer(self._stop_seconds, self._end)
            timer.daemon = True
            timer.start()
        self.should_exit = True

    def _end(self) -> None:
        error = f"not all ended within {self._stop_seconds:g} s of the signal; the process ends with it"
        self._log({"error": error})
        os._exit(1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


# -- the document ---------------------------------------------------------------------------------------------------


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document; its components include published JSON Schemas under their own names."""
    described: dict[str, Any] = get_openapi(
        title="ctxsteward",
        version=app.version,
        routes=app.routes,
        description="Sessions, envelopes and governed state over HTTP. Errors are problem details (RFC 9457).",
    )
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    used: dict[str, None] = {}
    described = dict(_with_published(described, used))
    components = described["components"]["schemas"]
    components |= problem.pop("$defs") | {"Problem": problem}
    for name in used:
        components |= component_of(name)
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    described["components"]["schemas"] = dict(sorted(components.items()))
    return described


def _with_published(node: Any, used: dict[str, None]) -> Any:
    """Replace every mark of a published schema in the document by a reference, and add its name to `used`."""
    if isinstance(node, list):
        return [_with_published(item, used) for item in node]
    if not isinstance(node, dict):
        return node
    if "x-published" in node:
        used[node["x-published"]] = None
        kept = {key: value for key, value in node.items() if key != "x-published"}
        return {"$ref": f"#/components/schemas/{node['x-published']}", **kept}
    return {key: _with_published(item, used) for key, item in node.items()}


def component_of(name: str) -> dict[str, Any]:
    """Return a published schema as components: under its own name, and its definitions under ``NAME_DEFINITION``."""
    published = schema(name)
    definitions = published.pop("$defs", {})
    text = json.dumps({name: published, **{f"{name}_{key}": value for key, value in definitions.items()}})
    named: dict[str, Any] = json.loads(text.replace('"#/$defs/', f'"#/components/schemas/{name}_'))
    named[name].pop("$schema", None)
    named[name].pop("$id", None)
    return named
