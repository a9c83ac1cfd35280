"""`ctxsteward evals list` and `run`: figures, files, exit codes, and one line for whatever was asked wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.evals.suites.catalogue import NAMES
from ctxsteward.schemas.eval_result import EvalResult

SOURCES = os.pathsep.join(part for part in sys.path if part)
ONE = ("--only", "verbatim/docs-1", "--workers", "1")
IMPOSSIBLE = "schema_version: 1\ngates:\n  verbatim:\n    last_place: {above: 1}\n"


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["evals", *args])
    assert result.exit_code == code, result.stderr or result.exception
    return result


def test_the_list_names_every_suite_with_figures_and_gates() -> None:
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [row["suite"] for row in rows] == list(NAMES)
    assert all(row["gates"] and row["metrics"] and row["scenarios"] >= 25 for row in rows)
    assert "last_assistant" in run("list").stdout


def test_a_run_without_gates_ends_well_and_with_impossible_ones_does_not(tmp_path: Path) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text(IMPOSSIBLE)
    assert "no gates (--gate holds them)" in run("run", "verbatim", *ONE).stderr
    result = run("run", "verbatim", *ONE, "--gate", str(gates), code=1)
    assert "FAILED above 1" in result.stdout
    assert "last_place: 1 is not above 1" in result.stdout
    assert "0 of 1 gates passed" in result.stderr


def test_json_is_the_published_result_and_says_how_to_make_it_again() -> None:
    line = run(
        "run", "verbatim", *ONE, "--gate", "--json", "--budget", "dynamic_tokens=1500", "--revision", "abc"
    ).stdout
    result = EvalResult.model_validate_json(line)
    assert (result.suite, result.passed, result.revision, result.scenarios) == ("verbatim", True, "abc", 1)
    assert result.setup["budgets.dynamic_tokens"] == 1500
    assert result.reproduce == "ctxsteward evals run verbatim --only verbatim/docs-1 --budget dynamic_tokens=1500"


def test_all_files_are_written_and_a_second_run_knows_the_first(tmp_path: Path) -> None:
    names = ("junit", "markdown", "html")
    files = [arg for name in names for arg in (f"--{name}", str(tmp_path / name))]
    args = ("run", "verbatim", *ONE, "--gate", *files, "--history", str(tmp_path / "h.jsonl"))
    assert "since" not in run(*args).stdout
    assert "since" in run(*args).stdout
    assert len((tmp_path / "h.jsonl").read_text().splitlines()) == 2
    assert Xml.parse(tmp_path / "junit").getroot().get("failures") == "0"
    assert (tmp_path / "markdown").read_text().startswith("# Context evals: passed")
    page = (tmp_path / "html").read_text()
    assert page.count("<svg") >= 4
    for outside in ("http://", "https://", "<script", "@import", "src="):
        assert outside not in page


REFUSED = {
    "no such suite": (("verbatm",), "eval suite 'verbatm' is none; one of: goal-continuity"),
    "an id that is none": (("verbatim", "--only", "12"), "ids look like verbatim/ci-12"),
    "a scenario of another suite": (("verbatim", "--only", "cache/ci-1"), "a scenario of cache, not of verbatim"),
    "no such gate file": (("verbatim", "--gate", "none.yaml"), "none.yaml: No such file"),
    "no such model": (("verbatim", "--model", "gpt-99x"), "--model gpt-99x: no such model is known"),
    "no such budget": (("verbatim", "--budget", "dynamik=3"), "'dynamik' is no budget"),
    "no such profile": (("verbatim", "--profile", "none.yaml"), "none.yaml"),
    "no such summarizer": (("verbatim", "--summarizer", "none"), "none"),
    "no folder for a report": (("verbatim", "--junit", "none/j.xml"), "--junit none/j.xml: not a file in a folder"),
    "no scenarios": (("verbatim", "--scenarios", "0"), "--scenarios"),
}


@pytest.mark.parametrize(("args", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_what_was_asked_wrongly_is_refused_before_anything_is_played(
    args: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("run", *args, "--workers", "1", code=2)
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        ("verbatim:\n    last_asistant: {at_least: 1}", "'last_asistant': the suite has no such figure"),
        ("verbtim:\n    last_user: {at_least: 1}", "eval suite 'verbtim' is none"),
    ],
)
def test_a_gate_over_nothing_is_refused_with_the_name_of_its_file(suite: str, says: str, tmp_path: Path) -> None:
    gates = tmp_path / "mine.yaml"
    gates.write_text(f"schema_version: 1\ngates:\n  {suite}\n")
    (line,) = run("run", "verbatim", *ONE, "--gate", str(gates), code=2).stderr.splitlines()
    assert line.startswith(f"ctxsteward: {gates}: ")
    assert says in line


def test_a_history_that_cannot_be_written_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("run", "verbatim", *ONE, "--history", str(tmp_path / "file" / "h.jsonl"), code=2)
    assert "--history" in result.stderr
    assert not result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_keeps_no_other_back(tmp_path: Path) -> None:
    page, kept = tmp_path / "page.html", tmp_path / "h.jsonl"
    args = ("run", "verbatim", *ONE, "--junit", "/dev/full", "--html", str(page), "--history", str(kept))
    assert "/dev/full: cannot be written (No space left on device)" in run(*args, code=2).stderr
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_one_scenario_is_counted_as_one() -> None:
    assert run("run", "verbatim", *ONE).stderr.startswith("ctxsteward: 1 scenario, ")


def test_a_suite_whose_packages_are_missing_is_refused_before_another_is_played(tmp_path: Path) -> None:
    without = "import sys; sys.modules['rensa'] = None; from ctxsteward.console.cli import main; main()"
    args = [sys.executable, "-c", without, "evals", "run", "all", "--scenarios", "1", "--workers", "1"]
    done = subprocess.run(args, cwd=tmp_path, env=os.environ | {"PYTHONPATH": SOURCES}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "eval suite governance needs rensa" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_benchmark_runs_by_name_and_its_rows_are_printed() -> None:
    result = CliRunner().invoke(cli, ["evals", "bench", "import", "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["bench"] for row in rows} == {"import"}
    assert result.exit_code == any(row["ok"] is False for row in rows)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["bench", "wram"], "no such benchmark"),
        (["bench", "import", "--data", "nowhere"], "--data nowhere: no such folder"),
        (["bench", "import", "--write", "nowhere.md"], "--write nowhere.md"),
    ],
)
def test_a_benchmark_that_is_none_is_one_line(args: list[str], says: str) -> None:
    (line,) = run(*args, code=2).stderr.splitlines()
    assert says in line
