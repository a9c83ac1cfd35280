"""Two runs beside each other: paired by scenario, the same from both sides, refused where they asked other things."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from inline_snapshot import snapshot

from ctxsteward.evals import result_history as history
from ctxsteward.evals.result_formats import comparison, summary
from ctxsteward.evals.result_history import FigureComparison, compare, compare_runs, read_runs
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult

from ...examples import SOAK, examples
from ..suites.made import made, played


def run(*shown: int, of: int = 10, **changes: Any) -> EvalResult:
    """A run of scenarios in which so many of ten values were shown."""
    return made(*(played(n, count, of) for n, count in enumerate(shown))).model_copy(update=changes)


def figure(before: EvalResult, after: EvalResult, name: str = "shown") -> FigureComparison:
    return next(one for one in compare(before, after).figures if one.metric == name)


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=20
)


def both(rows: list[tuple[int, int, int, int]]) -> tuple[EvalResult, EvalResult]:
    before = [
        played(n, min(shown, of), of, stale=shown % 3, cost=shown / 9) for n, (shown, _, of, _) in enumerate(rows)
    ]
    after = [played(n, min(shown, of), of, stale=shown % 3, cost=shown / 9) for n, (_, shown, _, of) in enumerate(rows)]
    return made(*before), made(*after)


@settings(max_examples=examples(100))
@given(ROWS)
def test_a_run_beside_itself_differs_in_nothing(rows: list[tuple[int, int, int, int]]) -> None:
    before, _ = both(rows)
    for one in compare(before, before).figures:
        if one.metric == "unknown":
            assert (one.difference, one.p) == (None, None)
        else:
            assert (one.difference, one.p, one.differing, one.is_surely) == (0, 1, 0, None)
            assert (one.low, one.high) == ((None, None) if len(rows) == 1 else (0, 0))


MIRRORED = {"better": "worse", "worse": "better", None: None}


@settings(max_examples=examples(60))
@given(ROWS)
def test_after_beside_before_is_before_beside_after_turned_round(rows: list[tuple[int, int, int, int]]) -> None:
    before, after = both(rows)
    for there, back in zip(compare(before, after).figures, compare(after, before).figures, strict=True):
        turned = replace(
            there,
            before=there.after,
            after=there.before,
            difference=None if there.difference is None else -there.difference,
            low=None if there.high is None else -there.high,
            high=None if there.low is None else -there.low,
            is_surely=MIRRORED[there.is_surely],
        )
        assert turned == back


@settings(max_examples=examples(60))
@given(ROWS)
def test_a_difference_is_that_of_the_figures_lies_in_its_interval_and_p_is_a_share(
    rows: list[tuple[int, int, int, int]],
) -> None:
    before, after = both(rows)
    for one in compare(before, after).figures:
        if one.difference is None or one.before is None or one.after is None or one.p is None:
            continue
        assert one.difference == one.after - one.before
        assert one.low is None or one.high is None or one.low <= one.difference <= one.high
        assert 0 < one.p <= 1
    for metric in ("shown", "cost"):
        told = [next(m.value for m in result.metrics if m.name == metric) for result in (before, after)]
        found = figure(before, after, metric)
        assert (found.before, found.after) == (pytest.approx(told[0], abs=1e-6), pytest.approx(told[1], abs=1e-6))


def test_what_scenarios_have_in_common_cancels() -> None:
    """Apart, the intervals of both runs overlap nearly whole; paired, a fall of a tenth in each scenario is sure."""
    shown = [2, 9, 4, 10, 6, 3, 8, 5]
    before, after = run(*shown), run(*(n - 1 for n in shown))
    apart = [next(m for m in result.metrics if m.name == "shown") for result in (before, after)]
    assert (apart[1].high or 0) > (apart[0].value or 0)
    found = figure(before, after)
    assert (round(found.difference or 0, 6), found.p, found.is_surely) == (-0.1, 2 / 2**8, "worse")


def test_few_scenarios_are_never_sure_and_a_p_is_exact() -> None:
    found = figure(run(9, 8, 9, 10), run(5, 4, 6, 6))
    assert (found.p, found.is_surely) == (2 / 2**4, None)
    assert found.high is not None
    assert found.high < 0
    same_step = figure(run(9, 9), run(5, 5))
    assert (same_step.low, same_step.high, same_step.p) == (None, None, 0.5)


def test_runs_without_any_true_difference_are_seldom_said_to_differ() -> None:
    rng, runs, sure = Random(7), 300 if SOAK else 100, 0
    for _ in range(runs):
        shares = [rng.betavariate(6, 2) for _ in range(10)]
        pair = [run(*(sum(rng.random() < share for _ in range(10)) for share in shares)) for _ in range(2)]
        sure += figure(*pair).is_surely is not None
    assert sure / runs <= 0.06


def test_a_smaller_run_is_compared_over_the_scenarios_that_both_played() -> None:
    large, small = run(9, 8, 7, 1, 1), run(9, 9, 7)
    compared = compare(large, small)
    assert compared.scenario_ids == ("made/ci-0", "made/ci-1", "made/ci-2")
    found = next(one for one in compared.figures if one.metric == "shown")
    assert (found.before, found.after, found.scenarios, found.differing) == (24 / 30, 25 / 30, 3, 1)


def test_a_scenario_that_one_run_could_not_score_stands_in_neither_figure() -> None:
    before, after = run(9, 8), run(9, 8)
    after = after.model_copy(update={"by_scenario": {"shown": {"made/ci-1": after.by_scenario["shown"]["made/ci-1"]}}})
    found = figure(before, after)
    assert (found.before, found.after, found.scenarios) == (0.8, 0.8, 1)
    assert figure(before, after, "cost").difference is None


def test_gates_that_ended_otherwise_are_named() -> None:
    compared = compare(run(10, 10), run(3, 9))
    assert compared.gates == (("shown", "at least 0.9 over 2 scenarios", "passed", "failed"),)


def test_many_scenarios_that_differ_are_permuted_by_seeded_draws() -> None:
    rng = Random(3)
    before, after = (run(*(rng.randint(4, 9) for _ in range(30))) for _ in range(2))
    found = figure(before, after)
    assert found.differing > 12
    assert found.p == figure(before, after).p


def test_the_page_of_a_comparison() -> None:
    before = run(9, 8, 9, 10, 7, 9, 8, 9, revision="main", product="ctxsteward 1")
    after = run(7, 7, 8, 8, 6, 8, 7, 7, revision="a | b", setup=before.setup | {"summarizer": "own"})
    assert comparison([compare(before, after, meant=["summarizer"])]) == snapshot("""\
