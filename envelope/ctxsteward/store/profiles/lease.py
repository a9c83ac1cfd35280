"""Who writes a profile now: epochs and leases, so that one writer works and the others wait.

    profiles/<tenant>/<profile>/writers/   chain of {"schema_version": 1, "kind": "take" | "renew" | "release",
                                                     "owner", "token", "expires_seconds"}

A link's `epoch` counts the takes. A writer passes its epoch to `ProfileVersions.commit`, which refuses it (`Fenced`)
once somebody has taken a later one. Times are Unix seconds of whoever wrote them and only say when it is polite to take
over: with clocks that lie two writers may hold a lease at once, and then the compare-and-swap on the versions still
gives each number to one commit.

Raises `Fenced`, `OutcomeUnknown`, `Damaged`, `UnsupportedVersion`, `StoreUnavailable`, `InputError`.
Source: leases for liveness, fencing by what is written (the state design; Gray and Cheriton 1989).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import Fenced, InputError, UnsupportedVersion, VersionTaken

from .. import process_forks as forking
from ..backend import Backend
from ..crypto import Link
from ..names import checked_name, checked_profile_name, numbered, writers_folder

VERSION = 1


class Lease(NamedTuple):
    """A claim to write."""

    epoch: int
    owner: str
    expires_seconds: float
    """Unix time by the owner's clock."""


class WriterLease:
    """One writer's claim to a profile. `clock` gives Unix seconds."""

    def __init__(
        self,
        store: Backend,
        name: str,
        tenant: str = "default",
        *,
        owner: str,
        clock: Callable[[], float],
        new_token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.owner: str = checked_name("owner", owner)
        self.folder: str = writers_folder(tenant, checked_profile_name(name))
        self._chain = store.chain(self.folder, tenant=tenant)
        self._clock = clock
        self._new_token = new_token
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """A child is another writer: it does not hold what its parent holds."""
        self._token = self._new_token()
        """Tells this writer from another one of the same name."""
        self._epoch = 0

    def holder(self) -> Lease | None:
        """Who holds the lease, expired or not; None where it was never taken or was released."""
        link = self._head()
        return None if link is None or link.body["kind"] == "release" else _lease(link)

    def take(self, ttl_seconds: float, *, now: float | None = None, force: bool = False) -> Lease | None:
        """Take the lease under the next epoch where it is free, released or expired, or by `force`.

        None where somebody else holds it. A lease that this writer holds already is renewed.
        """
        moment = self._moment(ttl_seconds, now)
        while True:
            link = self._head()
            if link is not None and link.body["kind"] != "release":
                if link.body["token"] == self._token:
                    return self.renew(ttl_seconds, now=now)
                if link.body["expires_seconds"] > moment and not force:
                    return None
            taken = self._write(link, "take", (link.epoch if link else 0) + 1, moment + ttl_seconds)
            if taken is not None:
                return taken

    def renew(self, ttl_seconds: float, *, now: float | None = None) -> Lease:
        """Prolong the lease, also an expired one that is still free; raises `Fenced` where another writer took it."""
        moment = self._moment(ttl_seconds, now)
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                raise Fenced(self.folder, self._epoch, link.epoch if link else 0)
            renewed = self._write(link, "renew", link.epoch, moment + ttl_seconds)
            if renewed is not None:
                return renewed

    def release(self) -> None:
        """Let others in at once; nothing happens where this writer does not hold it."""
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                return
            if self._write(link, "release", link.epoch, 0.0) is not None:
                return

    def _write(
        self, after: Link | None, kind: Literal["take", "renew", "release"], epoch: int, expires_seconds: float
    ) -> Lease | None:
        """Write the next link; None where another writer was first."""
        body = {
            "schema_version": VERSION,
            "kind": kind,
            "owner": self.owner,
            "token": self._token,
            "expires_seconds": expires_seconds,
        }
        try:
            link = self._chain.append(after, body, epoch=epoch)
        except VersionTaken:
            return None
        self._epoch = epoch
        return _lease(link)

    def _head(self) -> Link | None:
        link = self._chain.head()
        if link is not None and link.body.get("schema_version") != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), link.body.get("schema_version"), VERSION)
        return link

    def _moment(self, ttl_seconds: float, now: float | None) -> float:
        if not (math.isfinite(ttl_seconds) and ttl_seconds > 0):
            raise InputError(f"lease: a time to live of {ttl_seconds} s; give a positive number of seconds")
        moment = self._clock() if now is None else now
        if not math.isfinite(moment):
            raise InputError(f"lease: the clock says {moment}; give Unix seconds")
        return moment


def _lease(link: Link) -> Lease:
    body: dict[str, Any] = link.body
    return Lease(link.epoch, body["owner"], body["expires_seconds"])
