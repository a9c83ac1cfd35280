"""All commands on a store in PostgreSQL, from two machines that share the server and the master key alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.schemas import InputError
from ctxsteward.store import MasterKeys
from ctxsteward.store.objects.s3 import S3Objects
from ctxsteward.store.postgres_database import PostgresUri

from ..postgres import PostgresServer
from ..s3_servers import S3Server

DEMO = str(files("ctxsteward.console") / "data" / "demo.jsonl")
PROFILE = str(files("ctxsteward.console") / "data" / "demo-profile.yaml")
KEY = "5f" * 32


class Machine:
    """Runs commands in a folder of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, uri: str, key: str | None = KEY) -> None:
        folder.mkdir()
        self._patch, self.folder, self.uri, self._key = monkeypatch, folder, uri, key

    def run(self, *arguments: str, code: int = 0) -> Result:
        self._patch.chdir(self.folder)
        self._patch.delenv("CTXSTEWARD_MASTER_KEY", raising=False)
        if self._key is not None:
            self._patch.setenv("CTXSTEWARD_MASTER_KEY", self._key)
        result = CliRunner().invoke(cli, [*arguments, "--store", self.uri])
        assert result.exit_code == code, (result.output, result.stderr, result.exception)
        return result

    def value(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def rows(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self.run(*arguments, "--json").stdout.splitlines()]


FIRST_APPEND = """
import sys
import psycopg

statements = 0
execute = psycopg.Cursor.execute

def counted(*given, **more):
    global statements
    statements += 1
    return execute(*given, **more)

psycopg.Cursor.execute = counted
import os
from ctxsteward.envelope import open_store
from ctxsteward.store import MasterKeys

with open_store(sys.argv[1], keys=MasterKeys.from_environment(os.environ)) as store:
    ref = store.session("chat").append({"role": "user", "content": "And now?"}).ref
print(ref, statements)
"""


def test_the_first_append_of_a_new_process_asks_no_more_of_a_long_session(
    shared_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prints how long a process takes from its start to its end with one append; `pytest -s` shows it."""
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY", KEY)
    statements = {}
    for messages in (20, 2_000):
        uri = shared_postgres.uri(f"first{messages}")
        with open_store(uri, keys=MasterKeys.from_environment({"CTXSTEWARD_MASTER_KEY": KEY})) as store:
            store.session("chat").extend(
                {"role": ("user", "assistant")[n % 2], "content": f"Message {n}. " * 20} for n in range(messages)
            )
        began, spent = time.monotonic(), os.times()
        command = [sys.executable, "-c", FIRST_APPEND, uri]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        seconds, now = time.monotonic() - began, os.times()
        cpu = now.children_user + now.children_system - spent.children_user - spent.children_system
        print(f"{messages:,} messages: {seconds:.2f} s from the start of a process to its end, {cpu:.2f} s of CPU")
        ref, asked = done.stdout.split()
        assert ref == f"§{messages + 1}"
        statements[messages] = int(asked)
    assert statements[2_000] == statements[20] > 0


def test_every_command_works_from_either_machine(
    shared_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = shared_postgres.uri("commands")
    one, two = (Machine(monkeypatch, tmp_path / name, uri) for name in ("one", "two"))
    refused = one.run("store", "stats", code=2)
    assert "nothing is there; check database and schema, or name another store" in refused.stderr
    built = one.value("build", DEMO, "--session", "demo", "--budget", "dynamic_tokens=900")
    address = str(built["address"])
    for machine in (one, two):
        assert machine.value("replay", "--from", address) == built
        assert machine.value("resolve", "tool:3", "--session", "demo")["content"].startswith("ERROR: permission denied")
        assert machine.value("report", "demo") == one.value("report", "demo")
        assert not machine.value("store", "fsck", "--read-data")["damaged"]
    again = two.value("build", DEMO, "--session", "demo", "--budget", "dynamic_tokens=900")
    assert again["address"] == address

    assert two.value("cards", "rebuild", "--session", "demo")
    cards = one.rows("cards", "ls", "demo") or one.value("cards", "ls", "demo")
    assert len(cards) > 0
    assert one.value("backfill", "--snapshot", "--profile", PROFILE)
    counted = two.value("store", "stats")
    assert (counted["sessions"], counted["waiting_sessions"], counted["objects"]["profiles"]["objects"]) == (1, 0, 1)
    names = [row["name"] for row in one.rows("store", "ls")]
    assert "journal/default/demo" in names
    assert "tenants/default/check.json" in names
    assert two.value("store", "gc", "--grace", "0s")["blobs"] == []

    two.run("store", "forget", "--session", "demo", "--who", "dpo", "--why", "asked")
    assert one.value("store", "stats")["forgotten"] == 1
    assert "was erased by dpo" in one.run("resolve", "1", "--session", "demo", code=2).stderr
    assert not one.value("store", "fsck", "--read-data")["damaged"]
    with open_store(uri, keys=MasterKeys(bytes.fromhex(KEY))) as store:
        database = store.journal.database  # type: ignore[attr-defined]
        for table in ("records", "manifests", "derived"):
            assert database.execute(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert sorted(path.name for name in ("one", "two") for path in (tmp_path / name).rglob("*")) == []


def test_machines_with_other_keys_or_none_are_told_so(
    shared_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = shared_postgres.uri("keyless")
    Machine(monkeypatch, tmp_path / "right", uri).run("build", DEMO, "--session", "demo")
    keyless = Machine(monkeypatch, tmp_path / "keyless", uri, None)
    assert "its machines need the same keys: set CTXSTEWARD_MASTER_KEY" in keyless.run("store", "ls", code=2).stderr
    wrong = Machine(monkeypatch, tmp_path / "wrong", uri, "ab" * 32)
    for command in (["resolve", "1", "--session", "demo"], ["build", DEMO, "--session", "demo"], ["store", "fsck"]):
        said = wrong.run(*command, code=2).stderr
        assert "tenant 'default' was written with other keys" in said
        assert "bring the key folder, or the master key, that it was written with" in said
    with psycopg.connect(PostgresUri.parse(uri).conninfo, autocommit=True) as db:
        ((body,),) = db.execute("SELECT body FROM keyless.objects WHERE key LIKE 'tenants/%'").fetchall()
        db.execute("UPDATE keyless.objects SET body = %s WHERE key LIKE 'tenants/%%'", (body.replace(b"a", b"b"),))
    right = Machine(monkeypatch, tmp_path / "again", uri)
    assert right.value("store", "fsck", code=1)["first"] == "check_altered"
    folder = tmp_path / "keys"
    shared = [
        Machine(monkeypatch, tmp_path / f"s{n}", f"{shared_postgres.uri('foldered')}&keys={folder}", None)
        for n in (1, 2)
    ]
    built = shared[0].value("build", DEMO, "--session", "demo")
    assert shared[1].value("replay", "--from", str(built["address"])) == built
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*.key")} == {0o600}


@pytest.mark.usefixtures("aws_environment")
def test_objects_may_lie_in_a_bucket(shared_postgres: PostgresServer, moto: S3Server, tmp_path: Path) -> None:
    bucket = moto.uri("beside")
    uri = shared_postgres.uri("bucketed", objects=bucket)
    keys = MasterKeys(bytes.fromhex(KEY))
    with open_store(uri, keys=keys) as store:
        store.session("s", tenant="acme").append({"role": "user", "content": "hello"})
        store.chain("profiles/acme/p/versions", tenant="acme").append(None, {"persona": "x"})
        assert store.write_behind is None
        assert bucket.partition("?")[0] in store.objects.uri
    with open_store(uri, keys=keys) as store:
        assert store.at("acme", "s").resolve("1").text == "hello"
        listed = [info.key for info in store.objects.list("")]
        assert listed == ["profiles/acme/p/versions/000000000001.json", "tenants/acme/check.json"]
        database = store.journal.database  # type: ignore[attr-defined]
        assert database.execute("SELECT count(*) FROM objects") == [(0,)]
        objects = S3Objects.open(bucket)
        assert [info.key for info in objects.list("")] == listed
        objects.close()
    with pytest.raises(InputError, match="nowhere that several machines reach; write objects=s3://BUCKET/PREFIX"):
        open_store(shared_postgres.uri("bucketed", objects=f"file:{tmp_path}"), keys=keys)


def test_without_the_client_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ctxsteward.store.postgres_database", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"needs psycopg: pip install 'ctxsteward\[postgres\]'"):
        open_store("postgresql://db/x", keys=MasterKeys(b"k" * 32))