# Context evals: two runs compared

1 of 1 figures that differ do so surely, 1 for the worse; of as many without any true difference, up to 0.05 would.

## made

- before: ctxsteward 1, revision main, 2026-11-22T08:00:00+00:00, 8 scenarios
- after: ctxsteward 0.1.0, revision a \\| b, 2026-11-22T08:00:00+00:00, 8 scenarios
- compared over 8 scenarios of split ci that both played; meant to differ: summarizer: extractive and own

| figure | before | after | difference | 95 % interval | p | |
|---|---:|---:|---:|---|---:|---|
| shown | 86.25 % | 72.5 % | -13.8 | -18.1 to -9.42 | 0.008 | worse |
| stale | 0 | 0 | = |  |  |  |
| cost | 0.5 | 0.5 | = |  |  |  |
| unknown | unscored | unscored |  |  |  |  |
""")


def test_one_scenario_is_told_in_the_singular() -> None:
    said = comparison([compare(run(9, revision="a"), run(8, revision="b"))])
    assert "revision a, 2026-11-22T08:00:00+00:00, 1 scenario\n" in said


# -- what is refused --------------------------------------------------------------------------------------------------

GREEN = run(9, 10, revision="one")
OTHER_SETUP = GREEN.setup | {"budgets.dynamic_tokens": 900}
REFUSED: list[tuple[str, EvalResult, tuple[str, ...], str]] = [
    (
        "another split",
        GREEN.model_copy(update={"split": "docs"}),
        (),
        "made: the runs differ in split: ci and docs; compare runs that asked the same",
    ),
    (
        "another budget",
        GREEN.model_copy(update={"setup": OTHER_SETUP}),
        (),
        "budgets.dynamic_tokens: not set and 900; compare runs that asked the same, or say that it is meant: "
        "--meant budgets.dynamic_tokens",
    ),
    (
        "one of two is meant",
        GREEN.model_copy(update={"setup": OTHER_SETUP | {"summarizer": "own"}}),
        ("summarizer",),
        "the runs differ in budgets.dynamic_tokens: not set and 900;",
    ),
    ("no such setting is meant", GREEN, ("budget",), "'budget' is no setting of these runs; there are: model, "),
    ("another suite", GREEN.model_copy(update={"suite": "other"}), (), "the runs differ in suite: made and other;"),
    (
        "no scenario in both",
        GREEN.model_copy(update={"scenario_ids": ("made/ci-7",)}),
        (),
        "no scenario was played in both runs (made/ci-0 …, made/ci-7 …)",
    ),
    (
        "a result of an earlier version",
        GREEN.model_copy(update={"scenario_ids": ()}),
        (),
        "was written by a version that kept no values by scenario; play it again: ctxsteward evals run made",
    ),
]


@pytest.mark.parametrize(("after", "meant", "told"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_runs_that_did_not_ask_the_same_are_refused_with_what_differs(
    after: EvalResult, meant: tuple[str, ...], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        compare(GREEN, after, meant=meant)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    history.append(Path("h.jsonl"), [GREEN, run(8, 8, revision="two", when="2026-12-01T00:00:00+00:00")])
    history.append(Path("one.json"), [GREEN])
    history.append(Path("with@sign.json"), [GREEN])
    history.append(Path("other.json"), [GREEN.model_copy(update={"suite": "other"})])
    Path("empty").write_text("\n")
    Path("broken.json").write_text("{\n")
    return tmp_path


def test_a_file_names_its_newest_result_a_revision_or_a_time(files: Path) -> None:
    names = ("h.jsonl", "h.jsonl@one", "h.jsonl@2026-12", "one.json", "with@sign.json", "with@sign.json@one")
    assert [read_runs(name)["made"].revision for name in names] == ["two", "one", "two", "one", "one", "one"]
    (compared,) = compare_runs("h.jsonl@one", "h.jsonl@two", metrics=("shown",))
    assert [one.metric for one in compared.figures] == ["shown"]
    assert "0 of 1 figures" in summary([compared])


FILES = [
    ("none.json", "one.json", {}, "none.json: no such file; write one with `ctxsteward evals run SUITE --json > FILE`"),
    ("none.json@one", "one.json", {}, "none.json: no such file"),
    ("empty", "one.json", {}, "empty: no result in it"),
    ("broken.json", "one.json", {}, "broken.json:1: not a result (the line: Invalid JSON"),
    (".", "one.json", {}, "not a readable history"),
    ("h.jsonl@three", "one.json", {}, "h.jsonl@three: no result of revision or time 'three'; the newest are: two of"),
    ("one.json", "one.json", {}, "one.json and one.json name the same run; name two: other files, or FILE@REVISION"),
    ("h.jsonl", "h.jsonl@two", {}, "name the same run"),
    ("one.json", "./one.json", {}, "name the same run"),
    ("one.json", "other.json", {}, "no result of the same suite in both: one.json has made and other.json has other"),
    ("one.json", "h.jsonl", {"suite": "cache"}, "no result of cache in both"),
    ("one.json", "h.jsonl", {"metrics": ("shwn",)}, "--metric shwn: the runs have no such figure; there are: shown, "),
]


@pytest.mark.parametrize(("first", "second", "asked", "told"), FILES)
def test_files_that_cannot_be_compared_are_refused_in_one_line(
    first: str, second: str, asked: dict[str, Any], told: str, files: Path
) -> None:
    with pytest.raises(InputError) as caught:
        compare_runs(first, second, **asked)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_broke_off_is_left_out_and_counted() -> None:
    before = made(played(0, 9, 10), played(1, 9, 10, error="KeyError: 'x'"), played(2, 8, 10))
    after = made(played(0, 9, 10), played(1, 0, 1), played(2, 8, 10))
    compared = compare(before, after)
    assert (compared.scenario_ids, compared.broke_off) == (("made/ci-0", "made/ci-2"), ("made/ci-1",))
    assert figure(before, after).difference == 0
    assert "left out: 1 scenario that broke off (made/ci-1)" in comparison([compared]).replace("\\", "")
    with pytest.raises(InputError, match=r"no scenario ended in both runs; made/ci-1 broke off: KeyError: 'x'"):
        compare(made(played(1, 9, 10, error="KeyError: 'x'")), made(played(1, 9, 10)))


def test_a_value_of_one_run_alone_is_told_beside_unscored() -> None:
    before, after = made(played(0, 9, 10)), made(played(0, 9, 10))
    after = after.model_copy(update={"by_scenario": {k: v for k, v in after.by_scenario.items() if k != "shown"}})
    for compared, told in ((compare(before, after), (0.9, None)), (compare(after, before), (None, 0.9))):
        shown = next(one for one in compared.figures if one.metric == "shown")
        assert (shown.before, shown.after, shown.difference, shown.is_surely) == (*told, None, None)


def test_another_subject_is_told_beside_ours() -> None:
    other = run(9, setup=run(9).setup | {"subject": "mine.py:newest"})
    with pytest.raises(InputError, match=r"subject: ours and mine\.py:newest; .* --meant subject"):
        compare(run(9), other)


def test_runs_without_a_figure_that_both_have_are_not_compared() -> None:
    one = run(9, 8)
    other = one.model_copy(update={"by_scenario": {}, "revision": "after"})
    with pytest.raises(InputError, match="made: no figure has a value in both runs"):
        compare(one, other)
