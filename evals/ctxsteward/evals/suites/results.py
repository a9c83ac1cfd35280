"""Playing scenarios of a suite, in one process or several, and adding them up: figures with intervals, gates, misses.

    result = played("verbatim", drawn("verbatim", "ci", 26), Setup(), workers=2, gates=…, when=…)

A scenario is made where it is played, from its draw alone, so the scores do not depend on the number of processes. An
exception of the product ends its scenario, which then counts as broken off (`ScenarioResult.error`).

Intervals are at 95 %. Checks within one scenario hang together, so scenarios are the unit: a rate or mean of many
checks a scenario is bootstrapped over scenarios (percentiles of `RESAMPLES` seeded resamples). Where every scenario has
the same value, or a single check, a rate has Wilson's score interval, since a bootstrap of equals has no width.

Raises `InputError` where a setup cannot be handed to another process, and where such a process dies.
Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference"; Efron & Tibshirani 1993,
"An introduction to the bootstrap", chapter 13 (percentile intervals).
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from math import sqrt
from multiprocessing import get_context
from random import Random
from typing import Literal, NamedTuple, Protocol, TypeVar

from ctxsteward.schemas import EvalMiss, EvalResult, InputError, MetricResult

from ..telemetry import tell_eval
from .catalogue import suite_named
from .gates import Gates, check, judged
from .kit import (
    LONG_TURNS,
    CpuSeconds,
    Draw,
    EvalSuite,
    Metric,
    Play,
    PlayCounts,
    Scenario,
    ScenarioResult,
    ScoreTally,
    Setup,
    Split,
    add_to,
)

Z95 = 1.959963984540054
RESAMPLES = 1_000


class Interval(NamedTuple):
    """Where a figure lies, at 95 %."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap"]


class ScenarioPart(NamedTuple):
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


def bootstrapped(parts: Sequence[ScenarioPart], seed: str = "bootstrap") -> Interval:
    """The interval of ``sum of totals / sum of counts``, resampling whole scenarios."""
    draw, count = Random(seed), len(parts)
    means = []
    for _ in range(RESAMPLES):
        sample = draw.choices(parts, k=count)
        means.append(sum(part.total for part in sample) / sum(part.checks for part in sample))
    means.sort()
    return Interval(means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1], "bootstrap")


def interval(parts: Sequence[ScenarioPart], *, is_rate: bool) -> Interval | None:
    """The interval of a mean over scenarios; None where nothing says how wide it is."""
    parts = [part for part in parts if part.checks]
    if not parts:
        return None
    shares = {part.total / part.checks for part in parts}
    single = all(part.checks == 1 for part in parts)
    if is_rate and (len(shares) == 1 or single):
        return wilson(sum(part.total / part.checks for part in parts), len(parts))
    return bootstrapped(parts) if len(shares) > 1 else None


class Job(Protocol):
    """One scenario that is to be played."""

    @property
    def id(self) -> str: ...

    @property
    def turns(self) -> int:
        """About as long as it takes."""

    @property
    def split(self) -> Split: ...


JobType = TypeVar("JobType", bound=Job)


def play_one(draw: Draw, setup: Setup, cpu_seconds: CpuSeconds = time.process_time) -> ScenarioResult:
    """Make one scenario, play it, add up its scores."""
    suite = suite_named(draw.suite)
    return play_made(lambda: suite.make(draw), suite.scores, suite.metrics, setup, cpu_seconds)


def play_made(
    make: Callable[[], Scenario],
    play: Play,
    metrics: Iterable[Metric],
    setup: Setup,
    cpu_seconds: CpuSeconds = time.process_time,
) -> ScenarioResult:
    """Play what `make` makes, add up its scores."""
    started = cpu_seconds()
    scenario, stage, error = make(), PlayCounts(cpu_seconds=cpu_seconds), None
    known = {metric.name: metric for metric in metrics}
    tallies = {name: ScoreTally() for name in known}
    try:
        add_to(tallies, play(scenario, setup, stage), known)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:500]
    return ScenarioResult(
        id=scenario.id, turns=scenario.turns, messages=len(scenario.messages), builds=stage.builds,
        cpu_seconds=cpu_seconds() - started, tallies=tallies, error=error,
    )  # fmt: skip


def run(
    draws: Sequence[JobType],
    setup: Setup,
    *,
    workers: int = 1,
    play: Callable[[JobType, Setup], ScenarioResult] = play_one,  # type: ignore[assignment]
) -> Iterator[ScenarioResult]:
    """Play scenarios, over so many processes; each as it ends, in any order."""
    if workers == 1 or len(draws) < 2:
        yield from (play(draw, setup) for draw in draws)
        return
    try:
        pickle.dumps(setup)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"this setup cannot be handed to other processes ({error}); run with one worker") from error
    with ProcessPoolExecutor(min(workers, len(draws)), mp_context=get_context("spawn")) as pool:
        # Long ones first, so that no process ends up alone with one.
        by_length = sorted(draws, key=lambda draw: -draw.turns)
        try:
            for done in as_completed([pool.submit(play, draw, setup) for draw in by_length]):
                yield done.result()
        except BrokenProcessPool as error:
            what = "a process that played scenarios died (memory, or a program without its `__main__` guard?)"
            raise InputError(f"{what}; run with one worker") from error


