"""The instruments themselves: the faulty network does what it says, stops in time, and leaves nothing running."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .fault_proxy import FaultProxy, Request
from .s3_servers import S3Server

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def server(moto: S3Server) -> S3Server:
    return moto.another_bucket()


def put(url: str, path: str, *, conditional: bool = True, timeout_seconds: float = 5.0) -> int:
    """The status of one PUT; raises `OSError` or `HTTPException`."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout_seconds)
    try:
        connection.request("PUT", path, b"body", {"If-None-Match": "*"} if conditional else {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_script_sees_conditional_puts_alone_and_counts_them(server: S3Server) -> None:
    asked: list[Request] = []
    with FaultProxy(server.url) as proxy:
        proxy.faults(lambda request: asked.append(request) or "conflict_409")
        path = f"/{server.bucket}/k"

        statuses = [put(proxy.url, path, conditional=conditional) for conditional in (True, False, True)]

    assert statuses == [409, 200, 409]
    assert asked == [Request(n, "PUT", path, True) for n in (1, 2)]
    assert proxy.counts == {"conflict_409": 2, "pass": 1, "forwarded": 1}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("lost_reply", http.client.RemoteDisconnected),
        ("reset_before_apply", ConnectionResetError),
    ],
)
def test_a_lost_answer_and_a_reset_are_not_the_same(server: S3Server, fault: str, error: type[Exception]) -> None:
    with FaultProxy(server.url) as proxy:
        proxy.faults([fault])  # type: ignore[list-item]
        with pytest.raises(error) as caught:
            put(proxy.url, f"/{server.bucket}/k")

    assert type(caught.value) is error
    assert proxy.counts["forwarded"] == (fault == "lost_reply")


def test_a_dead_endpoint_refuses_and_comes_back_on_the_same_port(server: S3Server) -> None:
    with FaultProxy(server.url) as proxy:
        url = proxy.url
        proxy.mode = "dead"
        with pytest.raises(ConnectionRefusedError):
            put(url, f"/{server.bucket}/k")
        proxy.mode = "healthy"

        assert (proxy.url, put(url, f"/{server.bucket}/k")) == (url, 200)


def heal(proxy: FaultProxy) -> None:
    proxy.mode = "healthy"


@pytest.mark.parametrize("release", [heal, FaultProxy.stop], ids=["mode changed", "stopped"])
def test_who_is_held_in_a_black_hole_is_let_go(server: S3Server, release: Callable[[FaultProxy], None]) -> None:
    before = set(threading.enumerate())
    with FaultProxy(server.url) as proxy:
        proxy.mode = "black_hole"
        with socket.create_connection((urlsplit(proxy.url).hostname, urlsplit(proxy.url).port), timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            until = time.monotonic() + 10
            while not proxy.counts["black_hole"] and time.monotonic() < until:
                threading.Event().wait(0.01)
            release(proxy)
            with suppress(ConnectionResetError):  # reset or closed, but nothing was said
                assert client.recv(1) == b""

    assert proxy.counts["forwarded"] == 0
    assert set(threading.enumerate()) - before == set()


def test_the_lock_of_the_second_server_is_pinned_hashed_and_names_no_place() -> None:
    text = (ROOT / "requirements-ministack.lock").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]

    assert [line for line in lines if not re.match(r"[\w.-]+==[\w.!+]+ .*--hash=sha256:[0-9a-f]{64}", line)] == []
    assert re.search(r"https?:|--(extra-)?index", text) is None
    assert [line.split()[0] for line in lines if line.startswith("ministack==")] != []
