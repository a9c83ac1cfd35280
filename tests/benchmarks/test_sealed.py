"""`python -m benchmarks.sealed`: the ledger, what is printed and what is not.

No scenario of the split is played here: results are made up in the place of `played`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import sealed
from benchmarks.sealed import main, read
from ctxsteward.evals.result_history import append
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
        return made("sealed", 0.5)

    monkeypatch.setattr(sealed, "played", played)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> int:
    return main(["verbatim", "--log", "kept/l.jsonl", "--scenarios", "2", *args])


def test_an_opening_is_recorded_and_the_next_one_is_told_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    assert "never opened before; this opening is recorded in kept/l.jsonl" in capsys.readouterr().err
    (row,) = read(folder / "kept/l.jsonl")
    assert (row.suite, row.scenarios, row.revision) == ("verbatim", 2, "abc")
    assert (row.setup, row.figures, row.misses_shown) == ({"summarizer": "extractive"}, {"last_user": 0.5}, False)
    run("--show-misses")
    assert f"was opened once before, last {row.when} (verbatim); recorded in kept/l.jsonl" in capsys.readouterr().err
    assert [one.misses_shown for one in read(folder / "kept/l.jsonl")] == [False, True]


def test_new_words_were_never_opened_however_often_the_old_ones_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    monkeypatch.setattr(sealed, "words_digest", lambda: "other words")
    capsys.readouterr()
    run()
    assert "the sealed split was never opened before" in capsys.readouterr().err
    assert len({row.words for row in read(folder / "kept/l.jsonl")}) == 2


def test_misses_are_shown_only_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run()
    shown = "".join(capsys.readouterr())
    assert SECRET not in shown + (folder / "kept/l.jsonl").read_text()
    assert "verbatim/sealed-0 broke off: ValueError" in shown
    run("--show-misses")
    assert SECRET in capsys.readouterr().err


def test_the_figures_are_written_beside_those_of_ci(folder: Path) -> None:
    (folder / "page.md").write_text("before\n<!-- sealed -->\n<!-- /sealed -->\nbehind\n")
    append(folder / "h.jsonl", [made("ci", 1.0)])
    run("--history", "h.jsonl", "--write", "page.md")
    assert (folder / "page.md").read_text().splitlines() == [
        "before",
        "<!-- sealed -->",
        "ctxsteward 0.1.0, revision abc, 2026-01-02.",
        "",
        "| suite | figure | gate | `ci` | `sealed` | `sealed`, 95 % |",
        "|---|---|---|---:|---:|---:|",
        "| `verbatim` | `last_user` | at least 1 | 100 % | 50 % | 40 % to 60 % |",
        "",
        "0 other gates hold; the ledger has their figures.",
        "<!-- /sealed -->",
        "behind",
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--write", "page.md"], "--write page.md: no such file"),
        (["--log", "."], "--log .: not a file that may be written"),
        (["--log", "broken.jsonl"], "broken.jsonl:2: not an opening (when: Field required)"),
    ],
)
def test_a_place_that_does_not_do_is_refused_before_anything_is_played(
    args: list[str], says: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.jsonl").write_text('\n{"figures": 3}\n')
    monkeypatch.setattr(sealed, "played", None)
    with pytest.raises(SystemExit):
        run(*args)
    assert says in capsys.readouterr().err
