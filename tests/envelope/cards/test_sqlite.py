"""The SQLite index: several processes, foreign and future files refused, no byte left of what was erased, quick."""

from __future__ import annotations

import random
import sqlite3
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.cards.index import VERSION, SqliteCards
from ctxsteward.schemas import StoreError, StoreLocked
from ctxsteward.schemas.errors import UnsupportedVersion

from .indexes import at, card

WRITER = """
import sys
from ctxsteward.envelope.cards.index import SqliteCards
sys.path.insert(0, sys.argv[2])
from indexes import at, card
index, me = SqliteCards(sys.argv[1]), sys.argv[3]
for batch in range(100):
    ordinals = range(10 * batch + 1, 10 * batch + 11)
    for session in ("shared", me):
        cards = [card(n, session, generated_at=at(n)) for n in ordinals]
        index.put(cards, [("default", session, ordinals[-1])])
        assert index.carded("default", me) <= 10 * batch + 10
print("done")
"""


def _env() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}


class Foreign(NamedTuple):
    id: str
    statements: tuple[str, ...]
    says: str
    error: type[StoreError] = StoreError


FOREIGN = [
    Foreign("another program's tables", ("CREATE TABLE t (x)",), "something else"),
    Foreign("another program's id", ("PRAGMA application_id = 5",), "something else"),
    Foreign(
        "a later major version",
        ("CREATE TABLE t (x)", "PRAGMA application_id = 0x63747863", f"PRAGMA user_version = {VERSION + 1}"),
        f"cards.sqlite has schema_version {VERSION + 1}; this program reads up to {VERSION}",
        UnsupportedVersion,
    ),
    Foreign("an older major version", ("CREATE TABLE t (x)", "PRAGMA application_id = 0x63747863"), "version 0"),
]


@pytest.mark.parametrize("case", FOREIGN, ids=[case.id for case in FOREIGN])
def test_a_file_of_another_program_or_version_is_refused_and_left_alone(case: Foreign, tmp_path: Path) -> None:
    path = tmp_path / "cards.sqlite"
    db = sqlite3.connect(path)
    for statement in case.statements:
        db.execute(statement)
    db.commit()
    db.close()
    before = path.read_bytes()

    with pytest.raises(case.error, match=case.says) as refused:
        SqliteCards(path)
    assert type(refused.value) is case.error
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["cards.sqlite"]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cards.sqlite"
    path.write_text("not a database, but long enough to be taken for one " * 40, encoding="utf-8")
    with pytest.raises(StoreError, match="not a database"):
        SqliteCards(path)
    with pytest.raises(StoreError, match="cannot be made"):
        SqliteCards(path / "below" / "cards.sqlite")
    with pytest.raises(StoreError):
        SqliteCards(tmp_path)


def test_a_journal_is_not_taken_for_an_index(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        store.session("s").append({"role": "user", "content": "hi"})
    (journal,) = tmp_path.glob("*.sqlite")
    with pytest.raises(StoreError, match="something else"):
        SqliteCards(journal)


def test_no_byte_of_an_erased_card_is_left(tmp_path: Path) -> None:
    """Cards of many sizes, rewritten and mixed, so that pages split and move: `secure_delete` alone leaves copies."""
    draw = random.Random(7)
    index = SqliteCards(tmp_path / "cards.sqlite")
    counts = [0] * 12
    for _ in range(1_200):
        place = draw.randrange(12)
        counts[place] += 1
        for ordinal in {counts[place], draw.randint(1, counts[place])}:
            text = f"SECRET{place:02d}x" + "w" * draw.randrange(280)
            index.put([card(ordinal, f"s{place}", summary=text, keywords=(text[:20].lower(),), generated_at=at(0))])
    erased = 0
    for place in range(0, 12, 2):
        wanted = None if place % 4 else range(1, counts[place] + 1)
        erased += index.erase("default", f"s{place}", wanted)
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert held.lower().count(f"SECRET{place:02d}x".lower().encode()) == 0
    assert erased == sum(counts[::2])
    assert sum(row.cards for row in index.sessions()) == sum(counts[1::2])


def _held(folder: Path, text: bytes) -> int:
    """How often a text stands in any file of the index."""
    return sum(path.read_bytes().count(text) for path in folder.iterdir())


def test_a_connection_that_reads_nothing_just_now_holds_no_byte_of_an_erased_card(tmp_path: Path) -> None:
    path = tmp_path / "cards.sqlite"
    index, other = SqliteCards(path), SqliteCards(path)
    index.put([card(n, summary=f"SECRET{n} " + "x" * 200) for n in range(1, 200)])
    assert len(other.of_session("default", "s")) == 199
    assert _held(tmp_path, b"SECRET") >= 199

    assert index.erase("default", "s") == 199
    assert _held(tmp_path, b"SECRET") == 0
    assert other.of_session("default", "s") == []
    index.close()
    other.close()


def test_an_erasure_that_a_reader_holds_up_says_so_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cards are gone for everybody but that reader; their bytes go when the erasure is repeated after it."""
    monkeypatch.setattr("ctxsteward.envelope.cards.index.BUSY_SECONDS", 0.2)
    path = tmp_path / "cards.sqlite"
    index = SqliteCards(path)
    index.put([card(n, summary=f"SECRET{n}") for n in range(1, 20)])
    index.put([card(1, "other")])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM cards").fetchall()

    for _ in range(2):
        with pytest.raises(StoreLocked, match="the cards are deleted"):
            index.erase("default", "s")
    later = SqliteCards(path)
    assert later.of_session("default", "s") == []
    assert later.put([card(1)]) == 0
    reader.close()
    assert later.erase("default", "unknown", [1]) == 0  # whoever erases next, whatever
    assert _held(tmp_path, b"SECRET") == 0
    assert len(later.of_session("default", "other")) == 1
    later.close()
    index.close()


OPENER = """
import sys, time
from ctxsteward.envelope.cards.index import SqliteCards
print("ready", flush=True)
for path in sys.stdin:
    SqliteCards(path.strip()).close()
    print("opened", flush=True)
"""
