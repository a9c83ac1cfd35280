"""Intervals over scenarios hold what they say, and so does what a gate is said to notice."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.evals.intervals import (
    ALIKE,
    Spread,
    detects,
    interval,
    promise_detects,
    repeat_deviations,
    student_quantile,
    wilson,
)
from ctxsteward.schemas.eval_result import ScenarioPart

from ..examples import examples

PARTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda row: ScenarioPart(min(row), row[1])),
    min_size=1,
    max_size=30,
)


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


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (25, 2.060), (10**6, 1.960)]
)
def test_student_s_quantile_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, rel=0.002)


@given(st.integers(1, 500), st.data())
def test_a_share_lies_in_its_interval_and_both_in_the_unit(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    found = wilson(successes, trials)
    assert 0 <= found.low <= successes / trials <= found.high <= 1


@settings(max_examples=examples(200))
@given(PARTS, st.booleans())
def test_an_interval_contains_its_value_and_narrows_as_the_same_scenarios_are_added(
    parts: list[ScenarioPart], is_rate: bool
) -> None:
    value = sum(part.total for part in parts) / sum(part.checks for part in parts)
    width = inf
    for times in (1, 2, 5):
        found = interval(parts * times, is_rate=is_rate)
        if found is None:
            assert not is_rate
            assert width == inf
            continue
        assert found.low <= value + 1e-12
        assert value - 1e-12 <= found.high
        assert found.low >= 0
        assert found.high <= 1 or not is_rate
        assert found.high - found.low <= width + 1e-12
        width = found.high - found.low


def test_checks_that_hang_together_make_a_wide_interval() -> None:
    together = interval([ScenarioPart(100, 100)] * 5 + [ScenarioPart(0, 100)] * 5, is_rate=True)
    apart = interval([ScenarioPart(50, 100)] * 9 + [ScenarioPart(51, 100)], is_rate=True)
    assert together is not None
    assert apart is not None
    assert together.high - together.low > 0.5
    assert apart.high - apart.low < 0.1


def test_where_nothing_was_missed_scenarios_count_and_not_checks() -> None:
    assert interval([ScenarioPart(40, 40)] * 20, is_rate=True) == wilson(20, 20)
    assert interval([ScenarioPart(1, 1), ScenarioPart(0, 1)], is_rate=True) == wilson(1, 2)
    assert interval([ScenarioPart(37, 40)], is_rate=True) == wilson(0.925, 1)


def test_few_equal_means_and_nothing_have_no_interval() -> None:
    assert interval([ScenarioPart(3.0, 2)] * (ALIKE - 1), is_rate=False) is None
    assert interval([ScenarioPart(3.0, 2)] * ALIKE, is_rate=False) == (1.5, 1.5, "student")
    assert interval([ScenarioPart(3.0, 2)], is_rate=False) is None
    assert interval([ScenarioPart(0, 0)], is_rate=True) is None
    assert interval([], is_rate=True) is None
    with pytest.raises(ValueError, match="no trials"):
        wilson(0, 0)


def clustered(rng: Random, share: float, scenarios: int) -> list[ScenarioPart]:
    """Scenarios of 10 to 60 checks, each with a share of its own around the true one."""
    return [_scenario(rng, rng.betavariate(10 * share, 10 * (1 - share))) for _ in range(scenarios)]


def _scenario(rng: Random, share: float) -> ScenarioPart:
    checks = rng.randint(10, 60)
    return ScenarioPart(sum(rng.random() < share for _ in range(checks)), checks)


@pytest.mark.parametrize("scenarios", [2, 4, 8, 26])
@pytest.mark.parametrize("share", [0.7, 0.95])
def test_an_interval_refutes_the_truth_seldom_however_few_scenarios_there_are(share: float, scenarios: int) -> None:
    """Nominal are 2.5 % at each end; a bootstrap over scenarios refutes it from below in 6 to 20 % at two of them."""
    rng, runs = Random(f"{share} {scenarios}"), 800
    found = [interval(clustered(rng, share, scenarios), is_rate=True) for _ in range(runs)]
    assert sum(one.high < share for one in found if one) / runs <= 0.04
    assert sum(one.low <= share <= one.high for one in found if one) / runs >= 0.88


@pytest.mark.parametrize("scenarios", [2, 4, 8, 26])
def test_a_mean_s_interval_covers_however_few_scenarios_there_are(scenarios: int) -> None:
    rng, runs = Random(scenarios), 800
    rows = ([ScenarioPart(rng.gauss(5, 2), 1) for _ in range(scenarios)] for _ in range(runs))
    found = [interval(row, is_rate=False) for row in rows]
    assert sum(one.low <= 5 <= one.high for one in found if one) / runs == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(("scenarios", "is_point"), [(26, True), (26, False), (8, True), (8, False)])
def test_a_gate_turns_red_four_times_out_of_five_at_the_shortfall_that_it_is_said_to_notice(
    scenarios: int, is_point: bool
) -> None:
    """`detects` is a closed form; this plays what it says."""
    bound = 0.9
    truth = Spread.of(clustered(Random("many"), bound, 4_000))
    assert truth is not None
    worth = truth.trials * scenarios / truth.scenarios
    spread = Spread(bound, bound * (1 - bound) / worth, 35 * scenarios, scenarios, scenarios)
    shortfall = detects(spread, bound, is_rate=True, at_least=True, is_point=is_point)
    assert shortfall is not None
    rng, runs = Random("plays"), 600
    red = sum(_is_red(clustered(rng, bound - shortfall, scenarios), bound, is_point) for _ in range(runs))
    assert red / runs == pytest.approx(0.8, abs=0.1)


def _is_red(parts: list[ScenarioPart], bound: float, is_point: bool) -> bool:
    found, spread = interval(parts, is_rate=True), Spread.of(parts)
    assert found
    assert spread
    return (spread.value if is_point else found.high) < bound


def some() -> Iterator[Spread]:
    for times in (1, 2, 4, 8):
        spread = Spread.of([ScenarioPart(9, 10), ScenarioPart(8, 10), ScenarioPart(10, 10)] * times)
        assert spread is not None
        yield spread


def test_more_scenarios_notice_less_and_a_run_of_full_size_more_than_a_small_one_of_its_size() -> None:
    for is_rate in (True, False):
        small = [detects(one, 0.9, is_rate=is_rate, at_least=True, is_point=False) for one in some()]
        full = [detects(one, 0.9, is_rate=is_rate, at_least=True, is_point=True) for one in some()]
        assert small == sorted(small, key=lambda one: -(one or inf))
        assert all(one is not None and few is not None and one < few for one, few in zip(full, small, strict=True))
    assert [round(promise_detects(count), 3) for count in (1, 2, 4, 26)] == [0.8, 0.553, 0.331, 0.06]


def test_both_directions_notice_the_same_and_what_cannot_be_noticed_is_none() -> None:
    (spread, *_) = some()
    mirrored = Spread.of([ScenarioPart(1, 10), ScenarioPart(2, 10), ScenarioPart(0, 10)])
    assert mirrored is not None
    up = detects(spread, 0.9, is_rate=True, at_least=True, is_point=False)
    down = detects(mirrored, 0.1, is_rate=True, at_least=False, is_point=False)
    assert up == pytest.approx(down)
    alone = Spread.of([ScenarioPart(9, 10)])
    assert alone is not None
    assert detects(alone, 0.5, is_rate=True, at_least=True, is_point=False) is None  # not even 0 of 1 refutes it
    assert detects(alone, 5.0, is_rate=False, at_least=True, is_point=False) is None


def test_deviations_of_repeats_are_those_of_an_analysis_of_variance() -> None:
    """By hand: means 0.75 and 0.25, squares within 4 x 0.0625 over 2 degrees of freedom, 0.125 / 2 off between."""
    rows = [[ScenarioPart(1, 2), ScenarioPart(2, 2)], [ScenarioPart(0, 2), ScenarioPart(1, 2)]]
    found = repeat_deviations(rows)
    assert found is not None
    assert found[0] == pytest.approx(0.125**0.5)
    assert found[1] == pytest.approx((0.125 - 0.0625) ** 0.5)
    assert repeat_deviations([[ScenarioPart(1, 2)], []]) is None, "nothing was repeated"
    alone = repeat_deviations([[ScenarioPart(1, 1), ScenarioPart(0, 1)]])
    assert alone == (0.5**0.5, None), "one scenario says nothing of others"


def test_chance_within_scenarios_is_not_told_as_a_difference_between_them() -> None:
    rng = Random("repeats")
    rows = [[ScenarioPart(rng.random() < 0.5, 1) for _ in range(20)] for _ in range(400)]
    found = repeat_deviations(rows)
    assert found is not None
    assert found[1] is not None
    assert found[0] == pytest.approx(0.5, abs=0.01)
    assert found[1] < 0.05, "means of twenty coins lie 0.11 apart by chance alone"
