"""A small S3 look-alike that answers what a test wants: it overwrites, refuses, cuts off, or lists in a wrong order.

Kept to what `S3Objects` asks: PUT, GET and DELETE of one object, listings. Never an example of a good server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape


class Refusal(NamedTuple):
    """An answer to every request with this method."""

    method: str
    status: int
    code: str


class Lookalike(ThreadingHTTPServer):
    """Objects in a dictionary; conditions are ignored."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.refusals: list[Refusal] = []
        self.headers: dict[str, str] = {}
        """Sent with every object."""
        self.cut_off_bytes = 0
        """This many bytes of every body are promised and not sent."""
        self.backwards = False
        """List in the wrong order."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def lookalike() -> Iterator[Lookalike]:
    server = Lookalike()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """One request a connection, so that closing the server waits for nobody."""

    protocol_version = "HTTP/1.1"
    server: Lookalike

    def log_message(self, format: str, *arguments: object) -> None:
        """Silence."""

    def do_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        refusal = next((refusal for refusal in self.server.refusals if refusal.method == self.command), None)
        key = unquote(urlsplit(self.path).path)
        if refusal is not None:
            self._error(refusal.status, refusal.code)
        elif self.command == "PUT":
            self.server.objects[key] = body
            self._answer(200)
        elif self.command == "DELETE":
            self.server.objects.pop(key, None)
            self._answer(204)
        elif "versions" in urlsplit(self.path).query:
            self._error(501, "NotImplemented")
        elif "list-type" in self.path:
            self._list(key)
        elif key in self.server.objects:
            self._answer(200, self.server.objects[key], cut_off_bytes=self.server.cut_off_bytes)
        else:
            self._error(404, "NoSuchKey")

    do_GET = do_PUT = do_DELETE = do_any  # noqa: N815 - names of http.server

    def _list(self, bucket: str) -> None:
        keys = sorted((key.removeprefix(f"{bucket}/") for key in self.server.objects), reverse=self.server.backwards)
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
            for key in keys
        )
        self._answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>said\nso</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", *, cut_off_bytes: int = 0) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Connection", "close")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) - cut_off_bytes])
