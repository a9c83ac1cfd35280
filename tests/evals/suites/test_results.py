"""From scenarios to figures: the same scores whoever plays, sums over scenarios, intervals, what broke off."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from ctxsteward.envelope import Budgets
from ctxsteward.evals.subjects import Dialogue, Subject, Task
from ctxsteward.evals.subjects.port import FunctionDialogue
from ctxsteward.evals.subjects.registry import subject_named
from ctxsteward.evals.suites.gates import Gate, shipped_gates
from ctxsteward.evals.suites.kit.suite import (
    MISSES_KEPT,
    Draw,
    Metric,
    ScenarioResult,
    Score,
    ScoreTally,
    Setup,
    holds,
    tallied,
    unscored,
)
from ctxsteward.evals.suites.results import in_order, mean_of_repeats, play_one, played as play_all, run_all
from ctxsteward.schemas import InputError, SummarizerInput, Summary
from ctxsteward.schemas.eval_result import EvalResult
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.schemas.publish import schema

from .doubles import Short
from .made import COST, SHOWN, STALE, UNKNOWN, made, played


def test_figures_are_over_checks_and_intervals_over_scenarios() -> None:
    found = made(played(0, 9, 10), played(1, 10, 10), played(2, 30, 30, turns=250))
    figures = {one.name: one for one in found.metrics}
    assert (figures["shown"].value, figures["shown"].checks, figures["shown"].scenarios) == (0.98, 50, 3)
    assert (figures["shown"].method, figures["stale"].value, figures["cost"].value) == ("wilson", 0, 0.5)
    assert (found.scenarios, found.long_scenarios, found.turns, found.cpu_seconds) == (3, 1, 370, 0.75)
    assert (found.passed, [gate.passed for gate in found.gates]) == (True, [True, True])


def test_what_was_never_scored_has_no_value_and_passes_no_gate() -> None:
    found = made(played(0, 1, 1), gates={"unknown": (Gate(rule="at_most", bound=1),)})
    (figure,) = [one for one in found.metrics if one.name == "unknown"]
    assert (figure.value, figure.low, figure.checks) == (None, None, 0)
    assert (found.passed, found.gates[0].why) == (True, "nothing was scored")
    assert (found.gates[0].passed, found.gates[0].verdict) == (False, "unscored")


def test_where_every_figure_is_required_one_without_a_score_fails_a_run_of_any_size() -> None:
    """So the product's own run in CI cannot go green because nothing was asked."""
    assert all(gate.required for suite in shipped_gates().values() for each in suite.values() for gate in each)
    gates = {"unknown": (Gate(rule="at_most", bound=1, required=True),)}
    full, small = made(played(0, 1, 1), played(1, 1, 1), gates=gates), made(played(0, 1, 1), gates=gates)
    assert [(one.passed, one.gates[0].verdict) for one in (full, small)] == [(False, "failed"), (False, "failed")]


def test_a_rate_is_given_for_each_distinct_thing_once_beside_each_check() -> None:
    """One aim asked for eight times and lost weighs as much as one asked for once and kept."""
    scores = [holds("shown", False, of="goal fence")] * 8 + [holds("shown", True, of="task roof")]
    half = [holds("shown", True, of="goal path"), holds("shown", False, of="goal path")]
    rows = [replace(played(n, 0, 1), tallies=tallied(each, [SHOWN])) for n, each in enumerate((scores, half))]
    (figure,) = [one for one in made(*rows).metrics if one.name == "shown"]
    assert (figure.value, figure.checks, figure.distinct_value, figure.distinct) == (0.181818, 11, 0.5, 3)


def test_a_check_that_names_nothing_is_a_thing_of_its_own_and_a_rate_of_such_has_no_second_figure() -> None:
    mixed = [holds("shown", True, of="§3"), holds("shown", True, of="§3"), holds("shown", False), holds("shown", True)]
    assert tallied(mixed, [SHOWN])["shown"].distinct == (2.0, 3)
    plain = replace(played(0, 0, 1), tallies=tallied([holds("shown", True)], [SHOWN]))
    assert made(plain).metrics[0].distinct is None


