"""Intervals at 95 % beside every figure.

Checks within one scenario hang together, so scenarios are the unit: a rate or mean of many checks a scenario is
bootstrapped over scenarios (percentiles of `RESAMPLES` seeded resamples). Where every scenario says the same (none
failed, say), or has a single check, a rate has Wilson's score interval over scenarios instead: a bootstrap of equals
has no width. Rates lie in 0..1.

Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference"; Efron & Tibshirani 1993,
"An introduction to the bootstrap", chapter 13 (percentile intervals).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random
from typing import Literal, NamedTuple

Z95 = 1.959963984540054
RESAMPLES = 1_000


class Interval(NamedTuple):
    """Where a figure lies, at 95 %."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap"]


class Part(NamedTuple):
    """What one scenario gives to a figure: a sum over so many checks."""

    total: float
    checks: int


def wilson(successes: float, trials: int) -> Interval:
    """Wilson's score interval of a share.

    >>> [round(x, 3) for x in wilson(20, 20)[:2]]
    [0.839, 1.0]
    """
    if trials < 1:
        raise ValueError("an interval of no trials")
    share, z2 = successes / trials, Z95 * Z95
    middle = share + z2 / (2 * trials)
    half = Z95 * sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    low, high = (middle - half) / scale, (middle + half) / scale
    return Interval(min(max(0.0, low), share), max(min(1.0, high), share), "wilson")


def bootstrapped(parts: Sequence[Part], seed: str = "bootstrap") -> Interval:
    """The interval of ``sum of totals / sum of counts``, resampling whole scenarios."""
    draw, count = Random(seed), len(parts)
    means = []
    for _ in range(RESAMPLES):
        sample = draw.choices(parts, k=count)
        means.append(sum(part.total for part in sample) / sum(part.checks for part in sample))
    means.sort()
    return Interval(means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1], "bootstrap")


def interval(parts: Sequence[Part], *, is_rate: bool) -> Interval | None:
    """The interval of a mean over scenarios; None where nothing says how wide it is."""
    parts = [part for part in parts if part.checks]
    if not parts:
        return None
    shares = {part.total / part.checks for part in parts}
    single = all(part.checks == 1 for part in parts)
    if is_rate and (len(shares) == 1 or single):
        return wilson(sum(part.total / part.checks for part in parts), len(parts))
    return bootstrapped(parts) if len(shares) > 1 else None
