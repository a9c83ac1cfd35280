"""`postgresql://…`: cards in a PostgreSQL database; any number of processes and machines may share it.

The URI and the connections are those of a store (`ctxsteward.store.PostgresDatabase`). Tables `context_cards`,
`context_cards_marks`, `context_cards_erased` and `context_cards_about` are made in the schema that the URI names, else
in the first one of the search path; the last one holds the version of the tables and the embeddings' model. Embeddings
are `real[]`: no extension is needed.

Erasing deletes the rows and then writes the table anew from what is left, under an exclusive lock: `VACUUM` would
leave their bytes in the pages, and even `VACUUM FULL` copies rows that some older transaction could still see. Where
the lock is not had within `LOCK_SECONDS` that is a `StoreLocked`: the cards are deleted and none comes back, but their
bytes stay until the erasure is repeated (`context_cards_unscrubbed` notes that it is due). No statistics are kept of
what cards say, as `ANALYZE` would copy texts into the catalog. It takes the rights of the tables' owner, and that to
make temporary tables.

So the table's files hold no byte of an erased card. What else of the server may is the operator's to bound:

    pg_wal             until its files are recycled: `max_wal_size`, `checkpoint_timeout`, `wal_keep_size`, for
                       replication slots `max_slot_wal_keep_size`; `wal_recycle = off` removes instead of reusing
    archives, backups  `archive_command`, `archive_library`: as long as they are kept
    replicas           until they have replayed it
    server log         `log_statement`, `log_min_duration_statement` with `log_parameter_max_length` other than 0

What is written goes through one attempt: a lost connection raises `StoreError`, and the next call connects anew.
`StoreLocked` where a lock is not had in time, `UnsupportedVersion` for tables of a later version.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any

from ctxsteward.schemas import ContextCard, StoreError, UnsupportedVersion
from ctxsteward.store import PostgresConnection, PostgresDatabase, PostgresUri

from .port import EVERYTHING, CardedSession, CardProgress, EmbeddingSpace, newest, ordinals_of, space_of

VERSION = 1
_SETTLING = 0x63747863
"""Advisory lock under which tables are made and the embeddings' model is settled."""

_SCHEMA = """
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
CREATE TABLE context_cards_about (version bigint NOT NULL, model text, dimensions bigint);
"""
_SAYING = ("summary", "keywords", "embedding", "phase_name", "callout_name", "message_timestamp")
"""Columns that hold something of what was said."""
_REWRITE = (
    "LOCK TABLE context_cards IN ACCESS EXCLUSIVE MODE",
    "CREATE TEMPORARY TABLE context_cards_kept ON COMMIT DROP AS SELECT * FROM context_cards",
    "TRUNCATE context_cards",
    "INSERT INTO context_cards SELECT * FROM context_cards_kept ORDER BY tenant, session, ordinal",
    "DELETE FROM context_cards_unscrubbed",
)

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
INSERT INTO context_cards AS held (tenant, session, ordinal, {", ".join(_FIELDS)})
VALUES (%s, %s, %s, {", ".join("%s" for _ in _FIELDS)})
ON CONFLICT (tenant, session, ordinal) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FIELDS)}
WHERE excluded.generated_at >= held.generated_at
"""
_MARK = """
INSERT INTO context_cards_marks VALUES (%s, %s, %s)
ON CONFLICT (tenant, session) DO UPDATE SET ordinal = excluded.ordinal
"""
_SESSIONS = """
SELECT tenant, session,
  (SELECT count(*) FROM context_cards c WHERE c.tenant = k.tenant AND c.session = k.session),
  (SELECT ordinal FROM context_cards_marks m WHERE m.tenant = k.tenant AND m.session = k.session),
  (SELECT array_agg(ordinal ORDER BY ordinal) FROM context_cards_erased e
   WHERE e.tenant = k.tenant AND e.session = k.session)
FROM (SELECT tenant, session FROM context_cards UNION SELECT tenant, session FROM context_cards_marks
      UNION SELECT tenant, session FROM context_cards_erased) k
WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s ORDER BY tenant COLLATE "C", session COLLATE "C"
"""


class PostgresCards:
    """A `CardIndex` in PostgreSQL; tables are made if missing."""

    def __init__(self, dsn: str) -> None:
        self._database = PostgresDatabase(PostgresUri.parse(dsn))
        self._place = self._database.place
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        with self._writing() as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_SETTLING,))
            self._database.make_schema(db)
            if not self._check_version(db):
                db.execute(_SCHEMA)
                for column in _SAYING:
                    db.execute(f"ALTER TABLE context_cards ALTER COLUMN {column} SET STATISTICS 0")
                db.execute("INSERT INTO context_cards_about VALUES (%s, NULL, NULL)", (VERSION,))

    def _check_version(self, db: PostgresConnection) -> bool:
        """Whether the tables are there; raises `StoreError` for tables that are not of our version."""
        present = db.execute("SELECT to_regclass('context_cards'), to_regclass('context_cards_about')").fetchone()
        if present == (None, None):
            return False
        if present is None or None in present:
            raise StoreError(f"{self._place} has a table `context_cards` of something else; name another schema")
        row = db.execute("SELECT version FROM context_cards_about").fetchone()
        if row is not None and row[0] > VERSION:
            raise UnsupportedVersion(f"card index {self._place}", row[0], VERSION)
        if row != (VERSION,):
            found = "unknown version" if row is None else f"version {row[0]}"
            raise StoreError(
                f"{self._place}: a card index of {found}; this program knows version {VERSION} only: "
                "use the program that made it, or rebuild the cards into another schema"
            )
        return True

    # -- writing ------------------------------------------------------------------------------------------------

    def put(self, cards: Sequence[ContextCard], done: Sequence[CardProgress] = ()) -> int:
        rows = sorted((_row(card) for card in newest(cards)), key=lambda row: row[:3])  # one order: no deadlocks
        with self._writing() as db:
            self._settle_space(db, cards)
            erased = self._erased(db, sorted({row[:2] for row in rows}))
            kept = [row for row in rows if not erased & {row[:3], (*row[:2], EVERYTHING)}]
            with db.cursor() as cursor:
                if kept:
                    cursor.executemany(_PUT, kept)
                if done:
                    cursor.executemany(_MARK, sorted(done))
        return len(kept)

    def _erased(self, db: PostgresConnection, keys: Sequence[tuple[object, ...]]) -> set[tuple[object, ...]]:
        """What was erased of these sessions; erasing them waits until this transaction is over."""
        found: set[tuple[object, ...]] = set()
        for key in keys:
            db.execute(_SESSION_LOCK.format("_shared"), key)
            found.update(
                db.execute(
                    "SELECT tenant, session, ordinal FROM context_cards_erased WHERE tenant = %s AND session = %s", key
                )
            )
        return found

    def _settle_space(self, db: PostgresConnection, cards: Sequence[ContextCard]) -> None:
        if all(card.embedding is None for card in cards):
            return
        held = self._space(db)
        if held is None:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_SETTLING,))
            held = self._space(db)
        space = space_of(cards, held)
        if space != held:
            db.execute("UPDATE context_cards_about SET model = %s, dimensions = %s", space)

    def erase(
        self,
        tenant: str,
        session: str,
        ordinals: Collection[int] | None = None,
        *,
        scrub: bool = True,
        burn: bool = True,
    ) -> int:
        where, key = "WHERE tenant = %s AND session = %s", (tenant, session)
        wanted = None if ordinals is None else sorted(set(ordinals))
        with self._writing() as db:
            db.execute(_SESSION_LOCK.format(""), key)
            only, values = ("", key) if wanted is None else (" AND ordinal = ANY(%s)", (*key, wanted))
            count = db.execute(f"DELETE FROM context_cards {where}{only}", values).rowcount
            new = self._burn(db, key, wanted) if burn else 0
            if count or new:
                db.execute("INSERT INTO context_cards_unscrubbed VALUES (%s)", (count,))
        if scrub:
            self._scrub()
        return count

    def _burn(self, db: PostgresConnection, key: tuple[str, str], ordinals: list[int] | None) -> int:
        """Note what gets no card again; how much of it is new. Writers that failed may have left bytes of it."""
        where = "WHERE tenant = %s AND session = %s"
        if ordinals is None:
            new = (*key, EVERYTHING) not in self._erased(db, [key])
            db.execute(f"DELETE FROM context_cards_erased {where}", key)
            db.execute("INSERT INTO context_cards_erased VALUES (%s, %s, %s)", (*key, EVERYTHING))
            return int(new)
        return db.execute(
            "INSERT INTO context_cards_erased SELECT %s, %s, unnest(%s::bigint[]) WHERE NOT EXISTS (SELECT 1 "
            f"FROM context_cards_erased {where} AND ordinal = {EVERYTHING}) ON CONFLICT DO NOTHING",
            (*key, ordinals, *key),
        ).rowcount

    def _scrub(self) -> None:
        if not self._all("SELECT 1 FROM context_cards_unscrubbed LIMIT 1", ()):
            return
        with self._writing(unbounded=True) as db:
            for statement in _REWRITE:
                db.execute(statement)

    # -- reading ------------------------------------------------------------------------------------------------

    def of_session(
        self, tenant: str, session: str, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        if any("\x00" in text for text in (tenant, session, phase or "")):
            return []
        where, values = "tenant = %s AND session = %s", [tenant, session]
        if phase is not None:
            where, values = f"{where} AND phase_name = %s", [*values, phase]
        wanted: list[Any] = [*values]
        if refs is not None:
            where, wanted = f"{where} AND ordinal = ANY(%s)", [*values, ordinals_of(refs)]
        rows = self._all(
            f"SELECT ordinal, {', '.join(_FIELDS)} FROM context_cards WHERE {where} ORDER BY ordinal", wanted
        )
        return [_card(tenant, session, row) for row in rows]

    def carded(self, tenant: str, session: str) -> int:
        rows = self._all(
            "SELECT ordinal FROM context_cards_marks WHERE tenant = %s AND session = %s", (tenant, session)
        )
        return int(rows[0][0]) if rows else 0

    def sessions(self, tenant: str | None = None) -> list[CardedSession]:
        return [
            CardedSession(owner, session, cards, mark or 0, tuple(erased or ()))
            for owner, session, cards, mark, erased in self._all(_SESSIONS, {"tenant": tenant})
        ]

    def close(self) -> None:
        self._database.close()

    # -- inside -------------------------------------------------------------------------------------------------

    def _space(self, db: PostgresConnection) -> EmbeddingSpace | None:
        row = db.execute("SELECT model, dimensions FROM context_cards_about").fetchone()
        return None if row is None or row[0] is None else EmbeddingSpace(row[0], int(row[1]))

    def _all(self, query: str, values: Sequence[object] | dict[str, object]) -> list[Any]:
        return self._database.execute(query, values)

    @contextmanager
    def _writing(self, *, unbounded: bool = False) -> Iterator[PostgresConnection]:
        """One transaction: all of it, or nothing."""
        database = self._database
        with database.named(), database.connection() as db, database.begun(db, unbounded=unbounded):
            yield db


_SESSION_LOCK = "SELECT pg_advisory_xact_lock{}(hashtextextended(%s || chr(1) || %s, 0))"


def _row(card: ContextCard) -> tuple[Any, ...]:
    return (
        card.tenant,
        card.session,
        card.ordinal,
        card.address,
        card.summary,
        list(card.keywords),
        None if card.embedding is None else list(card.embedding),
        card.embedding_model,
        card.estimated_tokens,
        card.role,
        card.phase_name,
        card.turn_number,
        card.is_anchor,
        card.is_callout,
        card.callout_name,
        card.generated_at,
        card.generator_model,
        card.message_timestamp,
    )


def _card(tenant: str, session: str, row: Sequence[Any]) -> ContextCard:
    """A stored row is what `put` was given."""
    ordinal, *values = row
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["tenant"], fields["session"], fields["ref"] = tenant, session, f"§{ordinal}"
    fields["keywords"] = tuple(fields["keywords"])
    fields["generated_at"] = fields["generated_at"].astimezone(UTC)
    if fields["embedding"] is not None:
        fields["embedding"] = tuple(array("f", fields["embedding"]))
    return ContextCard.stored(fields)
