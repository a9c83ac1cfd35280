"""The ledger's file and its rows: SQLite with write-ahead log and `secure_delete`, all derived from artifacts.

The file holds observations, the claim of each, and the use of records in finished batches. Components, drafts and
standings are computed whenever they are needed (`reconciliation`). Claims and observations are stored as JSON without
the fields that are columns of their row.

SQLite overwrites deleted rows; `scrub` removes the copies that moved pages leave behind. Opening the file of an older
version drops derived tables, which are filled again (`left`). A file of another program or of a newer version is
refused and not changed.

Raises `StoreError` (`StoreLocked` if another process holds the file for `BUSY_SECONDS`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ctxsteward.schemas import StoreError, StoreLocked
from ctxsteward.store.create_once import make_folders
from ctxsteward.store.sqlite_file import SameFile, SqliteFile, close_to_others, connect, one_transaction

from ..artifacts.artifact import EvidenceSpan, observation_fields, observation_of
from ..reconcile.claims import Claim, IndexedObservation, ObservationBrief
from ..reconcile.features import ClaimFeatures

VERSION = 14
"""Version of the tables."""
APPLICATION_ID = 0x63747872
"""``ctxr``."""
BUSY_SECONDS = 30.0
_PRAGMAS = ("synchronous = NORMAL", "secure_delete = ON", "cache_size = -65536", "wal_autocheckpoint = 8000")
_MAX_VARIABLES = 500

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE artifacts (
  address TEXT PRIMARY KEY, source TEXT NOT NULL, session TEXT NOT NULL, transcript TEXT NOT NULL, rank TEXT NOT NULL,
  live INTEGER NOT NULL, principals TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX artifacts_by_session ON artifacts (session, source);
CREATE TABLE seen (
  id TEXT PRIMARY KEY, seconds REAL NOT NULL, source TEXT NOT NULL, session TEXT NOT NULL, ref TEXT NOT NULL,
  start INTEGER NOT NULL, stop INTEGER NOT NULL, trust TEXT NOT NULL, principal TEXT, voice TEXT NOT NULL,
  kind TEXT NOT NULL, strength TEXT NOT NULL, extractor TEXT NOT NULL, text TEXT NOT NULL, score REAL NOT NULL, ts TEXT,
  sensitivity TEXT NOT NULL, is_single INTEGER NOT NULL,
  is_confirmed INTEGER NOT NULL, is_denied INTEGER NOT NULL, run TEXT NOT NULL, shown TEXT NOT NULL,
  artifact BLOB NOT NULL, claim TEXT NOT NULL, says TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX seen_by_artifact ON seen (artifact);
CREATE INDEX seen_by_claim ON seen (claim, id);
CREATE TABLE batches (address TEXT PRIMARY KEY, uses TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE erased (session TEXT NOT NULL, principal TEXT NOT NULL, PRIMARY KEY (session, principal)) WITHOUT ROWID;
"""
_DERIVED = ("artifacts", "seen")
_STATEMENTS = tuple(filter(None, map(str.strip, _SCHEMA.split(";"))))
_NAME = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) (\w+)")
_SCRUBBED = "INSERT INTO about VALUES ('scrubs', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"


