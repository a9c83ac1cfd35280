"""A world whose processes share a PostgreSQL database: a real server, entered at `PostgresDatabase`.

Faults fire where a call begins, before a transaction commits, and after it has. Time and chance of the client side are
the world's; the times of objects, which the server would tell, are too. A fork of a process and a wait for a lock that
another process holds are not simulated: nothing here runs in a thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors

from ctxsteward.store import postgres_database
from ctxsteward.store.objects.port import ObjectInfo, PutOutcome
from ctxsteward.store.objects.postgres import PostgresObjects
from ctxsteward.store.postgres_database import PostgresConnection, PostgresDatabase, PostgresUri

if TYPE_CHECKING:
    from .world import Process, World

FAULTS: dict[str, float] = {
    "full disk": 3,
    "disk error": 3,
    "killed process": 5,
    "power cut": 3,
    "other process between": 9,
    "clock forward": 2,
    "clock back": 2,
    "lost reply": 6,
    "server error": 5,
    "deadlock": 4,
    "partition": 3,
}
"""Every fault that may be armed in such a world, with its weight."""
_BEFORE: dict[str, Callable[[], psycopg.Error]] = {
    "full disk": lambda: errors.DiskFull("no space is left on the server's disk"),
    "disk error": lambda: errors.IoError("the server could not write"),
    "server error": lambda: psycopg.OperationalError("the server closed the connection"),
    "deadlock": lambda: errors.DeadlockDetected("deadlock detected"),
}
_RELATIONS = """
SELECT pg_read_binary_file(pg_relation_filepath(c.oid)) FROM pg_class c
WHERE pg_relation_filepath(c.oid) IS NOT NULL AND (c.relnamespace = %s::regnamespace
  OR c.oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = %s::regnamespace))
"""


class FaultyDatabase(PostgresDatabase):
    """The database as one process reaches it; without a process, as an oracle does."""

    def __init__(self, world: World, uri: str, process: Process | None = None) -> None:
        super().__init__(PostgresUri.parse(uri))
        self._world, self._process = world, process

    @contextmanager
    def connection(self) -> Iterator[PostgresConnection]:
        world, process = self._world, self._process
        if process is None:
            with super().connection() as db:
                yield db
            return
        world.at_request(process)
        if world.is_cut_off(process):
            raise psycopg.OperationalError("the server cannot be reached")
        if fault := world.is_due(*_BEFORE):
            raise _BEFORE[fault]()
        with super().connection() as db, world.busy():
            yield db
        if world.is_due("lost reply"):
            raise psycopg.OperationalError("the connection was lost before the answer came")
        world.at_answer(process)

    def transaction(self, work: Callable[[PostgresConnection], object]) -> None:
        def cut(db: PostgresConnection) -> None:
            work(db)
            if self._process is not None and (fault := self._world.is_due(*_BEFORE)):
                raise _BEFORE[fault]()
            if self._process is not None:
                self._world.at_answer(self._process)

        super().transaction(cut)


class TimedObjects(PostgresObjects):
    """Objects in the database, with the world's time for the server's."""

    def __init__(self, world: World, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._world = world

    def put(self, key: str, body: bytes) -> PutOutcome:
        self._world.modified.setdefault(key, self._world.now_seconds())
        return super().put(key, body)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        for info in super().list(prefix, after=after):
            yield info._replace(modified_seconds=self._world.modified[info.key])

    def delete(self, key: str) -> None:
        super().delete(key)
        self._world.modified.pop(key, None)


@contextmanager
def simulated_time(world: World) -> Iterator[None]:
    """Let the client wait by the world's clock."""
    clock = world.clock
    postgres_database.time = SimpleNamespace(monotonic=lambda: clock.seconds, sleep=clock.sleep)  # type: ignore[attr-defined]
    postgres_database.random = SimpleNamespace(random=lambda: 0.5)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        postgres_database.time, postgres_database.random = time, random  # type: ignore[attr-defined]


def bytes_on_disk(database: PostgresDatabase, schema: str) -> bytes:
    """All tables and indexes of the schema, as the server's files hold them."""
    with database.connection() as db:
        db.execute("CHECKPOINT")
        return b"".join(bytes(row[0]) for row in db.execute(_RELATIONS, (schema, schema)).fetchall())


def drop(database: PostgresDatabase, schema: str) -> None:
    with database.connection() as db:
        db.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
