"""Names of objects: where everything lies in a store, and how a raw name becomes a part of a path.

    profiles/<tenant>/<profile>/versions/000000000001.json   chain: one commit each
    profiles/<tenant>/<profile>/writers/000000000001.json    chain: writer epochs and leases
    sessions/<tenant>/<session address>/log/000000000001.json  chain: segments of a session's journal
    keys/<tenant>/<subject address>.json                     a subject's data key, wrapped
    blobs/<tenant>/ab/<address>                              encrypted content
    tombstones/<tenant>/<subject address>.json               what was forgotten: who, when, why
    snapshots/<tenant>/<profile>/000000000001.json           chain: versioned envelopes of profiles
    facts/<tenant>/<profile>/<audience address>/000000000001.json  chain: what is known about a user, project, session
    steward/<tenant>/<profile>/nights/000000000001.json      chain: what each night of the steward has taken in
    steward/<tenant>/<profile>/batches/<batch address>/000000000001.json   chain of one: what became of a batch
    tenants/<tenant>/check.json                              which keys the tenant's objects were written with

Tenants and profiles keep readable names, percent-encoded; a session's name may be personal, so it is an address. Raw
input never reaches a path.

>>> part_of("acme"), part_of("a/b"), part_of(".."), part_of("Straße")
('acme', 'a%2Fb', '%2E%2E', 'Stra%C3%9Fe')
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

from ctxsteward.schemas import InputError

NUMBER_DIGITS = 12
MAX_PART_CHARS = 120
_KEY = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9%_.~-]+(?:/[A-Za-z0-9%_.~-]+)*")
MAX_KEY_CHARS = 800
MAX_KEY_PART_CHARS = 160
"""With the suffix of a temporary file it still fits the 255 bytes of a file name."""


def part_of(name: str) -> str:
    """A raw name as one part of a key: one to one, and short enough for a file system."""
    encoded = quote(name, safe="").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = encoded.replace(".", "%2E")
    if len(encoded) <= MAX_PART_CHARS:
        return encoded
    return "~" + hashlib.sha256(name.encode()).hexdigest()


def numbered(folder: str, number: int) -> str:
    """The key of a chain's `number`-th link; byte order is number order."""
    return f"{folder}/{number:0{NUMBER_DIGITS}d}.json"


def number_of(key: str) -> int | None:
    """The number in a link's key; None where it is none."""
    name = key.rpartition("/")[2]
    stem = name.removesuffix(".json")
    return int(stem) if stem != name and len(stem) == NUMBER_DIGITS and stem.isascii() and stem.isdecimal() else None


def is_key(key: str) -> bool:
    """Whether every store takes it as a key."""
    return (
        len(key) <= MAX_KEY_CHARS
        and _KEY.fullmatch(key) is not None
        and max(map(len, key.split("/"))) <= MAX_KEY_PART_CHARS
        and not key.endswith(".tmp")  # how a file store names what is not finished
    )


def checked_key(key: str) -> str:
    """A key as every store takes it; raises `InputError`."""
    if not is_key(key):
        raise InputError(f"object key {key[:80]!r} is not usable; encode its parts with objects.names.part_of")
    return key


def checked_prefix(prefix: str) -> str:
    """The beginning of keys: nothing, a folder with its slash, or a key's first characters. Raises `InputError`."""
    if prefix and not is_key(prefix.removesuffix("/") + "/x"):
        raise InputError(f"key prefix {prefix[:80]!r} is not usable; encode its parts with objects.names.part_of")
    return prefix


def versions_folder(tenant: str, profile: str) -> str:
    return f"profiles/{part_of(tenant)}/{part_of(profile)}/versions"


def writers_folder(tenant: str, profile: str) -> str:
    return f"profiles/{part_of(tenant)}/{part_of(profile)}/writers"


def snapshots_folder(tenant: str, profile: str) -> str:
    return f"snapshots/{part_of(tenant)}/{part_of(profile)}"


def facts_folder(tenant: str, profile: str, audience_address: str = "") -> str:
    """One audience's facts; without an address, where those of all audiences lie."""
    return f"facts/{part_of(tenant)}/{part_of(profile)}" + (f"/{audience_address}" if audience_address else "")


def steward_folder(tenant: str, profile: str, chain: str, address: str = "") -> str:
    """A chain of the steward's: ``nights``, or one of many that an address tells apart."""
    return f"steward/{part_of(tenant)}/{part_of(profile)}/{chain}" + (f"/{address}" if address else "")


def session_folder(tenant: str, session_address: str) -> str:
    return f"sessions/{part_of(tenant)}/{session_address}/log"


def data_key_name(tenant: str, subject_address: str) -> str:
    return f"keys/{part_of(tenant)}/{subject_address}.json"


def blob_name(tenant: str, address: str) -> str:
    return f"blobs/{part_of(tenant)}/{address[:2]}/{address}"


def tombstone_name(tenant: str, subject_address: str) -> str:
    return f"tombstones/{part_of(tenant)}/{subject_address}.json"


def check_name(tenant: str) -> str:
    return f"tenants/{part_of(tenant)}/check.json"
