"""What an auditor says of requests as they left: how many of each version were looked at, how many had a finding.

`uri` is a file, or a folder with all below it, of what services logged: one JSON value a file (``.json``), or one a
line (``.jsonl``, ``.ndjson``), each made by `ctxsteward.envelope.audit.sealed_request`. The seal says which envelope
was built; it is laid out again from the store and compared with the payload. What bears no seal of this tenant, or is
of another profile, or of an envelope that this store never built, says nothing and is left out, as is what cannot be
read.

The newest requests count: `MAX_AUDITED` a version, out of the last `MAX_REQUESTS` logged. Words of requests go no
further than this module. Raises `InputError` where the file or folder is not there, `StoreError`.
Source: the state design (auditor).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import rebuild
from ctxsteward.envelope.audit import audit
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import Damaged, Erased, InputError, ReferenceNotFound, UnsupportedVersion

MAX_AUDITED = 300
MAX_REQUESTS = 5_000
MAX_FILE_BYTES = 64 << 20
"""A larger log is not read: let the service begin a new one each day."""
ONE, LINES = (".json",), (".jsonl", ".ndjson")


class Audited(NamedTuple):
    """Requests of one version."""

    audited: int = 0
    findings: int = 0
    """Of those: not what was built."""


def audits(uri: str, store: Store, tenant: str, profile: str, versions: Collection[int]) -> Mapping[int, Audited]:
    """Audit the logged requests of sessions under these versions of a profile."""
    found = dict.fromkeys(versions, Audited())
    for request in islice(_logged(uri), MAX_REQUESTS):
        if all(one.audited >= MAX_AUDITED for one in found.values()):
            break
        with suppress(InputError, ReferenceNotFound, Erased, Damaged, UnsupportedVersion):
            version = _version(request, store, tenant, profile)
            before = found.get(version) if version is not None else None
            if before is not None and version is not None and before.audited < MAX_AUDITED:
                found[version] = Audited(before.audited + 1, before.findings + _differs(request, store, tenant))
    return found


def _version(request: dict[str, Any], store: Store, tenant: str, name: str) -> int | None:
    """The version of this profile that the session was under when this request's envelope was built."""
    seal = request.get("seal")
    if not isinstance(seal, dict) or seal.get("tenant") != tenant:
        return None
    address, session = seal.get("address"), seal.get("session")
    if not isinstance(address, str) or not isinstance(session, str):
        return None
    manifest = store.manifest(address, tenant=tenant, session=session)
    profile = store.at(tenant, manifest["session"], manifest["position"]).state.head.profile
    version = profile.get("version") if profile is not None and profile.get("name") == name else None
    return version if isinstance(version, int) else None


def _differs(request: dict[str, Any], store: Store, tenant: str) -> bool:
    expected = rebuild(store, request["seal"]["address"], tenant=tenant)
    return bool(audit(expected, request, keys=store.keys))


def _logged(uri: str) -> Iterator[dict[str, Any]]:
    """Logged requests, the newest first."""
    for file in logs(uri):
        with suppress(OSError, UnicodeDecodeError):
            if file.stat().st_size <= MAX_FILE_BYTES:
                yield from _requests(file)


def _requests(file: Path) -> Iterator[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    for line in reversed(text.splitlines()) if file.suffix in LINES else (text,):
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value


def logs(uri: str) -> list[Path]:
    """Files of logged requests, the newest first; those of one moment by name, the last first."""
    path = Path(uri)
    if not path.exists():
        raise InputError(f"sent {path}: no such file or folder; name what services log requests into, or leave it out")
    every = [path] if path.is_file() else [one for one in path.rglob("*") if one.suffix in ONE + LINES]
    return sorted((one for one in every if not one.is_symlink()), key=lambda one: (one.stat().st_mtime, str(one)))[::-1]
