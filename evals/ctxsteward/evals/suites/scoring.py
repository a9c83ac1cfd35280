"""Scores: what one check of one scenario came to, and how they add up.

A suite yields a `Score` for everything it could judge and an `Unscored` for what it could not: that is a value with a
reason, never 0. `Tally` adds up one metric of one scenario; what scenarios share is added up in `intervals`, over
scenarios, since checks within one conversation are not independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["rate", "mean", "ratio", "count"]
"""rate: share of checks that held, 0..1; mean: of values; ratio: of two quantities, a mean of one value a scenario;
count: a sum, where every one is one too many."""

MISSES_KEPT = 5
"""Of one metric of one scenario."""
WHY_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure that a suite gives."""

    name: str
    about: str
    """One sentence: what is counted."""
    kind: Kind = "rate"
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""


class Score(NamedTuple):
    """One check."""

    metric: str
    value: float
    """1 or 0 of a rate."""
    at: str = ""
    """Where: ``turn 41``, ``§17``."""
    why: str = ""
    """What was found, where it is not what is wanted."""


class Unscored(NamedTuple):
    """A check that could not be made."""

    metric: str
    reason: str
    at: str = ""


class Miss(NamedTuple):
    """A check that did not hold."""

    at: str
    why: str


@dataclass(slots=True)
class Tally:
    """One metric of one scenario."""

    count: int = 0
    total: float = 0.0
    misses: list[Miss] = field(default_factory=list)
    unscored: Counter[str] = field(default_factory=Counter)

    def add(self, score: Score, metric: Metric) -> None:
        self.count += 1
        self.total += score.value
        missed = score.why if metric.kind != "rate" else score.value < 1 and metric.better == "higher"
        missed = missed or (metric.kind == "rate" and metric.better == "lower" and score.value > 0)
        if missed and len(self.misses) < MISSES_KEPT:
            self.misses.append(Miss(score.at, score.why[:WHY_CHARS]))

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """What one scenario came to."""

    id: str
    turns: int
    messages: int
    builds: int
    """Envelopes that were made for model calls."""
    cpu_seconds: float
    tallies: dict[str, Tally]
    """By metric."""
    error: str | None = None
    """Why it ended early: an exception of the product is a failed scenario, not a failed run."""


def tallied(found: Iterable[Score | Unscored], metrics: Iterable[Metric]) -> dict[str, Tally]:
    """Scores added up by metric; a metric that nothing was said of has an empty tally."""
    known = {metric.name: metric for metric in metrics}
    tallies = {name: Tally() for name in known}
    add_to(tallies, found, known)
    return tallies


def add_to(tallies: dict[str, Tally], found: Iterable[Score | Unscored], known: dict[str, Metric]) -> None:
    """Add scores to tallies as they come."""
    for one in found:
        if isinstance(one, Unscored):
            tallies[one.metric].unscored[one.reason] += 1
        else:
            tallies[one.metric].add(one, known[one.metric])


def holds(metric: str, ok: bool, at: str = "", why: str = "") -> Score:
    """A check that holds or not.

    >>> holds("verbatim", False, "turn 3", "the last user message is cut").value
    0.0
    """
    return Score(metric, float(ok), at, "" if ok else why)
