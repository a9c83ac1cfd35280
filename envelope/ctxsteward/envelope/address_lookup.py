"""What a tenant's journal holds by address: manifests of built envelopes, and compactions.

It is behind `Store.address`, `manifest`, `compaction` and `report`. What the journal lacks is looked for in the object
store: in all sessions of the tenant, or in the one that is named. Everything is checked before it is served. Raises
`ReferenceNotFound`, `Damaged`, `InputError`, `StoreError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ctxsteward.schemas import Damaged, Finding, InputError, ReferenceNotFound
from ctxsteward.store import Journal, Keys, SessionKey, WindowCompacted, check, from_record, read_manifest

if TYPE_CHECKING:
    from ctxsteward.store import WriteBehind

MIN_DIGITS, ALL_DIGITS = 8, 64
"""Of an address, as a person may write it."""

T = TypeVar("T")


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
        found = self._found(tenant, session, lambda: self._journal.matching(tenant, text)) or []
        if len(set(found)) > 1:
            raise InputError(f"address {text}… is that of several records; write more of its digits")
        return found[0] if found else text

    def manifest(self, address: str, tenant: str, session: str | None) -> dict[str, Any]:
        """The manifest of a built envelope."""
        body = self._found(tenant, session, lambda: self._journal.get_manifest(tenant, address))
        if body is None:
            raise self._not_found(address, f"no envelope of tenant {tenant!r} has this address")
        return read_manifest(self._keys.address_key(tenant), address, body)

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
