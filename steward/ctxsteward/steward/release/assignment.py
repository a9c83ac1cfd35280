"""Choose the version of a profile for a new session while a canary runs.

    session = store.session("s-42", profile=profile_for(store, "support", "s-42"))

A chat service calls `profile_for` when it opens a session. A hash of the session's id under the tenant's key assigns
the version, so every process chooses the same one, and a session of the challenger stays with it when the share grows.
A session keeps the profile it was created with, so a later decision or rollback moves no open session: `keeping` finds
such sessions, and `move` moves them. Without a canary the newest version is chosen (`ProfileVersions.newest`).

A version that began as a canary has ``{"share": 0.1, "champion": 6}`` beside it; the chain of reviews (`approvals`) has
how it ended. Reads the head and, while a canary runs, the links of that chain.

Raises `ReferenceNotFound` if no version was committed, `StoreError`.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.schemas import ContextError, InputError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.profile import instant
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.profiles.stored_promotion import UNREADABLE, readable_promotion
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.profiles.versions import ProfileVersions, Version

from .approvals import canary_of

MAX_LOOKED_AT = 5_000
"""Most sessions that `keeping` reads."""


class PinnedSession(NamedTuple):
    """An open session and the version that it keeps."""

    session: str
    version: int


class PinnedSessions(NamedTuple):
    """Open sessions that keep certain versions."""

    sessions: tuple[PinnedSession, ...]
    unknown: int
    """Number of sessions that could not be read, or exceeded `MAX_LOOKED_AT`."""


def profile_for(store: Store, profile: str, session: str, *, tenant: str = "default") -> Profile:
    """Return the profile for a new session."""
    versions = store.profiles(profile, tenant=tenant)
    return versions.at(_number(store, versions, session)).profile


def version_for(store: Store, profile: str, session: str, *, tenant: str = "default") -> int:
    """Return the version for a new session: the newest, or the champion if the newest is a canary of other sessions."""
    return _number(store, store.profiles(profile, tenant=tenant), session)


def _number(store: Store, versions: ProfileVersions, session: str) -> int:
    head = versions.newest()
    canary = running(store, head, profile=versions.name, tenant=versions.tenant)
    if canary is None:
        return head.number
    key = store.keys.address_key(versions.tenant)
    chosen = is_challenger(session, key, profile=versions.name, version=head.number, share=canary["share"])
    return head.number if chosen else int(canary["champion"])


def is_challenger(session: str, key: AddressKey, *, profile: str, version: int, share: float) -> bool:
    """Whether a session gets the challenger."""
    data = f"{profile}\x00{version}\x00{session}".encode()
    drawn = int.from_bytes(hmac.digest(key, b"ctxsteward canary 1\x00" + data, "sha256")[:8], "big")
    return drawn < share * 2**64


def started(share: float, champion: int) -> dict[str, Any]:
    """Return the description of a new canary, stored beside its version (`promote(..., canary=…)`)."""
    if not 0 < share <= 1:
        raise InputError(f"canary share {share}; give a share of the sessions, over 0 and up to 1")
    return {"share": share, "champion": champion}


def canary_begun(version: Version) -> Mapping[str, Any] | None:
    """Return the canary that a version began as (`started`), or None.

    Raises `Damaged` if it cannot be read, because then the sessions of the version are unknown.
    """
    promotion = readable_promotion(version.link.body.get("promotion")) or {}
    if not {"canary", "promotion"}.isdisjoint(promotion.get(UNREADABLE, ())):
        do = "roll back to the version before it (`ctxsteward steward rollback`)"
        raise Damaged(f"version {version.number}: whether it is a canary, and of which sessions, cannot be read; {do}")
    canary: Mapping[str, Any] | None = promotion.get("canary")
    return canary


def running(store: Store, head: Version, *, profile: str, tenant: str = "default") -> Mapping[str, Any] | None:
    """Return the open canary of this version, or None."""
    canary = canary_begun(head)
    return canary if canary and canary_of(store, head.number, profile=profile, tenant=tenant) is None else None


def keeping(
    store: Store, profile: str, versions: Collection[int], *, tenant: str = "default", now_seconds: float
) -> PinnedSessions:
    """Find open sessions that keep one of these versions; a session ends six hours after its last message.

    Reads every session of the tenant, from its newest compaction on.
    """
    sessions = store.sessions(tenant=tenant)
    pinned, unknown = [], max(0, len(sessions) - MAX_LOOKED_AT)
    for session in sessions[:MAX_LOOKED_AT]:
        try:
            version = _pinned(store, tenant, session, profile, now_seconds)
        except ContextError:  # forgotten meanwhile, damaged, or elsewhere
            unknown += 1
            continue
        if version in versions:
            pinned.append(PinnedSession(session, version))
    return PinnedSessions(tuple(pinned), unknown)


def move(
    store: Store, profile: str, sessions: Collection[PinnedSession], *, tenant: str = "default"
) -> tuple[PinnedSession, ...]:
    """Move open sessions to the version in force; return those that could not be moved."""
    head = store.profiles(profile, tenant=tenant).newest().profile
    left = []
    for pinned in sessions:
        try:
            store.session(pinned.session, tenant=tenant).repin(head)
        except ContextError:  # another machine has it
            left.append(pinned)
    return tuple(left)


def _pinned(store: Store, tenant: str, session: str, profile: str, now_seconds: float) -> int:
    """Return the version of this profile that a session keeps; 0 if it has none, or has ended."""
    from ..ingest.sources import SETTLED_SECONDS

    state = store.at(tenant, session).state
    pinned = state.head.profile or {}
    if pinned.get("name") != profile or not pinned.get("version"):
        return 0
    record = store.journal.message(SessionKey(tenant, session), state.ordinal)
    spoken = json.loads(record.body).get("ts") if record is not None else None
    if spoken is not None and instant(spoken) <= now_seconds - SETTLED_SECONDS:
        return 0
    return int(pinned["version"])
