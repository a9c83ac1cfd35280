"""Every test that `durability.md` and `memory-security.md` name exists; lists are the program's; a how-to runs.

The Python runs against a local S3 server, with its places in a folder of the test's.
"""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.envelope.audit.auditor import KINDS
from ctxsteward.store.maintenance.damage import DAMAGE, NOTES

from .s3_servers import S3Server
from .test_docs import run_python

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "durability.md"
HOW_TO = ROOT / "docs" / "keep-a-store.md"
SECURITY = ROOT / "docs" / "memory-security.md"
DOCS = [PAGE, SECURITY, *(ROOT / "docs" / "design").glob("*.md")]
STORE = '"s3://acme-context/chat?region=eu-central-1"'
PLACE = "/var/lib/chat"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


@cache
def written_in(path: str) -> frozenset[str]:
    """Names of the tests in this file below `tests/`; none where there is no such file."""
    file = ROOT / "tests" / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_"))


def missing(page: str) -> list[str]:
    """Tests that a page names and nobody has written."""
    return [f"{path}::{name}" for path, name in NAMED.findall(page) if name not in written_in(path)]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_test_that_is_named_is_there(path: Path) -> None:
    assert missing(path.read_text(encoding="utf-8")) == []


def test_every_requirement_of_the_lists_names_a_test_or_is_not_met() -> None:
    """AISVS 1.0 has 20 requirements in chapter C8; ASI06 has nine countermeasures."""
    rows = re.findall(
        r"^\| ((?:8\.\d\.\d|ASI06 \w)[^|]*) \| [^|]+ \| ([^|]+) \| (.*)$", SECURITY.read_text("utf-8"), re.M
    )
    assert len(dict.fromkeys(id for id, _, _ in rows)) == len(rows) == 29
    assert {state for _, state, _ in rows} == {"met", "partly", "not met"}
    assert [id for id, state, rest in rows if bool(NAMED.findall(rest)) == (state == "not met")] == []


def test_a_test_that_is_not_there_is_found_out() -> None:
    here = Path(__file__).name
    assert missing(f"`{here}::test_a_test_that_is_not_there_is_found_out`") == []
    assert missing(f"`{here}::test_nobody_wrote_it` `no/test_such.py::test_file`") == [
        f"{here}::test_nobody_wrote_it",
        "no/test_such.py::test_file",
    ]


def test_every_promise_names_what_holds_it() -> None:
    tables = re.findall(r"^\| promise \| held by \|\n\|---\|---\|\n((?:\|.*\|\n)+)", text(), re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 60
    assert [row for row in rows if not NAMED.search(row)] == []


def test_the_python_prints_what_it_says(
    moto: S3Server, aws_environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY", "0f" * 32)
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY_SEAL_ID", "1")
    how_to = HOW_TO.read_text(encoding="utf-8")
    assert how_to.count(STORE) == 1
    page = tmp_path / HOW_TO.name
    bucket = repr(moto.another_bucket().uri("chat"))
    page.write_text(how_to.replace(STORE, bucket).replace(PLACE, str(tmp_path)), encoding="utf-8")
    assert run_python(page, {"__name__": "keep"}) >= 5


def test_the_commands_for_cron_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("file:context") as store:
        store.session("chat-42", tenant="acme").append({"role": "user", "content": "Where is my order?"})
    lines = re.findall(r"&& ctxsteward (.+)$", HOW_TO.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line.split()[:2] for line in lines] == [["store", "fsck"], ["store", "gc"]]
    for line in lines:
        done = CliRunner().invoke(cli, shlex.split(line.replace(r"$(date +\%u)", "3")))
        assert done.exit_code == 0, done.output


def test_classes_of_damage_and_of_differences_are_the_program_s() -> None:
    table = text().partition("| where | classes |\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == {*DAMAGE, *NOTES}
    listed = text().partition("twelve classes of difference, the cause\nfirst: ")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"`(\w+)`", listed)) == KINDS
