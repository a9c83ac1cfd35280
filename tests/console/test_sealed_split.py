"""`ctxsteward evals run SUITE --sealed`: the ledger, what is printed and what is not, and the ways that are refused.

No scenario of the split is played here: results are made up in the place of `played`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.console.commands import suites
from ctxsteward.evals.result_history import append
from ctxsteward.evals.sealed_openings import read
from ctxsteward.schemas.eval_result import EvalMiss, EvalResult, GateResult, MetricResult

SECRET = "the words of a sealed scenario"
GATE = GateResult(metric="last_user", rule="at least 1", value=0.5, passed=False, why="0.5 is not at least 1")


def made(split: Any, value: float) -> EvalResult:
    metric = MetricResult(
        name="last_user",
        about="",
        kind="rate",
        better="higher",
        unit="",
        value=value,
        low=0.4,
        high=0.6,
        method="wilson",
        checks=8,
        scenarios=2,
        unscored={},
    )
    miss = EvalMiss(scenario=f"verbatim/{split}-1", metric="last_user", at="turn 3", why=SECRET)
    return EvalResult(
        suite="verbatim",
        about="",
        product="ctxsteward 0.1.0",
        when="2026-01-02T00:00:00+00:00",
        revision="abc",
        split=split,
        setup={"summarizer": "extractive"},
        scenarios=2,
        long_scenarios=0,
        turns=100,
        messages=200,
        builds=100,
        cpu_seconds=1.0,
        metrics=(metric,),
        gates=(GATE,),
        passed=False,
        errors={f"verbatim/{split}-0": f"ValueError: {SECRET}"},
        misses=(miss,),
        reproduce="",
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def played(name: str, draws: Any, setup: Any, **options: Any) -> EvalResult:
        assert {draw.split for draw in draws} == {"sealed"}
        return made("sealed", 0.5).model_copy(update={"reproduce": options["reproduce"]})

    monkeypatch.setattr(suites, "played", played)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str, code: int = 1) -> Result:
    result = CliRunner().invoke(cli, ["evals", "run", "verbatim", *args])
    assert result.exit_code == code, result.stderr or result.exception
    return result


def test_an_opening_is_recorded_and_the_next_one_is_told_of_it(folder: Path) -> None:
    first = run("--sealed", "--gate", "--scenarios", "2")
    assert "the sealed split was never opened before; this opening is recorded in sealed-openings.jsonl" in first.stderr
    (row,) = read(folder / "sealed-openings.jsonl")
    assert (row.suite, row.scenarios, row.only, row.revision) == ("verbatim", 2, (), "abc")
    assert (row.setup, row.figures, row.misses_shown) == ({"summarizer": "extractive"}, {"last_user": 0.5}, False)
    second = run("--sealed", "--only", "verbatim/sealed-3", "--show-misses")
    assert f"was opened once before, last {row.when} (verbatim); recorded in sealed-openings.jsonl" in second.stderr
    assert [(one.only, one.misses_shown) for one in read(folder / "sealed-openings.jsonl")] == [
        ((), False),
        (("verbatim/sealed-3",), True),
    ]


def test_what_was_missed_is_told_to_nobody_who_did_not_ask(folder: Path) -> None:
    files = [arg for name in ("junit", "markdown", "html", "history") for arg in (f"--{name}", name)]
    shown = run("--sealed", "--gate", *files)
    as_json = run("--sealed", "--gate", "--json").stdout
    written = "".join((folder / name).read_text(encoding="utf-8") for name in files[1::2])
    assert SECRET not in shown.output + as_json + written + (folder / "sealed-openings.jsonl").read_text()
    assert "0.5 is not at least 1" in shown.stdout
    assert "verbatim/sealed-0 broke off: ValueError" in shown.stdout
    assert json.loads(as_json)["reproduce"] == "ctxsteward evals run verbatim --sealed --scenarios 26"
    assert SECRET in run("--sealed", "--gate", "--show-misses").stdout


def test_the_ledger_lies_beside_the_history_or_where_it_is_told_to(folder: Path) -> None:
    run("--sealed", "--history", "kept/h.jsonl")
    run("--sealed", "--history", "kept/h.jsonl", "--sealed-log", "elsewhere/l.jsonl")
    assert len(read(folder / "kept" / "sealed-openings.jsonl")) == len(read(folder / "elsewhere" / "l.jsonl")) == 1


def test_the_figures_are_written_beside_those_of_ci(folder: Path) -> None:
    (folder / "page.md").write_text("before\n<!-- sealed -->\n<!-- /sealed -->\nbehind\n")
    append(folder / "h.jsonl", [made("ci", 1.0)])
    run("--sealed", "--gate", "--history", "h.jsonl", "--write", "page.md")
    assert (folder / "page.md").read_text().splitlines() == [
        "before",
        "<!-- sealed -->",
        "ctxsteward 0.1.0, revision abc, 2026-01-02.",
        "",
        "| suite | figure | gate | `ci` | `sealed` | `sealed`, 95 % |",
        "|---|---|---|---:|---:|---:|",
        "| `verbatim` | `last_user` | **falls short:** at least 1 | 100 % | 50 % | 40 % to 60 % |",
        "<!-- /sealed -->",
        "behind",
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--split", "sealed"], "--split sealed: that split is opened by --sealed alone, which records the opening"),
        (["--sealed", "--split", "ci"], "--sealed --split ci: give one of them"),
        (["--only", "verbatim/sealed-3"], "--only verbatim/sealed-3: a sealed scenario; sealed ones, and no others"),
        (["--sealed", "--only", "verbatim/ci-3"], "--only verbatim/ci-3: no sealed scenario"),
        (["--show-misses"], "--show-misses: an option of --sealed, which was not given"),
        (["--sealed-log", "l.jsonl"], "--sealed-log: an option of --sealed"),
        (["--write", "page.md"], "--write: an option of --sealed"),
        (["--sealed", "--write", "page.md"], "--write page.md: no such file"),
        (["--sealed", "--sealed-log", "."], "--sealed-log .: not a file that may be written"),
        (["--sealed", "--sealed-log", "file/l.jsonl"], "--sealed-log file/l.jsonl: not a file that may be written"),
        (["--sealed", "--sealed-log", "broken.jsonl"], "broken.jsonl:2: not an opening (when: Field required)"),
    ],
)
def test_other_ways_are_refused_before_anything_is_played_or_recorded(
    args: list[str], says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("")
    (folder / "broken.jsonl").write_text('\n{"figures": 3}\n')
    monkeypatch.setattr(suites, "played", None)
    (line,) = run(*args, code=2).stderr.splitlines()
    assert line.startswith(f"ctxsteward: {says}")
    assert sorted(path.name for path in folder.iterdir()) == ["broken.jsonl", "file"]
