"""Compute 95 % intervals of figures over scenarios, and the smallest shortfall that a gate would detect.

    interval([ScenarioPart(37, 40), ScenarioPart(29, 31)], is_rate=True)

Checks within one conversation are correlated, so the scenario is the unit. With totals :math:`t_i` over :math:`c_i`
checks, the figure is :math:`r = Σt/Σc`, and its variance between scenarios
:math:`n/(n-1) · Σ(t_i - r·c_i)² / (Σc)²` (a ratio estimator, linearized).

- A *mean* has Student's interval with n - 1 degrees of freedom. One scenario has no interval; nor have fewer than
  `ALIKE` equal values, since they do not show the spread.
- A *rate* has Wilson's interval over the trials that its checks are *worth*: `r(1-r)` over that variance, shrunk for
  few scenarios by the square of 1.96 over Student's quantile. Checks are worth no more than their number, and no less
  than the number of scenarios (Kish's where they differ in size), since no share varies more than a single trial does.

Both cover better than percentiles of a bootstrap over scenarios, which at four scenarios hold 95 % in three of four
cases; and both narrow as scenarios are added. `tests/evals/test_intervals.py` measures it.

If scenarios were played several times, a scenario's part is the mean of its repeats, with the checks of one playing:
repeats never count as scenarios. `repeat_deviations` gives the deviation between repeats of one scenario (``within``),
and the deviation between scenarios if each were repeated without end (``between``).

Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference"; Korn & Graubard 1998,
"Confidence intervals for proportions with small expected number of positive counts"; Dean & Pagano 2015, "Evaluating
confidence interval methods for binomial proportions in clustered surveys"; Searle, Casella & McCulloch 1992, "Variance
components", 3.6 (one random factor, estimated by analysis of variance); Abramowitz & Stegun 1964, 26.7.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, pow, sqrt, tan
from statistics import NormalDist, fmean, variance as variance_of
from typing import Literal, NamedTuple

from ctxsteward.schemas.eval_result import ScenarioPart

Z95 = NormalDist().inv_cdf(0.975)
POWER = 0.8
Z_POWER = NormalDist().inv_cdf(POWER)
ALIKE = 6
"""Number of scenarios that lie on one side of the truth by chance only once in 32 times."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float
    method: Literal["wilson", "student"]


def student_quantile(freedom: int) -> float:
    """Return Student's two-sided 95 % quantile; exact for one and two degrees of freedom, else within 0.2 %.

    >>> [round(student_quantile(freedom), 2) for freedom in (1, 2, 3, 10, 25)]
    [12.71, 4.3, 3.18, 2.23, 2.06]
    """
    if freedom == 1:
        return tan(pi * 0.475)
    if freedom == 2:
        return 0.95 * sqrt(2 / (4 * 0.975 * 0.025))
    z = Z95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / pow(freedom, power) for power, term in enumerate(terms, 1))


