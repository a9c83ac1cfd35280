"""`sqlite:PATH`: cards in one SQLite file; several processes may share it.

Write-ahead log, `synchronous = NORMAL`: a power cut may lose the newest commits, cards and marks together, and they are
made again. The file carries our application id and, as `user_version`, the major version of its tables: a file of
another program or of another version is refused before anything in it is touched.

Erasing: `secure_delete` overwrites deleted rows, but copies that moving pages left behind stay (measured: 1 to 4 texts
of 750 deleted). Scrubbing therefore rewrites the file (`VACUUM`) where rows were deleted, and empties the write-ahead
log: no byte of an erased card is left in the file, in its log or in its free pages. The step that deletes notes in the
file that this is due (`unscrubbed`), so a scrub that was cut off or held up is made up for by the next one.

A connection that is open but reads nothing hinders nothing. While a transaction that began before still reads, its
pages must stay: after `BUSY_SECONDS` erasing raises `StoreLocked`. The cards are deleted then, nobody else reads them
and none comes back; their bytes stay until the reader has ended and the erasure is repeated. What a file system, its
snapshots or a disk keep of blocks that were freed is theirs.

Raises `StoreError` (`StoreLocked` where another process does not let go for `BUSY_SECONDS`, `UnsupportedVersion` for
tables of a later version).
"""

from __future__ import annotations

import json
import sqlite3
import time
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from struct import unpack
from typing import Any

from ctxsteward.schemas import ContextCard, StoreError, StoreLocked, UnsupportedVersion
from ctxsteward.store import IN_MEMORY, SameFile, SqliteFile, close_to_others, connect, make_folders, one_transaction

from .port import EVERYTHING, CardedSession, CardProgress, EmbeddingSpace, newest, ordinals_of, space_of

VERSION = 1
"""Of the tables. Another major version is another number here."""
APPLICATION_ID = 0x63747863
"""``ctxc``."""
BUSY_SECONDS = 30.0
_PRAGMAS = ("synchronous = NORMAL", "secure_delete = ON")

_SCHEMA = """
CREATE TABLE cards (
  tenant TEXT NOT NULL, session TEXT NOT NULL, ordinal INTEGER NOT NULL, address TEXT NOT NULL,
  summary TEXT NOT NULL, keywords TEXT NOT NULL, embedding BLOB, embedding_model TEXT,
  estimated_tokens INTEGER NOT NULL, role TEXT NOT NULL, phase_name TEXT, turn_number INTEGER,
  is_anchor INTEGER NOT NULL, is_callout INTEGER NOT NULL, callout_name TEXT,
  generated_at TEXT NOT NULL, generator_model TEXT NOT NULL, message_timestamp TEXT,
  PRIMARY KEY (tenant, session, ordinal)
) WITHOUT ROWID;
CREATE TABLE marks (
  tenant TEXT NOT NULL, session TEXT NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
CREATE TABLE erased (
  tenant TEXT NOT NULL, session TEXT NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (tenant, session, ordinal)
) WITHOUT ROWID;
CREATE TABLE space (model TEXT NOT NULL, dimensions INTEGER NOT NULL);
CREATE TABLE unscrubbed (id INTEGER PRIMARY KEY AUTOINCREMENT, cards INTEGER NOT NULL);
"""

_FIELDS = (
    "address",
    "summary",
    "keywords",
    "embedding",
    "embedding_model",
    "estimated_tokens",
    "role",
    "phase_name",
    "turn_number",
    "is_anchor",
    "is_callout",
    "callout_name",
    "generated_at",
    "generator_model",
    "message_timestamp",
)
_PUT = f"""
INSERT INTO cards (tenant, session, ordinal, {", ".join(_FIELDS)})
SELECT {", ".join("?" for _ in range(len(_FIELDS) + 3))}
WHERE NOT EXISTS (SELECT 1 FROM erased WHERE tenant = ?1 AND session = ?2 AND ordinal IN (?3, {EVERYTHING}))
ON CONFLICT (tenant, session, ordinal) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FIELDS)}
WHERE excluded.generated_at >= cards.generated_at
"""
_PLAIN = (
    "address",
    "embedding_model",
    "estimated_tokens",
    "role",
    "phase_name",
    "turn_number",
    "callout_name",
    "generator_model",
    "message_timestamp",
)
"""Fields that a row holds as a card does."""
_GET = (
    "SELECT '§' || ordinal, summary, keywords, is_anchor, is_callout, generated_at, embedding, "
    f"{', '.join(_PLAIN)} FROM cards"
)
_OWNER = """
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
  (SELECT count(*) FROM sqlite_master)
"""
"""In one step: another process may be making the tables."""
_SESSIONS = """
SELECT tenant, session,
  (SELECT count(*) FROM cards c WHERE c.tenant = k.tenant AND c.session = k.session),
  (SELECT ordinal FROM marks m WHERE m.tenant = k.tenant AND m.session = k.session),
  (SELECT group_concat(ordinal) FROM erased e WHERE e.tenant = k.tenant AND e.session = k.session)
FROM (SELECT tenant, session FROM cards UNION SELECT tenant, session FROM marks
      UNION SELECT tenant, session FROM erased) k
WHERE ?1 IS NULL OR tenant = ?1 ORDER BY tenant, session
"""


