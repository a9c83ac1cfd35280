"""Rows of logs (`LogRow`), and the codes of the rows that a journal in tables trusts (`RowCodes`).

The journal itself, and no session, writes the rows of `logs` and `forgotten`, so they have codes of their own, checked
at every read: HMAC-SHA-256 under the tenant's address key of table, session and all columns. Without the key no row can
be changed, swapped with another session's, or forged. A log's row counts the forgotten subjects of its session, so that
no row of `forgotten` can be removed unnoticed, either. The code does not detect that an older row was put back.

Raises `StoreError`, `Damaged`. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctxsteward.schemas.errors import Damaged

from ..crypto.keyring import AddressKey, code
from .log import check, owned, prefixed
from .port import ForgottenSubject, JournalRecord, SessionKey


class LogRow(NamedTuple):
    """The row of a log in table `logs`."""

    length: int = 0
    generation: int = 0
    drained: int = 0
    """Position up to which the log is drained."""
    number: int = 0
    epoch: int = 0
    manifests: int = 0
    """Number of manifests that wait to be drained."""
    bytes: int = 0
    """Size of the records and manifests that wait to be drained."""
    since: int = 0
    """Place in the order of waiting logs; 0 if nothing waits."""
    forgotten: int = 0
    """Number of the session's forgotten subjects."""


NEW = LogRow()
HEAD_QUERY = f"SELECT {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? AND session = ?"


class RowCodes:
    """Maker and checker of row codes with the keys of all tenants."""

    def __init__(self, address_key: Callable[[str], AddressKey]) -> None:
        self._address_key = address_key

    def of_log(self, key: SessionKey, head: Sequence[int]) -> str:
        numbers = b"%d,%d,%d,%d,%d,%d,%d,%d,%d" % tuple(head)
        return code(self._address_key(key.tenant), owned(key.session, "row of logs") + numbers)

    def of_forgotten(self, tenant: str, subject: ForgottenSubject) -> str:
        session, principal, *note = subject
        who = b"\x00" if principal is None else b"\x01" + prefixed(principal)
        text = owned(session, "row of forgotten") + who + b"".join(map(prefixed, note))
        return code(self._address_key(tenant), text)

    def check_log(self, key: SessionKey, head: Sequence[int], mac: object) -> None:
        """Raise `Damaged` if a log's row is not what was written."""
        if not _is_same(mac, lambda: self.of_log(key, head)):
            raise Damaged(
                f"session {key.session!r}: the journal's row of its log is not what was written (or was written with "
                "other keys); `ctxsteward store fsck --repair` counts it anew from the records, else restore the "
                "journal from a backup"
            )

    def check_forgotten(self, tenant: str, subject: ForgottenSubject, mac: object) -> None:
        """Raise `Damaged` if the row of a forgotten subject is not what was written."""
        if not _is_same(mac, lambda: self.of_forgotten(tenant, subject)):
            raise forgotten_altered(subject.session)

    def key_fits(self, tenant: str, rows: Sequence[Sequence[object]]) -> bool:
        """Return whether one of these records (session, position, fields) has our key's code, or there are none."""
        for session, position, *fields in rows:
            try:
                check(self._address_key(tenant), str(session), int(str(position)), JournalRecord(*fields))  # type: ignore[arg-type]
            except Damaged:
                continue
            return True
        return not rows


def forgotten_altered(session: str) -> Damaged:
    return Damaged(
        f"session {session!r}: the journal's notes of who was forgotten are not what was written; restore the journal "
        "from a backup, and repeat what was forgotten since"
    )


def _is_same(mac: object, expected: Callable[[], str]) -> bool:
    try:
        return isinstance(mac, str) and hmac.compare_digest(mac, expected())
    except (TypeError, ValueError, AttributeError):  # values are not numbers, not text, or cannot be encoded
        return False


def head_in(rows: Sequence[Sequence[Any]], key: SessionKey, codes: RowCodes | None) -> LogRow:
    """Return the log's row from the result of `HEAD_QUERY`. Raises `Damaged` if it is not what was written."""
    if not rows:
        return NEW
    *fields, mac = rows[0]
    if codes is not None:
        codes.check_log(key, fields, mac)
    return LogRow(*fields)