def wilson(successes: float, trials: float, z: float = Z95) -> Interval:
    """Return Wilson's score interval of a share; effective trials may be a fraction.

    >>> [round(x, 3) for x in wilson(20, 20)[:2]]
    [0.839, 1.0]
    """
    if trials <= 0:
        raise ValueError("an interval of no trials")
    share, z2 = successes / trials, z * z
    middle = share + z2 / (2 * trials)
    half = z * sqrt(max(0.0, share * (1 - share)) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    low, high = (middle - half) / scale, (middle + half) / scale
    return Interval(min(max(0.0, low), share), max(min(1.0, high), share), "wilson")


class Spread(NamedTuple):
    """Value and variance of a figure over scenarios."""

    value: float
    variance: float
    """Variance of the value between scenarios; 0 for a single scenario."""
    checks: int
    scenarios: int
    kish: float
    """Kish's effective number of scenarios: scenarios of equal size with the same information."""

    @classmethod
    def of(cls, parts: Sequence[ScenarioPart]) -> Spread | None:
        """Compute the spread, or None if no scenario was scored."""
        parts = [part for part in parts if part.checks]
        if not parts:
            return None
        checks, count = sum(part.checks for part in parts), len(parts)
        value = sum(part.total for part in parts) / checks
        squares = sum((part.total - value * part.checks) ** 2 for part in parts)
        variance = squares * count / (count - 1) / checks**2 if count > 1 else 0.0
        if max(abs(part.total / part.checks - value) for part in parts) < 1e-12:
            variance = 0.0  # equal but for rounding
        return cls(value, variance, checks, count, checks**2 / sum(part.checks**2 for part in parts))

    @property
    def trials(self) -> float:
        """Return the number of independent trials that the checks of a rate are worth, estimated from the spread."""
        if self.scenarios == 1 or not 0 < self.value < 1:
            return self.kish
        estimate = self.value * (1 - self.value) / self.variance if self.variance else self.checks
        return min(self.checks, max(self.kish, estimate))

    @property
    def sure_trials(self) -> float:
        """Return `trials`, reduced because few scenarios estimate the spread poorly."""
        if self.scenarios == 1:
            return self.kish
        return max(self.kish, self.trials * (Z95 / student_quantile(self.scenarios - 1)) ** 2)

    def interval(self, *, is_rate: bool) -> Interval | None:
        """Return the 95 % interval, or None if its width is unknown."""
        if is_rate:
            low, high, method = wilson(self.value * self.sure_trials, self.sure_trials)
            return Interval(min(low, self.value), max(high, self.value), method)
        if self.scenarios == 1 or (not self.variance and self.scenarios < ALIKE):
            return None
        half = student_quantile(self.scenarios - 1) * sqrt(self.variance)
        return Interval(self.value - half, self.value + half, "student")


def interval(parts: Sequence[ScenarioPart], *, is_rate: bool) -> Interval | None:
    """Return the interval of a figure; it does not go below 0 if no value does."""
    spread = Spread.of(parts)
    bounds = spread.interval(is_rate=is_rate) if spread else None
    if bounds and bounds.low < 0 and all(part.total >= 0 for part in parts):
        return bounds._replace(low=0.0)
    return bounds


def repeat_deviations(scenarios: Sequence[Sequence[ScenarioPart]]) -> tuple[float, float | None] | None:
    """Return the standard deviations between repeats of a scenario and between scenarios without chance within them.

    Scenarios have equal weights; a single one has no second deviation. None if no scenario has two scored repeats.

    >>> rows = [[ScenarioPart(1, 2), ScenarioPart(2, 2)], [ScenarioPart(0, 2), ScenarioPart(1, 2)]]
    >>> [round(deviation, 3) for deviation in repeat_deviations(rows)]
    [0.354, 0.25]
    """
    values = [[part.total / part.checks for part in repeats if part.checks] for repeats in scenarios]
    values = [repeated for repeated in values if len(repeated) > 1]
    if not values:
        return None
    means = [fmean(repeated) for repeated in values]
    freedom = sum(len(repeated) - 1 for repeated in values)
    squares = sum((value - mean) ** 2 for repeated, mean in zip(values, means, strict=True) for value in repeated)
    within = squares / freedom
    by_chance = within * fmean(1 / len(repeated) for repeated in values)
    between = sqrt(max(0.0, variance_of(means) - by_chance)) if len(means) > 1 else None
    return sqrt(within), between


def promise_detects(scenarios: int) -> float:
    """Return the true share of scenarios with a counterexample that this many scenarios detect with `POWER`.

    >>> [round(promise_detects(count), 2) for count in (1, 4, 26)]
    [0.8, 0.33, 0.06]
    """
    return 1 - pow(1 - POWER, 1 / scenarios)


def detects(spread: Spread, bound: float, *, is_rate: bool, at_least: bool, is_point: bool) -> float | None:
    """Return how far beyond its bound a figure must truly lie to fail with `POWER`.

    With `is_point` the figure's own value must fail, else its whole interval.
    """
    if not is_rate:
        if spread.scenarios == 1 or not spread.variance:
            return None
        quantile = 0.0 if is_point else student_quantile(spread.scenarios - 1)
        return (quantile + Z_POWER) * sqrt(spread.variance)
    bound = bound if at_least else 1 - bound
    if not 0 < bound < 1:
        return None
    # An end of Wilson's interval lies at the bound where the share lies so far from it: that is its score test.
    off = 0.0 if is_point else Z95 * sqrt(bound * (1 - bound) / spread.sure_trials)
    critical = bound - off
    return None if critical <= 0 else bound - wilson(critical * spread.trials, spread.trials, Z_POWER).low
