"""Where a command's journal and keys come from, beside its store's URI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli

KEYS = {"CTXSTEWARD_MASTER_KEY": "07" * 32}


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "Never book before 10:00."}) + "\n", encoding="utf-8")
    return str(path)


def run(*args: str, code: int = 0, **env: str) -> Result:
    result = CliRunner().invoke(cli, args, env=env)
    assert result.exit_code == code, result.output
    return result


def test_a_journal_elsewhere_and_a_master_key_come_from_the_environment(tmp_path: Path, transcript: str) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    env = {"CTXSTEWARD_JOURNAL": str(tmp_path / "journal"), **KEYS}
    run("build", transcript, *where, "--json", **env)
    assert (tmp_path / "journal" / "journal.sqlite").is_file()
    assert not (tmp_path / "store" / "keys").exists()
    assert json.loads(run("store", "fsck", "--read-data", *where, "--json", **env).stdout)["damage"] == []
    elsewhere = {"CTXSTEWARD_JOURNAL": str(tmp_path / "second"), **KEYS}
    out = run("resolve", "1", "--session", "chat", *where, "--json", **elsewhere).stdout
    assert json.loads(out)["content"] == "Never book before 10:00."


@pytest.mark.parametrize("key", ["07", "zz" * 32, "07" * 31])
def test_a_master_key_that_is_none_is_said_in_one_line(tmp_path: Path, transcript: str, key: str) -> None:
    result = run("build", transcript, "--store", f"file:{tmp_path / 's'}", code=2, CTXSTEWARD_MASTER_KEY=key)
    assert "CTXSTEWARD_MASTER_KEY is not 64 hex digits" in result.stderr
    assert key not in result.stderr


def test_another_master_key_than_the_store_was_written_with_is_refused(tmp_path: Path, transcript: str) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    run("build", transcript, *where, **KEYS)
    result = run("resolve", "1", "--session", "chat", *where, code=2, CTXSTEWARD_MASTER_KEY="08" * 32)
    assert result.stderr.count("\n") == 1
    assert "key" in result.stderr
