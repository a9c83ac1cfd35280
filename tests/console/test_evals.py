"""`ctxsteward evals`: figures, tables, files, exit codes, and what was asked wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from click.shell_completion import ShellComplete

from ctxsteward.console.cli import cli
from ctxsteward.evals.suites.catalogue import NAMES
from ctxsteward.evals.suites.kit.suite import Draw, ScenarioResult, Setup
from ctxsteward.evals.suites.results import play_one
from ctxsteward.evals.survival.measure import measure
from ctxsteward.evals.survival.play import SurvivalRow
from ctxsteward.schemas.eval_result import EvalResult

from . import commands

run = partial(commands.run, "evals")

SOURCES = os.pathsep.join(part for part in sys.path if part)
ONE = ("--only", "verbatim/docs-1", "--workers", "1")
PROMISES = """\
schema_version: 1
gates: {verbatim: {last_user: {at_least: 1}, last_assistant: {at_least: 1}, within_budget: {at_least: 1}}}
"""
IMPOSSIBLE = "schema_version: 1\ngates:\n  verbatim:\n    last_place: {above: 1}\n"


@pytest.fixture(autouse=True, scope="module")
def _each_scenario_is_played_once() -> Iterator[None]:
    """What a playing gives is the same each time (`tests/evals/suites/test_results.py`); here it is told."""
    kept: dict[tuple[Draw, str], ScenarioResult] = {}

    def play(draw: Draw, setup: Setup) -> ScenarioResult:
        key = (draw, str(setup.describe()))
        return kept[key] if key in kept else kept.setdefault(key, play_one(draw, setup))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxsteward.console.commands.suites.play_one", play)
        yield


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


def test_json_is_the_published_result_and_says_how_to_make_it_again(tmp_path: Path) -> None:
    (tmp_path / "gates.yaml").write_text(PROMISES)
    held = ("--gate", str(tmp_path / "gates.yaml"))
    line = run("run", "verbatim", *ONE, *held, "--json", "--budget", "dynamic_tokens=1500", "--revision", "abc").stdout
    result = EvalResult.model_validate_json(line)
    assert (result.suite, result.passed, result.revision, result.scenarios) == ("verbatim", True, "abc", 1)
    assert result.setup["budgets.dynamic_tokens"] == 1500
    assert result.reproduce == "ctxsteward evals run verbatim --only verbatim/docs-1 --budget dynamic_tokens=1500"


def test_all_files_are_written_and_a_second_run_knows_the_first(tmp_path: Path) -> None:
    names = ("junit", "markdown", "html")
    files = [arg for name in names for arg in (f"--{name}", str(tmp_path / name))]
    (tmp_path / "gates.yaml").write_text(PROMISES)
    held = ("--gate", str(tmp_path / "gates.yaml"))
    args = ("run", "verbatim", *ONE, *held, *files, "--history", str(tmp_path / "h.jsonl"))
    assert "since" not in run(*args).stdout
    assert "since" in run(*args).stdout
    assert len((tmp_path / "h.jsonl").read_text().splitlines()) == 2
    assert Xml.parse(tmp_path / "junit").getroot().get("failures") == "0"
    assert (tmp_path / "markdown").read_text().startswith("# Context evals: passed")
    page = (tmp_path / "html").read_text()
    assert page.count("<svg") >= 4
    for outside in ("http://", "https://", "<script", "@import", "src="):
        assert outside not in page


@pytest.mark.parametrize("allowed", [False, True])
def test_a_run_too_small_for_a_gate_is_undecided_and_ends_with_1_unless_the_file_allows_it(
    allowed: bool, tmp_path: Path
) -> None:
    """In this scenario 40 of 43 open tasks are shown: that neither passes nor refutes 99 %."""
    gates = tmp_path / "gates.yaml"
    allows = "allow_undecided: true\n" if allowed else ""
    gates.write_text(f"schema_version: 1\n{allows}gates:\n  goal-continuity:\n    todos_open: {{at_least: 0.99}}\n")
    only = ("--only", "goal-continuity/ci-3", "--workers", "1")
    result = run("run", "goal-continuity", *only, "--gate", str(gates), code=0 if allowed else 1)
    assert "undecided at least 0.99" in " ".join(result.stdout.split())
    assert "each once" in result.stdout
    assert "0 of 1 gates passed, 1 undecided" in result.stderr
    assert ("1 undecided gate fails this run: play more scenarios" in result.stderr) == (not allowed)


def test_a_run_that_could_score_nothing_ends_with_1_without_gates_too() -> None:
    result = run(
        "run", "governance", "--only", "governance/docs-1", "--workers", "1", "--subject", "newest-tokens", code=1
    )
    assert "not one figure could be scored: this run says nothing of the subject" in result.stderr


def test_a_history_of_other_runs_is_not_compared_with_and_it_is_told_why(tmp_path: Path) -> None:
    args = ("run", "verbatim", *ONE, "--history", str(tmp_path / "h.jsonl"), "--markdown", str(tmp_path / "m.md"))
    run(*args)
    result = run(*args, "--budget", "dynamic_tokens=1500")
    says = "the last run differs in budgets.dynamic_tokens: not set and 1500"
    assert f"ctxsteward: verbatim: not compared; {says}\n" in result.stderr
    assert "since" not in result.stdout
    assert f"Not compared: {says.replace('_', chr(92) + '_')}." in (tmp_path / "m.md").read_text(encoding="utf-8")
    assert "since" in run(*args).stdout


def test_two_runs_are_compared_by_scenario(tmp_path: Path) -> None:
    for name, args in (("a", ()), ("b", ("--budget", "dynamic_tokens=1500"))):
        (tmp_path / name).write_text(run("run", "verbatim", *ONE, "--json", "--revision", name, *args).stdout)
    files = (str(tmp_path / "a"), str(tmp_path / "b"), "--meant", "budgets.dynamic_tokens")
    result = run("compare", *files, "--markdown", str(tmp_path / "c.md"), COLUMNS="80")
    assert "compared over 1 scenario of split docs that both played" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "0 of 0 figures that differ do so surely" in result.stderr
    assert (tmp_path / "c.md").read_text(encoding="utf-8").startswith("# Context evals: two runs compared\n")
    (row,) = [
        json.loads(line) for line in run("compare", *files, "--json", "--metric", "last_user").stdout.splitlines()
    ]
    assert row["figures"] == [
        {
            "metric": "last_user",
            "kind": "rate",
            "better": "higher",
            "unit": "",
            "before": 1.0,
            "after": 1.0,
            "difference": 0.0,
            "low": None,
            "high": None,
            "p": 1.0,
            "scenarios": 1,
            "differing": 0,
            "is_surely": None,
        }
    ]
    assert row["meant"] == [{"name": "budgets.dynamic_tokens", "before": "not set", "after": "1500"}]
    assert (row["before"]["revision"], row["scenario_ids"]) == ("a", ["verbatim/docs-1"])


def test_what_a_comparison_takes_is_completed(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(run("run", "verbatim", *ONE, "--json").stdout)

    def completed(option: str, incomplete: str) -> list[str]:
        complete = ShellComplete(cli, {}, "ctxsteward", "_CTXSTEWARD_COMPLETE").get_completions
        return [item.value for item in complete(["evals", "compare", str(file), str(file), option], incomplete)]

    assert completed("--metric", "last_u") == ["last_user"]
    assert completed("--meant", "tok") == ["tokenizer"]
    assert completed("--suite", "verb") == ["verbatim"]


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        ("verbatim:\n    last_asistant: {at_least: 1}", "'last_asistant': the suite has no such figure"),
        ("verbtim:\n    last_user: {at_least: 1}", "unknown eval suite 'verbtim'"),
    ],
)
def test_a_gate_over_nothing_is_refused_with_the_name_of_its_file(suite: str, says: str, tmp_path: Path) -> None:
    gates = tmp_path / "mine.yaml"
    gates.write_text(f"schema_version: 1\ngates:\n  {suite}\n")
    (line,) = run("run", "verbatim", *ONE, "--gate", str(gates), code=2).stderr.splitlines()
    assert line.startswith(f"ctxsteward: {gates}: ")
    assert says in line


@pytest.mark.parametrize("option", ["--junit", "--markdown", "--html", "--history"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("folder", "it is a folder; name a file in it", id="a folder"),
        pytest.param("file/out", "{0}/file is no folder; name one that is there", id="in a file"),
        pytest.param("none/out", "{0}/none is no folder; name one that is there", id="in a folder that is not there"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_played(
    option: str, name: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    if option == "--history" and name == "none/out":
        run("run", "verbatim", *ONE, option, str(tmp_path / name))
        assert (tmp_path / name).is_file(), "its folder is made"
        return
    result = run("run", "verbatim", *ONE, option, str(tmp_path / name), code=2)
    said = f"{option} {tmp_path / name}: not a file that may be written: {says.format(tmp_path)}"
    assert (result.stdout, result.stderr) == ("", f"ctxsteward: {said}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_keeps_no_other_back(tmp_path: Path) -> None:
    page, kept = tmp_path / "page.html", tmp_path / "h.jsonl"
    args = ("run", "verbatim", *ONE, "--junit", "/dev/full", "--html", str(page), "--history", str(kept))
    assert "/dev/full: no space left on device" in run(*args, code=2).stderr
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_one_scenario_is_counted_as_one() -> None:
    assert run("run", "verbatim", *ONE).stderr.startswith("ctxsteward: 1 scenario, ")


def test_a_suite_whose_packages_are_missing_is_refused_before_another_is_played(tmp_path: Path) -> None:
    without = "import sys; sys.modules['jsonpatch'] = None; from ctxsteward.console.cli import main; main()"
    args = [sys.executable, "-c", without, "evals", "run", "all", "--scenarios", "1", "--workers", "1"]
    done = subprocess.run(args, cwd=tmp_path, env=os.environ | {"PYTHONPATH": SOURCES}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    needs = "it needs the extra `steward` (jsonpatch)"
    assert done.stderr == f"ctxsteward: eval suite governance: {needs}; pip install 'ctxsteward[steward]'\n"


# -- recall --------------------------------------------------------------------------------------------------


RECALL_KEYS = [
    "suite",
    "strategy",
    "defaults",
    "budget_tokens",
    "questions",
    "mean",
    "all_shown",
    "reachable",
    "by_category",
    "select_ms_p50",
    "select_ms_p99",
    "context_tokens_mean",
]


@pytest.fixture(scope="module")
def locomo(tmp_path_factory: pytest.TempPathFactory) -> str:
    days: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    for day in range(1, 20):
        days[f"session_{day}_date_time"] = f"1:56 pm on {day} May, 2023"
        said = "the spare key hangs in the shed" if day == 5 else f"day {day} was a day of rain and of walks"
        days[f"session_{day}"] = [{"speaker": "Ann", "dia_id": f"D{day}:1", "text": said}]
    qa = [{"question": "Where is the spare key?", "category": 4, "evidence": ["D5:1"]}]
    path = tmp_path_factory.mktemp("data") / "locomo.json"
    path.write_text(json.dumps([{"sample_id": 1, "conversation": days, "qa": qa}]), encoding="utf-8")
    return str(path)


def test_recall_is_an_object_a_budget_with_stable_keys(locomo: str) -> None:
    rows = [json.loads(line) for line in run("recall", locomo, "--json", "--budgets", "100,200").stdout.splitlines()]
    assert [list(row) for row in rows] == [RECALL_KEYS, RECALL_KEYS]
    assert [(row["budget_tokens"], row["mean"], row["questions"]) for row in rows] == [(100, 100.0, 1), (200, 100.0, 1)]


def test_recall_is_a_table_for_people(locomo: str) -> None:
    out = run("recall", locomo, "--budgets", "150").stdout
    assert "multi-hop" in out
    assert "100.0" in out
    assert max(map(len, out.splitlines())) <= 80


def test_another_strategy_is_another_figure(locomo: str) -> None:
    (line,) = run("recall", locomo, "--json", "--budgets", "60", "--strategy", "recency").stdout.splitlines()
    assert json.loads(line)["mean"] == 0.0


# -- survival ------------------------------------------------------------------------------------------------


def test_survival_is_an_object_a_budget_and_strategy_and_a_table_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = list[SurvivalRow]()
    patched = "ctxsteward.console.commands.survival.measure"
    monkeypatch.setattr(patched, lambda *asked, **how: measured or measured.extend(measure(*asked, **how)) or measured)
    rows = [json.loads(line) for line in run("survival", "--kind", "updates", "--json").stdout.splitlines()]
    assert {(row["suite"], row["half"], row["kind"], row["statements"], row["updates"]) for row in rows} == {
        ("survival", "dev", "updates", 96, 64)
    }
    assert {(row["strategy"], row["budget"]) for row in rows} >= {("ours", 0.1), ("oracle", 0.2), ("random", 0.2)}

    out = run("survival", "--kind", "updates").stdout
    assert "updates, dev: 96 statements shown, % / stale" in out
    assert "compactions per user turn" in out
    assert max(map(len, out.splitlines())) <= 80
