"""Forgetting in a store in PostgreSQL: no byte in the files of its database, on no machine that has it open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.cards import cards_of
from ctxsteward.schemas import Erased
from ctxsteward.store import MasterKeys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.postgres_database import PostgresUri

from ...postgres import PostgresServer
from .scenes import ANN, BOB, CHARS, NOTE, OWN, TOLD, builder, contents_of, fill, hits, say

KEYS = MasterKeys(b"k" * 32)
_databases = count(1)


@pytest.fixture
def database(shared_postgres: PostgresServer) -> tuple[str, Path]:
    """A database of its own: the URI of a store in it, and the folder of its files."""
    plain, name = shared_postgres.uri("a"), f"erasure{next(_databases)}"
    with psycopg.connect(PostgresUri.parse(plain).conninfo, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        ((oid,),) = db.execute("SELECT oid FROM pg_database WHERE datname = %s", (name,)).fetchall()
    return plain.replace("/postgres?", f"/{name}?"), shared_postgres.home / "data/base" / str(oid)


@pytest.fixture
def stores(database: tuple[str, Path]) -> Iterator[tuple[Store, Store]]:
    """Two machines."""
    with open_store(database[0], keys=KEYS) as one, open_store(database[0], keys=KEYS) as two:
        yield one, two


def scan(store: Store, files: Path, words: tuple[str, ...]) -> set[str]:
    store.journal.database.execute("CHECKPOINT")  # type: ignore[attr-defined]
    return set(hits(contents_of(store, files), words))


@pytest.mark.parametrize("whole", [True, False], ids=["a session", "a principal"])
def test_what_is_forgotten_is_gone_to_the_last_byte_and_on_every_machine(
    database: tuple[str, Path], stores: tuple[Store, Store], whole: bool
) -> None:
    one, two = stores
    fill(one, turns=2)
    cards_of(one.session("s-1", tenant="acme", counter=CHARS))
    open_there = two.session("s-1", tenant="acme", counter=CHARS)
    say(open_there, "ann", ANN, 3)
    builder().build(open_there)
    one.session("s-4", tenant="acme", counter=CHARS).append({"role": "user", "content": "MARKbyte2871 stays"})
    assert scan(one, database[1], (*ANN, *BOB, *OWN, *NOTE)) == {*ANN, *BOB, *OWN, *NOTE}
    forget(one, tenant="other", session="s-1", **TOLD)
    if whole:
        for session in ("s-1", "s-2", "s-3"):
            forget(one, tenant="acme", session=session, **TOLD)
        gone: tuple[str, ...] = (*ANN, *BOB, *OWN, *NOTE)
    else:
        forget(one, tenant="acme", principal="ann", **TOLD)
        gone = ANN
    assert scan(one, database[1], gone) == set()
    assert scan(two, database[1], (*BOB, *OWN, "MARKbyte2871")) == {"MARKbyte2871", *(() if whole else (*BOB, *OWN))}
    if whole:
        with pytest.raises(Erased, match="was erased by dpo"):
            open_there.append({"role": "user", "content": "back"})
        with pytest.raises(Erased):
            two.session("s-1", tenant="acme")
    else:
        open_there.append({"role": "user", "content": "what did she say?"}, principal="bob")
        assert not any(word in builder().build(open_there).section("dynamic").text for word in ANN)
        with pytest.raises(Erased):
            say(open_there, "ann", ANN, 4)
    assert not fsck(one, read_data=True).damaged