class SqliteCards:
    """A `CardIndex` in a file; made if missing, with its folder."""

    _same: SameFile | None = None
    """None: it is being prepared, or in memory."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._file = SqliteFile(partial(connect, self._path, BUSY_SECONDS, _PRAGMAS))
        self._lock = self._file.lock
        """Held while `_db` is used."""
        with self._lock, self._named():
            try:
                make_folders(self._path.parent)
            except OSError as error:
                raise StoreError(f"{self._path}: its folder cannot be made: {error}; name another place") from error
            try:
                self._file.make()
                self._prepare()
            except BaseException:
                self._file.close()
                raise
        close_to_others(self._path)

    @property
    def _db(self) -> sqlite3.Connection:
        return self._file.db

    def _prepare(self) -> None:
        """Switching a new file to a write-ahead log does not wait for another process that does the same: it fails at
        once, so it is tried again."""
        self._check_owner()
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL").fetchall()
                break
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(0.005)
        with self._writing():
            if not self._check_owner():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")
        if self._path != IN_MEMORY:
            self._same = SameFile(self._path, self._db)

    def _check_owner(self) -> bool:
        """Whether the tables are there; raises `StoreError` for a file that is not ours or not of our version."""
        application, version, tables = self._db.execute(_OWNER).fetchone()
        if not tables and not application:
            return False
        if application != APPLICATION_ID:
            raise StoreError(f"{self._path} is a database of something else, not a card index; name another file")
        if version > VERSION:
            raise UnsupportedVersion(f"card index {self._path}", version, VERSION)
        if version != VERSION:
            raise StoreError(
                f"{self._path}: a card index of version {version}; this program knows version {VERSION} only: "
                "use the program that made it, or rebuild the cards into a new file"
            )
        return True

    # -- writing ------------------------------------------------------------------------------------------------

    def put(self, cards: Sequence[ContextCard], done: Sequence[CardProgress] = ()) -> int:
        with self._writing():
            held = self._space()
            space = space_of(cards, held)
            if space is not None and held is None:
                self._db.execute("INSERT INTO space VALUES (?, ?)", space)
            rows = [_row(card) for card in newest(cards)]
            self._db.executemany(_PUT, rows)
            self._db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", done)
            standing = "SELECT count(*) FROM cards WHERE tenant = ? AND session = ? AND ordinal = ?"
            return sum(self._db.execute(standing, row[:3]).fetchone()[0] for row in rows)

    def erase(
        self,
        tenant: str,
        session: str,
        ordinals: Collection[int] | None = None,
        *,
        scrub: bool = True,
        burn: bool = True,
    ) -> int:
        where, key = "WHERE tenant = ? AND session = ?", (tenant, session)
        with self._writing():
            if ordinals is None:
                count = self._db.execute(f"DELETE FROM cards {where}", key).rowcount
            else:
                rows = [(*key, ordinal) for ordinal in set(ordinals)]
                count = max(0, self._db.executemany(f"DELETE FROM cards {where} AND ordinal = ?", rows).rowcount)
            if count:
                self._db.execute("INSERT INTO unscrubbed (cards) VALUES (?)", (count,))
            if burn and ordinals is None:
                self._db.execute(f"DELETE FROM erased {where}", key)
                self._db.execute("INSERT INTO erased VALUES (?, ?, ?)", (*key, EVERYTHING))
            elif burn:
                self._db.executemany(
                    "INSERT OR IGNORE INTO erased SELECT ?1, ?2, ?3 WHERE NOT EXISTS "
                    f"(SELECT 1 FROM erased WHERE tenant = ?1 AND session = ?2 AND ordinal = {EVERYTHING})",
                    rows,
                )
        if scrub:
            self._scrub()
        return count

    def _scrub(self) -> None:
        """Make up for all deletions noted so far; those that others note meanwhile stay noted."""
        with self._lock, self._named():
            (last,) = self._db.execute("SELECT max(id) FROM unscrubbed").fetchone()
            if last is None:
                return
            self._db.execute("VACUUM")
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                self._db.execute("DELETE FROM unscrubbed WHERE id <= ?", (last,))
        if busy:
            raise StoreLocked(
                f"{self._path}: the cards are deleted, but a reader keeps the old write-ahead log; erase again later"
            )

    # -- reading ------------------------------------------------------------------------------------------------

    def of_session(
        self, tenant: str, session: str, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        where, values = "tenant = ? AND session = ?", [tenant, session]
        if phase is not None:
            where, values = f"{where} AND phase_name = ?", [*values, phase]
        if refs is not None:
            where, values = (
                f"{where} AND ordinal IN (SELECT value FROM json_each(?))",
                [*values, json.dumps(ordinals_of(refs))],
            )
        return _cards(tenant, session, self._all(f"{_GET} WHERE {where} ORDER BY ordinal", values))

    def carded(self, tenant: str, session: str) -> int:
        rows = self._all("SELECT ordinal FROM marks WHERE tenant = ? AND session = ?", (tenant, session))
        return int(rows[0][0]) if rows else 0

    def sessions(self, tenant: str | None = None) -> list[CardedSession]:
        return [
            CardedSession(
                owner, session, cards, mark or 0, tuple(sorted(map(int, erased.split(",")))) if erased else ()
            )
            for owner, session, cards, mark, erased in self._all(_SESSIONS, (tenant,))
        ]

    def close(self) -> None:
        self._file.close()

    # -- inside -------------------------------------------------------------------------------------------------

    def _space(self) -> EmbeddingSpace | None:
        row = self._db.execute("SELECT model, dimensions FROM space").fetchone()
        return None if row is None else EmbeddingSpace(*row)

    def _all(self, query: str, values: Sequence[object]) -> list[Any]:
        with self._lock, self._named():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it, or nothing."""
        with self._lock, self._named(), one_transaction(self._db):
            yield
            if self._same is not None:
                self._same.check(self._db)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _is_busy(error):
                raise StoreLocked(
                    f"{self._path}: another process has held the cards for {BUSY_SECONDS:.0f} s; try again"
                ) from error
            raise StoreError(f"{self._path}: {error}; name a file you may write, or rebuild the cards") from error


