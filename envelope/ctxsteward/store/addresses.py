"""Finds by address what a tenant's journal holds: manifests of built envelopes, and compactions.

What the journal lacks is looked for in the object store: in all sessions of the tenant, or in the one that is named.
Everything is checked before it is served. Raises `ReferenceNotFound`, `Damaged`, `InputError`, `StoreError`.
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
"""Of an address, as a person may write it."""

META_REPORT = '"meta_report":'
"""Stands in the text of a manifest that holds a report and no envelope."""
T = TypeVar("T")


def report_in(manifest: Mapping[str, object]) -> CompressionReport | None:
    """The report that this manifest holds; None: it is an envelope's."""
    body = manifest.get("meta_report")
    return None if body is None else CompressionReport.model_validate(body)


class AddressLookup:
    """Looks things up by address."""

    def __init__(
        self, journal: Journal, keys: Keys, write_behind: WriteBehind | None, findings: list[Finding] | None = None
    ) -> None:
        """`findings` are filled with what the last search could not read."""
        self._journal, self._keys, self._write_behind = journal, keys, write_behind
        self._findings: list[Finding] = [] if findings is None else findings

    def whole(self, text: str, tenant: str, session: str | None) -> str:
        """The address that these leading digits name; the text itself where they name none."""
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
        """The manifest of a built envelope."""
        body = self._found(tenant, session, lambda: self._journal.get_manifest(tenant, address))
        if body is None:
            raise self._not_found(address, f"no envelope of tenant {tenant!r} has this address")
        return read_manifest(self._keys.address_key(tenant), address, body)

    def report(self, address: str, tenant: str, session: str | None) -> CompressionReport:
        """The report with this address, of any section."""
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
        """The report that this address names in the object store; None where the journal has it, or nobody has."""
        if self._write_behind is None or not re.fullmatch(f"[0-9a-f]{{{ALL_DIGITS}}}", address):
            return None
        if self._journal.find(tenant, address) or self._journal.get_manifest(tenant, address) is not None:
            return None
        report = self._write_behind.stored_report(tenant, address)
        return None if report is None else CompressionReport.model_validate(report)

    def compaction(self, address: str, tenant: str, session: str | None) -> WindowCompacted:
        """The compaction with this address."""
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
        """What is found here; where that is nothing, what is found once the sessions have been read in."""
        result = find()
        self._findings.clear()
        if result or self._write_behind is None:
            return result
        if session is None:
            self._findings[:] = self._write_behind.all_readable(tenant)
        else:
            self._write_behind.readable(SessionKey(tenant, session))
        return find()
