"""Every implementation of the port, each at a fresh place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectStore
from ctxsteward.store.objects.postgres import PostgresObjects
from ctxsteward.store.objects.s3 import S3Objects
from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri

from ...postgres import PostgresServer
from ...s3_servers import REAL_BUCKET, S3Server

KINDS = ["memory", "file", "postgres", "s3-moto", "s3-ministack", *(["s3-real"] if REAL_BUCKET in os.environ else [])]


@dataclass
class Places:
    """Opens stores of one kind, each empty, and closes them at the end."""

    kind: str
    folder: Path
    server: S3Server | None
    postgres: PostgresServer | None = None
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def examples(self) -> int:
        """How many runs a property can afford here."""
        return {"memory": 100, "file": 60, "postgres": 20}.get(self.kind, 8)

    def fresh(self) -> ObjectStore:
        name = secrets.token_hex(8)
        if self.kind == "memory":
            return MemoryObjects()
        if self.kind == "file":
            return FileObjects(self.folder / name)
        if self.postgres is not None:
            self.stack.close()  # the one before: a server has few connections
            database = PostgresDatabase(PostgresUri.parse(self.postgres.uri(f"o{name}")))
            database.prepare(lambda: name)
            return self.stack.enter_context(closing(PostgresObjects(database)))
        if self.server is not None:
            return self.stack.enter_context(closing(S3Objects.open(self.server.uri(name), session=self.server.session)))
        bucket, _, query = os.environ[REAL_BUCKET].partition("?")
        store = S3Objects.open(f"{bucket.rstrip('/')}/{name}" + (f"?{query}" if query else ""))
        self.stack.enter_context(closing(store))
        self.stack.callback(lambda: [store.delete(found.key) for found in store.list("")])
        return store


@pytest.fixture(scope="module", params=KINDS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    kind = str(request.param)
    server = request.getfixturevalue(kind.removeprefix("s3-")) if kind in ("s3-moto", "s3-ministack") else None
    postgres = request.getfixturevalue("shared_postgres") if kind == "postgres" else None
    opened = Places(kind, tmp_path_factory.mktemp("objects"), server, postgres)
    with opened.stack:
        yield opened


@pytest.fixture
def objects(places: Places) -> ObjectStore:
    return places.fresh()
