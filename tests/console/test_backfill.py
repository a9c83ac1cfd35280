"""``ctxsteward backfill``: what it writes, that it writes it once, and what it refuses."""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.schemas.publish import validate

from . import commands

run = partial(commands.run, "backfill")

PROFILE = files("ctxsteward.console") / "data" / "demo-profile.yaml"
NAME = "fernhollow-oncall"
ROW_KEYS = [
    "profile",
    "version",
    "snapshot",
    "written",
    "address",
    "tokens",
    "findings",
    "error",
    "committed",
]


def value(*args: str, code: int = 0) -> Any:
    return json.loads(run("--snapshot", "--json", *args, code=code).stdout)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'store'}"


def test_a_profile_file_becomes_a_version_and_a_snapshot(store: str) -> None:
    result = value("--profile", str(PROFILE), "--as", "ada", "--store", store, "--tenant", "acme")
    (row,) = result["profiles"]

    assert list(result) == ["store", "tenant", "written", "profiles"]
    assert list(row) == ROW_KEYS
    assert (result["written"], row["committed"], row["written"]) == (2, True, True)
    assert (row["profile"], row["version"], row["snapshot"]) == (NAME, 1, 1)
    with open_store(store) as opened:
        version = opened.profiles(NAME, tenant="acme").newest()
        snapshot = Snapshots(opened, "acme").at(NAME, 1)
    assert (version.changelog.who, version.changelog.why) == ("ada", "the first version, of a profile file")
    assert snapshot.address == row["address"]
    validate("envelope", snapshot.envelope)
    texts = json.dumps(snapshot.envelope["sections"], ensure_ascii=False)
    for told in ("calm and exact; short sentences", "Print no password"):
        assert told in texts


def test_records_whose_sources_are_nowhere_are_named_and_left_out(store: str, tmp_path: Path) -> None:
    row = value("--profile", str(PROFILE), "--store", store)["profiles"][0]

    assert [(one["kind"], one["field"]) for one in row["findings"]] == [("meta_source_unresolved", "meta")] * 3
    assert (
        "record late-webhooks: oncall-2026-06-18§212 cannot be resolved; it is left out" in row["findings"][1]["text"]
    )
    with open_store(store) as opened:
        assert opened.profiles(NAME).newest().profile.meta == ()
    assert b"Stuck-order" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_repeat_writes_nothing_and_says_so(store: str, tmp_path: Path) -> None:
    run("--snapshot", "--profile", str(PROFILE), "--store", store)
    before = {path: path.read_bytes() for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file()}
    for again in (("--profile", str(PROFILE)), ()):
        said = run("--snapshot", *again, "--store", store).stdout
        assert "nothing to write: every profile and snapshot is there already" in said
        assert value(*again, "--store", store)["written"] == 0

    after = {path: path.read_bytes() for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file()}
    assert after == before


def test_an_edited_file_is_refused_with_what_to_do_and_every_profile_is_taken(store: str, tmp_path: Path) -> None:
    edited, other = tmp_path / "edited.yaml", tmp_path / "other.yaml"
    edited.write_text(PROFILE.read_text(encoding="utf-8").replace("calm and exact", "brief"), encoding="utf-8")
    other.write_text("name: sales\npersona: Be kind.\n", encoding="utf-8")
    for path in (str(PROFILE), str(other)):
        run("--snapshot", "--profile", path, "--store", store)
    said = run("--snapshot", "--profile", str(edited), "--store", store, code=2).stderr
    rows = value("--store", store)["profiles"]

    assert said == (
        f"ctxsteward: profile {NAME!r}: version 1 is in force, and the file says something else; "
        "stage the change with `ctxsteward steward propose FILE`\n"
    )
    assert [(row["profile"], row["version"], row["snapshot"], row["written"]) for row in rows] == [
        (NAME, 1, 1, False),
        ("sales", 1, 1, False),
    ]


def test_a_head_over_its_budget_is_named_and_the_others_are_taken(store: str, tmp_path: Path) -> None:
    small = tmp_path / "small.yaml"
    small.write_text("name: sales\npersona: Be kind.\n", encoding="utf-8")
    for path in (str(PROFILE), str(small)):
        run("--snapshot", "--profile", path, "--store", store)
    rows = value("--store", store, "--budget", "system_tokens=20", code=1)["profiles"]

    assert [(row["profile"], row["snapshot"], row["error"] is None) for row in rows] == [
        (NAME, None, False),
        ("sales", 2, True),
    ]
    assert "section 'system' needs" in rows[0]["error"]
    said = run("--snapshot", "--store", store, "--budget", "system_tokens=20", code=1).stdout
    assert "failed" in said
    assert "nothing to write" not in said


def test_a_damaged_version_is_named_and_nothing_is_written(store: str, tmp_path: Path) -> None:
    run("--snapshot", "--profile", str(PROFILE), "--store", store)
    (path,) = (tmp_path / "store" / "objects" / "profiles" / "default" / NAME / "versions").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    result = run("--snapshot", "--store", store, code=2)

    assert f"profiles/default/{NAME}/versions/000000000001.json: it is not a link" in result.stderr
