"""`postgresql://…`: objects in a table of a PostgreSQL database, one row per object.

A put is one `INSERT` that does nothing if the key is taken; after a lost connection it is `unknown`. Keys compare by
bytes (``COLLATE "C"``). A listing is read in pages, each from the last key of the previous page on. Modified times are
the server's. Data keys (``keys/``) are in a partition of their own, which `PostgresJournal.scrub` rewrites after one
was destroyed.

Raises `ObjectMissing`, `StoreUnavailable`, `InputError` for an invalid key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg

from ctxsteward.schemas import StoreError, StoreUnavailable
from ctxsteward.schemas.errors import ObjectMissing

from ..names import checked_key, checked_prefix
from ..postgres_database import PostgresDatabase, Rows, is_lost
from .port import ObjectInfo, ObjectStore, PutOutcome

PAGE_OBJECTS = 1000
_END = "\x7f"
"""Character that sorts after every character of a key."""
_PUT = "INSERT INTO objects (key, body) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING 1"
_LIST = """
SELECT key, octet_length(body), extract(epoch FROM modified)::double precision FROM objects
WHERE key >= %s AND key < %s AND key > %s ORDER BY key LIMIT %s
"""
_DELETE = """
WITH gone AS (DELETE FROM objects WHERE key = %s RETURNING tableoid::regclass::text AS part)
INSERT INTO unscrubbed SELECT 'objects_keys', '', '' FROM gone WHERE part LIKE '%%objects_keys' ON CONFLICT DO NOTHING
"""


class PostgresObjects(ObjectStore):
    """An `ObjectStore` that shares its connections with a `PostgresJournal`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @property
    def uri(self) -> str:
        return self._database.place

    def put(self, key: str, body: bytes) -> PutOutcome:
        checked_key(key)
        try:
            return "committed" if self._database.attempt(_PUT, (key, body)) else "conflicted"
        except psycopg.Error as error:
            if is_lost(error) or error.sqlstate in ("55P03", "57014"):  # lock timeout, statement timeout
                return "unknown"
            raise self._unavailable(self._database.error(error)) from error

    def get(self, key: str) -> bytes:
        rows = self._rows("SELECT body FROM objects WHERE key = %s", (checked_key(key),))
        if not rows:
            raise ObjectMissing(key)
        return bytes(rows[0][0])

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        checked_prefix(prefix)
        while page := self._rows(_LIST, (prefix, prefix + _END, after, PAGE_OBJECTS)):
            yield from (ObjectInfo(*row) for row in page)
            if len(page) < PAGE_OBJECTS:
                return
            after = page[-1][0]

    def delete(self, key: str) -> None:
        self._rows(_DELETE, (checked_key(key),))

    def close(self) -> None:
        self._database.close()

    def _rows(self, query: str, values: Sequence[object]) -> Rows:
        try:
            return self._database.execute(query, values)
        except StoreError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: StoreError) -> StoreUnavailable:
        return error if isinstance(error, StoreUnavailable) else StoreUnavailable(str(error))
