"""A PostgreSQL database that several machines share: its URI, its connections, its tables and their version.

    postgresql://USER@HOST/DATABASE?schema=NAME&objects=s3://BUCKET/PREFIX&keys=FOLDER&sslmode=require

`schema` (default ``ctxsteward``) is the schema of the tables; two stores in one database need two schemas. `backend`
reads `objects` and `keys`. The client library (libpq) reads the rest, under its own names, and its environment.

No state is kept in a server's session, so a pooler that gives each transaction another connection may be in use
(PgBouncer, pool_mode ``transaction``): each call is one implicit transaction in one pipeline that begins with its
settings (search path, timeouts, a commit that waits for the disk), and no statement is prepared.

After a lost connection the call is repeated on a new one until `RECONNECT_SECONDS` have passed. So every call must be
repeatable: a `transaction` inserts a token of its own into `commits`. If the token is there already, an earlier attempt
was committed and only its answer was lost. If an earlier attempt still runs at the server, the insert waits for it.

Text is stored and returned unchanged. PostgreSQL has no NUL in text, so NUL is stored as U+0001 U+0002, and U+0001 is
doubled. Text with lone surrogates is refused.

The version of the tables is in ``meta``. `prepare` migrates them to `VERSION` step by step under an advisory lock, and
refuses tables of a later version. Columns with people's words have no statistics (``SET STATISTICS 0``), because
`ANALYZE` would copy values into the catalog.

Needs the extra `postgres` (psycopg 3). Raises `StoreUnavailable`, `StoreLocked`, `UnsupportedVersion`, `Damaged`,
`StoreError`, `InputError`; none shows a password. Source: PostgreSQL documentation, "Pipelining", "SET",
"Client Connection Defaults", "Error Codes"; PgBouncer, "Features".
"""

from __future__ import annotations

import logging
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import errors
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus

from ctxsteward.schemas import InputError, StoreError, StoreLocked, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion

from . import process_forks as forking
from .deadline import uncut

Rows = list[tuple[Any, ...]]
Values = Sequence[object] | Mapping[str, object]
T = TypeVar("T")

