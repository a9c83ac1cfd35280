"""The guard that keeps tests on this machine."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator

import pytest

from . import network_guard
from .network_guard import NetworkReached


@pytest.fixture(autouse=True)
def _told() -> Iterator[None]:
    yield
    network_guard.reached.clear()


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "10.0.0.1"])
def test_an_address_elsewhere_is_not_reached(host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as made, pytest.raises(NetworkReached):
        made.connect((host, 80))


def test_a_name_elsewhere_is_not_looked_up() -> None:
    with pytest.raises(NetworkReached):
        urllib.request.urlopen("http://models.example/v1", timeout=1)


def test_this_machine_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as made:
        assert made.getpeername() == server.getsockname()