def in_order(played: Iterable[ScenarioResult], draws: Iterable[Job]) -> list[ScenarioResult]:
    """Results in the order of their draws, whoever was ready first."""
    by_id = {one.id: one for one in played}
    return [by_id[draw.id] for draw in draws]


MISSES_TOLD = 10
"""Of one figure, over all scenarios."""


def played(
    suite: str | EvalSuite,
    draws: Sequence[JobType],
    setup: Setup,
    *,
    workers: int,
    gates: Gates,
    when: str,
    revision: str | None = None,
    reproduce: str = "",
    tell: Callable[[int], object] = lambda done: None,
    finished: Iterable[ScenarioResult] = (),
    keep: Callable[[ScenarioResult], object] = lambda result: None,
    play: Callable[[JobType, Setup], ScenarioResult] = play_one,  # type: ignore[assignment]
) -> EvalResult:
    """Play these scenarios of a suite over so many processes, judge them, and tell telemetry of it.

    `tell` hears how many are done, `keep` is given each as it ends. What is `finished` is not played again.
    """
    results = list(finished)
    known = {one.id for one in results}
    for scenario in run([draw for draw in draws if draw.id not in known], setup, workers=workers, play=play):
        keep(scenario)
        results.append(scenario)
        tell(len(results))
    ended = result(
        suite_named(suite) if isinstance(suite, str) else suite, in_order(results, draws), split=draws[0].split,
        setup=setup, gates=gates, when=when, revision=revision, reproduce=reproduce,
    )  # fmt: skip
    tell_eval(ended)
    return ended


class Figured(Protocol):
    """What has figures: a suite, or what a record says of one."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def metrics(self) -> tuple[Metric, ...]: ...


def result(
    suite: Figured,
    played: Sequence[ScenarioResult],
    *,
    split: Split,
    setup: Setup | Mapping[str, str | int | float | None],
    gates: Gates,
    when: str,
    revision: str | None = None,
    reproduce: str = "",
) -> EvalResult:
    """What playing these scenarios of a suite came to; raises `InputError` for gates over figures it has not.

    The setup may be given as it described itself.
    """
    check(gates, suite.name, (metric.name for metric in suite.metrics))
    metrics = tuple(_figure(metric, played) for metric in suite.metrics)
    gate_results = judged(gates, {metric.name: metric for metric in metrics})
    errors = {scenario.id: scenario.error for scenario in played if scenario.error is not None}
    described = setup.describe() if isinstance(setup, Setup) else dict(setup)
    return EvalResult(
        suite=suite.name, about=suite.about, product=f"ctxsteward {version('ctxsteward')}", when=when,
        revision=revision, split=split, setup=described, scenarios=len(played),
        long_scenarios=sum(scenario.turns >= LONG_TURNS[0] for scenario in played),
        turns=sum(scenario.turns for scenario in played),
        messages=sum(scenario.messages for scenario in played), builds=sum(scenario.builds for scenario in played),
        cpu_seconds=round(sum(scenario.cpu_seconds for scenario in played), 3), metrics=metrics, gates=gate_results,
        passed=not errors and all(gate.passed for gate in gate_results), errors=errors, misses=_misses(suite, played),
        reproduce=reproduce,
    )  # fmt: skip


def _figure(metric: Metric, played: Sequence[ScenarioResult]) -> MetricResult:
    tallies = [scenario.tallies[metric.name] for scenario in played if metric.name in scenario.tallies]
    parts = [ScenarioPart(tally.total, tally.count) for tally in tallies if tally.count]
    unscored: Counter[str] = Counter()
    for tally in tallies:
        unscored.update(tally.unscored)
    bounds = None if metric.kind == "count" else interval(parts, is_rate=metric.kind == "rate")
    return MetricResult(
        name=metric.name, about=metric.about, kind=metric.kind, better=metric.better, unit=metric.unit,
        value=_value(metric, parts), low=_rounded(bounds.low) if bounds else None,
        high=_rounded(bounds.high) if bounds else None, method=bounds.method if bounds else None,
        checks=sum(part.checks for part in parts), scenarios=len(parts), unscored=dict(sorted(unscored.items())),
    )  # fmt: skip


def _value(metric: Metric, parts: Sequence[ScenarioPart]) -> float | None:
    if not parts:
        return None
    total = sum(part.total for part in parts)
    return _rounded(total if metric.kind == "count" else total / sum(part.checks for part in parts))


def _rounded(value: float) -> float:
    return round(value, 6)


def _misses(suite: Figured, played: Sequence[ScenarioResult]) -> tuple[EvalMiss, ...]:
    misses: list[EvalMiss] = []
    for metric in suite.metrics:
        each = [
            EvalMiss(scenario=scenario.id, metric=metric.name, at=miss.at, why=miss.why)
            for scenario in played
            if metric.name in scenario.tallies
            for miss in scenario.tallies[metric.name].misses
        ]
        misses += each[:MISSES_TOLD]
    return tuple(misses)