VERSION = 1
SCHEMA = "ctxsteward"
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30.0
LOCK_SECONDS = 10.0
ANSWER_SECONDS = STATEMENT_SECONDS + 10
"""Longest wait for an answer: the server's own timeout and some time to report it. Then the server counts as lost."""
RECONNECT_SECONDS = 15.0
"""How long a call is repeated after the server is lost."""
CONNECTIONS = 8
"""Most connections of one process; a call that needs another one waits."""
PARTS = 8
"""Partitions of the records, by session, so that a scrub after an erasure rewrites only some of them."""
_DEADLOCKS = 5
"""Repeats of a transaction that the server aborts because of a deadlock or serialization failure."""
_MIGRATING = 0x63747873
"""Class of the advisory lock for making and migrating tables."""
_SILENCE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""TCP settings that detect a machine that vanished without closing its connections."""
_LOGGER = logging.getLogger("psycopg")
_OWN = ("schema", "objects", "keys")
_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_IN_MISTYPED = re.compile(r"[@&=?;]")
"""Characters that show a mistyped URI, in whose host or database name a password may have ended up."""
FORM = "postgresql://USER@HOST/DATABASE"


class PostgresConnection(psycopg.Connection[Any]):
    """A connection that counts as lost if no answer comes in time, even if a proxy keeps it open."""

    answer_seconds: float | None = None

    def wait(self, gen: Generator[Any, Any, T], *more: Any, **named: Any) -> T:
        seconds = self.answer_seconds
        return super().wait(gen if seconds is None else self._answered(gen, time.monotonic() + seconds), *more, **named)

    def _answered(self, gen: Generator[Any, Any, T], until: float) -> Generator[Any, Any, T]:
        """Run the same steps with a time limit; the client library takes a step at least every 0.1 s."""
        try:
            ready = yield next(gen)
            while True:
                if not ready and time.monotonic() > until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server has not answered for {self.answer_seconds:g} s")
                ready = yield gen.send(ready)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


class PostgresUri(NamedTuple):
    """The parts of a URI."""

    conninfo: str
    """Connection string for the client library; includes secrets."""
    place: str
    """URI without secrets, for messages."""
    schema: str | None = None
    objects: str | None = None
    keys: str | None = None

    @classmethod
    def parse(cls, uri: str, *, schema: str | None = None) -> PostgresUri:
        """Parse `uri`. `schema` is the default; None means the first schema of the server's search path.

        Raises `InputError`, which shows no part of the URI that may be secret.
        """
        base, mark, query = uri.partition("?")
        pairs = [pair for pair in query.split("&") if pair]
        own = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in pairs) if name in _OWN}
        rest = "&".join(pair for pair in pairs if pair.partition("=")[0] not in _OWN)
        conninfo = f"{base}{mark}{rest}" if rest else base
        try:
            parts = conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise InputError(f"this is no PostgreSQL connection string; write {FORM}") from None
        schema = own.get("schema", schema)
        if schema is not None and not _NAME.fullmatch(schema):
            raise InputError(f"schema {schema!r:.80} is not usable; take a to z, digits and '_', 63 at most")
        host, name = (str(parts.get(key) or "") for key in ("host", "dbname"))
        host, name = ("***" if _IN_MISTYPED.search(part) else part for part in (host, name))
        place = f"postgresql://{host or 'localhost'}/{name}"
        place += "" if schema is None else f"?schema={schema}"
        return cls(conninfo, place, schema, own.get("objects"), own.get("keys"))


_TEXT = 'text COLLATE "C" NOT NULL'
_TABLES = (
    f"CREATE TABLE meta (name {_TEXT} PRIMARY KEY, value {_TEXT})",
    f"""CREATE TABLE logs (
      tenant {_TEXT}, session {_TEXT}, length bigint NOT NULL, generation bigint NOT NULL, drained bigint NOT NULL,
      number bigint NOT NULL, epoch bigint NOT NULL, manifests bigint NOT NULL, bytes bigint NOT NULL,
      since bigint NOT NULL, forgotten bigint NOT NULL, mac {_TEXT}, PRIMARY KEY (tenant, session)
    ) WITH (fillfactor = 70)""",
    f"""CREATE TABLE records (
      tenant {_TEXT}, session {_TEXT}, position bigint NOT NULL, kind {_TEXT}, ordinal bigint NOT NULL,
      outputs bigint NOT NULL, id text COLLATE "C", address text COLLATE "C", body {_TEXT}, wire text COLLATE "C",
      mac {_TEXT}, token bigint, PRIMARY KEY (tenant, session, position)
    ) PARTITION BY HASH (tenant, session)""",
    *(
        f"CREATE TABLE records_{part} PARTITION OF records FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {part})"
        for part in range(PARTS)
    ),
    "CREATE UNIQUE INDEX by_ordinal ON records (tenant, session, ordinal) WHERE ordinal > 0",
    "CREATE UNIQUE INDEX by_id ON records (tenant, session, id) WHERE id IS NOT NULL",
    "CREATE INDEX by_output ON records (tenant, session, outputs, position) WHERE outputs > 0",
    "CREATE INDEX by_compaction ON records (tenant, session, position) WHERE kind = 'compaction'",
    "CREATE UNIQUE INDEX by_address ON records (tenant, address, session) WHERE address IS NOT NULL",
    f"""CREATE TABLE manifests (
      seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, tenant {_TEXT}, session {_TEXT}, address {_TEXT},
      body {_TEXT}, waiting bigint NOT NULL, UNIQUE (tenant, address)
    )""",
    "CREATE INDEX manifests_of ON manifests (tenant, session, seq)",
    f"CREATE TABLE seen (name {_TEXT} PRIMARY KEY, number bigint NOT NULL)",
    f"""CREATE TABLE forgotten (
      seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, tenant {_TEXT}, session {_TEXT}, whole bigint NOT NULL,
      principal {_TEXT}, who {_TEXT}, at {_TEXT}, why {_TEXT}, mac {_TEXT}, UNIQUE (tenant, session, whole, principal)
    )""",
    f"""CREATE TABLE objects (
      key {_TEXT} PRIMARY KEY, body bytea NOT NULL, modified timestamptz NOT NULL DEFAULT clock_timestamp()
    ) PARTITION BY RANGE (key)""",
    "CREATE TABLE objects_keys PARTITION OF objects FOR VALUES FROM ('keys/') TO ('keys0')",
    "CREATE TABLE objects_other PARTITION OF objects DEFAULT",
    f"CREATE TABLE derived (tenant {_TEXT}, name {_TEXT}, body bytea NOT NULL, PRIMARY KEY (tenant, name))",
    "CREATE TABLE commits (token bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
    f"""CREATE TABLE unscrubbed (
      relation {_TEXT}, tenant {_TEXT}, session {_TEXT}, PRIMARY KEY (relation, tenant, session)
    )""",
    *(
        f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0"
        for table, columns in {
            "records": ("id", "body", "wire"),
            "manifests": ("body",),
            "forgotten": ("principal", "who", "why"),
            "objects": ("body",),
            "derived": ("body",),
        }.items()
        for column in columns
    ),
    *(f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL" for table in ("objects_keys", "objects_other")),
)
_MIGRATIONS: tuple[tuple[str, ...], ...] = (_TABLES,)
"""Statements that migrate from each version to the next; the first group makes the tables."""


class PostgresDatabase:
    """A pool of at most `CONNECTIONS` connections to one database. Safe with threads and after a fork."""

    def __init__(self, uri: PostgresUri, *, patience_seconds: float = RECONNECT_SECONDS) -> None:
        self.uri: PostgresUri = uri
        self.place: str = uri.place
        self._patience_seconds = patience_seconds
        self._patient = False
        """Whether the server has ever answered; until then a call is not repeated."""
        self._prologue = _prologue(uri.schema, STATEMENT_SECONDS)
        self._unbounded = _prologue(uri.schema, 0)
        parts = conninfo_to_dict(uri.conninfo)
        defaults: dict[str, str | int] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "ctxsteward",
            **_SILENCE,
        }
        self._conninfo = make_conninfo(uri.conninfo, **{k: v for k, v in defaults.items() if k not in parts})
        self._lock = forking.lock()
        self._idle: list[PostgresConnection] = []
        self._left: list[PostgresConnection] = []
        """Connections of the parent process; closing them here would end them there."""
        self._permits = threading.BoundedSemaphore(CONNECTIONS)
        self._closed = False
        if not _LOGGER.handlers:  # psycopg warns of every lost connection; print that only for an own handler
            _LOGGER.addHandler(logging.NullHandler())
        forking.renew_in_child(self)

    def forked(self) -> None:
        self._left += self._idle
        self._idle, self._permits = [], threading.BoundedSemaphore(CONNECTIONS)

    def close(self) -> None:
        """Close the idle connections now, and each used one when its call ends."""
        self._closed = True
        self._drop_idle()

    def __del__(self) -> None:
        with suppress(Exception):
            self._drop_idle()

    # -- calls --------------------------------------------------------------------------------------------------

    def execute(self, query: str, values: Values = (), *, unknown: str = "") -> Rows:
        """Run one repeatable statement in its own transaction and return its rows.

        `unknown` is the error's text about the effect if the answer was lost for good.
        """
        return self._repeated(lambda db: self._alone(db, query, values), unknown)

    def attempt(self, query: str, values: Values = ()) -> Rows:
        """Run one statement once. Raises `psycopg.Error`; `is_lost` of it says whether the effect is unknown."""
        with self.connection() as db:
            return self._alone(db, query, values)

    def _alone(self, db: PostgresConnection, query: str, values: Values) -> Rows:
        with db.pipeline():
            db.execute(self._prologue)
            cursor = db.execute(query, values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def transaction(self, work: Callable[[PostgresConnection], object]) -> None:
        """Run `work` in a transaction that is committed once, or not at all."""
        token = secrets.randbits(63)

        def attempt(db: PostgresConnection) -> None:
            with self.begun(db):
                if db.execute(
                    "INSERT INTO commits VALUES (%s) ON CONFLICT DO NOTHING RETURNING 1", (token,)
                ).fetchone():
                    work(db)

        self._repeated(attempt, "whether it was written is not known: look, and repeat it")

    @contextmanager
    def begun(self, db: PostgresConnection, *, unbounded: bool = False) -> Iterator[PostgresConnection]:
        """Run the block in a transaction with this module's settings; `unbounded` removes the statement timeout."""
        db.answer_seconds = None if unbounded else ANSWER_SECONDS
        try:
            with db.transaction():
                db.execute(self._unbounded if unbounded else self._prologue)
                yield db
        finally:
            db.answer_seconds = ANSWER_SECONDS

    def _repeated(self, call: Callable[[PostgresConnection], T], unknown: str) -> T:
        until, pause, broken_off, effect = 0.0, 0.0, 0, "nothing was written"
        while True:
            sent = False
            try:
                with self.connection() as db:
                    sent = True
                    result = call(db)
                self._patient = True
                return result
            except (errors.SerializationFailure, errors.DeadlockDetected) as error:
                broken_off += 1
                if broken_off > _DEADLOCKS:
                    raise self.error(error, effect) from error
            except (psycopg.Error, UnicodeEncodeError, OverflowError) as error:
                now = time.monotonic()
                until = until or now + (self._patience_seconds if self._patient else 0.0)
                if sent and is_lost(error):
                    effect = unknown or effect
                if not is_lost(error) or now >= until:
                    raise self.error(error, effect) from error
                self._drop_idle()
                time.sleep(pause * (0.5 + random.random()))
                pause = min(max(0.02, pause * 2), 1.0)

    # -- connections --------------------------------------------------------------------------------------------

    @contextmanager
    def connection(self) -> Iterator[PostgresConnection]:
        """Lend the block a connection for exclusive use. Raises `psycopg.Error`, `StoreLocked`, `StoreError`."""
        forking.notice()
        permits = self._permits
        with uncut():  # a thread that a deadline interrupts here would never return its permit
            if not permits.acquire(timeout=LOCK_SECONDS):
                raise StoreLocked(
                    f"{self.place}: all {CONNECTIONS} connections were in use for {LOCK_SECONDS:g} s; try again"
                )
            try:
                db = self._taken()
                try:
                    yield db
                finally:
                    self._give(db)
            finally:
                permits.release()

    def _taken(self) -> PostgresConnection:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.place}: the store is closed; open it again")
            if self._idle:
                return self._idle.pop()
        db = PostgresConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None, client_encoding="UTF8")
        db.answer_seconds = ANSWER_SECONDS
        db.adapters.register_dumper(str, _TextDumper)
        db.adapters.register_loader("text", _TextLoader)
        return db

    def _give(self, db: PostgresConnection) -> None:
        if not db.closed and db.info.transaction_status == TransactionStatus.IDLE:
            with self._lock:
                if not self._closed:
                    self._idle.append(db)
                    return
        db.close()

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def named(self, effect: str = "") -> Iterator[None]:
        """Turn database errors of the block into `StoreError`."""
        try:
            yield
        except (psycopg.Error, UnicodeEncodeError, OverflowError) as error:
            raise self.error(error, effect) from error

    def error(self, error: Exception, effect: str = "") -> StoreError:
        """Return the `StoreError` for a database error; `effect` tells the user what the call has done."""
        state = getattr(error, "sqlstate", None) or ""
        said = ""
        if isinstance(error, psycopg.Error):
            said = error.diag.message_primary or ""
        said = (said or (str(error).splitlines() or [type(error).__name__])[0]).strip()
        tail = f"; {effect}" if effect else ""
        if state in ("55P03", "57014"):  # lock not available, statement timeout
            return StoreLocked(f"{self.place}: {said}: others hold it for too long, or it is slow{tail}; try again")
        if state in ("XX001", "XX002"):
            return Damaged(f"{self.place}: {said}{tail}; restore the database from a backup")
        if is_lost(error) or state == "25006":
            hint = "check the server, and that it is the primary" if state == "25006" else "check the server"
            return StoreUnavailable(f"{self.place}: {said}{tail}; {hint}, its rights and its limits")
        advice = _ADVICE.get(state) or _ADVICE.get(state[:2])
        return StoreError(f"{self.place}: {said}{tail}{f'; {advice}' if advice else ''}")

    # -- tables -------------------------------------------------------------------------------------------------

    def prepare(self, draw_id: Callable[[], str]) -> str:
        """Make the tables or migrate them to this version; return the id of the journal in them."""
        version, id = self._about()
        if version != VERSION:
            with self.named("the tables were not made"), self.connection() as db:
                self._migrate(db, draw_id)
            version, id = self._about()
        return id

    def _about(self) -> tuple[int, str]:
        """Return the version of the tables and the journal's id; version 0 if there are no tables."""
        query = "SELECT current_setting('server_encoding'), to_regclass('meta')::text, to_regclass('records')::text"
        ((encoding, meta, records),) = self.execute(query)
        if encoding != "UTF8":
            raise StoreError(f"{self.place}: its encoding is {encoding}; make a database with ENCODING 'UTF8'")
        if meta is None and records is None:
            return 0, ""
        rows: dict[str, str] = {}
        if meta is not None:
            rows = dict(self.execute("SELECT to_jsonb(m)->>'name', to_jsonb(m)->>'value' FROM meta m"))
        version = rows.get("version") or ""
        if not version.isdecimal():
            raise StoreError(f"{self.place}: it has tables of something else; name another schema")
        if int(version) > VERSION:
            raise UnsupportedVersion(self.place, int(version), VERSION)
        return int(version), rows.get("id") or ""

    def make_schema(self, db: PostgresConnection) -> None:
        """Make the schema if it is named and missing. The check comes first: using it needs fewer rights."""
        name = self.uri.schema
        if name is not None and db.execute("SELECT to_regnamespace(%s)", (f'"{name}"',)).fetchone() == (None,):
            db.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"')

    def _migrate(self, db: PostgresConnection, draw_id: Callable[[], str]) -> None:
        schema = self.uri.schema
        with self.begun(db, unbounded=True):
            db.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(current_database() || %s))", (_MIGRATING, schema or "")
            )
            self.make_schema(db)
            made = db.execute("SELECT to_regclass('meta')::text").fetchone() == ("meta",)
            version = 0
            if made:
                ((found,),) = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchall()
                version = int(found)
            for step in _MIGRATIONS[version:]:
                for statement in step:
                    db.execute(statement)
            if not made:
                db.execute("INSERT INTO meta VALUES ('id', %s), ('version', '0')", (draw_id(),))
            db.execute("UPDATE meta SET value = %s WHERE name = 'version'", (str(max(version, VERSION)),))


