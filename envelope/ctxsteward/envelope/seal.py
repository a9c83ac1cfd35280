"""The seal of an envelope: HMAC-SHA-256 under the tenant's seal key, checked where a payload or a log is doubted.

The code covers the key's id, schema and renderer version, tenant, session, profile version, log
position and address, each length-prefixed, so no two of them run together. Through the address (an HMAC over the
digest of `envelope.digest_of`) it also binds the order of the sections, the content, tokens, budget and epoch of each,
and the tools. So a seal can be checked by itself (`is_authentic`) and against an envelope (`verify_seal`).

Costs a few microseconds. Raises `InputError` where something is no seal, `StoreError` where keys cannot be read.
Source: RFC 2104, FIPS 180-4; the state design (addresses, seals that rotate by key id).
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Literal

from pydantic import ValidationError

from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.seal import SealDocument

from .envelope import RENDERER_VERSION, SCHEMA_VERSION, Envelope, digest_of
from .keyring import Keys, SealKey
from .keys import address_of, code

ALGORITHM: Literal["HMAC-SHA-256"] = "HMAC-SHA-256"
_DOMAIN = b"ctxsteward seal 1"
_NONE = b"\xff\xff\xff\xff"
"""In place of a length: the field is null."""


def seal_envelope(
    key: SealKey,
    *,
    tenant: str,
    session: str,
    profile_version: str | None,
    position: int,
    address: str,
    renderer: int = RENDERER_VERSION,
) -> SealDocument:
    """Seal the envelope with this address, as made by this renderer."""
    fields = (
        key.id, str(SCHEMA_VERSION), str(renderer), tenant, session, profile_version, str(position), address,
    )  # fmt: skip
    return SealDocument(
        alg=ALGORITHM, key_id=key.id, mac=_code(key, fields), schema_version=SCHEMA_VERSION,
        renderer_version=renderer, tenant=tenant, session=session, profile_version=profile_version,
        position=position, address=address,
    )  # fmt: skip


def read_seal(value: object) -> SealDocument:
    """A seal out of a payload, a log line or an envelope; raises `InputError` naming the field."""
    if isinstance(value, SealDocument):
        return value
    try:
        return SealDocument.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("seal", *map(str, first["loc"])))
        raise InputError(f"{where}: {first['msg']}; pass the seal as the envelope's document shows it") from None


def is_authentic(keys: Keys, seal: SealDocument) -> bool:
    """Whether the tenant named in the seal sealed exactly this; False also for a key that is not known.

    Ask only about tenants of yours: a key ring may make a tenant's keys at first use.
    """
    try:
        key = keys.seal_key(seal.tenant, seal.key_id)
    except StoreError:
        return False
    fields = (
        seal.key_id, str(seal.schema_version), str(seal.renderer_version), seal.tenant, seal.session,
        seal.profile_version, str(seal.position), seal.address,
    )  # fmt: skip
    return hmac.compare_digest(_code(key, fields), seal.mac)


def verify_seal(keys: Keys, seal: object, envelope: Envelope) -> bool:
    """Whether this seal is authentic and seals this envelope, content included."""
    read = read_seal(seal)
    if not is_seal_of(read, envelope) or not is_authentic(keys, read):
        return False
    digest = digest_of(
        envelope.tenant,
        envelope.session,
        envelope.profile_version,
        envelope.head,
        dict(envelope.sections),
        envelope.renderer,
    )
    address = address_of(keys.address_key(envelope.tenant), envelope.session, "envelope", digest)
    return hmac.compare_digest(address, read.address)


def is_seal_of(seal: SealDocument, envelope: Envelope) -> bool:
    """Whether the seal's plain fields are this envelope's."""
    return (
        seal.schema_version == SCHEMA_VERSION
        and seal.renderer_version == envelope.renderer
        and seal.tenant == envelope.tenant
        and seal.session == envelope.session
        and seal.profile_version == envelope.profile_version
        and seal.position == envelope.position
        and seal.address == envelope.address
    )


def _code(key: SealKey, fields: tuple[str | None, ...]) -> str:
    *lasting, position, address = fields
    return code(key.secret, _prefixed(tuple(lasting)) + _prefixed_one(position) + _prefixed_one(address))


@lru_cache(maxsize=1024)
def _prefixed(fields: tuple[str | None, ...]) -> bytes:
    """What stays the same from one envelope of a session to the next."""
    return _DOMAIN + b"".join(map(_prefixed_one, fields))


def _prefixed_one(field: str | None) -> bytes:
    if field is None:
        return _NONE
    data = field.encode()
    return len(data).to_bytes(4, "big") + data
