"""The journal in PostgreSQL: lost answers, servers that restart, other machines, poolers, versions, erasure."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctxsteward.schemas import InputError, StoreError, StoreLocked, StoreUnavailable
from ctxsteward.schemas.errors import Conflict, Damaged, UnsupportedVersion
from ctxsteward.store import MasterKeys, postgres_database
from ctxsteward.store.journal.port import (
    Adoption,
    AlteredRow,
    DrainMark,
    ForgottenSubject,
    JournalRecord,
    Manifest,
    SessionKey,
)
from ctxsteward.store.journal.postgres import PostgresJournal
from ctxsteward.store.objects.postgres import PostgresObjects
from ctxsteward.store.postgres_database import CONNECTIONS, PARTS, PostgresDatabase, PostgresUri

from ...postgres import CuttingProxy, PostgresServer, pooled, running
from .journals import KEY, OTHER, append_at_end, in_threads, message, note

KEYS = MasterKeys(b"k" * 32)
_schemas = count(1)


@pytest.fixture
def uri(shared_postgres: PostgresServer) -> str:
    """Of a store that is not there yet."""
    return shared_postgres.uri(f"p{next(_schemas)}")


def opened(uri: str, *, keys: MasterKeys | None = KEYS, **more: Any) -> PostgresJournal:
    database = PostgresDatabase(PostgresUri.parse(uri), **more)
    try:
        return PostgresJournal(database, address_key=keys.address_key if keys else None)
    except BaseException:
        database.close()
        raise


@pytest.fixture
def journal(uri: str) -> Iterator[PostgresJournal]:
    with closing(opened(uri)) as made:
        yield made


def execute(journal: PostgresJournal, statement: str) -> list[tuple[Any, ...]]:
    return journal.database.execute(statement)


# -- answers that are lost -----------------------------------------------------------------------------------------


@pytest.fixture
def proxy(shared_postgres: PostgresServer) -> Iterator[CuttingProxy]:
    with CuttingProxy(shared_postgres) as running:
        yield running


def through(proxy: CuttingProxy, uri: str, **more: Any) -> PostgresJournal:
    query = uri.partition("&")[2]
    return opened(f"postgresql://postgres@/postgres?host={proxy.home}&{query}", **more)


FORGOTTEN = ForgottenSubject("s", "ann", "dpo", "2026-11-22", "asked")
ADOPTED = Adoption(1, [note("x"), note("y")], 2, DrainMark(3, 1, 1))
CHANGES: dict[str, tuple[Callable[[PostgresJournal, SessionKey], None], int]] = {
    "an append": (lambda journal, key: journal.append(key, 2, [note("c"), note("d")]), 0),
    "the first append": (lambda journal, key: journal.append(beside(key), 0, [note("c")]), 0),
    "rewrite": (lambda journal, key: journal.rewrite(key, {0: note("x")}), 1),
    "truncate": (lambda journal, key: journal.truncate(key, 1), 1),
    "adopt": (lambda journal, key: journal.adopt(key, ADOPTED), 1),
    "drop_manifests": (lambda journal, key: journal.drop_manifests(key), 1),
    "replaced manifests": (lambda journal, key: journal.drop_manifests(key, [Manifest("ef", "{}")]), 1),
    "put_manifest": (lambda journal, key: journal.put_manifest(key, "cd", "{}"), 0),
    "put_manifest of a generation": (lambda journal, key: journal.put_manifest(key, "cd", "{}", generation=0), 0),
    "recount": (lambda journal, key: journal.recount(key, 2, DrainMark()), 1),
    "forget": (lambda journal, key: journal.forget(key.tenant, FORGOTTEN), 0),
    "see": (lambda journal, key: journal.see(f"x/{key.tenant}", 4), 0),
}


def beside(key: SessionKey) -> SessionKey:
    return key._replace(session="t")


def everything(journal: PostgresJournal, key: SessionKey) -> list[object]:
    logs = [(journal.read(one, 0), journal.length(one), journal.generation(one)) for one in (key, beside(key))]
    forgotten = journal.forgotten(key.tenant)
    return [*logs, journal.manifests(key), forgotten, journal.seen(f"x/{key.tenant}"), journal.drained(key)]


@pytest.mark.parametrize("lost", ["request", "answer", "wait"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_lost_on_its_way_is_done_once(proxy: CuttingProxy, uri: str, change: str, lost: str) -> None:
    """Whichever of its requests, the one that commits among them, and whether or not that has landed."""
    act, generations = CHANGES[change]
    with closing(through(proxy, uri)) as journal:

        def prepared(tenant: str) -> SessionKey:
            key = SessionKey(tenant, "s")
            journal.append(key, 0, [note("a"), note("b")])
            journal.put_manifest(key, "ab", "{}")
            return key

        undisturbed = prepared("undisturbed")
        act(journal, undisturbed)
        expected = everything(journal, undisturbed)
        for after in count():
            key, before = prepared(f"t{after}"), proxy.cuts
            proxy.cut(lost, after)
            act(journal, key)
            was_cut, proxy._armed = proxy.cuts > before, None
            assert everything(journal, key) == expected
            assert (journal.generation(key), journal.altered(key.tenant)) == (generations, [])
            if not was_cut:
                break
        assert after > 0


def test_an_append_that_still_runs_at_the_server_when_it_is_sent_again_lands_once(
    proxy: CuttingProxy, uri: str
) -> None:
    with closing(through(proxy, uri)) as journal, closing(opened(uri)) as other:
        journal.append(KEY, 0, [note("a")])
        with other.database.connection() as db, db.transaction():
            db.execute(f"SELECT 1 FROM {PostgresUri.parse(uri).schema}.logs FOR UPDATE")
            proxy.cut("commit")
            writer = threading.Thread(target=journal.append, args=(KEY, 1, [note("b")]))
            writer.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%moved%%'"
            while other.database.execute(waiting) != [(2,)]:  # the one that was cut off, and the one after it
                assert writer.is_alive()
        writer.join(60)
        assert other.read(KEY, 0) == [note("a"), note("b")]
        assert other.length(KEY) == 2


def test_somebody_else_s_record_in_the_place_is_not_taken_for_one_s_own(proxy: CuttingProxy, uri: str) -> None:
    """Not even where it says the same."""
    with closing(through(proxy, uri)) as journal, closing(opened(uri)) as other:
        journal.append(KEY, 0, [note("a")])
        other.append(KEY, 1, [note("same")])
        proxy.cut("request")
        with pytest.raises(Conflict):
            journal.append(KEY, 1, [note("same")])
        assert other.length(KEY) == 2


def test_a_server_that_stays_away_is_an_error_that_says_what_is_not_known(proxy: CuttingProxy, uri: str) -> None:
    with closing(through(proxy, uri, patience_seconds=0.2)) as journal:
        journal.append(KEY, 0, [note("a")])
        proxy.refuses = True
        proxy.cut("answer")
        with pytest.raises(StoreUnavailable, match="whether it was written is not known: append it again"):
            journal.append(KEY, 1, [note("b")])
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            journal.append(KEY, 1, [note("c")])
        with pytest.raises(StoreUnavailable):
            journal.length(KEY)
        proxy.refuses = False
        assert journal.read(KEY, 0) == [note("a"), note("b")]


def test_a_server_that_falls_silent_is_taken_for_gone(
    proxy: CuttingProxy, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "ANSWER_SECONDS", 0.2)
    with closing(through(proxy, uri)) as journal:
        journal.append(KEY, 0, [note("a")])
        for act in (
            lambda: journal.append(KEY, 1, [note("b")]),
            lambda: journal.see("x", 1),
            lambda: journal.truncate(KEY, 1),
        ):
            before = proxy.cuts
            proxy.cut("silence")
            act()
            assert proxy.cuts == before + 1
        assert (journal.read(KEY, 0), journal.generation(KEY), journal.seen("x")) == ([note("a")], 1, 1)


def test_a_put_whose_answer_is_lost_is_unknown(proxy: CuttingProxy, uri: str) -> None:
    with closing(through(proxy, uri)) as journal:
        objects = PostgresObjects(journal.database)
        objects.put("a/0", b"")
        for what, then in (("answer", "conflicted"), ("request", "committed")):
            proxy.cut(what)
            assert objects.put(f"a/{what}", b"x") == "unknown"
            assert objects.put(f"a/{what}", b"y") == then
        assert objects.get("a/answer") == b"x"


# -- the server ----------------------------------------------------------------------------------------------------


def test_a_restarted_server_is_connected_to_again(tmp_path: Path) -> None:
    with running() as server:
        with closing(opened(server.uri("a"))) as journal:
            in_threads([lambda n=n: journal.append(SessionKey("t", f"{n}"), 0, [note("a")]) for n in range(6)])  # type: ignore[misc]
            server.stop("fast")
            server.start()
            for n in range(6):
                journal.append(SessionKey("t", f"{n}"), 1, [note("b")])
                assert journal.read(SessionKey("t", f"{n}"), 0) == [note("a"), note("b")]
            server.stop()
            later = threading.Timer(0.5, server.start)
            later.start()
            journal.append(KEY, 0, [note("waited for it")])
            later.join()
        with pytest.raises(StoreUnavailable, match="No such file or directory"):
            opened(server.uri("a").replace(str(server.home)[1:], "nowhere").replace("ctxpg-", "none-"))


def test_a_commit_waits_for_the_disk_whatever_the_server_is_set_to(uri: str) -> None:
    query = "SELECT current_setting('synchronous_commit')"
    for given, used in (("off", "on"), ("local", "local"), ("on", "on")):
        with closing(opened(f"{uri}&options=-csynchronous_commit%3D{given}")) as journal:
            assert execute(journal, query) == [(used,)]


def test_a_row_that_somebody_holds_is_an_error_in_time(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(KEY, 0, [note("a")])
    monkeypatch.setattr(postgres_database, "LOCK_SECONDS", 0.2)
    schema = journal.database.uri.schema
    with closing(opened(f"{journal.database.uri.conninfo}&schema={schema}")) as hasty:
        with journal.database.connection() as db, db.transaction():
            db.execute(f"SELECT 1 FROM {schema}.logs FOR UPDATE")
            with pytest.raises(StoreLocked, match="nothing was written; try again"):
                hasty.append(KEY, 1, [note("b")])
            with pytest.raises(StoreLocked):
                hasty.truncate(KEY, 0)
            assert hasty.length(KEY) == 1
        hasty.append(KEY, 1, [note("b")])


def test_a_statement_that_takes_too_long_is_broken_off(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "STATEMENT_SECONDS", 0.2)
    with closing(PostgresDatabase(journal.database.uri)) as hasty, pytest.raises(StoreLocked, match="timeout"):
        hasty.execute("SELECT pg_sleep(60)")


def test_a_process_has_a_bounded_number_of_connections(journal: PostgresJournal) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    name = f"bounded{os.getpid()}"
    uri = f"{journal.database.uri.conninfo}&schema={journal.database.uri.schema}&application_name={name}"
    with closing(opened(uri)) as busy:
        in_threads([lambda n=n: append_at_end(busy, SessionKey("t", f"{n % 3}"), note("x")) for n in range(30)])  # type: ignore[misc]
        ((connections,),) = journal.database.execute(query, (name,))
        assert 1 <= connections <= CONNECTIONS
        assert sum(busy.length(SessionKey("t", f"{n}")) for n in range(3)) == 30


def test_threads_and_a_child_use_connections_of_their_own(journal: PostgresJournal) -> None:
    journal.append(KEY, 0, [note("a")])
    pid = os.fork()
    if pid == 0:
        try:
            for n in range(5):
                append_at_end(journal, KEY, note(f"child {n}"))
            journal.close()
            os._exit(0)
        finally:
            os._exit(1)
    for n in range(5):
        append_at_end(journal, KEY, note(f"parent {n}"))
    assert os.waitpid(pid, 0)[1] == 0
    texts = [record.body for record in journal.read(KEY, 1)]
    for who in ("child", "parent"):
        assert [text for text in texts if who in text] == [note(f"{who} {n}").body for n in range(5)]


# -- other machines ------------------------------------------------------------------------------------------------


def test_an_append_is_one_statement_and_reads_no_log(
    journal: PostgresJournal, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = PostgresDatabase.execute

    def noted(self: PostgresDatabase, query: str, *more: Any, **named: Any) -> Any:
        asked.append(" ".join(query.split()[:3]))
        return execute(self, query, *more, **named)

    with closing(opened(uri)) as other:
        monkeypatch.setattr(PostgresDatabase, "execute", noted)
        for n in range(50):
            journal.append(KEY, n, [message(n + 1)])
        assert asked == ["SELECT length, generation,"] + ["WITH moved AS"] * 50
        asked.clear()
        other.append(KEY, 50, [message(51)])
        assert asked == ["SELECT length, generation,", "WITH moved AS"]
        asked.clear()
        with pytest.raises(Conflict):
            journal.append(KEY, 50, [message(51)])  # it does not know of the other machine's
        assert asked == ["WITH moved AS", "SELECT length, generation,"]
        asked.clear()
        journal.append(KEY, 51, [message(52)])
        assert asked == ["WITH moved AS"]


def test_what_another_machine_replaced_is_a_conflict(journal: PostgresJournal, uri: str) -> None:
    with closing(opened(uri)) as other:
        journal.append(KEY, 0, [note("a"), note("b")])
        for act in (
            lambda: other.rewrite(KEY, {0: note("x")}),
            lambda: (other.truncate(KEY, 1), other.append(KEY, 1, [note("c")], generation=2)),
        ):
            act()
            with pytest.raises(Conflict):
                journal.append(KEY, 2, [note("late")], generation=0)
        journal.append(KEY, 2, [note("d")], generation=2)
        assert other.read(KEY, 0) == [note("x"), note("c"), note("d")]


def test_machines_that_append_at_once_get_one_order_without_gaps(uri: str) -> None:
    journals = [opened(uri) for _ in range(4)]
    landed: list[list[int]] = [[] for _ in journals]

    def write(which: int) -> None:
        for n in range(25):
            landed[which].append(append_at_end(journals[which], KEY, note(f"{which}-{n}")))

    in_threads([lambda which=which: write(which) for which in range(4)])  # type: ignore[misc]
    bodies = [record.body for record in journals[0].read(KEY, 0)]
    assert (
        sorted(position for positions in landed for position in positions)
        == list(range(100))
        == list(range(len(bodies)))
    )
    for which, positions in enumerate(landed):
        assert [bodies[position] for position in positions] == [note(f"{which}-{n}").body for n in range(25)]
    for one in journals:
        one.close()


def test_two_schemas_of_a_database_are_two_stores(shared_postgres: PostgresServer) -> None:
    names = [f"p{next(_schemas)}" for _ in range(2)]
    one, two = (opened(shared_postgres.uri(name)) for name in names)
    one.append(KEY, 0, [note("one")])
    PostgresObjects(one.database).put("a", b"one")
    assert (two.length(KEY), two.sessions("acme"), list(PostgresObjects(two.database).list(""))) == (0, [], [])
    assert one.id != two.id
    with closing(opened(shared_postgres.uri(names[0]))) as again:
        assert (again.id, again.length(KEY)) == (one.id, 1)
    one.close()
    two.close()


# -- rows that are not what was written ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE logs SET length = 1 WHERE session = 's'", "log"),
        ("UPDATE logs SET generation = generation + 1 WHERE session = 's'", "log"),
        ("UPDATE logs SET mac = '' WHERE session = 's'", "log"),
        (
            "UPDATE logs SET (length, mac) = (SELECT length, mac FROM logs WHERE session = 't') WHERE session = 's'",
            "log",
        ),
        ("DELETE FROM logs WHERE session = 's'", "log"),
        ("UPDATE logs SET forgotten = 0 WHERE session = 's'", "log"),
        ("UPDATE forgotten SET why = 'not asked' WHERE session = 's'", "forgotten"),
        ("DELETE FROM forgotten WHERE session = 's'", "forgotten"),
    ],
)
def test_a_row_that_was_altered_is_refused_and_named(journal: PostgresJournal, statement: str, row: Any) -> None:
    for key in (KEY, OTHER):
        journal.append(key, 0, [message(1), message(2)] if key == KEY else [message(1)])
    journal.forget("acme", FORGOTTEN)
    assert journal.altered("acme") == []
    execute(journal, statement)
    assert AlteredRow("s", row) in journal.altered("acme")
    assert not any(altered.session == "t" for altered in journal.altered("acme"))
    if row == "forgotten":
        with pytest.raises(Damaged, match="who was forgotten"):
            journal.forgotten("acme", "s")
        return
    if not statement.startswith("DELETE"):
        for refused in (lambda: journal.length(KEY), lambda: journal.append(KEY, 2, [message(3)])):
            with pytest.raises(Damaged, match="row of its log is not what was written"):
                refused()
    else:
        assert journal.integrity() == ["2 records of tenant 'acme', session 's' belong to no log"]
    journal.recount(KEY, 2, DrainMark())
    assert (journal.altered("acme"), journal.length(KEY), journal.integrity()) == ([], 2, [])
    journal.append(KEY, 2, [message(3)], generation=journal.generation(KEY))


def test_a_row_of_another_key_is_refused(journal: PostgresJournal, uri: str) -> None:
    journal.append(KEY, 0, [note("a")])
    with closing(opened(uri, keys=MasterKeys(b"x" * 32))) as other, pytest.raises(Damaged, match="with other keys"):
        other.append(KEY, 1, [note("b")])


# -- tables and their versions ---------------------------------------------------------------------------------------


def test_processes_that_open_a_new_store_at_once_make_one(uri: str) -> None:
    journals: list[Any] = in_threads([lambda: opened(uri)] * 8)
    assert len({journal.id for journal in journals}) == 1
    journals[0].append(KEY, 0, [note("a")])
    assert [journal.length(KEY) for journal in journals] == [1] * 8
    for journal in journals:
        journal.close()


def test_tables_of_a_later_version_are_refused_and_left_as_they_are(journal: PostgresJournal, uri: str) -> None:
    journal.append(KEY, 0, [note("a")])
    execute(journal, "UPDATE meta SET value = '2' WHERE name = 'version'")
    with pytest.raises(UnsupportedVersion, match="schema_version 2; this program reads up to 1: upgrade ctxsteward"):
        opened(uri)
    assert execute(journal, "SELECT value FROM meta WHERE name = 'version'") == [("2",)]


def test_tables_of_an_earlier_version_are_brought_up_once(
    journal: PostgresJournal, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(KEY, 0, [note("a")])
    later = (
        *postgres_database._MIGRATIONS,
        ("ALTER TABLE logs ADD COLUMN more bigint", "CREATE TABLE added (n bigint)"),
    )
    monkeypatch.setattr(postgres_database, "_MIGRATIONS", later)
    monkeypatch.setattr(postgres_database, "VERSION", 2)
    journals: list[Any] = in_threads([lambda: opened(uri)] * 4)
    assert {other.id for other in journals} == {journal.id}
    assert execute(journal, "SELECT value FROM meta WHERE name = 'version'") == [("2",)]
    assert execute(journal, "SELECT count(*) FROM added") == [(0,)]
    for other in journals:
        other.close()


def test_a_step_that_fails_changes_nothing(journal: PostgresJournal, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = (*postgres_database._MIGRATIONS, ("CREATE TABLE added (n bigint)", "SELECT 1 / 0"))
    monkeypatch.setattr(postgres_database, "_MIGRATIONS", later)
    monkeypatch.setattr(postgres_database, "VERSION", 2)
    with pytest.raises(StoreError, match="division by zero; the tables were not made"):
        opened(uri)
    assert execute(journal, "SELECT to_regclass('added')::text") == [(None,)]
    assert execute(journal, "SELECT value FROM meta WHERE name = 'version'") == [("1",)]


@pytest.mark.parametrize(
    "table",
    ["CREATE TABLE {}.meta (name text, value text)", "CREATE TABLE {}.meta (n int)", "CREATE TABLE {}.records (n int)"],
)
def test_tables_of_something_else_are_refused(shared_postgres: PostgresServer, uri: str, table: str) -> None:
    schema = PostgresUri.parse(uri).schema
    with psycopg.connect(PostgresUri.parse(uri).conninfo, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {schema}")  # type: ignore[arg-type]
        db.execute(table.format(schema))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="tables of something else; name another schema"):
        opened(uri)


def test_a_user_who_may_not_make_the_schema_is_told_what_to_do(shared_postgres: PostgresServer, uri: str) -> None:
    parts = PostgresUri.parse(uri)
    user = f"{parts.schema}_user"
    theirs = uri.replace("postgres@", f"{user}@")
    with psycopg.connect(parts.conninfo, autocommit=True) as db:
        db.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'hunter2'")  # type: ignore[arg-type]
        with pytest.raises(StoreError, match=r"permission denied.*let its user make and use the schema: CREATE SCHEMA"):
            opened(theirs.replace(f"{user}@", f"{user}:hunter2@"))
        db.execute(f"CREATE SCHEMA {parts.schema} AUTHORIZATION {user}")  # type: ignore[arg-type]
    with closing(opened(theirs)) as journal:
        journal.append(KEY, 0, [note("a")])
        journal.truncate(KEY, 0)
        journal.scrub()


def test_a_database_of_another_encoding_is_refused(shared_postgres: PostgresServer) -> None:
    name = f"latin{next(_schemas)}"
    with psycopg.connect(PostgresUri.parse(shared_postgres.uri("x")).conninfo, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="its encoding is LATIN1; make a database with ENCODING 'UTF8'"):
        opened(shared_postgres.uri("x").replace("/postgres?", f"/{name}?"))


URIS = [
    ("postgresql://a@h/d", ("postgresql://a@h/d", "postgresql://h/d?schema=ctxsteward", "ctxsteward", None, None)),
    (
        "postgres://a:hunter2@h:6432/d?sslmode=require&schema=team_1",
        ("postgres://a:hunter2@h:6432/d?sslmode=require", "postgresql://h/d?schema=team_1", "team_1", None, None),
    ),
    (
        "postgresql:///d?objects=s3://b/p?region=eu%26x=1&keys=/run/keys",
        (
            "postgresql:///d",
            "postgresql://localhost/d?schema=ctxsteward",
            "ctxsteward",
            "s3://b/p?region=eu&x=1",
            "/run/keys",
        ),
    ),
]


@pytest.mark.parametrize(("text", "parts"), URIS)
def test_a_uri_is_taken_apart(text: str, parts: tuple[object, ...]) -> None:
    assert PostgresUri.parse(text, schema="ctxsteward") == parts


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://a:hunter2@h/d?schema=Team",
        "postgresql://a:hunter2@h/d?schema=pg_x",
        "postgresql://a:hunter2@h/d?none=1",
        "postgresql://a:hunter2@[h/d",
        "postgresql://a:hunter2@h/d?schema=",
        "postgresql://a:hunter2@h/d?schema=a;b",
    ],
)
def test_a_bad_uri_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(InputError) as refused:
        PostgresUri.parse(text)
    assert "hunter2" not in str(refused.value)


def test_text_that_is_none_is_refused(journal: PostgresJournal) -> None:
    with pytest.raises(StoreError, match="nothing was written"):
        journal.append(KEY, 0, [JournalRecord("note", "\ud800")])
    journal.append(KEY, 0, [JournalRecord("note", "a\x00b\x01c\x01\x02d\x01\x01", id="\x00")])
    assert (
        journal.by_id(KEY, "\x00")
        == journal.read(KEY, 0)[0]
        == JournalRecord("note", "a\x00b\x01c\x01\x02d\x01\x01", id="\x00")
    )


# -- erasure -----------------------------------------------------------------------------------------------------


def files_with(server: PostgresServer, word: bytes, database: str) -> list[str]:
    """Files of a database's tables that hold a word, as they are on disk."""
    with psycopg.connect(PostgresUri.parse(server.uri("x")).conninfo, autocommit=True) as db:
        db.execute("CHECKPOINT")
        ((oid,),) = db.execute("SELECT oid FROM pg_database WHERE datname = %s", (database,)).fetchall()
    paths = (path for path in (server.home / "data/base" / str(oid)).iterdir() if path.is_file())
    return [path.name for path in paths if word in path.read_bytes()]


