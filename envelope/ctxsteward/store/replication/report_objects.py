"""Compression reports as objects in the object store, named by their addresses.

    reports/<tenant>/ab/<address>    {"schema_version": 1, "key": subject address, "data": base64}

`data` is AES-256-GCM of ``{"session": …, "report": …}`` under the session's derived key, like its records in
`segment_log`. The context binds tenant and address. A report is put before the link with its compaction or manifest is
committed, so a reader of the link finds the report. The link contains the report, too. A session that an earlier
version has drained has no such objects; its reports are read from its chain.

A report is written once. It is replaced only in two cases: its key was destroyed because a principal was forgotten (the
log then has the redacted report), or it belongs to a session that its writer has lost, whose turns were moved into a
fork. Raises `Erased`, `Damaged`, `ObjectMissing`, `OutcomeUnknown`, `StoreUnavailable`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ctxsteward.schemas import Erased, StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion
from ctxsteward.schemas.message import Wire

from ..crypto.vault import Vault
from ..journal.port import JournalRecord, Manifest
from ..names import report_name
from ..objects.port import ObjectStore, Patience, put_once

REPORTS_VERSION = 1
"""Major version of report objects."""


def reports_in(records: Iterable[JournalRecord | None], manifests: Iterable[Manifest]) -> Iterator[Wire]:
    """Yield the reports in these records and manifests."""
    for record in records:
        if record is not None and record.kind == "compaction":
            yield json.loads(record.body)["report"]
    for manifest in manifests:
        if '"meta_report":' in manifest.body and (report := json.loads(manifest.body).get("meta_report")):
            yield report


def put_report(
    objects: ObjectStore, vault: Vault, session: str, report: Wire, key: str, data: bytes, patience: Patience
) -> None:
    """Create the object of a report; `data` is its ciphertext under the key of the subject address `key`."""
    name = report_name(vault.tenant, report["id"])
    fields = {"schema_version": REPORTS_VERSION, "key": key, "data": base64.b64encode(data).decode()}
    body = json.dumps(fields).encode()
    for _ in range(2):
        standing = put_once(objects, name, body, commit_id=report["id"][:16], mine=body.__eq__, patience=patience).found
        if standing is None or standing == body:
            return
        with suppress(Erased, ObjectMissing):  # the key was destroyed
            if opened(vault, report["id"], standing)["session"] == session:
                return
        objects.delete(name)
    raise StoreError(f"{name}: another session's report takes its place again and again; run store fsck")


def read_report(objects: ObjectStore, vault: Vault, address: str) -> Wire:
    """Return the report with this address. Pass a fresh `vault`, so that no key destroyed elsewhere is used."""
    report: Wire = opened(vault, address, objects.get(report_name(vault.tenant, address)))["report"]
    return report


def key_of(name: str, data: bytes) -> str:
    """Return the subject address of the key that encrypts a report object."""
    return str(_fields(name, data)["key"])


def opened(vault: Vault, address: str, data: bytes) -> Wire:
    """Decrypt and check a report object; return its `session` and `report`."""
    name = report_name(vault.tenant, address)
    fields = _fields(name, data)
    try:
        sealed = base64.b64decode(fields["data"], validate=True)
    except (TypeError, ValueError) as error:
        raise _damaged(name) from error
    body: Wire = json.loads(vault.decrypt(vault.known_key(fields["key"]), sealed, context(vault.tenant, address)))
    if body["report"]["id"] != address:
        raise _damaged(name)
    return body


def plain_report(session: str, report: Wire) -> bytes:
    """Return the plain text of a report object."""
    return json.dumps({"session": session, "report": report}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def context(tenant: str, address: str) -> bytes:
    """Return the context of a report's encryption."""
    return report_name(tenant, address).encode()


def _fields(name: str, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
        version = fields["schema_version"]
        if version != REPORTS_VERSION and isinstance(version, int):
            raise UnsupportedVersion(name, str(version), REPORTS_VERSION)
        if not (isinstance(fields["key"], str) and isinstance(fields["data"], str)):
            raise _damaged(name)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(name) from error
    found: dict[str, Any] = fields
    return found


def _damaged(name: str) -> Damaged:
    return Damaged(f"{name}: it is not a compression report; restore it from a backup")
