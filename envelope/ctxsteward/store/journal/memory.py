"""`memory:`: a journal in tables in memory, with all that a file promises except durability; also the tests' double."""

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
    """A `Journal` for one process; safe with threads. With `drains`, what is written waits to be drained."""

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
        """Nothing is in a file."""

    def close(self) -> None:
        """Nothing to release: another store may be opened over the same journal."""

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Over the connection that writes, between two transactions."""
        try:
            with self._file.lock:
                return self._db.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise store_error(error, IN_MEMORY, 0.0) from error

    def _head(self, key: SessionKey) -> LogRow:
        return self._writer.heads.get(key) or super()._head(key)  # nobody else writes here


@cache
def _empty_tables() -> tuple[Connection, Lock]:
    """Tables to copy, which costs a sixth of making them, and who copies holds the lock."""
    made = connect(IN_MEMORY, 0.0, ())
    prepare(made, IN_MEMORY, lambda: "", 0.0)
    return made, forking.lock()
