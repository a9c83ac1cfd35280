"""Check signatures of people with their public keys. Other programs sign with the private keys.

A signature covers a purpose, the tenant, the profile and the signed fields of the record, so that it is valid for no
other purpose, tenant or profile.

Source: RFC 8032 (Ed25519).
"""

from __future__ import annotations

import json
from collections.abc import Sequence


def signed_data(purpose: bytes, tenant: str, profile: str, values: Sequence[object]) -> bytes:
    """Return the bytes that a person signs."""
    text = json.dumps(
        [tenant, profile, *values], ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return purpose + b"\x00" + text.encode()


def is_signed(key: str, signature: str, data: bytes) -> bool:
    """Return whether this public key (hex) has signed these bytes; False for an invalid key or signature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
