"""A faulty network between an S3 client and a real S3 server: the only way to see the SDK's own retries.

    with FaultProxy(server.url) as proxy:                 # 127.0.0.1, a free port that stays the same
        proxy.faults(["lost_reply", "pass", "conflict_409"])   # the next conditional PUTs, then nothing
        proxy.faults(lambda request: "lost_reply" if request.number % 3 == 0 else "pass")
        proxy.mode = "black_hole"                         # the whole endpoint, from now on
        …
        proxy.mode = "healthy"
        assert proxy.counts["lost_reply"] == 1

Two ways to break things. `faults` is a script for single requests: conditional PUTs (with If-None-Match or If-Match)
unless ``every_request=True``. `mode` is the state of the endpoint and meets every request; it wins over the script.

    pass                 forwarded, answered
    lost_reply           forwarded, applied; the connection closes without an answer
    error_after_apply    forwarded, applied; answered 500 InternalError
    conflict_409         not forwarded; answered 409 ConditionalRequestConflict
    unavailable_503      not forwarded; answered 503 SlowDown
    reset_before_apply   not forwarded; the connection is reset (RST)
    slow                 forwarded after `slow_seconds`, which may be after the client has given up
    black_hole           accepted, never answered, never forwarded; dropped when the mode changes or the proxy stops
    dead (a mode only)   nothing listens: open connections are reset, new ones refused

A script may also give an `Altered`: the request is forwarded, or not, and something else is answered.

Every thread and socket is gone when `stop` returns. Source: RFC 9112 (what a proxy forwards), the S3 API's error codes.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, get_args
from urllib.parse import urlsplit

Fault = Literal[
    "pass",
    "lost_reply",
    "error_after_apply",
    "conflict_409",
    "unavailable_503",
    "reset_before_apply",
    "slow",
    "black_hole",
]
Mode = Literal["healthy", "dead"] | Fault
UPSTREAM_TIMEOUT_SECONDS = 30.0
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "upgrade", "expect"}
_ERRORS: dict[str, tuple[int, str]] = {
    "error_after_apply": (500, "InternalError"),
    "conflict_409": (409, "ConditionalRequestConflict"),
    "unavailable_503": (503, "SlowDown"),
}


class Request(NamedTuple):
    """What a script decides by."""

    number: int
    """Counts the requests that the script is asked about, from 1."""
    method: str
    path: str
    """As sent: percent-encoded, with the query."""
    conditional: bool


class Reply(NamedTuple):
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    lies: bool = False
    """Its Content-Length is sent as it stands, whatever the body is."""


class Altered(NamedTuple):
    """An answer made out of the server's."""

    name: str
    """It is counted under this."""
    change: Callable[[Reply], Reply]
    forward: bool = True
    """Otherwise the server hears of nothing, and an empty 200 is what is changed."""


Script = Callable[[Request], "Fault | Altered"]