class LedgerDatabase:
    """The ledger's file, safe with threads of one process; processes take turns."""

    _same: SameFile | None = None
    """Detector of a replaced file; None while the file is prepared, and in memory."""

    def __init__(self, path: Path, about: str) -> None:
        """Open or create the file; `about` names tenant and agent, and a file about others is refused."""
        self.path = path
        self.left: tuple[str, ...] = ()
        """Addresses of the artifacts in the file of an older version, which must be absorbed again."""
        self._file = SqliteFile(partial(connect, path, BUSY_SECONDS, _PRAGMAS))
        self._lock = self._file.lock
        """Held while `_db` is used."""
        self._depth = 0
        with self._lock, self._named():
            try:
                make_folders(path.parent)
            except OSError as error:
                raise StoreError(f"{path}: cannot make its folder: {error}; name another place") from error
            try:
                self._file.make()
                self._prepare(about)
            except BaseException:
                self._file.close()
                raise
        close_to_others(path)

    @property
    def _db(self) -> sqlite3.Connection:
        return self._file.db

    def _prepare(self, about: str) -> None:
        application, version, tables = (
            self._db.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if (tables or application) and application != APPLICATION_ID:
            raise StoreError(f"{self.path} is another program's database, not a ledger; name another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path}: a ledger of version {version}; update ctxsteward, or delete the file (it is made again)"
            )
        self._db.execute("PRAGMA journal_mode = WAL").fetchall()
        with self.writing():
            if not self.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
                self.run(f"PRAGMA application_id = {APPLICATION_ID}")
                self._create()
                self.run("INSERT INTO about VALUES ('about', ?)", about)
            noted = (self.noted("about") or "").partition(", sketches ")[0]  # a suffix of earlier versions
            if noted != about:
                raise StoreError(
                    f"{self.path}: a ledger of {noted}, not of {about}; name another file, or delete this one"
                )
            if self.rows("PRAGMA user_version")[0][0] < VERSION:
                self._recreate()
        if self.path.is_file():  # false for a ledger in memory
            self._same = SameFile(self.path, self._db)

    def _create(self) -> None:
        """Create missing tables."""
        names = {row[0] for row in self.rows("SELECT name FROM sqlite_master")}
        for statement in _STATEMENTS:
            if _NAME.search(statement)[1] not in names:  # type: ignore[index]
                self.run(statement)
        self.run(f"PRAGMA user_version = {VERSION}")

    def _recreate(self) -> None:
        """Drop the derived tables of an older version, and tables whose columns changed; keep the others."""
        self.left = tuple(row[0] for row in self.rows("SELECT address FROM artifacts ORDER BY address"))
        for name, statement in self.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
            if name in _DERIVED or statement not in _STATEMENTS:
                self.run(f"DROP TABLE {name}")
        self._create()
        self.run("DELETE FROM about WHERE name <> 'about'")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction; a nested one is part of the outer one."""
        with self._lock, self._named():
            if self._depth:
                yield
                return
            with one_transaction(self._db):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                if self._same is not None:
                    self._same.check(self._db)

    def rows(self, query: str, *values: object) -> list[Any]:
        with self._lock, self._named():
            return self._db.execute(query, values).fetchall()

    def among(self, query: str, keys: Iterable[str | int | bytes]) -> list[Any]:
        """Return the rows of a query with ``IN (…)`` for any number of keys."""
        rows, keys = [], list(keys)
        for start in range(0, len(keys), _MAX_VARIABLES):
            page = keys[start : start + _MAX_VARIABLES]
            rows += self.rows(query.replace("(…)", f"({', '.join('?' * len(page))})"), *page)
        return rows

    def run(self, query: str, *values: object) -> int:
        with self._lock, self._named():
            return self._db.execute(query, values).rowcount

    def many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        with self._lock, self._named():
            self._db.executemany(query, rows)

    def version(self) -> int:
        """Return a number that changes when another process changes the file."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def noted(self, name: str) -> str | None:
        rows = self.rows("SELECT value FROM about WHERE name = ?", name)
        return rows[0][0] if rows else None

    def scrub(self) -> None:
        """Rewrite the file, so that no deleted data is left in it."""
        with self._lock, self._named():
            self._db.execute("VACUUM")
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            # SQLite does not sync the truncation, so a power cut could restore the old log.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(_SCRUBBED)
            self._db.execute("PRAGMA synchronous = NORMAL")
        if busy:
            raise StoreLocked(f"{self.path}: a reader keeps the old write-ahead log; erase again later")

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if "locked" in str(error) or "busy" in str(error):
                raise StoreLocked(
                    f"{self.path}: another process has held the ledger for {BUSY_SECONDS:.0f} s; try again"
                ) from error
            raise StoreError(
                f"{self.path}: {error}; name a file that you may write, or delete it (it is made again)"
            ) from error


_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def claim_row(claim: Claim) -> str:
    """Return a claim without its id as JSON."""
    fields, wording = _CLAIM_VALUES(claim), claim.wording
    if wording is None:
        return _PLAIN.encode([*fields])
    sets = [_row_of(sorted(words)) for words in _SET_VALUES(wording)]
    return _PLAIN.encode([*fields, int(wording.negative), _row_of(wording.tokens), *sets])


def claim_in(id: str, row: str) -> Claim:
    """Return the claim of a `claim_row`."""
    values = json.loads(row)
    fields, features = values[: len(_CLAIM)], values[len(_CLAIM) :]
    wording = None
    if features:
        negative, tokens, *sets = features
        named_sets = {name: frozenset(_words_of(words)) for name, words in zip(_SETS, sets, strict=True)}
        wording = ClaimFeatures(tokens=tuple(_words_of(tokens)), negative=bool(negative), **named_sets)
    return Claim(id=id, **dict(zip(_CLAIM, fields, strict=True)), wording=wording)


def _row_of(words: Sequence[str]) -> str | Sequence[str]:
    """Join words to one text if it can be split again, to save space."""
    text = "|".join(words)
    return text if words and text.count("|") == len(words) - 1 else words


def _words_of(row: str | Sequence[str]) -> Sequence[str]:
    return row.split("|") if isinstance(row, str) else row


_SETS = ("content", "values")
_SET_VALUES = attrgetter(*_SETS)
_CLAIM = tuple(name for name in Claim.__slots__ if name not in ("id", "wording"))
_CLAIM_VALUES = attrgetter(*_CLAIM)


def seen_row(seen: IndexedObservation) -> str:
    """Return the fields of an observation without columns, as JSON."""
    observation, brief = seen.observation, seen.brief
    rest = {name: value for name, value in observation_fields(observation).items() if name not in _NOT_REST}
    slot = observation.slot
    ts = 1 if observation.ts == brief.ts else observation.ts
    return _PLAIN.encode([rest, [slot.subject, slot.attribute], seen.project, seen.spans, observation.places, ts])


def seen_of(brief: ObservationBrief, row: str) -> IndexedObservation:
    """Return the observation of a brief and its `seen_row`."""
    rest, (subject, attribute), project, spans, places, ts = json.loads(row)
    slot = [subject, attribute, "one" if brief.is_single else "many"]
    named = {name: getattr(brief, name) for name in _IN_COLUMNS} | {"ts": brief.ts if ts == 1 else ts}
    return IndexedObservation(
        id=brief.id,
        observation=observation_of({**rest, **named, "slot": slot, "places": places}),
        source=brief.source,
        session=brief.session,
        project=project,
        spans=tuple(map(EvidenceSpan._make, spans)),
        shown=brief.shown_ids,
    )


_IN_COLUMNS = ("kind", "text", "strength", "score", "principal", "sensitivity", "extractor")
_NOT_REST = frozenset((*_IN_COLUMNS, "slot", "places", "ts"))
BRIEF = ", ".join(f"n.{name}" for name in ObservationBrief._fields)
"""Columns of `seen`."""


def observations(database: LedgerDatabase, ids: Iterable[str]) -> dict[str, IndexedObservation]:
    """Return whole observations by id."""
    rows = database.among(f"SELECT {BRIEF}, n.body FROM seen n WHERE n.id IN (…)", ids)
    briefs = ((ObservationBrief._make(row[:-1]), row[-1]) for row in rows)
    return {brief.id: seen_of(brief, body) for brief, body in briefs}
