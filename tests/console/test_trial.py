"""`ctxsteward try`: one page about a user's own transcripts."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.console.commands.trial import COLUMNS

DEMO = str(files("ctxsteward.console") / "data" / "demo.jsonl")


def run(*args: str, **variables: str) -> Result:
    result = CliRunner().invoke(cli, ["try", *args], env=variables)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def table() -> str:
    return run(DEMO, "--budgets", "2000,8000", COLUMNS="80").stdout


def test_the_page_says_money_first_and_recommends_one_budget(table: str) -> None:
    assert table.startswith(
        "Transcripts: 1 openai; model calls: 129, tried as tool loops; longest history: 19,474 tokens."
    )
    rows = [line.split() for line in table.partition("\ncost: ")[0].splitlines()[1:] if line.strip()]
    header, _, small, large, everything = rows
    assert header == list(COLUMNS)
    assert small[:2] == ["2,000", "$0.37"]
    assert large[0] == "8,000"
    assert everything[:3] == ["everything", "$1.93", "0%"]
    assert len(re.findall("^Recommended: ", table, re.MULTILINE)) == 1
    assert "Why: " in table
    assert "originals all resolve" in table


def test_the_table_fits_a_terminal(table: str) -> None:
    assert max(len(line) for line in table.splitlines() if "─" in line or line.startswith("  ")) <= 80


def test_json_is_one_object_with_the_same_figures() -> None:
    document: dict[str, Any] = json.loads(run(DEMO, "--budgets", "2000", "--json").stdout)
    (budget,) = document["budgets"]
    assert budget["dollars"] == pytest.approx(0.37, abs=0.005)
    assert document["recommendation"]["code"].startswith("Budgets(dynamic_tokens=2000")
    assert document["everything"]["dollars"] > budget["dollars"]


def test_the_html_file_holds_the_page_and_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    result = run(DEMO, "--budgets", "2000", "--html", str(path))
    text = path.read_text(encoding="utf-8")
    assert f"{path}: the page is written" in result.stderr
    assert "Recommended: <code>Budgets(dynamic_tokens=2000" in text
    assert "<svg" in text
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:|/)", text)
    assert "<script" not in text


def test_a_price_may_be_named_and_stays_out_where_none_is_known() -> None:
    dear = json.loads(run(DEMO, "--budgets", "2000", "--json", "--price", "5").stdout)
    assert dear["budgets"][0]["dollars"] == pytest.approx(0.746, abs=0.005)
    unknown = run(DEMO, "--budgets", "2000", "--model", "claude-sonnet-5", COLUMNS="80").stdout
    assert "claude-sonnet-5: no price known; --price names it." in unknown
    assert "in tokens at full price" in unknown
    assert "$" not in unknown


def test_files_that_are_left_out_are_named_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "site"}')
    (tmp_path / "run.json").write_text(
        '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]'
    )
    result = run(str(tmp_path))
    assert result.stderr.startswith("ctxsteward: left out: ")
    assert "package.json" in result.stderr
    assert "Recommended: send the whole history" in result.stdout