class MemoryCards(SqliteCards):
    """``memory:``: what the others promise but for durability; also the double for tests."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)

    def close(self) -> None:
        """Nothing is released: it may be read as long as somebody holds it."""


def _is_busy(error: sqlite3.Error) -> bool:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _row(card: ContextCard) -> tuple[object, ...]:
    return (
        card.tenant,
        card.session,
        card.ordinal,
        card.address,
        card.summary,
        json.dumps(card.keywords, ensure_ascii=False),
        None if card.embedding is None else array("f", card.embedding).tobytes(),
        card.embedding_model,
        card.estimated_tokens,
        card.role,
        card.phase_name,
        card.turn_number,
        card.is_anchor,
        card.is_callout,
        card.callout_name,
        card.generated_at.isoformat(timespec="microseconds"),
        card.generator_model,
        card.message_timestamp,
    )


def _cards(tenant: str, session: str, rows: Sequence[Sequence[Any]]) -> list[ContextCard]:
    """Stored rows are what `put` was given."""
    words = json.loads(f"[{','.join([row[2] for row in rows])}]")
    cards = []
    for (ref, summary, _, anchor, callout, generated_at, embedding, *rest), keywords in zip(rows, words, strict=True):
        fields = dict(zip(_PLAIN, rest, strict=True))
        fields["tenant"], fields["session"], fields["ref"], fields["summary"] = tenant, session, ref, summary
        fields["keywords"] = tuple(keywords)
        fields["is_anchor"], fields["is_callout"] = anchor == 1, callout == 1
        fields["generated_at"] = datetime.fromisoformat(generated_at)
        fields["embedding"] = None if embedding is None else unpack(f"{len(embedding) // 4}f", embedding)
        cards.append(ContextCard.stored(fields))
    return cards
