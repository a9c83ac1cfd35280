"""The codes of journal records and manifests: whoever changes, swaps, moves or replays one is found out at reading.

A record's is HMAC-SHA-256 under the tenant's address key of session, kind, place, tool outputs, id and body, each
length-prefixed. The place is a message's ordinal, any other record's position. A message's wire bytes are covered
through the address in its body, which is checked apart (so that an address alone proves an original).

A manifest carries its code as its last field, ``"mac"``: HMAC-SHA-256 of address and all of the text before it. Source:
RFC 2104.
"""

from __future__ import annotations

import hmac
import json
from functools import lru_cache

from ctxsteward.schemas import Damaged, Wire

from .keys import AddressKey, address_of, code
from .stores.port import Record

MANIFEST_KIND = "manifest"
_NO_ID = b"\x00\x00\x00\x00"
_ZERO = b"\x00\x00\x00\x010"


def code_of(key: AddressKey, session: str, position: int, record: Record) -> str:
    """The code of a record that stands, or is to stand, at `position`."""
    numbers = _numbered(record.ordinal or -1 - position) + (_numbered(record.outputs) if record.outputs else _ZERO)
    id = _NO_ID if record.id is None else prefixed(record.id)
    text = owned(session, record.kind) + numbers + id + prefixed(record.body)
    return code(key, text + b"\x00" if record.id is None else text)


@lru_cache(maxsize=4096)
def owned(session: str, kind: str) -> bytes:
    """How what is coded begins: whose it is, and of what kind."""
    return prefixed(session) + prefixed(kind)


def prefixed(text: str) -> bytes:
    """The text behind its length, so that no two rows of texts are alike."""
    data = text.encode()
    return len(data).to_bytes(4, "big") + data


def _numbered(number: int) -> bytes:
    data = b"%d" % number
    return len(data).to_bytes(4, "big") + data


def coded(key: AddressKey, session: str, position: int, record: Record) -> Record:
    """The record with its code."""
    return Record(
        record.kind, record.body, record.ordinal, record.outputs, record.id, record.wire,
        code_of(key, session, position, record),
    )  # fmt: skip


def check(key: AddressKey, session: str, position: int, record: Record) -> None:
    """Raise `Damaged` where a record is not what was written at this place."""
    try:
        right = hmac.compare_digest(record.mac, code_of(key, session, position, record))
    except (TypeError, AttributeError, ValueError):  # no text, or none that can be encoded
        right = False
    if not right:
        what = f"§{record.ordinal}" if record.ordinal else f"position {position}"
        raise Damaged(
            f"session {session!r}: the {record.kind} record of {what} is not what was written; "
            "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
        )


def coded_manifest(key: AddressKey, address: str, fields: str) -> str:
    """The text of a manifest: a JSON object's members, and behind them their code.

    >>> coded_manifest(AddressKey(b"k" * 32), "ab12", '"position":3')[:20]
    '{"position":3,"mac":'
    """
    return f'{{{fields},"mac":"{address_of(key, address, MANIFEST_KIND, fields.encode())}"}}'


def read_manifest(key: AddressKey, address: str, body: str) -> Wire:
    """The members of the manifest at this address; raises `Damaged` where it is not what was written there."""
    fields, found, end = body[1:].rpartition(',"mac":"')
    try:
        expected = address_of(key, address, MANIFEST_KIND, fields.encode()) + '"}'
        if found and body[:1] == "{" and hmac.compare_digest(end, expected):
            manifest: Wire = json.loads(body)
            return manifest
    except (ValueError, TypeError):  # a lone surrogate, no JSON
        pass
    raise Damaged(
        f"the manifest of envelope {address[:16]}… is not what was written: it cannot be rebuilt from it; "
        "build the session anew, or restore the journal from a backup"
    )
