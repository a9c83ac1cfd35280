"""`ctxsteward store`: what each command prints for people and machines, how it ends, and what it refuses."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from importlib.resources import files
from pathlib import Path
from shutil import copy, copytree

import pytest
from click.testing import CliRunner, Result
from inline_snapshot import snapshot

from ctxsteward.console.cli import cli
from ctxsteward.console.commands.store import read_grace
from ctxsteward.envelope import Profile, open_store
from ctxsteward.schemas import InputError

from ..s3_servers import S3Server
from . import commands

run = partial(commands.run, "store")
value = partial(commands.value, "store")

DEMO = str(files("ctxsteward.console") / "data" / "demo.jsonl")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session, content under a key, an orphan and an unfinished write."""
    path = tmp_path_factory.mktemp("prepared") / "store"
    built = CliRunner().invoke(cli, ["build", DEMO, "--store", f"file:{path}", "--session", "demo", "--json"])
    assert built.exit_code == 0, built.stderr
    with open_store(f"file:{path}") as store:
        orphan = store.vault().put("demo", "meta", b"nobody refers to this")
        profile = Profile.from_text("You are brief.", name="p")
        store.profiles("p").commit(profile, who="ops", why="first", when="2026-11-22T04:00:00Z")
    (path / "objects" / "blobs" / "default" / orphan[:2] / f"x.{'0' * 16}.tmp").write_bytes(b"half")
    return path


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return copytree(prepared, tmp_path / "store", copy_function=copy)


# -- what is printed -----------------------------------------------------------------------------------------


def test_fsck_of_a_whole_store(folder: Path) -> None:
    found = value("fsck", "--read-data", "--store", f"file:{folder}")

    assert list(found) == ["damaged", "first", "checked", "damage", "notes", "repaired", "read_data", "subset"]
    assert (found["damaged"], found["first"], found["damage"], found["repaired"]) == (False, None, [], [])
    assert [note["kind"] for note in found["notes"]] == ["temporary_left"]
    assert found["checked"] == {"blobs": 1, "bytes": 21, "keys": 1, "links": 1, "manifests": 1} | {
        "records": found["checked"]["records"],
        "sessions": 1,
    }
    shown = run("fsck", "--store", f"file:{folder}").stdout
    assert "temporary_left" in shown
    assert shown.splitlines()[-1].startswith("whole: ")


