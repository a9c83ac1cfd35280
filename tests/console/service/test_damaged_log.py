"""One log whose row was altered: it is named, and every other session of the tenant is listed as before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.pages.sessions import sessions_page
from ctxsteward.console.terminal.stores import open_uri
from ctxsteward.envelope import Store
from ctxsteward.store.postgres_database import PostgresUri

from ...postgres import PostgresServer
from .serving import FREE, served

KEY = "5f" * 32
ALTERATIONS = {
    "length": "UPDATE logs SET length = length - 1 WHERE session = 'b'",
    "generation": "UPDATE logs SET generation = generation + 1 WHERE session = 'b'",
    "no code": "UPDATE logs SET mac = '' WHERE session = 'b'",
    "another's code": "UPDATE logs SET mac = (SELECT mac FROM logs WHERE session = 'c') WHERE session = 'b'",
}


class Altered(NamedTuple):
    """A store with the sessions a, b and c, of which b is altered."""

    uri: str
    store: Store

    def run(self, *arguments: str, code: int) -> str:
        result = CliRunner().invoke(cli, [*arguments, "--store", self.uri])
        assert result.exit_code == code, (result.output, result.stderr, result.exception)
        return result.stdout


@pytest.fixture(params=["file", "postgres"])
def alter(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Altered]]:
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    opened: list[Store] = []

    def make(statement: str) -> Altered:
        if request.param == "file":
            uri = f"file:{tmp_path / 'store'}"
        else:
            server: PostgresServer = request.getfixturevalue("shared_postgres")
            uri = server.uri("altered")
            with psycopg.connect(PostgresUri.parse(uri).conninfo, autocommit=True) as db:
                db.execute("DROP SCHEMA IF EXISTS altered CASCADE")
        with open_uri(uri, None) as store:
            for id in "abc":
                session = store.session(id)
                session.append({"role": "user", "content": f"Hello from {id}."})
                session.append({"role": "assistant", "content": "Hello."})
        if request.param == "file":
            with closing(sqlite3.connect(tmp_path / "store" / "journal.sqlite")) as db, db:
                db.execute(statement)
        else:
            with psycopg.connect(PostgresUri.parse(uri).conninfo, autocommit=True) as db:
                db.execute("SET search_path TO altered")
                assert db.execute(statement).rowcount == 1
        opened.append(open_uri(uri, None))
        return Altered(uri, opened[-1])

    yield make
    for store in opened:
        store.close()


@pytest.mark.parametrize("statement", ALTERATIONS.values(), ids=ALTERATIONS)
def test_one_altered_log_is_named_and_the_others_are_listed(statement: str, alter: Callable[[str], Altered]) -> None:
    found = alter(statement)
    on = served(found.store, limits=FREE)
    page = on.get("/api/sessions")
    assert page["items"] == [{"id": "a", "records": 4}, {"id": "b", "records": None}, {"id": "c", "records": 4}]
    assert [(one["kind"], one["field"]) for one in page["findings"]] == [("unreadable_session", "b")]
    assert on.get("/api/sessions/a/refs/1")["message"]["content"] == "Hello from a."

    html = on.client.get("/")
    assert html.status_code == 200
    assert "Hello from a." in html.text
    assert "Hello from c." in html.text
    assert "Hello from b." not in html.text
    assert html.text.count("Its log cannot be read") == 1
    rows = sessions_page(found.store, "default").rows
    assert [(row.id, row.messages, row.is_damaged) for row in rows] == [
        ("a", 2, False),
        ("b", None, True),
        ("c", 2, False),
    ]

    listed = [json.loads(line) for line in found.run("store", "ls", "journal/", "--json", code=1).splitlines()]
    assert [(row["name"], row["size"], row["fault"] is None) for row in listed] == [
        ("journal/default/a", 4, True),
        ("journal/default/b", None, False),
        ("journal/default/c", 4, True),
    ]
    assert "the journal's row of its log is not what was written" in found.run("store", "ls", "journal/", code=1)
    assert found.run("store", "ls", "journal/default/a", code=0).count("\n") == 1
    assert json.loads(found.run("store", "stats", "--json", code=0))["sessions"] == 3
