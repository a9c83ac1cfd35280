"""`postgresql://…`: a journal in a PostgreSQL database, for any number of processes on any number of machines.

No machine owns a session. An append is one statement: it updates the log's row if the row equals the one that the
process expects, and only then inserts the records. The cached row of a log only saves a read: if another process has
written, the cached row differs, the statement does nothing, and the row is read again. So each position is taken once,
and the second writer gets `Conflict`. No append reads the log.

An append whose answer is lost is sent again. If the first attempt was committed, the row has changed, and the token of
the first record shows whose append it was. All other writes go once through `PostgresDatabase.transaction`. PostgreSQL
itself shares one flush among transactions that commit at the same time, so there is no group commit here.

Nothing waits to be drained: the database is the lasting place of sessions. `scrub` rewrites the tables that contain
bytes of replaced or dropped records, each under an exclusive lock; readers and writers of its sessions wait meanwhile.
The operator must limit what the server keeps besides its tables: ``pg_wal`` until it is recycled, archives, backups,
replicas that have not caught up, and a server log with parameters in it.

Raises `StoreError`, `Conflict`, `StoreLocked`, `StoreUnavailable`, `Damaged`, `UnsupportedVersion`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from ctxsteward.schemas.errors import Conflict, Damaged

from ..crypto.keyring import AddressKey
from ..postgres_database import PARTS, PostgresConnection, PostgresDatabase
from .port import JournalRecord, SessionKey
from .row_codes import HEAD_QUERY, NEW, LogRow, RowCodes, head_in
from .tables import HEADS_KEPT, TableJournal, TableTransaction, record_row

UNKNOWN = "whether it was written is not known: append it again with the same id"

_TYPES = ("text", "text", "bigint", "text", "bigint", "bigint", "text", "text", "text", "text", "text")
"""Types of the columns of `records`."""
_RECORDS = "unnest(" + ", ".join(f"%s::{type}[]" for type in _TYPES) + ")"
_INSERT = f"INSERT INTO records SELECT r.*, NULL FROM {_RECORDS} r"
_SAME = " AND ".join(f"{name} = %s" for name in (*LogRow._fields, "mac"))
_APPEND = f"""
WITH moved AS ({{moved}} RETURNING 1), written AS (
  INSERT INTO records SELECT r.*, CASE r.position WHEN %s THEN %s::bigint END
  FROM moved, {_RECORDS} AS r (tenant, session, position, kind, ordinal, outputs, id, address, body, wire, mac)
) SELECT count(*) FROM moved
"""
_LOG = f"INSERT INTO logs VALUES ({', '.join(['%s'] * 12)}) ON CONFLICT DO NOTHING"
_FIRST = _APPEND.format(moved=_LOG)
_NEXT = _APPEND.format(moved=f"UPDATE logs SET length = %s, mac = %s WHERE tenant = %s AND session = %s AND {_SAME}")
_CHANGED = ", ".join(f"{name} = %s" for name in (*LogRow._fields, "mac"))
_HEAD_AND_TOKEN = HEAD_QUERY.replace(
    " FROM logs", ", (SELECT token FROM records r WHERE r.tenant = %s AND r.session = %s AND r.position = %s) FROM logs"
)
_UNOWNED = """
SELECT tenant, session, count(*) FROM {table} t WHERE NOT EXISTS (
  SELECT 1 FROM logs WHERE logs.tenant = t.tenant AND logs.session = t.session AND length > 0
) GROUP BY tenant, session LIMIT 100
"""
_DUE = f"""
SELECT DISTINCT CASE relation WHEN 'records' THEN 'records_' || part ELSE relation END
FROM unscrubbed, generate_series(0, {PARTS - 1}) part
WHERE relation <> 'records' OR satisfies_hash_partition('records'::regclass, {PARTS}, part, tenant, session)
"""
_SCRUBBED = f"""
DELETE FROM unscrubbed WHERE relation = %s OR (relation = 'records' AND EXISTS (
  SELECT 1 FROM generate_series(0, {PARTS - 1}) part WHERE 'records_' || part = %s
  AND satisfies_hash_partition('records'::regclass, {PARTS}, part, tenant, session)))
"""
_SAMPLE = 20
"""Most rows of a tenant that `fits` checks with the keys."""
_KEYS = {"manifests": "seq", "objects_keys": "key", "derived": "tenant, name"}
"""Columns that order the rows of a rewritten table; records are ordered by log and position."""


class StoredHead(NamedTuple):
    """A log's row in the database when it was last read."""

    row: LogRow = NEW
    mac: str | None = None
    """The row's code, or None if there is no row."""


