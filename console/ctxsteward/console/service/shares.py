"""Shares of tenants in one process: places for requests, bytes of bodies, and worker threads.

No tenant takes more than its share, so that no tenant has to wait for another's requests. Requests without a token have
places of their own: when these are full, the request that has waited longest for its body is ended.

Used from the event loop alone. Raises `Refusal` (503, with the time after which to ask again).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import CapacityLimiter

from .access import Refusal

RETRY = {"Retry-After": "1"}


class RequestPlaces:
    """Requests under way and the bytes of their bodies, with limits for all tenants and for each."""

    def __init__(self, requests: int, tenant_requests: int, body_bytes: int, tenant_body_bytes: int) -> None:
        self._requests, self._tenant_requests = requests, tenant_requests
        self._body_bytes, self._tenant_body_bytes = body_bytes, tenant_body_bytes
        self._taken: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Requests under way."""
        return self._taken.total()

    def take(self, tenant: str) -> None:
        """Take a place for a request of this tenant."""
        if self.taken >= self._requests:
            raise Refusal("unavailable", f"{self._requests} requests are under way; ask again", headers=RETRY)
        if self._taken[tenant] >= self._tenant_requests:
            most = self._tenant_requests
            raise Refusal(
                "unavailable", f"{most} requests of this tenant are under way, its share; ask again", headers=RETRY
            )
        self._taken[tenant] += 1

    def hold(self, tenant: str, size: int) -> None:
        """Count `size` bytes of a body that is being read."""
        if self._bytes.total() + size > self._body_bytes or self._bytes[tenant] + size > self._tenant_body_bytes:
            raise Refusal(
                "unavailable", "the bodies of requests under way are too large together; ask again", headers=RETRY
            )
        self._bytes[tenant] += size

    def leave(self, tenant: str, size: int) -> None:
        """Release the place of a request, and the bytes of its body."""
        self._taken[tenant] -= 1
        self._bytes[tenant] -= size
        if not self._taken[tenant]:
            del self._taken[tenant], self._bytes[tenant]


class AnonymousPlaces:
    """Requests without a token: each may wait until `most` newer ones have come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[int, Callable[[], None]] = OrderedDict()

    @property
    def taken(self) -> int:
        """Requests under way."""
        return len(self._waiting)

    def take(self, number: int, leave: Callable[[], None]) -> None:
        """Take a place; `leave` ends the request when it is the oldest of too many."""
        self._waiting[number] = leave
        if len(self._waiting) > self._most:
            self._waiting.popitem(last=False)[1]()

    def leave(self, number: int) -> None:
        """Release a place, if a newer request has not taken it yet."""
        self._waiting.pop(number, None)


class ThreadShares:
    """Worker threads, with a limit for all tenants and one for each."""

    def __init__(self, threads: int, tenant_threads: int) -> None:
        self._all = CapacityLimiter(threads)
        self._tenant_threads = tenant_threads
        self._by_tenant: dict[str, tuple[CapacityLimiter, int]] = {}

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[CapacityLimiter]:
        """Wait for this tenant's limit, and yield the limiter of all tenants."""
        share, users = self._by_tenant.get(tenant) or (CapacityLimiter(self._tenant_threads), 0)
        self._by_tenant[tenant] = (share, users + 1)
        try:
            async with share:
                yield self._all
        finally:
            self._left(tenant)

    def _left(self, tenant: str) -> None:
        share, users = self._by_tenant.pop(tenant)
        if users > 1:
            self._by_tenant[tenant] = (share, users - 1)
