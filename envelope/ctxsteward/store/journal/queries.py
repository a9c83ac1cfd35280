"""The reading half of a journal in tables (`JournalQueries`), and the codes of the rows that it trusts (`RowCodes`).

Lengths, records by place, ordinal, id or address, and what waits to be drained. Reads see every acknowledged append and
wait for no writer.

Rows of `logs` and `forgotten` are written by the journal itself and by no session, so they have codes of their own,
checked when they are read: HMAC-SHA-256 under the tenant's address key of the table, the session and all that the row
says. No row can be changed, swapped with another session's or made up without the key. How many subjects of a session
were forgotten is part of its log's row, so that none of those rows can be taken out, either. An older row of the same
place cannot be told from the one that stood there last.

Raises `StoreError`, `Damaged`. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctxsteward.schemas.errors import Damaged

from ..crypto.keyring import AddressKey, code
from .database import RowReader, check_file
from .log import check, owned, prefixed
from .port import AlteredRow, DrainMark, ForgottenSubject, JournalRecord, Manifest, SessionKey, WaitingLog

LOG = "tenant = ? AND session = ?"
_END = 1 << 62
_COLUMNS = "kind, body, ordinal, outputs, id, wire, mac"
_FORGOTTEN = "session, whole, principal, who, at, why, mac"
_ROBBED = """
SELECT session FROM logs WHERE {where} AND forgotten > 0 AND forgotten <>
  (SELECT count(*) FROM forgotten f WHERE f.tenant = logs.tenant AND f.session = logs.session) LIMIT 1
"""
"""A log of which other subjects were forgotten than are noted: in one step, so that none is noted in between."""
_UNOWNED = """
SELECT DISTINCT session FROM records WHERE tenant = ? AND NOT EXISTS
  (SELECT 1 FROM logs WHERE logs.tenant = records.tenant AND logs.session = records.session)
"""
"""Records whose log has no row."""


class LogRow(NamedTuple):
    """A log's row."""

    length: int = 0
    generation: int = 0
    drained: int = 0
    """Position."""
    number: int = 0
    epoch: int = 0
    manifests: int = 0
    """Those that wait."""
    bytes: int = 0
    """Of all that waits."""
    since: int = 0
    """Place in the order of waiting; 0: nothing waits."""
    forgotten: int = 0
    """Subjects of it that were forgotten."""


NEW = LogRow()
HEAD_QUERY = f"SELECT {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? AND session = ?"


class RowCodes:
    """Makes and checks codes with the keys of all tenants."""

    def __init__(self, address_key: Callable[[str], AddressKey]) -> None:
        self._address_key = address_key

    def of_log(self, key: SessionKey, head: Sequence[int]) -> str:
        numbers = b"%d,%d,%d,%d,%d,%d,%d,%d,%d" % tuple(head)
        return code(self._address_key(key.tenant), owned(key.session, "row of logs") + numbers)

    def of_forgotten(self, tenant: str, subject: ForgottenSubject) -> str:
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

    def check_forgotten(self, tenant: str, subject: ForgottenSubject, mac: object) -> None:
        """Raise `Damaged` where the note that a subject was forgotten is not what was written."""
        if not _is_same(mac, lambda: self.of_forgotten(tenant, subject)):
            raise forgotten_altered(subject.session)

    def key_fits(self, tenant: str, rows: Sequence[Sequence[object]]) -> bool:
        """Whether one of these records (session, position, fields) was written with our key of the tenant."""
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
    except (TypeError, ValueError, AttributeError):  # no numbers, no text, or none that can be encoded
        return False


def head_in(rows: Sequence[Sequence[Any]], key: SessionKey, codes: RowCodes | None) -> LogRow:
    """The head that `HEAD_QUERY` has found; raises `Damaged` where it is not what was written."""
    if not rows:
        return NEW
    *fields, mac = rows[0]
    if codes is not None:
        codes.check_log(key, fields, mac)
    return LogRow(*fields)


