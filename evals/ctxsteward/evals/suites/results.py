"""Playing scenarios of a suite, in one process or several, and adding them up: figures with intervals, gates, misses.

    result = played("verbatim", drawn("verbatim", "ci", 26), Setup(), workers=2, gates=…, when=…)

A scenario is made where it is played, from its draw alone, so the scores do not depend on the number of processes. An
exception of the product ends its scenario, which then counts as broken off (`ScenarioResult.error`).

Intervals are at 95 % and over scenarios (`intervals`). A rate whose checks name the distinct things that they are about
is given per thing as well. A result keeps what each scenario gave to each figure, so that two runs can be compared
scenario by scenario.

Raises `InputError` where a setup cannot be handed to another process, and where such a process dies.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from multiprocessing import get_context

from ctxsteward.schemas import EvalMiss, EvalResult, InputError, MetricResult, ScenarioPart

from ..intervals import interval
from ..telemetry import tell_eval
from .catalogue import suite_named
from .gates import Gates, check, judged
from .kit import (
    LONG_TURNS,
    CpuSeconds,
    Draw,
    EvalSuite,
    Metric,
    PlayCounts,
    ScenarioResult,
    ScoreTally,
    Setup,
    Split,
    add_to,
)


def play_one(draw: Draw, setup: Setup, cpu_seconds: CpuSeconds = time.process_time) -> ScenarioResult:
    """Make one scenario, play it, add up its scores."""
    suite = suite_named(draw.suite)
    started = cpu_seconds()
    scenario, stage, error = suite.make(draw), PlayCounts(cpu_seconds=cpu_seconds), None
    metrics = {metric.name: metric for metric in suite.metrics}
    tallies = {name: ScoreTally() for name in metrics}
    try:
        add_to(tallies, suite.scores(scenario, setup, stage), metrics)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:500]
    return ScenarioResult(
        id=draw.id, turns=scenario.turns, messages=len(scenario.messages), builds=stage.builds,
        cpu_seconds=cpu_seconds() - started, tallies=tallies, error=error,
    )  # fmt: skip


def run(draws: Sequence[Draw], setup: Setup, *, workers: int = 1) -> Iterator[ScenarioResult]:
    """Play scenarios, over so many processes; each as it ends, in any order."""
    yield from (played for _, played in run_all([(draw, setup) for draw in draws], workers=workers))


def run_all(jobs: Sequence[tuple[Draw, Setup]], *, workers: int = 1) -> Iterator[tuple[int, ScenarioResult]]:
    """The same with a setup for each scenario; each with its place among the jobs, as it ends."""
    if workers == 1 or len(jobs) < 2:
        yield from ((place, play_one(*job)) for place, job in enumerate(jobs))
        return
    try:
        pickle.dumps([setup for _, setup in jobs])
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"this setup cannot be handed to other processes ({error}); run with one worker") from error
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        # Long ones first, so that no process ends up alone with one.
        by_length = sorted(range(len(jobs)), key=lambda place: -jobs[place][0].turns)
        waiting = {pool.submit(play_one, *jobs[place]): place for place in by_length}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            what = "a process that played scenarios died (memory, or a program without its `__main__` guard?)"
            raise InputError(f"{what}; run with one worker") from error


def in_order(played: Sequence[ScenarioResult], draws: Sequence[Draw]) -> list[ScenarioResult]:
    """Results in the order of their draws, whoever was ready first."""
    by_id = {one.id: one for one in played}
    return [by_id[draw.id] for draw in draws]


MISSES_TOLD = 10
"""Of one figure, over all scenarios."""


def played(
    name: str,
    draws: Sequence[Draw],
    setup: Setup,
    *,
    workers: int,
    gates: Gates,
    when: str,
    revision: str | None = None,
    reproduce: str = "",
    tell: Callable[[int], object] = lambda done: None,
) -> EvalResult:
    """Play these scenarios of a suite over so many processes, judge them, and tell telemetry of it.

    `tell` hears how many are done.
    """
    results: list[ScenarioResult] = []
    for scenario in run(draws, setup, workers=workers):
        results.append(scenario)
        tell(len(results))
    ended = result(
        suite_named(name), in_order(results, draws), split=draws[0].split, setup=setup, gates=gates, when=when,
        revision=revision, reproduce=reproduce,
    )  # fmt: skip
    tell_eval(ended)
    return ended


def result(
    suite: EvalSuite,
    played: Sequence[ScenarioResult],
    *,
    split: Split,
    setup: Setup,
    gates: Gates,
    when: str,
    revision: str | None = None,
    reproduce: str = "",
) -> EvalResult:
    """What playing these scenarios of a suite came to; raises `InputError` for gates over figures it has not."""
    check(gates, suite.name, (metric.name for metric in suite.metrics))
    by_scenario = {metric.name: _by_scenario(metric, played) for metric in suite.metrics}
    metrics = tuple(_figure(metric, played, tuple(by_scenario[metric.name].values())) for metric in suite.metrics)
    parts = {name: tuple(each.values()) for name, each in by_scenario.items()}
    decisive = len(played) >= suite.scenarios
    gate_results = judged(gates, {metric.name: metric for metric in metrics}, parts, decisive=decisive)
    errors = {scenario.id: scenario.error for scenario in played if scenario.error is not None}
    return EvalResult(
        suite=suite.name, about=suite.about, product=f"ctxsteward {version('ctxsteward')}", when=when,
        revision=revision, split=split, setup=setup.describe(), scenarios=len(played),
        long_scenarios=sum(scenario.turns >= LONG_TURNS[0] for scenario in played),
        turns=sum(scenario.turns for scenario in played),
        messages=sum(scenario.messages for scenario in played), builds=sum(scenario.builds for scenario in played),
        cpu_seconds=round(sum(scenario.cpu_seconds for scenario in played), 3), metrics=metrics, gates=gate_results,
        passed=not errors and not any(gate.verdict == "failed" for gate in gate_results), errors=errors,
        misses=_misses(suite, played), reproduce=reproduce, scenario_ids=tuple(one.id for one in played),
        by_scenario={name: each for name, each in by_scenario.items() if each},
    )  # fmt: skip


def _by_scenario(metric: Metric, played: Sequence[ScenarioResult]) -> dict[str, ScenarioPart]:
    tallies = ((one.id, one.tallies[metric.name]) for one in played if metric.name in one.tallies)
    return {id: ScenarioPart(_rounded(tally.total), tally.count) for id, tally in tallies if tally.count}


def _figure(metric: Metric, played: Sequence[ScenarioResult], parts: Sequence[ScenarioPart]) -> MetricResult:
    tallies = [scenario.tallies[metric.name] for scenario in played if metric.name in scenario.tallies]
    unscored: Counter[str] = Counter()
    for tally in tallies:
        unscored.update(tally.unscored)
    bounds = None if metric.kind == "count" else interval(parts, is_rate=metric.kind == "rate")
    things = [tally.distinct for tally in tallies if any(tally.things)] if metric.kind == "rate" else []
    distinct = sum(part.checks for part in things)
    return MetricResult(
        name=metric.name, about=metric.about, kind=metric.kind, better=metric.better, unit=metric.unit,
        value=_value(metric, parts), low=_rounded(bounds.low) if bounds else None,
        high=_rounded(bounds.high) if bounds else None, method=bounds.method if bounds else None,
        checks=sum(part.checks for part in parts), scenarios=len(parts), unscored=dict(sorted(unscored.items())),
        distinct=distinct if things else None,
        distinct_value=_rounded(sum(part.total for part in things) / distinct) if things else None,
    )  # fmt: skip


def _value(metric: Metric, parts: Sequence[ScenarioPart]) -> float | None:
    if not parts:
        return None
    total = sum(part.total for part in parts)
    return _rounded(total if metric.kind == "count" else total / sum(part.checks for part in parts))


def _rounded(value: float) -> float:
    return round(value, 6)


def _misses(suite: EvalSuite, played: Sequence[ScenarioResult]) -> tuple[EvalMiss, ...]:
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
