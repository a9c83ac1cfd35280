"""`ctxsteward evals recall`: a table for people, a JSON object a budget, one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli

KEYS = [
    "suite", "strategy", "defaults", "budget_tokens", "questions", "mean", "all_shown", "reachable", "by_category",
    "select_ms_p50", "select_ms_p99", "context_tokens_mean",
]  # fmt: skip


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["evals", "recall", *args])
    assert result.exit_code == code, result.stderr or result.exception
    return result


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    days: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    for day in range(1, 20):
        days[f"session_{day}_date_time"] = f"1:56 pm on {day} May, 2023"
        said = "the spare key hangs in the shed" if day == 5 else f"day {day} was a day of rain and of walks"
        days[f"session_{day}"] = [{"speaker": "Ann", "dia_id": f"D{day}:1", "text": said}]
    qa = [{"question": "Where is the spare key?", "category": 4, "evidence": ["D5:1"]}]
    path = tmp_path_factory.mktemp("data") / "locomo.json"
    path.write_text(json.dumps([{"sample_id": 1, "conversation": days, "qa": qa}]), encoding="utf-8")
    return str(path)


def test_json_is_an_object_a_budget_with_stable_keys(data: str) -> None:
    rows = [json.loads(line) for line in run(data, "--json", "--budgets", "100,200").stdout.splitlines()]
    assert [list(row) for row in rows] == [KEYS, KEYS]
    assert [(row["budget_tokens"], row["mean"], row["questions"]) for row in rows] == [(100, 100.0, 1), (200, 100.0, 1)]


def test_people_get_a_table(data: str) -> None:
    out = run(data, "--budgets", "150").stdout
    assert "multi-hop" in out
    assert "100.0" in out
    assert max(map(len, out.splitlines())) <= 80


def test_another_strategy_is_another_figure(data: str) -> None:
    (line,) = run(data, "--json", "--budgets", "60", "--strategy", "recency").stdout.splitlines()
    assert json.loads(line)["mean"] == 0.0


def test_write_puts_the_tables_into_the_page_and_touches_nothing_else(data: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a <!-- recall --><!-- /recall --> b <!-- variants --><!-- /variants --> c\n")
    run(data, "--budgets", "100", "--write", str(page))
    text = page.read_text()
    assert text.startswith("a <!-- recall -->\n1 questions")
    assert text.endswith("<!-- /variants --> c\n")
    assert "| heuristic | 100 | 100.0 |" in text
    assert "| without near |" in text


REFUSED = [
    ("no data", [], "Missing argument 'DATA'"),
    ("missing file", ["nowhere.json"], "nowhere.json: no such file"),
    ("no LoCoMo", [__file__], "not JSON"),
    (
        "unknown strategy",
        ["DATA", "--strategy", "magic"],
        "--strategy magic: no such strategy; one of: recency, heuristic",
    ),
    ("no number", ["DATA", "--budgets", "many"], "--budgets many"),
    ("zero", ["DATA", "--budgets", "0"], "--budgets 0"),
    ("negative", ["DATA", "--budgets", "500,-3"], "--budgets 500,-3"),
    ("empty", ["DATA", "--budgets", ""], "--budgets"),
    ("huge", ["DATA", "--budgets", "9" * 5_000], "--budgets 999"),
    ("zeros before", ["DATA", "--budgets", "00000000011000000"], "--budgets 0000"),
    ("no page", ["DATA", "--write", "nowhere.md"], "nowhere.md: no such file"),
    ("a page without markers", ["DATA", "--write", "DATA"], "no <!-- recall -->"),
    ("another command", ["DATA", "--nearly"], "--nearly"),
]


@pytest.mark.parametrize(("args", "names"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], names: str, data: str) -> None:
    result = run(*[data if arg == "DATA" else arg for arg in args], code=2)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert names in result.stderr
