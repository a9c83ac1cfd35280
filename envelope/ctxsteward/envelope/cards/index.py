"""The index of context cards: one table of cards, with marks for carded sessions and for erasures.

    open_cards("sqlite:PATH")                made if missing; several processes may share it
    open_cards("postgresql://USER@HOST/DB")  tables `context_cards…` in the schema that the URI names
    open_cards("memory:")

An index is derived data: losing it costs the time to make it again. A mark says up to which ordinal a session is
carded. It is written in the transaction that stores the cards, so a crash repeats work and never skips any. An erased
message gets no card again, also not from a worker that read its original just before.

Erasing leaves no byte of a card in the table's files. SQLite's `secure_delete` misses copies that moving pages left
behind, so the file is rewritten (`VACUUM`) and the write-ahead log emptied. PostgreSQL's `VACUUM FULL` copies rows that
an older transaction may still see, so the table is filled anew under an exclusive lock; no statistics are kept on the
text of cards. The deleting transaction notes that a rewrite is due. If a reader blocks it, the erasure raises
`StoreLocked`, and the next erasure does the rewrite. The operator must bound the server's `pg_wal`, archives, replicas
and log, and snapshots of a disk.

Raises `StoreError` (`StoreLocked`, `UnsupportedVersion`) and `InputError`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.schemas import InputError, Ref, StoreError, StoreLocked
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.schemas.errors import UnsupportedVersion, shown_uri
from ctxsteward.schemas.publish import validate
from ctxsteward.store.create_once import make_folders
from ctxsteward.store.sqlite_file import IN_MEMORY, SameFile, SqliteFile, close_to_others, connect, one_transaction

EVERYTHING = 0
"""Among erased ordinals, it means the whole session."""
VERSION = 1
"""Version of the tables, in both databases."""
BUSY_SECONDS = 30.0
APPLICATION_ID = 0x63747863
"""``ctxc``: marks the file as a card index, and is the PostgreSQL lock under which tables are made."""

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
_OF_SESSION = "WHERE tenant = ? AND session = ?"
_PUT = f"""
INSERT INTO context_cards (tenant, session, ordinal, {", ".join(_FIELDS)})
VALUES (?, ?, ?, {", ".join("?" for _ in _FIELDS)})
ON CONFLICT (tenant, session, ordinal) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FIELDS)}
WHERE excluded.generated_at >= context_cards.generated_at
"""
_MARK = """
INSERT INTO context_cards_marks VALUES (?, ?, ?)
ON CONFLICT (tenant, session) DO UPDATE SET ordinal = excluded.ordinal
"""
_SQLITE_TABLES = """
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
CREATE TABLE unscrubbed (id INTEGER PRIMARY KEY AUTOINCREMENT, cards INTEGER NOT NULL);
"""
_POSTGRES_TABLES = """
CREATE TABLE context_cards (
  tenant text NOT NULL, session text NOT NULL, ordinal bigint NOT NULL, address text NOT NULL, summary text NOT NULL,
  keywords text[] NOT NULL, embedding real[], embedding_model text, estimated_tokens bigint NOT NULL,
  role text NOT NULL, phase_name text, turn_number bigint, is_anchor boolean NOT NULL, is_callout boolean NOT NULL,
  callout_name text, generated_at timestamptz NOT NULL, generator_model text NOT NULL, message_timestamp text,
  PRIMARY KEY (tenant, session, ordinal)
);
CREATE TABLE context_cards_marks (
  tenant text NOT NULL, session text NOT NULL, ordinal bigint NOT NULL, PRIMARY KEY (tenant, session)
);
CREATE TABLE context_cards_erased (
  tenant text NOT NULL, session text NOT NULL, ordinal bigint NOT NULL, PRIMARY KEY (tenant, session, ordinal)
);
CREATE TABLE context_cards_unscrubbed (cards bigint NOT NULL);
CREATE TABLE context_cards_about (version bigint NOT NULL);
ALTER TABLE context_cards ALTER COLUMN summary SET STATISTICS 0, ALTER COLUMN keywords SET STATISTICS 0,
  ALTER COLUMN embedding SET STATISTICS 0, ALTER COLUMN phase_name SET STATISTICS 0,
  ALTER COLUMN callout_name SET STATISTICS 0, ALTER COLUMN message_timestamp SET STATISTICS 0;
