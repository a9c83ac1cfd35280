"""From scenarios to figures: sums over scenarios, unscored is not zero, and what broke off fails the run."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from ctxsteward.evals.suites.kit.suite import MISSES_KEPT, Metric, Score, ScoreTally, UnscoredCheck, holds, tallied
from ctxsteward.schemas.publish import schema

from .made import COST, SHOWN, STALE, UNKNOWN, made, played


def test_figures_are_over_checks_and_intervals_over_scenarios() -> None:
    found = made(played(0, 9, 10), played(1, 10, 10), played(2, 30, 30, turns=250))
    figures = {one.name: one for one in found.metrics}
    assert (figures["shown"].value, figures["shown"].checks, figures["shown"].scenarios) == (0.98, 50, 3)
    assert (figures["shown"].method, figures["stale"].value, figures["cost"].value) == ("bootstrap", 0, 0.5)
    assert (found.scenarios, found.long_scenarios, found.turns, found.cpu_seconds) == (3, 1, 370, 0.75)
    assert (found.passed, [gate.passed for gate in found.gates]) == (True, [True, True])


def test_what_was_never_scored_has_no_value_and_passes_no_gate() -> None:
    from ctxsteward.evals.suites.gates import Gate

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