def test_a_result_keeps_what_each_scenario_gave_to_each_figure() -> None:
    found = made(played(0, 9, 10, stale=1), played(4, 2, 2))
    assert found.scenario_ids == ("made/ci-0", "made/ci-4")
    assert found.by_scenario == {
        "shown": {"made/ci-0": (9, 10), "made/ci-4": (2, 2)},
        "stale": {"made/ci-0": (1, 1), "made/ci-4": (0, 1)},
        "cost": {"made/ci-0": (0.5, 1), "made/ci-4": (0.5, 1)},
    }


def test_a_scenario_that_broke_off_fails_the_run_whatever_its_figures() -> None:
    found = made(played(0, 1, 1), played(1, 1, 1, error="KeyError: 'x'"))
    assert (found.passed, found.errors) == (False, {"made/ci-1": "KeyError: 'x'"})
    assert {(gate.verdict, gate.why) for gate in found.gates} == {
        ("undecided", "holds in what was played, but 1 of 2 scenarios broke off")
    }


def test_a_result_is_what_the_published_schema_says() -> None:
    document = json.loads(made(played(0, 3, 5, stale=1)).model_dump_json())
    Draft202012Validator(schema("eval_result")).validate(document)
    assert document["misses"][0] == {
        "scenario": "made/ci-0",
        "metric": "shown",
        "at": "turn 0",
        "why": "not shown: '\x1b[31m| <b>'",
    }


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
    found = tallied([unscored("unknown", "no clock"), unscored("unknown", "no clock")], [UNKNOWN])["unknown"]
    assert (found.count, dict(found.unscored)) == (0, {"no clock": 2})
    assert tallied([], [SHOWN])["shown"] == ScoreTally()


# -- playing --------------------------------------------------------------------------------------------------------


DRAWS = tuple(Short("verbatim", "docs", number) for number in (1, 2))


def without_time(results: list[ScenarioResult]) -> list[ScenarioResult]:
    return [replace(one, cpu_seconds=0.0) for one in results]


def test_several_processes_give_the_scores_of_one() -> None:
    alone = [one for _, one in run_all([(draw, Setup()) for draw in DRAWS])]
    shared = in_order([one for _, one in run_all([(draw, Setup()) for draw in DRAWS], workers=2)], DRAWS)
    assert without_time(alone) == without_time(shared)
    assert all(one.turns == 30 and one.builds >= one.turns and one.error is None for one in alone)


def test_an_exception_breaks_its_scenario_off_and_not_the_run() -> None:
    profile = ProfileDocument(persona=(ProfileEntry(id="who", text="You are a helper with many words to say."),))
    heavy = Setup(budgets=Budgets(system_tokens=1), profile=profile)
    result = play_one(DRAWS[0], heavy)
    assert result.error is not None
    assert result.error.startswith("BudgetExceeded: ")
    assert (result.turns, result.builds) == (30, 1)


