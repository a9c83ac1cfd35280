"""`ctxsteward try`: one page about a user's own transcripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.commands.trial import COLUMNS
from ctxsteward.evals import trial

from . import commands

run = partial(commands.run, "try")

DEMO = str(files("ctxsteward.console") / "data" / "demo.jsonl")


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
    assert small[:2] == ["2,000", "$0.36"]
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
    assert budget["dollars"] == pytest.approx(0.357, abs=0.005)
    assert document["recommendation"]["code"].startswith("Budgets(dynamic_tokens=2000")
    assert document["everything"]["dollars"] > budget["dollars"]


def test_the_html_file_holds_the_page_and_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    result = run(DEMO, "--budgets", "2000", "--html", str(path))
    text = path.read_text(encoding="utf-8")
    assert f"{path}: the page is written" in result.stderr
    assert "Recommended: <code>Budgets(dynamic_tokens=2000" in text
    assert "<h2>Cost of all prompts in dollars</h2>\n<svg" in text
    assert re.search(r">\$0\.36</text>.*>\$1\.93</text>", text)
    assert re.search(rf'<p class="dim">{DEMO}; 20\d\d-\d\d-\d\dT\S+Z; ctxsteward \d+\.\d+\.\d+\S*</p>', text)
    assert "gpt-4o was assumed, --model names another: $2.5" in text
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:|/)", text)
    assert "<script" not in text


def test_a_price_may_be_named_and_stays_out_where_none_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = json.loads(run(DEMO, "--budgets", "2000", "--json", "--price", "5").stdout)
    assert dear["budgets"][0]["dollars"] == pytest.approx(0.72, abs=0.005)
    monkeypatch.setattr(trial, "dollars_of", lambda model, tokens: None)
    unknown = run(DEMO, "--budgets", "2000", "--model", "claude-sonnet-5", COLUMNS="80").stdout
    assert "claude-sonnet-5: no price known; --price names it." in unknown
    assert "in tokens at full price" in unknown
    assert "$" not in unknown


def refused(*args: str) -> str:
    result = CliRunner().invoke(cli, ["try", *args])
    assert result.exit_code != 0
    return str(result.exception) + result.output


def hello(path: Path) -> Path:
    path.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]')
    return path


@pytest.mark.parametrize("price", ["nan", "inf", "1e400", "-1"])
def test_a_price_that_is_no_price_is_refused(price: str) -> None:
    assert "--price" in refused(DEMO, "--price", price)


def test_the_page_is_never_written_over_a_transcript(tmp_path: Path) -> None:
    chat = hello(tmp_path / "chat.json")
    before = chat.read_text()
    (tmp_path / "link.html").symlink_to(chat)
    for name in ("chat.json", "link.html"):
        assert "this is one of the transcripts" in refused(str(tmp_path), "--html", str(tmp_path / name))
    assert chat.read_text() == before


def test_a_page_that_cannot_be_written_costs_no_figures(tmp_path: Path) -> None:
    chat = hello(tmp_path / "chat.json")
    assert "Recommended: " in refused(str(chat), "--html", "/dev/full")


def test_names_that_are_no_unicode_reach_every_output(tmp_path: Path) -> None:
    hello(tmp_path / "chat.json")
    (tmp_path / os.fsdecode(b"\xff.json")).write_text("{}")
    page = tmp_path / "page.html"
    run = [sys.executable, "-m", "ctxsteward", "try", str(tmp_path)]
    variables = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    shown = subprocess.run([*run, "--html", str(page)], env=variables, capture_output=True, text=True, check=True)
    assert "left out: " in shown.stderr
    assert "\\udcff.json" in page.read_text(encoding="utf-8")
    told = subprocess.run([*run, "--json"], env=variables, capture_output=True, text=True, check=True)
    assert "\udcff.json" in json.loads(told.stdout)["skipped"][0]["path"]


def test_text_of_transcripts_is_no_markup_on_the_page(tmp_path: Path) -> None:
    evil = "<script>alert('KX-1')</script>"
    (tmp_path / f"{evil.replace('/', '-')}.json").write_text(json.dumps({"name": evil}))
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": json.dumps({"at": evil})}}
    wires: list[Any] = [
        {"role": "user", "content": evil},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": f"</td>{evil} alert.KX-1"},
        {"role": "assistant", "content": evil},
    ]
    (tmp_path / f"run{evil.replace('/', '-')}.json").write_text(json.dumps(wires))
    path = tmp_path / "page.html"
    run(str(tmp_path), "--html", str(path))
    text = path.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert "<script" not in text


def test_files_that_are_left_out_are_named_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "site"}')
    (tmp_path / "run.json").write_text(
        '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]'
    )
    result = run(str(tmp_path))
    assert result.stderr.startswith("ctxsteward: left out: ")
    assert "package.json" in result.stderr
    assert "Recommended: send the whole history" in result.stdout
