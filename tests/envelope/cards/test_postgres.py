"""The PostgreSQL index: foreign and future tables refused, a lost connection made anew, no row left after erasing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope.cards import CardIndex, open_cards
from ctxsteward.schemas import InputError, StoreError, StoreLocked
from ctxsteward.schemas.errors import UnsupportedVersion

from ...postgres import postgres, postgres_dsn
from .indexes import card

psycopg = pytest.importorskip("psycopg")

__all__ = ["postgres", "postgres_dsn"]  # fixtures


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(statement)


class Foreign(NamedTuple):
    id: str
    statement: str
    says: str
    error: type[StoreError] = StoreError


FOREIGN = [
    Foreign("a table of the same name", "CREATE TABLE context_cards (x int)", "of something else"),
    Foreign("tables without a version", "DELETE FROM context_cards_about", "unknown version"),
    Foreign(
        "a later version",
        "UPDATE context_cards_about SET version = 2",
        "has schema_version 2; this program reads up to 1",
        UnsupportedVersion,
    ),
]


@pytest.mark.parametrize("case", FOREIGN, ids=[case.id for case in FOREIGN])
def test_tables_of_another_program_or_version_are_refused(case: Foreign, postgres_dsn: str) -> None:
    if not case.statement.startswith("CREATE"):
        open_cards(postgres_dsn).close()
    execute(postgres_dsn, case.statement)
    with pytest.raises(case.error, match=case.says) as refused:
        open_cards(postgres_dsn)
    assert type(refused.value) is case.error


def test_a_string_that_is_no_dsn_is_refused_without_being_shown() -> None:
    with pytest.raises(InputError, match="no PostgreSQL connection string") as refused:
        open_cards("postgresql://h/db?password=s3cret&nonsense=1")
    assert "s3cret" not in str(refused.value)


def test_a_lost_connection_fails_once_and_is_made_anew(postgres_dsn: str) -> None:
    index: CardIndex = open_cards(postgres_dsn)
    index.put([card(1)])
    execute(postgres_dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreError):
        index.put([card(2)])
    assert index.put([card(2)]) == 1
    assert [c.ordinal for c in index.of_session("default", "s")] == [1, 2]
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.carded("default", "s")


def held(cluster: Path, text: bytes) -> int:
    """How often a text stands in any data file; the write-ahead log (`pg_wal`) is the server's to recycle."""
    files = [path for path in (cluster / "data" / "base").rglob("*") if path.is_file()]
    return sum(path.read_bytes().count(text) for path in files)


def filled(dsn: str) -> CardIndex:
    index = open_cards(dsn)
    for session, text in (("gone", "SECRET"), ("stays", "KEPT")):
        index.put([card(n, session, summary=f"{text}{n}" + "x" * 200) for n in range(1, 300)])
    return index


def test_no_data_file_holds_an_erased_card(postgres: Path, postgres_dsn: str) -> None:
    index = filled(postgres_dsn)
    execute(postgres_dsn, "CHECKPOINT")
    assert held(postgres, b"SECRET") >= 299
    stays = index.of_session("default", "stays")

    assert index.erase("default", "gone") == 299
    assert held(postgres, b"SECRET") == 0
    execute(postgres_dsn, "CHECKPOINT")
    assert held(postgres, b"SECRET") == 0
    assert held(postgres, b"KEPT") >= 299
    assert index.of_session("default", "stays") == stays
    index.close()


def test_a_transaction_that_could_still_see_a_card_keeps_no_byte_of_it(postgres: Path, postgres_dsn: str) -> None:
    """`VACUUM FULL` copies such rows. A transaction that has not read the table finds it without them."""
    index = filled(postgres_dsn)
    with psycopg.connect(postgres_dsn) as older:
        older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        older.execute("SELECT 1 FROM pg_class LIMIT 1")
        index.erase("default", "gone")
        execute(postgres_dsn, "CHECKPOINT")
        assert held(postgres, b"SECRET") == 0
        assert older.execute("SELECT count(*) FROM context_cards WHERE session = 'gone'").fetchone() == (0,)
    index.close()


def test_a_reader_that_holds_the_table_holds_the_erasure_up_which_says_so(
    postgres: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxsteward.store.postgres_database.LOCK_SECONDS", 0.2)
    index = filled(postgres_dsn)
    with psycopg.connect(postgres_dsn) as reader:
        reader.execute("SELECT * FROM context_cards")
        with pytest.raises(StoreLocked):
            index.erase("default", "gone")
        assert index.of_session("default", "gone") == []
        assert index.put([card(1, "gone")]) == 0
    assert index.erase("default", "gone") == 0
    execute(postgres_dsn, "CHECKPOINT")
    assert held(postgres, b"SECRET") == 0
    index.close()


def test_the_catalog_keeps_no_statistics_of_what_cards_say(postgres_dsn: str) -> None:
    index = filled(postgres_dsn)
    execute(postgres_dsn, "ANALYZE context_cards")
    with psycopg.connect(postgres_dsn) as db:
        rows = db.execute("SELECT attname FROM pg_stats WHERE tablename = 'context_cards'").fetchall()
    kept = {name for (name,) in rows}
    assert "session" in kept
    assert kept.isdisjoint({"summary", "keywords", "embedding", "phase_name", "callout_name", "message_timestamp"})
    index.erase("default", "gone")  # other tests look for these words in all files of the server
    index.close()


def test_a_card_holds_what_a_database_cannot_take_nowhere() -> None:
    """PostgreSQL has no NUL in text; the card refuses it before any index sees it."""
    for field in ("summary", "phase_name", "callout_name", "generator_model", "message_timestamp", "session"):
        with pytest.raises(ValueError, match="pattern"):
            card(1, is_callout=True, **{field: "a\x00b"})
