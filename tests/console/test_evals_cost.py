"""`ctxsteward evals cost`: tables for people, a JSON object a row, a gate, one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.evals.cost import EVERYTHING, HINDSIGHT, OURS, CostRow

ROOT = Path(__file__).parents[2]


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["evals", "cost", *args])
    assert result.exit_code == code, result.stderr or result.exception
    return result


def agent_run(steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find out why the import fails."}]
    for n in range(steps):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} of the log " * 12})
    return [*messages, {"role": "assistant", "content": "It was the disk."}]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("runs") / "run.json"
    path.write_text(json.dumps(agent_run(16)), encoding="utf-8")
    return str(path)


def test_json_is_an_object_a_row_with_stable_keys(data: str) -> None:
    rows = [json.loads(line) for line in run(data, "--json").stdout.splitlines()]
    assert {tuple(row) for row in rows} == {("suite", "dynamic_tokens", *CostRow._fields)}
    assert rows[0]["strategy"] == OURS
    everything = next(row for row in rows if row["strategy"] == EVERYTHING)
    assert (everything["calls"], everything["raw_ratio"], everything["dynamic_tokens"]) == (17, 1.0, 900)


def test_people_get_a_table_that_fits_a_terminal(data: str) -> None:
    out = run(data).stdout
    assert "openai: 1 runs, 17 calls, budget 900 tokens" in out
    assert HINDSIGHT in out
    assert max(map(len, out.splitlines())) <= 80


def test_prices_and_block_are_taken_as_given(data: str) -> None:
    def everything(*args: str) -> float:
        rows = [json.loads(line) for line in run(data, "--json", *args).stdout.splitlines()]
        return float(next(row["priced_tokens"] for row in rows if row["strategy"] == EVERYTHING))

    raw = everything("--cached-price", "1")
    assert everything("--cache-block", "10000000") == raw
    assert everything("--cache-block", "0") < everything() < raw < everything("--write-price", "5")


def test_the_gate_says_what_was_missed(data: str) -> None:
    """Where a cached token is free, sending everything can hardly be beaten."""
    assert run(data, "--gate").stderr == ""
    missed = run(data, "--gate", "--cached-price", "0", "--cache-block", "0", code=1)
    assert missed.stderr.startswith("ctxsteward: gate: openai: cache-priced tokens to sending everything: ")
    assert missed.stderr.endswith(", held to ≤ 1.05\n")


def test_folders_and_files_are_taken_together(data: str) -> None:
    rows = [json.loads(line) for line in run(data, str(Path(data).parent), "--json").stdout.splitlines()]
    assert {row["runs"] for row in rows} == {2}


def test_write_puts_the_tables_into_the_page_and_touches_nothing_else(data: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a <!-- cost -->old<!-- /cost --> b\n", encoding="utf-8")
    run(data, "--write", str(page))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("a <!-- cost -->\nA cached token costs 0.1, a written one 1; block 1,024 tokens.\n")
    assert text.endswith("<!-- /cost --> b\n")
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        "**openai: 1 runs, 17 calls, budget 900 tokens**",
        "**openai: 1 runs, 17 calls, budget 4,000 tokens**",
    ]
    run(data, "--write", str(page), "--budget", "dynamic_tokens=700")
    assert "budget 700 tokens" in page.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_generated_and_whole() -> None:
    page = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    block = page[page.index("<!-- cost -->") : page.index("<!-- /cost -->")]
    rows = [line for line in block.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert sum(row.startswith(f"| {HINDSIGHT} |") for row in rows) == block.count("**") // 2


REFUSED = [
    ("no data", [], "Missing argument 'DATA"),
    ("missing file", ["nowhere.json"], "nowhere.json: no such file"),
    ("one of two missing", ["DATA", "nowhere.json"], "nowhere.json: no such file"),
    ("no transcript", [__file__], "not JSON"),
    ("empty folder", ["EMPTY"], "no transcripts in this folder"),
    ("no reply", ["SILENT"], "no model call in these transcripts"),
    ("unknown model", ["DATA", "--model", "gpt-9"], "--model gpt-9: no such model"),
    ("unknown budget", ["DATA", "--budget", "x=1"], "--budget x=1"),
    ("budget of nothing", ["DATA", "--budget", "dynamic_tokens=0"], "dynamic_tokens"),
    ("negative price", ["DATA", "--cached-price", "-1"], "expected 0 ≤ cached ≤ written ≤ 100"),
    ("cached dearer than written", ["DATA", "--cached-price", "2"], "expected 0 ≤ cached ≤ written ≤ 100"),
    ("no number", ["DATA", "--write-price", "much"], "--write-price"),
    ("not a number", ["DATA", "--write-price", "nan"], "expected 0 ≤ cached ≤ written ≤ 100"),
    ("negative block", ["DATA", "--cache-block", "-1"], "--cache-block -1: expected 0 or more tokens"),
    ("no page", ["DATA", "--write", "nowhere.md"], "nowhere.md: no such file"),
    ("a page without markers", ["DATA", "--write", "DATA"], "no <!-- cost -->"),
    ("another option", ["DATA", "--nearly"], "--nearly"),
]


@pytest.mark.parametrize(("args", "names"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], names: str, data: str, tmp_path: Path) -> None:
    silent = tmp_path / "silent.json"
    silent.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    (tmp_path / "empty").mkdir()
    places = {"DATA": data, "EMPTY": str(tmp_path / "empty"), "SILENT": str(silent)}
    result = run(*[places.get(arg, arg) for arg in args], code=2)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert names in result.stderr