def local(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    return Summary(bullets=())


def test_a_setup_that_cannot_leave_its_process_is_refused_with_what_to_do() -> None:
    unpicklable = Setup(summarizer=lambda source, *, budget_tokens: Summary(bullets=()))
    with pytest.raises(InputError, match="run with one worker"):
        list(run_all([(draw, unpicklable) for draw in DRAWS], workers=2))
    assert Setup(summarizer=local).describe()["summarizer"] == "local"


# -- repeats ---------------------------------------------------------------------------------------------------

checks = st.tuples(st.integers(0, MISSES_KEPT), st.integers(0, MISSES_KEPT)).map(lambda row: (min(row), max(row)))


def without(result: EvalResult, *names: str) -> dict[str, Any]:
    """All that is told, but for what tells of repeats and time."""
    dumped = result.model_dump(mode="json", exclude={"cpu_seconds"})
    for metric in dumped["metrics"]:
        for name in names:
            del metric[name]
    return dumped


@given(st.lists(checks, min_size=1, max_size=6), st.integers(1, 5))
def test_the_same_playing_again_and_again_is_that_playing(rows: list[tuple[int, int]], times: int) -> None:
    """So repeats narrow no interval, turn no gate and count as no scenarios."""
    once = [played(number, *row) for number, row in enumerate(rows)]
    again = [mean_of_repeats([one] * times) for one in once]
    left = ("within_sd", "between_sd")
    assert without(made(*again), *left) == without(made(*once), *left)
    if times > 1:
        assert {figure.within_sd for figure in made(*again).metrics} <= {0.0, None}


@given(st.lists(st.tuples(st.integers(0, 4), st.just(4)), min_size=1, max_size=6))
def test_a_scenario_is_the_mean_of_its_repeats_and_has_the_checks_of_one(rows: list[tuple[int, int]]) -> None:
    one = mean_of_repeats([played(0, *row) for row in rows])
    tally = one.tallies["shown"]
    assert tally.count == 4
    assert tally.total == pytest.approx(sum(total for total, _ in rows) / len(rows))
    assert tally.repeats == tuple(rows) or len(rows) == 1
    assert made(one).scenarios == 1


def test_repeats_of_few_scenarios_leave_their_interval_as_wide_as_few_scenarios_do() -> None:
    """Two scenarios, each half right in every repeat: ten repeats are not twenty scenarios."""
    few = made(*(mean_of_repeats([played(n, 1, 2), played(n, 2, 2)] * 5) for n in range(2)))
    many = made(*(played(n, 1 + n % 2, 2) for n in range(20)))
    widths = [one.metrics[0].high - one.metrics[0].low for one in (few, many)]  # type: ignore[operator]
    assert [one.metrics[0].value for one in (few, many)] == [0.75, 0.75]
    assert widths[0] > 2 * widths[1]


def test_what_one_repeat_missed_could_not_score_or_broke_off_at_is_told() -> None:
    unsure = replace(
        played(0, 0, 0),
        tallies=played(0, 0, 0).tallies | {"shown": tallied([unscored("shown", "no clock")], [SHOWN])["shown"]},
    )
    one = mean_of_repeats([played(0, 2, 2), played(0, 1, 2, error="KeyError: 'x'"), unsure])
    assert one.error == "repeat 2: KeyError: 'x'"
    assert dict(one.tallies["shown"].unscored) == {"no clock": 1}
    assert [miss.at for miss in one.tallies["shown"].misses] == ["repeat 2, turn 0"]
    assert (one.tallies["shown"].total, one.tallies["shown"].count) == (1.5, 2)
    assert made(one).metrics[0].within_sd == pytest.approx(0.353553)


class Coin:
    """A strategy in which something varies."""

    name = "coin"

    def __init__(self) -> None:
        self.rng = Random("coin")

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        kept = self.rng.choice((1, 30))
        return FunctionDialogue(lambda conversation: conversation.messages[-kept:], task, tokens)


@pytest.mark.parametrize(
    ("subject", "plays"), [pytest.param(None, 1, marks=pytest.mark.soak), (subject_named("window"), 1), (Coin(), 3)]
)
def test_a_scenario_is_played_again_only_where_something_may_vary(subject: Subject | None, plays: int) -> None:
    counted: list[str] = []

    def play(draw: Draw, setup: Setup) -> ScenarioResult:
        counted.append(draw.id)
        return play_one(draw, setup)

    setup = Setup(subject=subject, repeat=3)
    found = play_all("verbatim", DRAWS[:1], setup, workers=1, gates={}, when="", play=play)
    assert counted == ["verbatim/docs-1"] * plays
    assert (found.scenarios, found.setup["repeat"]) == (1, 3)
    assert any(figure.within_sd for figure in found.metrics) is (plays > 1)
