"""One SQLite transaction of a connection that commits by hand: all of it, or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def one_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock from the beginning; roll back whatever ends it otherwise. Raises what is raised within."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
