"""Which keys a tenant's objects were written with.

    tenants/<tenant>/check.json   {"schema_version": 1, "check": 64 hex digits}

`check` is an HMAC under the tenant's address key, put once by whoever writes first. A store that is opened with other
keys would find every code wrong and call it tampering; this says what really happened. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
import json

from ctxsteward.schemas import Damaged, ObjectMissing, OutcomeUnknown, StoreError, UnsupportedVersion

from ..commit import Patience, put_once
from ..keyring import Keys
from ..objects.names import check_name
from ..objects.port import ObjectStore

CHECK_VERSION = 1


def check_keys(objects: ObjectStore, keys: Keys, tenant: str, *, write: bool, patience: Patience | None = None) -> None:
    """Raise `StoreError` where the tenant's objects were written with other keys; `write` claims the tenant's name."""
    name, body = check_name(tenant), _body(keys, tenant)
    try:
        found = objects.get(name)
    except ObjectMissing:
        if not write:
            return
        landing = put_once(objects, name, body, mine=body.__eq__, patience=patience or Patience())
        if landing.kind == "unknown":
            raise OutcomeUnknown(name, "of the tenant's keys", landing.waited_seconds) from None
        found = landing.found or body
    if not hmac.compare_digest(found, body):
        _refuse(objects, name, tenant, found)


def _body(keys: Keys, tenant: str) -> bytes:
    code = hmac.digest(keys.address_key(tenant), b"ctxsteward tenant check 1", "sha256").hex()
    return json.dumps({"schema_version": CHECK_VERSION, "check": code}).encode()


def _refuse(objects: ObjectStore, name: str, tenant: str, found: bytes) -> None:
    try:
        document = json.loads(found)
        version, code = document["schema_version"], document["check"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged(f"{name}: it is not what was written; restore it from a backup") from None
    if version != CHECK_VERSION:
        raise UnsupportedVersion(name, version, CHECK_VERSION)
    raise StoreError(
        f"{objects.uri}: tenant {tenant!r} was written with other keys ({str(code)[:8]}…): bring the key folder, or "
        "the master key, that it was written with, and open the store with `keys=`"
    )
