"""What a run of a suite tells: its figures, whether its gates passed, how it ended."""

from __future__ import annotations

from functools import cache

from ctxsteward.evals import telemetry
from ctxsteward.evals.suites import results
from ctxsteward.evals.suites.catalogue import suite_named
from ctxsteward.evals.suites.gates import Gate, shipped_gates
from ctxsteward.evals.suites.kit.suite import Setup
from ctxsteward.evals.suites.results import play_one, result
from ctxsteward.schemas.eval_result import EvalResult, GateResult

from .suites.doubles import Short

DRAW = Short("verbatim", "docs", 1)


@cache
def played() -> EvalResult:
    """One scenario of a suite, held to those of its shipped gates that one scenario can decide: its promises."""
    setup, suite = Setup(), suite_named("verbatim")
    scenarios = [play_one(DRAW, setup)]
    gates = {name: each for name, each in shipped_gates()["verbatim"].items() if each[0].is_promise("rate")}
    return result(suite, scenarios, split="docs", setup=setup, gates=gates, when="2026-11-22")


def test_a_run_s_figures_and_gates_are_told() -> None:
    found, numbers = played(), telemetry.board()
    before = numbers.numbers("eval.run.count").get(("verbatim", "passed"), 0)

    telemetry.tell_eval(found)

    scores = {metric: value for (suite, metric), value in numbers.numbers("eval.score").items() if suite == "verbatim"}
    assert scores == {metric.name: metric.value for metric in found.metrics if metric.value is not None}
    gates = {metric: value for (suite, metric), value in numbers.numbers("eval.gate").items() if suite == "verbatim"}
    assert gates == {gate.metric: 1.0 for gate in found.gates}
    assert numbers.numbers("eval.run.count")["verbatim", "passed"] == before + 1


def test_whoever_plays_a_suite_tells_of_it() -> None:
    numbers = telemetry.board()
    before = numbers.numbers("eval.run.count").get(("verbatim", "passed"), 0)

    found = results.played("verbatim", [DRAW], Setup(), workers=1, gates={}, when="2026-11-22")

    assert numbers.numbers("eval.run.count")["verbatim", "passed"] == before + 1
    first = found.metrics[0]
    assert numbers.numbers("eval.score")["verbatim", first.name] == first.value


def test_a_gate_that_failed_stands_at_0_until_it_passes() -> None:
    good = played().model_copy(update={"suite": "of ours"})
    gate = good.gates[0]
    missed = GateResult(metric=gate.metric, rule=gate.rule, value=0.0, passed=False, why="below")
    bad = good.model_copy(update={"gates": (missed, *good.gates), "passed": False})
    told = []
    for one in (bad, good):
        telemetry.tell_eval(one)
        told.append(telemetry.board().numbers("eval.gate")["of ours", gate.metric])

    assert told == [0.0, 1.0]
    assert telemetry.board().numbers("eval.run.count")["of ours", "failed"] == 1


def test_a_run_with_an_undecided_gate_has_neither_passed_nor_failed() -> None:
    setup, suite = Setup(), suite_named("verbatim")
    gates = {"earlier_shown": (Gate(rule="at_least", bound=0.8),)}
    found = result(suite, [play_one(DRAW, setup)], split="docs", setup=setup, gates=gates, when="2026-11-22")
    found = found.model_copy(update={"suite": "of ours, small"})
    telemetry.tell_eval(found)
    assert telemetry.board().numbers("eval.run.count")["of ours, small", "undecided"] == 1
    assert ("of ours, small", "earlier_shown") not in telemetry.board().numbers("eval.gate")


def test_a_figure_that_could_not_be_scored_is_not_0() -> None:
    good = played()
    unscored = tuple(metric.model_copy(update={"value": None}) for metric in good.metrics)

    telemetry.tell_eval(good.model_copy(update={"suite": "unscored", "metrics": unscored}))

    assert not [suite for suite, _ in telemetry.board().numbers("eval.score") if suite == "unscored"]
