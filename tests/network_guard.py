"""No test reaches a network: whatever would leave this machine fails, with where it was to go.

Loopback addresses and Unix sockets are the tests' own servers. Names are resolved for this machine alone. It holds for
this process; programs that tests start are given addresses on the loopback.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, NoReturn

_connect, _connect_ex, _resolve = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo
OWN_NAMES = frozenset(("localhost", "ip6-localhost", "", socket.gethostname()))


class NetworkReached(AssertionError):
    """A test was about to leave this machine."""


reached: list[str] = []
"""What was stopped since a test began: code under test may catch what it is raised, the test fails all the same."""


def is_here(host: object) -> bool:
    """Whether an address is this machine's own."""
    text = host.decode() if isinstance(host, bytes) else str(host or "")
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text in OWN_NAMES
    return address.is_loopback or address.is_unspecified


def is_address(host: object) -> bool:
    """Whether a host is an address, which nobody has to be asked for."""
    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
    except ValueError:
        return False
    return True


def install() -> None:
    """Guard this process."""
    socket.socket.connect = _guarded(_connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = _guarded(_connect_ex)  # type: ignore[method-assign]
    socket.getaddrinfo = _resolved


def _stop(what: str) -> NoReturn:
    reached.append(what)
    raise NetworkReached(f"a test was about to {what}")


def _guarded(inner: Any) -> Any:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_here(address[0]):
            _stop(f"connect to {address[0]}:{address[1]}")
        return inner(self, address)

    return connect


def _resolved(host: Any, *args: Any, **kwargs: Any) -> Any:
    if host is not None and not is_here(host) and not is_address(host):
        _stop(f"look up {host!r}")
    return _resolve(host, *args, **kwargs)