def is_lost(error: Exception) -> bool:
    """Return whether the connection was lost, so that a statement's effect is unknown, or could not be made."""
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = error.sqlstate
    return state is None or state[:2] == "08" or state in _LOST


_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03", "53300"}
"""SQL states: shut down, crashed, starting up, idle for too long (two), too many connections."""
_ADVICE = {
    "23": "an id, ordinal or address of it is there already; refresh and decide again",
    "42501": "let its user make and use the schema: CREATE SCHEMA … AUTHORIZATION …",
    "42P01": "the tables are gone; restore the database from a backup",
    "53100": "free space on the server's disk",
    "53": "see the server's limits",
}


def _prologue(schema: str | None, statement_seconds: float) -> str:
    """Return one statement that makes the settings of a transaction."""
    settings = {
        "statement_timeout": f"'{statement_seconds * 1000:.0f}ms'",
        "lock_timeout": f"'{LOCK_SECONDS * 1000:.0f}ms'",
        # so that a suspended machine does not keep its locks
        "idle_in_transaction_session_timeout": f"'{STATEMENT_SECONDS * 1000:.0f}ms'",
        "synchronous_commit": "coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')",
    }
    if schema is not None:
        settings["search_path"] = f"'{schema}'"
    return "SELECT " + ", ".join(f"set_config('{name}', {value}, true)" for name, value in settings.items())


class _TextDumper(Dumper):
    """Dumper of text that escapes NUL; the server infers the SQL type."""

    def dump(self, obj: str) -> bytes:
        if "\x00" in obj or "\x01" in obj:
            obj = obj.replace("\x01", "\x01\x01").replace("\x00", "\x01\x02")
        return obj.encode()


_ESCAPED = re.compile("\x01([\x01\x02])")


class _TextLoader(Loader):
    """Loader of text that undoes the escapes of `_TextDumper`."""

    format = Format.BINARY

    def load(self, data: Any) -> str:
        text = bytes(data).decode("utf-8", "replace")
        if "\x01" in text:
            return _ESCAPED.sub(lambda pair: "\x01" if pair[1] == "\x01" else "\x00", text)
        return text
