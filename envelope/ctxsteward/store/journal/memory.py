"""`memory:`: a journal in memory with all guarantees of a file except durability; also the double in tests."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache, partial
from threading import Lock
from typing import Any

from .. import process_forks as forking
from ..sqlite_file import IN_MEMORY, Connection, SqliteFile, connect
from .database import prepare, store_error
from .port import SessionKey
from .row_codes import LogRow
from .tables import SqliteJournal, TableWriter


class MemoryJournal(SqliteJournal):
    """A `Journal` for one process; safe with threads. With `drains`, written records wait to be drained."""

    def __init__(
        self,
        drains: bool = False,
        *,
        queue_bytes: int | None = None,
        draw_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        super().__init__(IN_MEMORY, drains, queue_bytes, 0.0)
        file = SqliteFile(partial(connect, IN_MEMORY, 0.0, ()))
        db = file.make()
        tables, copying = _empty_tables()
        with copying:
            tables.backup(db)
        self._id, self._file, self._db = draw_id(), file, db
        self._writer = TableWriter(drains=drains, error=self._refusal)
        self._submit = partial(self._writer.run_alone, db, file.lock)
        self._all = self._rows

    def scrub(self) -> None:
        """Do nothing: the journal has no file."""

    def close(self) -> None:
        """Do nothing: another store may be opened over the same journal."""

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Read with the writing connection, between two transactions."""
        try:
            with self._file.lock:
                return self._db.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise store_error(error, IN_MEMORY, 0.0) from error

    def _head(self, key: SessionKey) -> LogRow:
        return self._writer.heads.get(key) or super()._head(key)  # the cache is valid: there is no other writer


@cache
def _empty_tables() -> tuple[Connection, Lock]:
    """Return empty tables and the lock for copying them; copying takes a sixth of the time of making them."""
    made = connect(IN_MEMORY, 0.0, ())
    prepare(made, IN_MEMORY, lambda: "", 0.0)
    return made, forking.lock()
