"""Codes of the rows that no session writes itself: of `logs`, and of `forgotten`.

HMAC-SHA-256 under the tenant's address key of the table, the session and all that the row says, so that no row can be
changed, swapped with another session's or made up without the key; how many subjects of a session were forgotten is
part of its log's row, so that none of those rows can be taken out, either. An older row of the same place is not told
from the one that stood there last. Raises `Damaged`. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence

from ctxsteward.schemas import Damaged

from ..keys import AddressKey, code
from ..records import check, owned, prefixed
from .port import Forgotten, Record, SessionKey
from .transaction import Head, Transaction

_COLUMNS = "tenant, session, " + ", ".join(Head._fields)
_SAMPLE = 20
"""Records of a tenant that are looked at to tell whether these are its keys."""


class RowCodes:
    """Makes and checks codes with the keys of all tenants."""

    def __init__(self, address_key: Callable[[str], AddressKey]) -> None:
        self._address_key = address_key

    def of_log(self, key: SessionKey, head: Sequence[int]) -> str:
        numbers = b"%d,%d,%d,%d,%d,%d,%d,%d,%d" % tuple(head)
        return code(self._address_key(key.tenant), owned(key.session, "row of logs") + numbers)

    def of_forgotten(self, tenant: str, subject: Forgotten) -> str:
        session, principal, *told = subject
        who = b"\x00" if principal is None else b"\x01" + prefixed(principal)
        text = owned(session, "row of forgotten") + who + b"".join(map(prefixed, told))
        return code(self._address_key(tenant), text)

    def check_log(self, key: SessionKey, head: Sequence[int], mac: object) -> None:
        """Raise `Damaged` where a log's row is not what was written."""
        if not _is_same(mac, lambda: self.of_log(key, head)):
            raise Damaged(
                f"session {key.session!r}: the journal's row of its log is not what was written (or was written with "
                "other keys); `ctxsteward store fsck --repair` counts it anew from the records, else restore the "
                "journal from a backup"
            )

    def check_forgotten(self, tenant: str, subject: Forgotten, mac: object) -> None:
        """Raise `Damaged` where the note that a subject was forgotten is not what was written."""
        if not _is_same(mac, lambda: self.of_forgotten(tenant, subject)):
            raise forgotten_altered(subject.session)

    def key_fits(self, tenant: str, rows: Sequence[Sequence[object]]) -> bool:
        """Whether one of these records (session, position, fields) was written with our key of the tenant."""
        for session, position, *fields in rows:
            try:
                check(self._address_key(tenant), str(session), int(str(position)), Record(*fields))  # type: ignore[arg-type]
            except Damaged:
                continue
            return True
        return not rows


def forgotten_altered(session: str) -> Damaged:
    return Damaged(
        f"session {session!r}: the journal's notes of who was forgotten are not what was written; restore the journal "
        "from a backup, and repeat what was forgotten since"
    )


def give_codes(transaction: Transaction, codes: RowCodes) -> bool:
    """Give every row its code where none has one yet; whether rows have them now.

    A journal from before there were codes is taken at its word, this once; not where its records show that these are
    other keys than it was written with.
    """
    if transaction.execute("SELECT 1 FROM meta WHERE name = 'row_codes'", ()):
        return True
    tenants = [str(tenant) for (tenant,) in transaction.execute("SELECT DISTINCT tenant FROM logs", ())]
    sample = (
        "SELECT session, position, kind, body, ordinal, outputs, id, wire, mac FROM records WHERE tenant = ? LIMIT ?"
    )
    if not all(codes.key_fits(tenant, transaction.execute(sample, (tenant, _SAMPLE))) for tenant in tenants):
        return False
    for tenant, session, *head in transaction.execute(f"SELECT {_COLUMNS} FROM logs", ()):
        values = (codes.of_log(SessionKey(tenant, session), head), tenant, session)
        transaction.execute("UPDATE logs SET mac = ? WHERE tenant = ? AND session = ?", values)
    columns = "seq, tenant, session, whole, principal, who, at, why"
    for seq, tenant, session, whole, principal, *told in transaction.execute(f"SELECT {columns} FROM forgotten", ()):
        subject = Forgotten(session, None if whole else principal, *told)
        mac = codes.of_forgotten(tenant, subject)
        transaction.execute("UPDATE forgotten SET mac = ? WHERE seq = ?", (mac, seq))
    transaction.execute("INSERT INTO meta VALUES ('row_codes', 1)", ())
    return True


def _is_same(mac: object, expected: Callable[[], str]) -> bool:
    try:
        return isinstance(mac, str) and hmac.compare_digest(mac, expected())
    except (TypeError, ValueError, AttributeError):  # no numbers, no text, or none that can be encoded
        return False