class FaultProxy:
    """See the module. Safe with threads."""

    def __init__(self, upstream_url: str, *, every_request: bool = False, slow_seconds: float = 1.0) -> None:
        where = urlsplit(upstream_url)
        self.upstream = (where.hostname or "127.0.0.1", where.port or 80)
        self.every_request, self.slow_seconds = every_request, slow_seconds
        self.counts: Counter[str] = Counter()
        """How often each fault was dealt, "pass" among them, and "forwarded"."""
        self._script: Script = lambda _: "pass"
        self._asked = 0
        self._lock = threading.Lock()
        self._mode: Mode = "healthy"
        self._changed = threading.Event()
        self._closing = False
        self._open: set[socket.socket] = set()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    # -- life ------------------------------------------------------------------------------------------

    def start(self) -> Self:
        self._listen()
        return self

    def stop(self) -> None:
        """Drop every held request, then close."""
        self._close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        assert self._port, "not started"
        return f"http://127.0.0.1:{self._port}"

    # -- faults ----------------------------------------------------------------------------------------

    def faults(self, script: Script | Iterable[Fault | Altered]) -> None:
        """What happens to the requests in scope from now on; a list is used up in order, then all pass."""
        with self._lock:
            self._asked = 0
            if callable(script):
                self._script = script
            else:
                waiting = iter(list(script))
                self._script = lambda _: next(waiting, "pass")

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        assert mode in ("healthy", "dead", *get_args(Fault)), mode
        with self._lock:
            before, self._mode = self._mode, mode
            self._release()
        if mode == "dead":
            self._close()
        elif before == "dead":
            self._listen()

    def fault_of(self, method: str, path: str, conditional: bool) -> tuple[Fault | Altered, threading.Event]:
        """Decide about one request, and count it; the event is set when whoever is held must go."""
        with self._lock:
            if self._closing:
                return "reset_before_apply", self._changed
            if self._mode not in ("healthy", "dead"):
                fault: Fault | Altered = self._mode
            elif self.every_request or (conditional and method == "PUT"):
                self._asked += 1
                fault = self._script(Request(self._asked, method, path, conditional))
            else:
                fault = "pass"
            self.counts[fault.name if isinstance(fault, Altered) else fault] += 1
            return fault, self._changed

    def forward(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> Reply:
        """What the real server answers; raises `OSError` or `http.client.HTTPException`."""
        connection = http.client.HTTPConnection(*self.upstream, timeout=UPSTREAM_TIMEOUT_SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            with self._lock:
                self.counts["forwarded"] += 1
            answer = connection.getresponse()
            return Reply(answer.status, answer.reason, answer.getheaders(), answer.read())
        finally:
            connection.close()

    # -- the server ------------------------------------------------------------------------------------

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def _release(self) -> None:
        """Let held requests go; the lock is held."""
        held, self._changed = self._changed, threading.Event()
        held.set()

    def _listen(self) -> None:
        self._closing = False
        self._server = _Server(self, self._port)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="fault proxy")
        self._thread.start()

    def _close(self) -> None:
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.socket.close()
        with self._lock:
            self._closing = True
            self._release()
            for connection in self._open:
                _linger_none(connection)
                _hang_up(connection)
        self._server.server_close()  # joins the threads of open connections
        self._server = self._thread = None


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy, port: int) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go in two writes: the second would wait 40 ms for an ACK
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.proxy.opened(self.connection)

    def finish(self) -> None:
        self.server.proxy.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *arguments: object) -> None:
        """Silence."""

    def do_any(self) -> None:
        proxy = self.server.proxy
        body = self._body()
        conditional = "If-None-Match" in self.headers or "If-Match" in self.headers
        fault, changed = proxy.fault_of(self.command, self.path, conditional)
        if fault == "black_hole":
            changed.wait()
            self._reset()
        elif fault == "reset_before_apply":
            self._reset()
        elif isinstance(fault, Altered) and not fault.forward:
            self._answer(fault.change(Reply(200, "OK", [], b"")))
        elif fault in ("conflict_409", "unavailable_503"):
            self._refuse(str(fault))
        else:
            if fault == "slow":
                changed.wait(proxy.slow_seconds)
            self._forward(fault, body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_OPTIONS = do_any  # noqa: N815 - names of http.server

    def _forward(self, fault: Fault | Altered, body: bytes) -> None:
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP]
        if "Content-Length" not in self.headers and body:
            headers.append(("Content-Length", str(len(body))))
        try:
            reply = self.server.proxy.forward(self.command, self.path, headers, body)
        except (OSError, http.client.HTTPException):
            self._reset()
            return
        if isinstance(fault, Altered):
            self._answer(fault.change(reply))
        elif fault == "lost_reply":
            self.close_connection = True
        elif fault == "error_after_apply":
            self._refuse(fault)
        else:
            self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.headers:
            if name.lower() not in _HOP_BY_HOP | {"content-length"}:
                self.send_header(name, value)
        length = next((value for name, value in reply.headers if name.lower() == "content-length"), None)
        if reply.lies and length is not None:
            self.close_connection = True
            self.send_header("Content-Length", length)
        elif self.command == "HEAD" and length is not None:
            self.send_header("Content-Length", length)
        elif reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _refuse(self, fault: str) -> None:
        status, code = _ERRORS[fault]
        xml = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{fault}</Message></Error>'
        body = b"" if self.command == "HEAD" else xml.encode()
        self._answer(Reply(status, code, [("Content-Type", "application/xml")], body))

    def _reset(self) -> None:
        self.close_connection = True
        self.server.proxy.closed(self.connection)
        _linger_none(self.connection)
        socket.close(self.connection.detach())

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data


def _linger_none(connection: socket.socket) -> None:
    """Closing sends RST instead of FIN."""
    with suppress(OSError):  # the client was first
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the client was first
        connection.shutdown(socket.SHUT_RDWR)