class JournalQueries:
    """The reading half of a `Journal` in tables, in the SQL that SQLite and PostgreSQL have in common."""

    _all: RowReader
    _codes: RowCodes | None = None
    """None: the journal's own rows have no codes."""

    def length(self, key: SessionKey) -> int:
        return self._head(key).length

    def generation(self, key: SessionKey) -> int:
        return self._head(key).generation

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        query = f"SELECT {_COLUMNS} FROM records WHERE {LOG} AND position >= ? AND position < ? ORDER BY position"
        return [JournalRecord(*row) for row in self._all(query, (*key, start, _END if stop is None else stop))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        query = f"SELECT max(position) FROM records WHERE {LOG} AND kind = 'compaction' AND position < ?"
        return self._number(query, (*key, _END if before is None else before))

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        return self._record("ordinal = ? AND ordinal > 0", key, ordinal)

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        query = f"SELECT position FROM records WHERE {LOG} AND ordinal = ? AND ordinal > 0"
        rows = self._all(query, (*key, ordinal))
        return int(rows[0][0]) if rows else None

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None:
        return self._record("id = ? AND id IS NOT NULL", key, id)

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        return self._record("outputs >= ? AND outputs > 0 ORDER BY outputs, position LIMIT 1", key, number)

    def sessions(self, tenant: str) -> list[str]:
        query = "SELECT session FROM logs WHERE tenant = ? AND length > 0 ORDER BY session"
        return [str(session) for (session,) in self._all(query, (tenant,))]

    def tenants(self) -> list[str]:
        query = "SELECT DISTINCT tenant FROM logs WHERE length > 0 ORDER BY tenant"
        return [str(tenant) for (tenant,) in self._all(query)]

    def get_manifest(self, tenant: str, address: str) -> str | None:
        rows = self._all("SELECT body FROM manifests WHERE tenant = ? AND address = ?", (tenant, address))
        return str(rows[0][0]) if rows else None

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        where = f"{LOG} AND waiting = 1" if waiting else LOG
        query = f"SELECT address, body FROM manifests WHERE {where} ORDER BY seq LIMIT ?"
        return [Manifest(*row) for row in self._all(query, (*key, _END if limit is None else limit))]

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        query = "SELECT session, position FROM records WHERE tenant = ? AND address = ?"
        rows = self._all(query, (tenant, address))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def matching(self, tenant: str, prefix: str) -> list[str]:
        stop = f"{prefix}g"  # addresses are lower-case hexadecimal
        query = (
            "SELECT address FROM manifests WHERE tenant = ? AND address >= ? AND address < ? UNION ALL "
            "SELECT address FROM records WHERE tenant = ? AND address >= ? AND address < ? LIMIT 3"
        )
        return [str(row[0]) for row in self._all(query, (tenant, prefix, stop, tenant, prefix, stop))]

    def drained(self, key: SessionKey) -> DrainMark:
        head = self._head(key)
        return DrainMark(head.drained, head.number, head.epoch)

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        query = (
            "SELECT tenant, session, drained, number, epoch, length, manifests FROM logs "
            "WHERE since > 0 ORDER BY since LIMIT ?"
        )
        return [
            WaitingLog(SessionKey(tenant, session), DrainMark(drained, number, epoch), length, manifests)
            for tenant, session, drained, number, epoch, length, manifests in self._all(query, (limit,))
        ]

    def seen(self, name: str) -> int:
        return self._number("SELECT number FROM seen WHERE name = ?", (name,))

    def witnessed(self) -> dict[str, int]:
        """All that `see` has noted."""
        return {str(name): _noted(number) for name, number in self._all("SELECT name, number FROM seen")}

    def integrity(self) -> list[str]:
        """What is wrong with the file as a whole, a line each; see `integrity`."""
        return check_file(self._all)

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        where, values = ("tenant = ?", (tenant,)) if session is None else (LOG, (tenant, session))
        subjects = []
        for row in self._all(f"SELECT {_FORGOTTEN} FROM forgotten WHERE {where} ORDER BY seq", values):
            subject = _subject(row)
            if self._codes is not None:
                self._codes.check_forgotten(tenant, subject, row[6])
            subjects.append(subject)
        for (robbed,) in self._all(_ROBBED.format(where=where), values):
            raise forgotten_altered(str(robbed))
        return subjects

    def altered(self, tenant: str) -> list[AlteredRow]:
        """Rows of this tenant that are not what was written, or are gone: of logs, and of who was forgotten."""
        rows = [AlteredRow(str(session), "log") for (session,) in self._all(_UNOWNED, (tenant,))]
        if self._codes is not None:
            query = f"SELECT session, {', '.join(LogRow._fields)}, mac FROM logs WHERE tenant = ? ORDER BY session"
            for session, *head, mac in self._all(query, (tenant,)):
                try:
                    self._codes.check_log(SessionKey(tenant, str(session)), head, mac)
                except Damaged:
                    rows.append(AlteredRow(str(session), "log"))
        for (session,) in self._all(
            "SELECT DISTINCT session FROM forgotten WHERE tenant = ? UNION "
            "SELECT session FROM logs WHERE tenant = ? AND forgotten > 0",
            (tenant, tenant),
        ):
            try:
                self.forgotten(tenant, str(session))
            except Damaged:
                rows.append(AlteredRow(str(session), "forgotten"))
        return rows

    def _record(self, where: str, key: SessionKey, value: object) -> JournalRecord | None:
        rows = self._all(f"SELECT {_COLUMNS} FROM records WHERE {LOG} AND {where}", (*key, value))
        return JournalRecord(*rows[0]) if rows else None

    def _head(self, key: SessionKey) -> LogRow:
        return head_in(self._all(HEAD_QUERY, key), key, self._codes)

    def _number(self, query: str, values: Sequence[object]) -> int:
        rows = self._all(query, values)
        return _noted(rows[0][0] or 0) if rows else 0


def _noted(number: object) -> int:
    if not isinstance(number, int):
        raise Damaged(f"the journal notes {number!r:.40} where a number was written; restore it from a backup")
    return number


def _subject(row: Sequence[Any]) -> ForgottenSubject:
    session, whole, principal, *told = row[:6]
    return ForgottenSubject(session, None if whole else principal, *told)