@pytest.mark.parametrize("drop", ["rewrite", "truncate", "drop_manifests"])
def test_scrubbing_leaves_no_byte_and_rewrites_what_it_must(shared_postgres: PostgresServer, drop: str) -> None:
    name = f"scrub{next(_schemas)}"
    with psycopg.connect(PostgresUri.parse(shared_postgres.uri("x")).conninfo, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    uri = shared_postgres.uri("a").replace("/postgres?", f"/{name}?")
    files = "SELECT relname, relfilenode FROM pg_class WHERE relname LIKE 'records\\__' ORDER BY relname"
    with closing(opened(uri)) as journal:
        for n in range(40):
            journal.append(SessionKey("acme", f"s{n}"), 0, [note("KEPT"), note("SECRET" if n == 7 else "KEPT")])
            journal.put_manifest(SessionKey("acme", f"s{n}"), f"{n:04x}", '"HIDDEN"' if n == 7 else '"SHOWN"')
        before = dict(execute(journal, files))
        word = b"HIDDEN" if drop == "drop_manifests" else b"SECRET"
        assert files_with(shared_postgres, word, name)
        key = SessionKey("acme", "s7")
        {
            "rewrite": lambda: journal.rewrite(key, {1: note("x")}),
            "truncate": lambda: journal.truncate(key, 1),
            "drop_manifests": lambda: journal.drop_manifests(key),
        }[drop]()
        assert files_with(shared_postgres, word, name)
        journal.scrub()
        assert files_with(shared_postgres, word, name) == []
        after = dict(execute(journal, files))
        assert sum(before[part] != after[part] for part in before) == (drop != "drop_manifests")
        assert len(before) == PARTS
        assert execute(journal, "SELECT count(*) FROM unscrubbed") == [(0,)]
        assert [journal.length(SessionKey("acme", f"s{n}")) for n in (6, 8)] == [2, 2]
        assert len(journal.manifests(SessionKey("acme", "s8"))) == 1
        journal.scrub()
        assert dict(execute(journal, files)) == after
        journal.append(SessionKey("acme", "s6"), 2, [note("goes on")])


def test_a_reader_that_holds_a_table_holds_the_scrubbing_up_which_says_so_and_goes_on_later(
    journal: PostgresJournal, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "LOCK_SECONDS", 0.2)
    journal.append(KEY, 0, [note("a")])
    journal.truncate(KEY, 0)
    with closing(opened(uri)) as hasty:
        with journal.database.connection() as db, db.transaction():
            db.execute(f"SELECT count(*) FROM {journal.database.uri.schema}.records")
            with pytest.raises(StoreLocked, match="not scrubbed; repeat the erasure"):
                hasty.scrub()
        assert execute(journal, "SELECT count(*) FROM unscrubbed") == [(1,)]
        hasty.scrub()
    assert execute(journal, "SELECT count(*) FROM unscrubbed") == [(0,)]


def test_a_destroyed_data_key_is_scrubbed_and_other_objects_stay_where_they_are(journal: PostgresJournal) -> None:
    objects = PostgresObjects(journal.database)
    for key in ("keys/a/1.json", "keys/a/2.json", "blobs/a/1", "keyst/x"):
        objects.put(key, b"x")
    files = (
        "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = to_regnamespace(%s) "
        "AND relname LIKE 'objects%%' AND relkind = 'r'"
    )
    before = dict(journal.database.execute(files, (journal.database.uri.schema,)))
    objects.delete("blobs/a/1")
    journal.scrub()
    assert dict(journal.database.execute(files, (journal.database.uri.schema,))) == before
    objects.delete("keys/a/1.json")
    journal.scrub()
    after = dict(journal.database.execute(files, (journal.database.uri.schema,)))
    assert {name for name in after if after[name] != before[name]} == {"objects_keys"}
    assert [found.key for found in objects.list("")] == ["keys/a/2.json", "keyst/x"]


def test_the_catalog_keeps_no_statistics_of_what_people_said(journal: PostgresJournal) -> None:
    for n in range(30):
        journal.append(SessionKey("t", f"{n}"), 0, [message(1, "said", id=f"i{n}")])
    schema = journal.database.uri.schema
    with journal.database.connection() as db:
        db.execute(f"ANALYZE {schema}.records")
    kept = journal.database.execute("SELECT DISTINCT attname::text FROM pg_stats WHERE schemaname = %s", (schema,))
    assert "session" in {name for (name,) in kept}
    assert {name for (name,) in kept}.isdisjoint({"body", "wire", "id", "why", "who", "principal"})


# -- a pooler --------------------------------------------------------------------------------------------------------


def test_it_works_behind_a_pooler_that_gives_each_transaction_another_connection(
    shared_postgres: PostgresServer, uri: str
) -> None:
    with pooled(shared_postgres) as folder:
        behind = f"postgresql://postgres@/postgres?host={folder}&port=6432&schema={PostgresUri.parse(uri).schema}"
        journals = [opened(behind) for _ in range(3)]

        def write(which: int) -> None:
            for n in range(20):
                append_at_end(journals[which], KEY, note(f"{which}-{n}"))
                journals[which].put_manifest(KEY, f"{which:02x}{n:02x}", "{}")
                journals[which].see("x", n)
            journals[which].forget("acme", ForgottenSubject("s", f"{which}", "dpo", "now", "asked"))

        in_threads([lambda which=which % 3: write(which) for which in range(3)])  # type: ignore[misc]
        assert (journals[0].length(KEY), journals[1].seen("x"), len(journals[2].forgotten("acme"))) == (60, 19, 3)
        assert len(journals[0].manifests(KEY)) == 60
        journals[0].rewrite(KEY, {0: note("x")})
        journals[1].scrub()
        assert journals[2].read(KEY, 0, 1) == [note("x")]
        objects = PostgresObjects(journals[0].database)
        assert [objects.put("a", b"1"), objects.put("a", b"2"), objects.get("a")] == ["committed", "conflicted", b"1"]
        with psycopg.connect(PostgresUri.parse(behind).conninfo, autocommit=True, prepare_threshold=None) as other:
            for _ in range(4):  # nothing of ours is left in the server's sessions
                found = other.execute(
                    "SELECT current_setting('search_path'), current_setting('lock_timeout')"
                ).fetchone()
                assert found == ('"$user", public', "0")
        for journal in journals:
            journal.close()


def test_manifests_come_in_the_order_of_their_making(journal: PostgresJournal) -> None:
    for n in range(5):
        journal.put_manifest(KEY, f"a{9 - n}", f"{n}")
    assert journal.manifests(KEY, limit=3) == [Manifest(f"a{9 - n}", f"{n}") for n in range(3)]
