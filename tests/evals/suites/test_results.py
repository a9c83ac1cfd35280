"""From scenarios to figures: the same scores whoever plays, sums over scenarios, intervals, what broke off."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from ctxsteward.envelope import Budgets
from ctxsteward.evals.suites.gates import Gate
from ctxsteward.evals.suites.kit.suite import (
    MISSES_KEPT,
    Draw,
    Metric,
    ScenarioResult,
    Score,
    ScoreTally,
    Setup,
    UnscoredCheck,
    holds,
    tallied,
)
from ctxsteward.evals.suites.results import ScenarioPart, bootstrapped, in_order, interval, play_one, run, wilson
from ctxsteward.schemas import InputError, SummarizerInput, Summary
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.schemas.publish import schema

from ...examples import examples
from .made import COST, SHOWN, STALE, UNKNOWN, made, played


def test_figures_are_over_checks_and_intervals_over_scenarios() -> None:
    found = made(played(0, 9, 10), played(1, 10, 10), played(2, 30, 30, turns=250))
    figures = {one.name: one for one in found.metrics}
    assert (figures["shown"].value, figures["shown"].checks, figures["shown"].scenarios) == (0.98, 50, 3)
    assert (figures["shown"].method, figures["stale"].value, figures["cost"].value) == ("bootstrap", 0, 0.5)
    assert (found.scenarios, found.long_scenarios, found.turns, found.cpu_seconds) == (3, 1, 370, 0.75)
    assert (found.passed, [gate.passed for gate in found.gates]) == (True, [True, True])


def test_what_was_never_scored_has_no_value_and_passes_no_gate() -> None:
    found = made(played(0, 1, 1), gates={"unknown": (Gate(rule="at_most", bound=1),)})
    (figure,) = [one for one in found.metrics if one.name == "unknown"]
    assert (figure.value, figure.low, figure.checks) == (None, None, 0)
    assert (found.passed, found.gates[0].why) == (False, "nothing was scored")


def test_a_scenario_that_broke_off_fails_the_run_whatever_its_figures() -> None:
    found = made(played(0, 1, 1), played(1, 1, 1, error="KeyError: 'x'"))
    assert (found.passed, found.errors) == (False, {"made/ci-1": "KeyError: 'x'"})
    assert all(gate.passed for gate in found.gates)


def test_a_result_is_what_the_published_schema_says() -> None:
    document = json.loads(made(played(0, 3, 5, stale=1)).model_dump_json())
    Draft202012Validator(schema("eval_result")).validate(document)
    assert document["misses"][0] == {
        "scenario": "made/ci-0", "metric": "shown", "at": "turn 0", "why": "not shown: '\x1b[31m| <b>'",
    }  # fmt: skip


CASES = [
    (SHOWN, Score("shown", 1.0), 0),
    (SHOWN, Score("shown", 0.0, "turn 3", "gone"), 1),
    (STALE, Score("stale", 1.0, "end", "8949"), 1),
    (STALE, Score("stale", 0.0), 0),
    (COST, Score("cost", 0.4), 0),
    (Metric(name="drift", about="", better="lower"), Score("drift", 1.0, "end", "drifted"), 1),
    (Metric(name="drift", about="", better="lower"), Score("drift", 0.0, "end"), 0),
]


@pytest.mark.parametrize(("metric", "score", "misses"), CASES)
def test_a_check_that_does_not_hold_is_kept_as_a_miss(metric: Metric, score: Score, misses: int) -> None:
    tally = tallied([score], [metric])[metric.name]
    assert (tally.count, tally.total, len(tally.misses)) == (1, score.value, misses)


def test_misses_are_bounded_and_unscored_checks_are_counted_by_reason() -> None:
    found = tallied([holds("shown", False, f"turn {n}", "x" * 1000) for n in range(50)], [SHOWN])["shown"]
    assert (found.count, len(found.misses), max(len(miss.why) for miss in found.misses)) == (50, MISSES_KEPT, 300)
    found = tallied([UnscoredCheck("unknown", "no clock"), UnscoredCheck("unknown", "no clock")], [UNKNOWN])["unknown"]
    assert (found.count, dict(found.unscored)) == (0, {"no clock": 2})
    assert tallied([], [SHOWN])["shown"] == ScoreTally()


# -- intervals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_what_newcombe_published(successes: int, trials: int, low: float, high: float) -> None:
    found = wilson(successes, trials)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(st.integers(1, 500), st.data())
def test_a_share_lies_in_its_interval_and_both_in_the_unit(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    found = wilson(successes, trials)
    assert 0 <= found.low <= successes / trials <= found.high <= 1


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=30))
def test_a_bootstrap_lies_between_the_least_and_the_most_of_its_scenarios(rows: list[tuple[int, int]]) -> None:
    parts = [ScenarioPart(min(total, checks), checks) for total, checks in rows]
    shares = [part.total / part.checks for part in parts]
    found = bootstrapped(parts)
    assert min(shares) - 1e-9 <= found.low <= found.high <= max(shares) + 1e-9
    assert found == bootstrapped(parts)


def test_checks_that_hang_together_make_a_wide_interval() -> None:
    together = interval([ScenarioPart(100, 100)] * 5 + [ScenarioPart(0, 100)] * 5, is_rate=True)
    apart = interval([ScenarioPart(50, 100)] * 9 + [ScenarioPart(51, 100)], is_rate=True)
    assert together is not None
    assert apart is not None
    assert (together.method, together.high - together.low > 0.5) == ("bootstrap", True)
    assert apart.high - apart.low < 0.01


def test_where_all_scenarios_agree_wilson_counts_scenarios_and_not_checks() -> None:
    assert interval([ScenarioPart(40, 40)] * 20, is_rate=True) == wilson(20, 20)
    assert interval([ScenarioPart(1, 1), ScenarioPart(0, 1)], is_rate=True) == wilson(1, 2)


def test_equal_means_and_nothing_have_no_interval() -> None:
    assert interval([ScenarioPart(3.0, 2)] * 4, is_rate=False) is None
    assert interval([ScenarioPart(0, 0)], is_rate=True) is None
    assert interval([], is_rate=True) is None
    with pytest.raises(ValueError, match="no trials"):
        wilson(0, 0)


# -- playing --------------------------------------------------------------------------------------------------------


DRAWS = tuple(Draw("verbatim", "docs", number) for number in (1, 3))


def without_time(results: list[ScenarioResult]) -> list[ScenarioResult]:
    return [replace(one, cpu_seconds=0.0) for one in results]


def test_several_processes_give_the_scores_of_one() -> None:
    alone = list(run(DRAWS, Setup(), workers=1))
    shared = in_order(list(run(DRAWS, Setup(), workers=2)), DRAWS)
    assert without_time(alone) == without_time(shared)
    assert all(one.turns >= 50 and one.builds >= one.turns and one.error is None for one in alone)


def test_an_exception_breaks_its_scenario_off_and_not_the_run() -> None:
    profile = ProfileDocument(persona=(ProfileEntry(id="who", text="You are a helper with many words to say."),))
    heavy = Setup(budgets=Budgets(system_tokens=1), profile=profile)
    result = play_one(DRAWS[0], heavy)
    assert result.error is not None
    assert result.error.startswith("BudgetExceeded: ")
    assert (result.turns, result.builds) == (50, 1)


def local(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    return Summary(bullets=())


def test_a_setup_that_cannot_leave_its_process_is_refused_with_what_to_do() -> None:
    unpicklable = Setup(summarizer=lambda source, *, budget_tokens: Summary(bullets=()))
    with pytest.raises(InputError, match="run with one worker"):
        list(run(DRAWS, unpicklable, workers=2))
    assert Setup(summarizer=local).describe()["summarizer"] == "local"
