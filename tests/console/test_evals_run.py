"""`ctxsteward evals list` and `run`: figures, files, exit codes, and one line for whatever was asked wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.evals.suites.catalogue import NAMES
from ctxsteward.schemas.eval_result import EvalResult

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


def test_a_gate_over_an_unknown_figure_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text("schema_version: 1\ngates:\n  verbatim:\n    last_plaice: {above: 1}\n")
    result = run("run", "verbatim", *ONE, "--gate", str(gates), code=2)
    assert "'last_plaice': the suite has no such figure" in result.stderr
    gates.write_text("schema_version: 1\ngates:\n  verbatm:\n    last_place: {above: 1}\n")
    assert "'verbatm' is none" in run("run", "verbatim", *ONE, "--gate", str(gates), code=2).stderr
