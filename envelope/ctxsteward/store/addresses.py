"""Find a tenant's envelope manifests, compactions and reports by address.

If the journal lacks an address, the sessions in the object store are searched: all of the tenant, or the given one.
Every result's code is checked. Raises `ReferenceNotFound`, `Damaged`, `InputError`, `StoreError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ctxsteward.schemas import CompressionReport, Finding, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged

from .crypto.keyring import Keys
from .journal.events import WindowCompacted, from_record
from .journal.log import check, read_manifest
from .journal.port import Journal, SessionKey

if TYPE_CHECKING:
    from .replication.write_behind import WriteBehind

MIN_DIGITS, ALL_DIGITS = 8, 64
"""Fewest hex digits in which an address may be abbreviated, and the length of a whole address."""

META_REPORT = '"meta_report":'
"""Text that occurs in a manifest only if it contains a report instead of an envelope."""
T = TypeVar("T")


def report_in(manifest: Mapping[str, object]) -> CompressionReport | None:
    """Return the report in a manifest, or None if the manifest is that of an envelope."""
    body = manifest.get("meta_report")
    return None if body is None else CompressionReport.model_validate(body)


class AddressLookup:
    """Search by address in a journal and the object store behind it."""

    def __init__(
        self, journal: Journal, keys: Keys, write_behind: WriteBehind | None, findings: list[Finding] | None = None
    ) -> None:
        """`findings` is replaced at each search by findings about the sessions that it could not read."""
        self._journal, self._keys, self._write_behind = journal, keys, write_behind
        self._findings: list[Finding] = [] if findings is None else findings

    def whole(self, text: str, tenant: str, session: str | None) -> str:
        """Return the address that begins with `text`, or `text` itself if none does; `InputError` if several do."""
        if not MIN_DIGITS <= len(text) < ALL_DIGITS or not set(text) <= set("0123456789abcdef"):
            return text
        addresses = self._journal.matching(tenant, text)
        if not addresses and self._write_behind is not None:
            addresses = self._write_behind.stored_report_addresses(tenant, text)
        addresses = addresses or self._found(tenant, session, lambda: self._journal.matching(tenant, text)) or []
        if len(set(addresses)) > 1:
            raise InputError(f"address {text}… is that of several records; write more of its digits")
        return addresses[0] if addresses else text

    def manifest(self, address: str, tenant: str, session: str | None) -> dict[str, Any]:
        """Return the manifest of the envelope with this address."""
        body = self._found(tenant, session, lambda: self._journal.get_manifest(tenant, address))
        if body is None:
            raise self._not_found(address, f"no envelope of tenant {tenant!r} has this address")
        return read_manifest(self._keys.address_key(tenant), address, body)

    def report(self, address: str, tenant: str, session: str | None) -> CompressionReport:
        """Return the compression report with this address, of any section."""
        if (stored := self._stored_report(address, tenant)) is not None:
            return stored
        try:
            return self.compaction(address, tenant, session).report
        except ReferenceNotFound:
            report = report_in(self.manifest(address, tenant, session))
            if report is None:
                raise
            return report

    def _stored_report(self, address: str, tenant: str) -> CompressionReport | None:
        """Return the report from the object store, or None if the journal has it or it does not exist."""
        if self._write_behind is None or not re.fullmatch(f"[0-9a-f]{{{ALL_DIGITS}}}", address):
            return None
        if self._journal.find(tenant, address) or self._journal.get_manifest(tenant, address) is not None:
            return None
        report = self._write_behind.stored_report(tenant, address)
        return None if report is None else CompressionReport.model_validate(report)

    def compaction(self, address: str, tenant: str, session: str | None) -> WindowCompacted:
        """Return the compaction with this address."""
        place = self._found(tenant, session, lambda: self._journal.find(tenant, address))
        if place is None:
            raise self._not_found(address, f"no compaction of tenant {tenant!r} has this address")
        owner, position = place
        record = next(iter(self._journal.read(SessionKey(tenant, owner), position, position + 1)), None)
        if record is None:
            raise Damaged(f"session {owner!r}: the compaction at position {position} is missing from the journal")
        check(self._keys.address_key(tenant), owner, position, record)
        event = from_record(record)
        assert isinstance(event, WindowCompacted)
        return event

    def _not_found(self, address: str, what: str) -> ReferenceNotFound:
        if self._findings:
            first = self._findings[0]
            what += f" among those that could be read; {len(self._findings)} could not: {first.field}: {first.text}"
        return ReferenceNotFound(address[:16] + "…", "", what)

    def _found(self, tenant: str, session: str | None, find: Callable[[], T]) -> T:
        """Call `find`; if it finds nothing, copy sessions from the object store into the journal and call it again."""
        result = find()
        self._findings.clear()
        if result or self._write_behind is None:
            return result
        if session is None:
            self._findings[:] = self._write_behind.all_readable(tenant)
        else:
            self._write_behind.readable(SessionKey(tenant, session))
        return find()
