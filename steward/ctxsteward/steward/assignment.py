"""Which version of a profile a new session gets, while a canary runs.

    session = store.session("s-42", profile=profile_for(store, "support", "s-42"))

A session is assigned by a hash of its id under the tenant's key: the same session always to the same version, in every
process, and a session that was in stays in when the share grows. It keeps the profile it was created with, so a later
decision about the canary moves no session that is open. Without a canary this is `Profile.head`.

What stands beside a version that began as a canary: ``{"share": 0.1, "champion": 6}``; how it ended stands in the chain
of reviews (`approvals`). Costs what reading the head costs; while a canary runs, the links of that chain as well.

Raises `ReferenceNotFound` where no version was committed, `StoreError`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from ctxsteward.envelope.keys import AddressKey
from ctxsteward.envelope.profile import Profile
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.versions import ProfileVersions, Version
from ctxsteward.schemas import InputError

from .approvals import canary_of


def profile_for(store: Store, profile: str, session: str, *, tenant: str = "default") -> Profile:
    """The profile that a new session is to be opened with."""
    versions = store.profiles(profile, tenant=tenant)
    return Profile.from_document(versions.at(_number(store, versions, session)).profile)


def version_for(store: Store, profile: str, session: str, *, tenant: str = "default") -> int:
    """Number of the version that a new session gets: the newest, or the champion while that is a canary of others."""
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
    """Whether this session is one of the challenger's."""
    data = f"{profile}\x00{version}\x00{session}".encode()
    drawn = int.from_bytes(hmac.digest(key, b"ctxsteward canary 1\x00" + data, "sha256")[:8], "big")
    return drawn < share * 2**64


def started(share: float, champion: int) -> dict[str, Any]:
    """What stands beside a version that begins as a canary (`promote(..., canary=…)`)."""
    if not 0 < share <= 1:
        raise InputError(f"canary share {share}; give a part of the sessions, over 0 and up to 1")
    return {"share": share, "champion": champion}


def told_of(version: Version) -> Mapping[str, Any] | None:
    """The canary that a version began as, as `started` gave it; None: it began as none."""
    canary: Mapping[str, Any] | None = (version.link.body.get("promotion") or {}).get("canary")
    return canary


def running(store: Store, head: Version, *, profile: str, tenant: str = "default") -> Mapping[str, Any] | None:
    """The canary that this version is, while it is open; None: it is none, or it has ended."""
    canary = told_of(head)
    return canary if canary and canary_of(store, head.number, profile=profile, tenant=tenant) is None else None