"""
_POSTGRES_REWRITE = (
    "LOCK TABLE context_cards IN ACCESS EXCLUSIVE MODE",
    "CREATE TEMPORARY TABLE context_cards_kept ON COMMIT DROP AS SELECT * FROM context_cards",
    "TRUNCATE context_cards",
    "INSERT INTO context_cards SELECT * FROM context_cards_kept ORDER BY tenant, session, ordinal",
    "DELETE FROM context_cards_unscrubbed",
)


class CardedSession(NamedTuple):
    """Cards, mark and erasures of a session in an index."""

    tenant: str
    session: str
    cards: int
    carded: int
    """Highest ordinal that is done."""
    erased: tuple[int, ...]
    """Ordinals that were erased; `(EVERYTHING,)` for the whole session."""


class CardIndex(ABC):
    """Cards by tenant, session and ordinal; thread-safe.

    The SQL is written once, for PostgreSQL's table names with ``?`` for a value. A subclass translates it, converts
    rows to cards and back, and rewrites its files.
    """

    rewrites_for_marks: bool
    """Whether a new erasure mark alone requires a rewrite, because failed writers may have left bytes of its cards."""

    # -- writing ------------------------------------------------------------------------------------------------

    def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
        """Write all cards and marks, or none; return the number of these messages that have a card now.

        `done` has (tenant, session, ordinal): every message up to the ordinal has its card, or gets none. If a mark
        goes back, cards are made again. Of two cards of one message the one generated later remains, of equal times
        the one written later. A card of an erased message is left out.
        """
        newest: dict[tuple[str, str, int], ContextCard] = {}
        for card in cards:
            where = f"the card of {card.ref} in session {card.session!r}"
            validate("context_card", card.model_dump(mode="json", warnings=False), where)
            key = (card.tenant, card.session, card.ordinal)
            if key not in newest or card.generated_at >= newest[key].generated_at:
                newest[key] = card
        with self._writing() as db:
            erased: set[tuple[str, str, int]] = set()
            for session in sorted({key[:2] for key in newest}):  # always in one order, which prevents deadlocks
                self._lock(db, session, is_shared=True)
                erased |= {(*session, ordinal) for ordinal in self._erased(db, session)}
            rows = [
                (*key, *self._encoded({name: getattr(card, name) for name in _FIELDS}).values())
                for key, card in sorted(newest.items(), key=lambda item: item[0])
                if not erased & {key, (*key[:2], EVERYTHING)}
            ]
            for query, values in ((_PUT, rows), (_MARK, sorted(done))):
                if values:
                    db.executemany(self._sql(query), values)
        return len(rows)

    def erase(
        self,
        tenant: str,
        session: str,
        ordinals: Collection[int] | None = None,
        *,
        scrub: bool = True,
        burn: bool = True,
    ) -> int:
        """Delete the cards of these messages (None: all of the session); return how many there were.

        With `burn` their messages get no card again. With `scrub` no byte of any deleted card is left in the index's
        files, those of earlier erasures included; among many erasures only the last needs it.
        """
        key = (tenant, session)
        with self._writing() as db:
            self._lock(db, key, is_shared=False)
            among, values = ("", ()) if ordinals is None else self._among(sorted(set(ordinals)))
            count: int = max(
                0, db.execute(self._sql(f"DELETE FROM context_cards {_OF_SESSION}{among}"), (*key, *values)).rowcount
            )
            known = self._erased(db, key)
            new = {EVERYTHING} if ordinals is None else set(ordinals)
            if not burn or EVERYTHING in known:
                new = set()
            if EVERYTHING in new:
                db.execute(self._sql(f"DELETE FROM context_cards_erased {_OF_SESSION}"), key)
                known = set()
            if new - known:
                marks = [(*key, ordinal) for ordinal in sorted(new - known)]
                db.executemany(self._sql("INSERT INTO context_cards_erased VALUES (?, ?, ?)"), marks)
            if count or (self.rewrites_for_marks and new - known):
                db.execute(self._sql("INSERT INTO context_cards_unscrubbed (cards) VALUES (?)"), (count,))
        if scrub:
            self._scrub()
        return count

    def _erased(self, db: Any, key: tuple[str, str]) -> set[int]:
        rows = db.execute(self._sql(f"SELECT ordinal FROM context_cards_erased {_OF_SESSION}"), key).fetchall()
        return {ordinal for (ordinal,) in rows}

    # -- reading ------------------------------------------------------------------------------------------------

    def of_session(
        self, tenant: str, session: str, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """Return a session's own cards, in ordinal order; `refs` (``§12``) limits them."""
        where, values = _OF_SESSION, [tenant, session]
        if phase is not None:
            where, values = f"{where} AND phase_name = ?", [*values, phase]
        among, ordinals = ("", ()) if refs is None else self._among(ordinals_of(refs))
        if any("\x00" in text for text in values):  # no card contains NUL, and PostgreSQL refuses to compare it
            return []
        query = f"SELECT ordinal, {', '.join(_FIELDS)} FROM context_cards {where}{among} ORDER BY ordinal"
        cards = []
        for ordinal, *row in self._read(query, (*values, *ordinals)):
            fields = self._decoded(dict(zip(_FIELDS, row, strict=True)))
            cards.append(ContextCard.stored({"tenant": tenant, "session": session, "ref": f"§{ordinal}", **fields}))
        return cards

    def carded(self, tenant: str, session: str) -> int:
        """Return the highest ordinal that is marked as done, or 0."""
        rows = self._read(f"SELECT ordinal FROM context_cards_marks {_OF_SESSION}", (tenant, session))
        return int(rows[0][0]) if rows else 0

    def sessions(self, tenant: str | None = None) -> list[CardedSession]:
        """Return every session with cards, a mark or an erasure, of one tenant or of all, in order."""
        where, values = ("", ()) if tenant is None else ("WHERE tenant = ?", (tenant,) * 3)
        rows = self._read(
            f"SELECT 0, tenant, session, count(*) FROM context_cards {where} GROUP BY tenant, session "
            f"UNION ALL SELECT 1, tenant, session, ordinal FROM context_cards_marks {where} "
            f"UNION ALL SELECT 2, tenant, session, ordinal FROM context_cards_erased {where}",
            values,
        )
        held: dict[tuple[str, str], tuple[list[int], list[int], list[int]]] = {}
        for kind, owner, session, number in rows:
            held.setdefault((owner, session), ([], [], []))[kind].append(number)
        return [
            CardedSession(*key, sum(cards), sum(mark), tuple(sorted(erased)))
            for key, (cards, mark, erased) in sorted(held.items())
        ]

    # -- parts specific to a database ---------------------------------------------------------------------------

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _sql(self, query: str) -> str: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Any]:
        """Open one transaction, as a cursor."""

    @abstractmethod
    def _read(self, query: str, values: Sequence[Any]) -> list[Any]: ...

    @abstractmethod
    def _lock(self, db: Any, key: tuple[str, str], *, is_shared: bool) -> None:
        """Lock the session, so that its erasure waits for its writers."""

    @abstractmethod
    def _among(self, ordinals: list[int]) -> tuple[str, tuple[Any, ...]]: ...

    @abstractmethod
    def _scrub(self) -> None: ...

    @abstractmethod
    def _encoded(self, fields: dict[str, Any]) -> dict[str, Any]: ...

    @abstractmethod
    def _decoded(self, fields: dict[str, Any]) -> dict[str, Any]: ...


