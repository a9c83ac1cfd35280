"""Intervals: Wilson's against published values, the bootstrap over whole scenarios, and none where none can be had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.evals.suites.results import ScenarioPart, bootstrapped, interval, wilson


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
