"""The PostgreSQL index: foreign and future tables refused, a lost connection made anew, no row left after erasing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope.cards import CardIndex, open_cards
from ctxsteward.schemas import InputError, StoreError

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


FOREIGN = [
    Foreign("a table of the same name", "CREATE TABLE context_cards (x int)", "of something else"),
    Foreign("tables without a version", "DELETE FROM context_cards_about", "unknown version"),
    Foreign("a later version", "UPDATE context_cards_about SET version = 2", "version 2; this program knows version 1"),
]


@pytest.mark.parametrize("case", FOREIGN, ids=[case.id for case in FOREIGN])
def test_tables_of_another_program_or_version_are_refused(case: Foreign, postgres_dsn: str) -> None:
    if not case.statement.startswith("CREATE"):
        open_cards(postgres_dsn).close()
    execute(postgres_dsn, case.statement)
    with pytest.raises(StoreError, match=case.says):
        open_cards(postgres_dsn)


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


def test_no_data_file_holds_an_erased_card(postgres: Path, postgres_dsn: str) -> None:
    """The write-ahead log (`pg_wal`) is the server's to recycle."""
    index = open_cards(postgres_dsn)
    index.put([card(n, "gone", summary=f"SECRET{n}" + "x" * 200) for n in range(1, 300)])
    index.put([card(n, "stays", summary=f"KEPT{n}" + "x" * 200) for n in range(1, 300)])
    assert index.erase("default", "gone") == 299
    execute(postgres_dsn, "CHECKPOINT")

    files = [path for path in (postgres / "data" / "base").rglob("*") if path.is_file()]
    held = b"".join(path.read_bytes() for path in files)
    assert held.count(b"KEPT") >= 299
    assert held.count(b"SECRET") == 0
    assert len(index.of_session("default", "stays")) == 299
    index.close()


def test_a_card_holds_what_a_database_cannot_take_nowhere() -> None:
    """PostgreSQL has no NUL in text; the card refuses it before any index sees it."""
    for field in ("summary", "phase_name", "callout_name", "generator_model", "message_timestamp", "session"):
        with pytest.raises(ValueError, match="pattern"):
            card(1, is_callout=True, **{field: "a\x00b"})
