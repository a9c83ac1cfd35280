"""`memory:`: the tables of a journal in memory. Everything a file store promises but durability; also the double for
tests.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache, partial
from threading import Lock
from typing import Any

from ctxsteward.schemas import StoreError

from .. import process_forks as forking
from ..sqlite_file import IN_MEMORY, Connection, SqliteFile, connect
from .database import prepare, store_error
from .port import SessionKey
from .sqlite import SqliteJournal
from .transaction import LogRow, Transaction


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
        tables, copying = _empty_tables()
        with copying:
            tables.backup(file.make())
        self._lock = file.lock
        self._open(draw_id(), file, None, _SharedConnection(file))

    def scrub(self) -> None:
        """Nothing is in a file."""

    def close(self) -> None:
        """Nothing to release: whoever holds the journal may open another store over it."""

    def _submit(self, work: Callable[[Transaction], Any]) -> Any:
        """Nothing to wait for together: a transaction each."""
        writer, db = self._writer, self._writer.db
        with self._lock:
            try:
                db.execute("BEGIN")
                transaction = Transaction(writer)
                result = work(transaction)
                transaction.flush()
                db.execute("COMMIT")
                writer.settle(transaction)
            except BaseException as error:  # an interrupt may come at any point, behind the commit too
                writer.reread()
                if isinstance(error, StoreError) or not isinstance(error, Exception):
                    raise
                raise self._refusal(error) from error
            return result

    def _head(self, key: SessionKey) -> LogRow:
        return self._writer.heads.get(key) or super()._head(key)  # nobody else writes here


@cache
def _empty_tables() -> tuple[Connection, Lock]:
    """Tables to copy, which costs a sixth of making them, and who copies holds the lock."""
    made = connect(IN_MEMORY, 0.0, ())
    prepare(made, IN_MEMORY, lambda: "", 0.0)
    return made, forking.lock()


class _SharedConnection:
    """Reads over the connection that writes, between two transactions."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._file.lock:
                return self._file.db.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise store_error(error, IN_MEMORY, 0.0) from error

    def close(self) -> None:
        """It stays open."""
