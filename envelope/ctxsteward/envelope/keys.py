"""Addresses: what stores, reports and logs show instead of content.

An address is HMAC-SHA-256 under the tenant's address key of subject ‖ type ‖ bytes, each length-prefixed, as 64 hex
digits. The same content of two tenants, or of two subjects of one tenant, has two addresses, so an address answers no
question about content. A *subject* is one principal in one session (no principal: the session itself).
Source: RFC 2104, FIPS 180-4.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import NewType

AddressKey = NewType("AddressKey", bytes)
"""32 random bytes, one a tenant, never rotated."""

KEY_BYTES = 32


def subject_of(session: str, principal: str | None) -> str:
    """The subject a message belongs to."""
    return session if principal is None else f"{session}\x00{principal}"


def address_of(key: AddressKey, subject: str, kind: str, data: bytes) -> str:
    """The address of `data` as a record of this kind about this subject."""
    return hmac.digest(key, _head(subject, kind) + data, "sha256").hex()


@lru_cache(maxsize=1024)
def _head(subject: str, kind: str) -> bytes:
    who, what = subject.encode(), kind.encode()
    return len(who).to_bytes(4, "big") + who + len(what).to_bytes(4, "big") + what