def test_fsck_of_a_damaged_store_names_the_first_class_and_exits_1(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db, db:
        db.execute("UPDATE records SET wire = replace(wire, 'the', 'a') WHERE position = 3")
        db.execute("DELETE FROM records WHERE position = 5")
    found = value("fsck", "--store", f"file:{folder}", code=1)

    assert (found["damaged"], found["first"]) == (True, "record_altered")
    assert [one["field"] for one in found["damage"]] == ["journal/default/demo#3", "journal/default/demo#5"]
    shown = run("fsck", "--store", f"file:{folder}", code=1).stdout
    assert shown.splitlines()[-1].startswith("damaged: record_altered at journal/default/demo#3; 2 findings in ")


def test_fsck_repairs_what_it_can_and_says_what_not(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db, db:
        db.execute("UPDATE manifests SET body = '{}'")
    first = value("fsck", "--repair", "--store", f"file:{folder}")
    second = value("fsck", "--store", f"file:{folder}")

    assert [one["kind"] for one in first["repaired"]] == ["manifest_altered"]
    assert (first["damaged"], second["damaged"]) == (False, False)


def test_shares_of_a_store_are_checked_apart(folder: Path) -> None:
    shares = [value("fsck", "--subset", f"{n}/3", "--store", f"file:{folder}")["checked"] for n in (1, 2, 3)]

    assert sum(share.get("sessions", 0) for share in shares) == 1
    assert sum(share.get("blobs", 0) for share in shares) == 1


def test_gc_removes_what_is_old_and_leaves_what_is_young(folder: Path) -> None:
    store = f"file:{folder}"
    young = value("gc", "--store", store)
    said = value("gc", "--grace", "0s", "--dry-run", "--store", store)
    done = value("gc", "--grace", "0s", "--store", store)
    again = value("gc", "--grace", "0s", "--store", store)

    names = "dry_run blobs keys reports probes temporaries bytes kept_blobs young_blobs restored"
    assert list(done) == names.split()
    assert (young["blobs"], young["young_blobs"]) == ([], 1)
    assert (said["dry_run"], len(said["blobs"]), len(said["temporaries"])) == (True, 1, 1)
    assert done == said | {"dry_run": False}
    assert (again["blobs"], again["temporaries"], again["bytes"]) == ([], [], 0)
    assert run("gc", "--store", store).stdout.splitlines()[-1] == (
        "0 bytes removed; 0 blobs in use, 0 within the grace"
    )


def test_gc_of_a_damaged_chain_removes_nothing(folder: Path) -> None:
    (folder / "objects/profiles/default/p/versions/000000000001.json").write_text("{}")
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    refused = run("gc", "--grace", "0s", "--store", f"file:{folder}", code=2)

    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
    assert refused.stderr.count("\n") == 1
    assert "restore it from a backup" in refused.stderr


def test_ls_lists_objects_and_sessions(folder: Path) -> None:
    lines = [json.loads(line) for line in run("ls", "--json", "--store", f"file:{folder}").stdout.splitlines()]

    assert all(list(line) == ["name", "kind", "size", "modified_seconds", "fault"] for line in lines)
    assert [(line["kind"], line["name"][:22]) for line in lines] == [
        ("blobs", lines[0]["name"][:22]),
        ("log", "journal/default/demo"),
        ("keys", lines[2]["name"][:22]),
        ("profiles", "profiles/default/p/ver"),
        ("tenants", "tenants/default/check."),
    ]
    shown = run("ls", "journal/", "--store", f"file:{folder}").stdout.splitlines()
    assert [line.split()[-1] for line in shown] == ["journal/default/demo"]


def test_stats_count(folder: Path) -> None:
    found = value("stats", "--store", f"file:{folder}")

    assert list(found) == [
        "tenants",
        "sessions",
        "messages",
        "compactions",
        "stored_sessions",
        "versions",
        "objects",
        "waiting_sessions",
        "waiting_bytes",
        "oldest_waiting",
        "forgotten",
    ]
    with open_store(f"file:{folder}") as store:
        session = store.session("demo")
        assert (found["messages"], found["compactions"]) == (len(session), len(session.reports()))
    assert (found["tenants"], found["sessions"], found["versions"], found["forgotten"]) == (1, 1, 1, 0)
    assert found["objects"]["profiles"]["objects"] == 1
    assert "objects: blobs" in run("stats", "--store", f"file:{folder}").stdout


def test_forget_is_one_of_them(folder: Path) -> None:
    store = f"file:{folder}"
    run("forget", "--session", "demo", "--who", "dpo", "--why", "asked", "--store", store)

    assert value("stats", "--store", store)["sessions"] == 0
    assert value("stats", "--store", store)["forgotten"] == 1
    assert not value("fsck", "--read-data", "--store", store)["damaged"]


def test_a_check_of_a_store_without_content_fails_and_a_share_of_it_may_have_none(tmp_path: Path) -> None:
    open_store(f"file:{tmp_path}").close()
    for store in ("memory:", f"file:{tmp_path}"):
        assert value("fsck", "--store", store, code=1)["checked"] == {}
        told = "nothing checked: 0 sessions, objects and keys; is this the store that was written?"
        assert run("fsck", "--store", store, code=1).stdout.splitlines()[-1] == told
        assert "nothing checked of share 1/2" in run("fsck", "--subset", "1/2", "--store", store).stdout


def test_a_store_in_memory_is_empty() -> None:
    assert value("stats", "--store", "memory:")["objects"] == {}
    assert run("ls", "--store", "memory:").stdout == ""


@pytest.mark.usefixtures("aws_environment")
def test_a_bucket_is_cared_for_as_well(moto: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = moto.uri("console-care")
    refused = run("fsck", "--store", uri, code=2)
    with open_store(uri) as store:
        store.session("s", tenant="acme").append({"role": "user", "content": "hello"})
        assert store.flush(30.0)

    assert "nothing is there; check bucket and prefix" in refused.stderr
    assert value("fsck", "--read-data", "--store", uri)["checked"]["drained_records"] == 3
    assert value("stats", "--store", uri)["stored_sessions"] == 1
    assert value("gc", "--store", uri)["blobs"] == []
    assert [
        json.loads(line)["kind"] for line in run("ls", "sessions/", "--json", "--store", uri).stdout.splitlines()
    ] == ["sessions"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90s", 90), ("45m", 2_700), ("24h", 86_400), ("7d", 604_800)]
)
def test_a_grace_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert read_grace(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1", "1w", "1 h", "١h", "1e3s", "9999999999s", "1h "])
def test_any_other_grace_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write a number and s, m, h or d"):
        read_grace(text)


def test_the_group_s_help_names_its_commands() -> None:
    assert run("--help").stdout == snapshot("""\
Usage: cli store [OPTIONS] COMMAND [ARGS]...

  Maintain a store: check it, clean it, list and count its contents.

Options:
  -h, --help  Show this message and exit.

Commands:
  forget          Erase a session, or everything a principal said.
  fsck            Check the integrity of a store.
  gc              Remove unreferenced objects.
  ls              List names in a store.
  receipt-key     Print the public key of a tenant's receipts, to publish it.
  stats           Count the contents of a store.
  verify-receipt  Check the receipt of an erasure.
""")


def test_options_are_completed() -> None:
    environment = {"_CTXSTEWARD_COMPLETE": "bash_complete", "COMP_WORDS": "ctxsteward store fs", "COMP_CWORD": "2"}
    result = CliRunner().invoke(cli, [], prog_name="ctxsteward", env=environment)

    assert result.stdout.splitlines() == ["plain,fsck"]


# -- where journal and keys come from ------------------------------------------------------------------------


KEYS = {"CTXSTEWARD_MASTER_KEY": "07" * 32}


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "Never book before 10:00."}) + "\n", encoding="utf-8")
    return str(path)


def command(*args: str, code: int = 0, **env: str) -> Result:
    result = CliRunner().invoke(cli, args, env=env)
    assert result.exit_code == code, result.output
    return result


def test_a_journal_elsewhere_and_a_master_key_come_from_the_environment(tmp_path: Path, transcript: str) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    env = {"CTXSTEWARD_JOURNAL": str(tmp_path / "journal"), **KEYS}
    command("build", transcript, *where, "--json", **env)
    assert (tmp_path / "journal" / "journal.sqlite").is_file()
    assert not (tmp_path / "store" / "keys").exists()
    assert json.loads(command("store", "fsck", "--read-data", *where, "--json", **env).stdout)["damage"] == []
    elsewhere = {"CTXSTEWARD_JOURNAL": str(tmp_path / "second"), **KEYS}
    out = command("resolve", "1", "--session", "chat", *where, "--json", **elsewhere).stdout
    assert json.loads(out)["content"] == "Never book before 10:00."


@pytest.mark.parametrize("key", ["07", "zz" * 32, "07" * 31])
def test_a_master_key_that_is_none_is_said_in_one_line(tmp_path: Path, transcript: str, key: str) -> None:
    result = command("build", transcript, "--store", f"file:{tmp_path / 's'}", code=2, CTXSTEWARD_MASTER_KEY=key)
    assert "CTXSTEWARD_MASTER_KEY is not 64 hex digits" in result.stderr
    assert key not in result.stderr


def test_another_master_key_than_the_store_was_written_with_is_refused(tmp_path: Path, transcript: str) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    command("build", transcript, *where, **KEYS)
    result = command("resolve", "1", "--session", "chat", *where, code=2, CTXSTEWARD_MASTER_KEY="08" * 32)
    assert result.stderr.count("\n") == 1
    assert "key" in result.stderr


READERS = [
    "runs",
    "store ls",
    "store stats",
    "store fsck",
    "store gc",
    "report s",
    "costs s",
    "steward status",
    "view s",
]


@pytest.mark.parametrize("reader", READERS)
def test_reading_a_folder_without_a_store_writes_nothing_into_it(reader: str, tmp_path: Path) -> None:
    result = command(*reader.split(), "--store", f"file:{tmp_path}", code=2)
    assert "the folder holds no store; build or replay a transcript into a folder" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "reader",
    [
        "runs",
        "store stats",
        "store ls",
        "report chat",
        "resolve 1 --session chat",
        "steward run",
        "steward status",
        "serve --port 0",
        "view chat",
        "store gc",
    ],
)
def test_every_reader_says_that_the_keys_are_other_ones(reader: str, tmp_path: Path, transcript: str) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    command("build", transcript, *where, **KEYS)
    (tmp_path / "desk.yaml").write_text("name: desk\npersona: Be kind.\n")
    command("backfill", "--snapshot", "--profile", str(tmp_path / "desk.yaml"), *where, **KEYS)
    result = command(*reader.split(), *where, code=2, CTXSTEWARD_MASTER_KEY="08" * 32)
    assert "tenant 'default' was written with other keys" in result.stderr
    assert "bring the key folder, or the master key" in result.stderr


def test_a_store_of_a_profile_alone_knows_its_keys(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    (tmp_path / "desk.yaml").write_text("name: desk\npersona: Be kind.\n")
    command("backfill", "--snapshot", "--profile", str(tmp_path / "desk.yaml"), *where, **KEYS)
    result = command("steward", "status", *where, code=2, CTXSTEWARD_MASTER_KEY="08" * 32)
    assert "tenant 'default' was written with other keys" in result.stderr
    checks = json.loads(command("steward", "doctor", "--json", *where, code=1, CTXSTEWARD_MASTER_KEY="08" * 32).stdout)
    (wrong,) = [check["found"] for check in checks if check["state"] == "wrong"]
    assert "tenant 'default' was written with other keys" in wrong


def test_the_runs_of_a_tenant_of_nothing_are_an_error_that_names_the_others(folder: Path) -> None:
    result = command("runs", "--tenant", "acme", "--store", f"file:{folder}", code=2)
    assert "nothing of tenant 'acme'; this store holds tenant default" in result.stderr