class PostgresTransaction:
    """A `TableTransaction` in PostgreSQL. It locks every row of a log that it reads until its end."""

    drains = False
    waiting_bytes = 0

    def __init__(self, db: PostgresConnection, codes: RowCodes | None) -> None:
        self._db, self._codes = db, codes
        self._rows: list[tuple[Any, ...]] = []
        self._locked: dict[SessionKey, LogRow] = {}
        self.heads: dict[SessionKey, LogRow] = {}

    def head(self, key: SessionKey) -> LogRow:
        found = self.heads.get(key) or self._locked.get(key)
        if found is None:
            found = self._locked[key] = head_in(self._lock(key), key, self._codes)
        return found

    def _lock(self, key: SessionKey) -> list[tuple[Any, ...]]:
        """Lock and return the log's row; make it if missing."""
        query = f"{_translated(HEAD_QUERY)} FOR UPDATE"
        rows = self._db.execute(query, key, binary=True).fetchall()
        if not rows:
            self._db.execute(_LOG, (*key, *NEW, _code(self._codes, key, NEW)))
            rows = self._db.execute(query, key, binary=True).fetchall()
        return rows

    def put(self, key: SessionKey, head: LogRow) -> None:
        self.heads[key] = head

    def replace(self, key: SessionKey, head: LogRow) -> None:
        self._lock(key)
        self.put(key, self.recount(key, head))

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows.extend(rows)

    def execute(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        self._write_rows()
        cursor = self._db.execute(_translated(statement), values, binary=True)
        for table in ("records", "manifests"):
            if statement.startswith((f"DELETE FROM {table}", f"UPDATE {table}")) and cursor.rowcount:
                key = values[:2] if statement.startswith("DELETE") else ("", "")
                self._db.execute("INSERT INTO unscrubbed VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (table, *key))
        return cursor.fetchall() if cursor.description else []

    def next_place(self) -> int:
        return 0

    def recount(self, key: SessionKey, head: LogRow) -> LogRow:
        return head._replace(manifests=0, bytes=0, since=0)

    def flush(self) -> None:
        """Write the collected rows."""
        self._write_rows()
        for key, head in self.heads.items():
            self._db.execute(
                f"UPDATE logs SET {_CHANGED} WHERE tenant = %s AND session = %s",
                (*head, _code(self._codes, key, head), *key),
            )

    def _write_rows(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._db.execute(_INSERT, _columns(rows))


class PostgresJournal(TableJournal):
    """A `Journal` in tables that many machines share. With `address_key` the rows of logs have codes."""

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        address_key: Callable[[str], AddressKey] | None = None,
        draw_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        super().__init__(False, None)
        self.database: PostgresDatabase = database
        self._codes = None if address_key is None else RowCodes(address_key)
        self._heads: dict[SessionKey, StoredHead] = {}
        """Cached rows of logs. A statement checks each one again, so an outdated row does no harm."""
        self._all, self._submit = self._rows, self._transact
        self._id = database.prepare(draw_id)

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.database.execute(_translated(query), values)

    def _transact(self, work: Callable[[TableTransaction], Any]) -> None:
        changed: dict[SessionKey, LogRow] = {}

        def attempt(db: PostgresConnection) -> None:
            transaction = PostgresTransaction(db, self._codes)
            work(transaction)
            transaction.flush()
            changed.update(transaction.heads)

        self.database.transaction(attempt)
        for key in changed:
            self._heads.pop(key, None)

    # -- logs ---------------------------------------------------------------------------------------------------

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        rows = [record_row(key, position + index, record) for index, record in enumerate(records)]
        known = self._heads.get(key)
        if known is None or (known.row.length, known.row.generation) != (position, generation):
            known = self._seen(key, self._all(HEAD_QUERY, key))
        token = secrets.randbits(63)
        while (known.row.length, known.row.generation) == (position, generation):
            if not rows:
                return
            moved = known.row._replace(length=position + len(rows))
            mac = _code(self._codes, key, moved)
            if self._moved(key, known, moved, mac, rows, token):
                self._heads[key] = StoredHead(moved, mac)
                return
            found = self.database.execute(_translated(_HEAD_AND_TOKEN), (*key, position, *key))
            if found and found[0][-1] == token:  # an attempt whose answer was lost
                return
            known = self._seen(key, [row[:-1] for row in found])
        raise Conflict(key.session, position)

    def _moved(
        self, key: SessionKey, known: StoredHead, moved: LogRow, mac: str, rows: list[tuple[Any, ...]], token: int
    ) -> bool:
        """Change the log's row from `known` to `moved` and write the records; return False if it was not `known`."""
        columns = (known.row.length, token, *_columns(rows))
        if known.mac is None:
            statement, values = _FIRST, [*key, *moved, mac, *columns]
        else:
            statement, values = _NEXT, [moved.length, mac, *key, *known.row, known.mac, *columns]
        found = self.database.execute(statement, values, unknown=UNKNOWN)
        return bool(found[0][0])

    def _seen(self, key: SessionKey, rows: Sequence[Sequence[Any]]) -> StoredHead:
        """Cache and return a log's row that was just read. Raises `Damaged` if it is not what was written."""
        head = StoredHead(head_in(rows, key, self._codes), str(rows[0][-1]) if rows else None)
        if len(self._heads) >= HEADS_KEPT:
            self._heads.clear()
        self._heads[key] = head
        return head

    def _head(self, key: SessionKey) -> LogRow:
        return self._seen(key, self._all(HEAD_QUERY, key)).row

    def put_manifest(self, key: SessionKey, address: str, body: str, *, generation: int | None = None) -> None:
        # The lock waits for an erasure that has not committed, and then the condition is checked anew.
        statement = (
            "WITH log AS (SELECT generation FROM logs WHERE tenant = %s AND session = %s FOR SHARE), "
            "put AS (INSERT INTO manifests (tenant, session, address, body, waiting) SELECT %s, %s, %s, %s, 0 "
            "WHERE %s::bigint IS NULL OR EXISTS (SELECT 1 FROM log WHERE generation = %s) ON CONFLICT DO NOTHING) "
            "SELECT generation FROM log"
        )
        found = self.database.execute(statement, (*key, *key, address, body, generation, generation))
        if generation is not None and found != [(generation,)]:
            raise Conflict(key.session, self.length(key))

    def waiting_bytes(self) -> int:
        return 0

    # -- erasure and checks -------------------------------------------------------------------------------------

    def scrub(self) -> None:
        """Rewrite the tables that contain replaced or dropped rows, so that their files have no byte of them.

        Raises `StoreLocked` if a table's lock takes too long; a repeat continues. Needs the rights of the tables'
        owner and the right to make temporary tables.
        """
        database = self.database
        database.execute("DELETE FROM commits WHERE at < now() - interval '1 day'")
        effect = "the tables were not scrubbed; repeat the erasure"
        for (relation,) in database.execute(_DUE):
            with database.named(effect), database.connection() as db, database.begun(db, unbounded=True):
                # Copy the visible rows into new files, because `VACUUM FULL` may copy dead rows, too.
                order = _KEYS.get(relation, "tenant, session, position")
                db.execute(f"LOCK TABLE {relation} IN ACCESS EXCLUSIVE MODE")
                db.execute(f"CREATE TEMPORARY TABLE rows_left ON COMMIT DROP AS SELECT * FROM {relation}")
                db.execute(f"TRUNCATE {relation}")
                db.execute(f"INSERT INTO {relation} SELECT * FROM rows_left ORDER BY {order}")
                db.execute(_SCRUBBED, (relation, relation))

    def integrity(self) -> list[str]:
        """Return contradictions between tables, one line each. The server checks its own pages (data checksums)."""
        problems = []
        try:
            for table in ("records", "manifests"):
                unowned = self._all(_UNOWNED.format(table=table))
                problems += [
                    f"{count} {table} of tenant {t!r}, session {s!r} belong to no log" for t, s, count in unowned
                ]
        except Damaged as error:
            return [str(error)]
        return problems

    def fits(self, tenant: str) -> bool:
        """Return whether one of the tenant's rows of logs was written with our keys."""
        columns = ", ".join((*LogRow._fields, "mac"))
        query = f"SELECT session, {columns} FROM logs WHERE tenant = ? LIMIT {_SAMPLE}"
        for session, *row in self._all(query, (tenant,)):
            with suppress(Damaged):
                head_in([row], SessionKey(tenant, session), self._codes)
                return True
        return False

    def close(self) -> None:
        self.database.close()


def _code(codes: RowCodes | None, key: SessionKey, head: LogRow) -> str:
    return "" if codes is None else codes.of_log(key, head)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Return rows of records as one array per column."""
    return [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=256)
def _translated(statement: str) -> str:
    """Return the statement with the client library's placeholder for a value."""
    return statement.replace("?", "%s")