class SqliteCards(CardIndex):
    """Cards in a file, which is made if missing, with its folder.

    A power cut may lose the newest commits, cards and marks together; these cards are made again.
    """

    rewrites_for_marks = False
    _same: SameFile | None = None
    """None until the file is prepared, and in memory."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        pragmas = ("synchronous = NORMAL", "secure_delete = ON")
        self._file = SqliteFile(partial(connect, self._path, BUSY_SECONDS, pragmas))
        self._lock_of_file = self._file.lock
        with self._lock_of_file, self._named():
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
        self._check_owner()
        until = time.monotonic() + BUSY_SECONDS
        # Switching to a write-ahead log fails at once, without waiting, if another process does the same.
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL").fetchall()
                break
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(0.005)
        with self._writing() as db:
            if not self._check_owner():
                for statement in filter(str.strip, _SQLITE_TABLES.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
        if self._path != IN_MEMORY:
            self._same = SameFile(self._path, self._db)

    def _check_owner(self) -> bool:
        """Return whether the tables exist; raise `StoreError` for another program's file or another version."""
        # in one statement, because another process may be making the tables
        application, version, tables = self._db.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
            " (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if not tables and not application:
            return False
        if application != APPLICATION_ID:
            raise StoreError(f"{self._path} is a database of something else, not a card index; name another file")
        _check_version(str(self._path), version, "file")
        return True

    def close(self) -> None:
        self._file.close()

    def _sql(self, query: str) -> str:
        return query.replace("context_cards_", "").replace("context_cards", "cards")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Cursor]:
        with self._lock_of_file, self._named(), one_transaction(self._db):
            yield self._db.cursor()
            if self._same is not None:
                self._same.check(self._db)

    def _read(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._lock_of_file, self._named():
            return self._db.execute(self._sql(query), values).fetchall()

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

    def _lock(self, db: Any, key: tuple[str, str], *, is_shared: bool) -> None:
        """Do nothing, because a transaction that writes has the file to itself."""

    def _among(self, ordinals: list[int]) -> tuple[str, tuple[Any, ...]]:
        return " AND ordinal IN (SELECT value FROM json_each(?))", (json.dumps(ordinals),)

    def _scrub(self) -> None:
        """Rewrite the file for all deletions noted so far; those noted meanwhile stay noted."""
        with self._lock_of_file, self._named():
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

    def _encoded(self, fields: dict[str, Any]) -> dict[str, Any]:
        vector = fields["embedding"]
        return fields | {
            "keywords": json.dumps(fields["keywords"], ensure_ascii=False),
            "embedding": None if vector is None else array("f", vector).tobytes(),
            "generated_at": fields["generated_at"].isoformat(timespec="microseconds"),
        }

    def _decoded(self, fields: dict[str, Any]) -> dict[str, Any]:
        vector = fields["embedding"]
        fields["keywords"] = tuple(json.loads(fields["keywords"]))
        fields["embedding"] = None if vector is None else tuple(array("f", vector))
        fields["is_anchor"], fields["is_callout"] = fields["is_anchor"] == 1, fields["is_callout"] == 1
        fields["generated_at"] = datetime.fromisoformat(fields["generated_at"])
        return fields


class MemoryCards(SqliteCards):
    """Cards in memory; also the double for tests."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)

    def close(self) -> None:
        """Release nothing, because it may be read as long as a reference to it exists."""


class PostgresCards(CardIndex):
    """Cards in a PostgreSQL database, which any number of processes and machines may share.

    It needs the rights of the tables' owner, and the right to make temporary tables. A write is tried once: a lost
    connection raises `StoreError`, and the next call connects again.
    """

    rewrites_for_marks = True

    def __init__(self, dsn: str) -> None:
        from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri

        self._database = PostgresDatabase(PostgresUri.parse(dsn))
        try:
            with self._writing() as db:
                db.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION_ID,))
                self._database.make_schema(db.connection)
                if not self._check_owner(db):
                    db.execute(_POSTGRES_TABLES)
                    db.execute("INSERT INTO context_cards_about VALUES (%s)", (VERSION,))
        except BaseException:
            self.close()
            raise

    def _check_owner(self, db: Any) -> bool:
        """Return whether the tables exist; raise `StoreError` for tables of another version."""
        place = self._database.place
        present = db.execute("SELECT to_regclass('context_cards'), to_regclass('context_cards_about')").fetchone()
        if present == (None, None):
            return False
        if None in present:
            raise StoreError(f"{place} has a table `context_cards` of something else; name another schema")
        row = db.execute("SELECT version FROM context_cards_about").fetchone()
        _check_version(place, None if row is None else row[0], "schema")
        return True

    def close(self) -> None:
        self._database.close()

    def _sql(self, query: str) -> str:
        return query.replace("?", "%s")

    @contextmanager
    def _writing(self, *, unbounded: bool = False) -> Iterator[Any]:
        database = self._database
        with database.named(), database.connection() as db, database.begun(db, unbounded=unbounded):
            yield db.cursor()

    def _read(self, query: str, values: Sequence[Any]) -> list[Any]:
        return self._database.execute(self._sql(query), values)

    def _lock(self, db: Any, key: tuple[str, str], *, is_shared: bool) -> None:
        shared = "_shared" if is_shared else ""
        db.execute(f"SELECT pg_advisory_xact_lock{shared}(hashtextextended(%s || chr(1) || %s, 0))", key)

    def _among(self, ordinals: list[int]) -> tuple[str, tuple[Any, ...]]:
        return " AND ordinal = ANY(?)", (ordinals,)

    def _scrub(self) -> None:
        if self._read("SELECT 1 FROM context_cards_unscrubbed LIMIT 1", ()):
            with self._writing(unbounded=True) as db:
                for statement in _POSTGRES_REWRITE:
                    db.execute(statement)

    def _encoded(self, fields: dict[str, Any]) -> dict[str, Any]:
        vector = fields["embedding"]
        return fields | {"keywords": list(fields["keywords"]), "embedding": None if vector is None else list(vector)}

    def _decoded(self, fields: dict[str, Any]) -> dict[str, Any]:
        vector = fields["embedding"]
        fields["keywords"] = tuple(fields["keywords"])
        fields["embedding"] = None if vector is None else tuple(array("f", vector))
        fields["generated_at"] = fields["generated_at"].astimezone(UTC)
        return fields


def open_cards(uri: str, *, must_exist: bool = False) -> CardIndex:
    """Open an index, making it if missing unless it `must_exist`. Raises `InputError`, `StoreError`."""
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest:
        return MemoryCards()
    if scheme == "sqlite" and rest:
        if must_exist and not Path(rest).is_file():
            raise InputError(f"{shown_uri(uri)}: no such file; `ctxsteward cards rebuild` makes it, or name another")
        return SqliteCards(rest)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        try:
            return PostgresCards(uri)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("psycopg"):
                raise
            raise InputError("cards in PostgreSQL need psycopg: pip install 'ctxsteward[postgres]'") from error
    raise InputError(
        f"cards {shown_uri(uri)!r} name no index; write sqlite:PATH, postgresql://USER@HOST/DATABASE or memory:"
    )


def ordinals_of(refs: Collection[str]) -> list[int]:
    """Return the ordinals of references; raise `InvalidReference`."""
    return sorted({Ref.parse(ref).ordinal for ref in refs})


def _check_version(place: str, version: int | None, kind: str) -> None:
    if version is not None and version > VERSION:
        raise UnsupportedVersion(f"card index {place}", version, VERSION)
    if version != VERSION:
        found = "unknown version" if version is None else f"version {version}"
        raise StoreError(
            f"{place}: a card index of {found}; this program knows version {VERSION} only: use the program that made "
            f"it, or rebuild the cards into a new {kind}"
        )


def _is_busy(error: sqlite3.Error) -> bool:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
