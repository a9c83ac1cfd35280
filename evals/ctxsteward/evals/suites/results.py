"""Play scenarios of a suite, in one process or several, and add them up: figures with intervals, gates, misses.

    result = played("verbatim", drawn("verbatim", "ci", 26), Setup(), workers=2, gates=…, when=…)

The process that plays a scenario makes it from its draw alone, so the scores do not depend on the number of processes.
An exception of the product ends its scenario, which then counts as broken off (`ScenarioResult.error`).

Intervals are at 95 % and over scenarios (`intervals`). A rate whose checks name distinct things is also given per
thing. A result holds each scenario's part of each figure, so that two runs can be compared scenario by scenario.

Raises `InputError` if a setup cannot be pickled for another process, and if such a process dies.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from importlib.metadata import version
from itertools import count, takewhile
from multiprocessing import get_context
from typing import Protocol, TypeVar

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalMiss, EvalResult, MetricResult, ScenarioPart

from ..intervals import interval, repeat_deviations
from ..subjects import answers
from ..telemetry import tell_eval
from .catalogue import suite_named
from .gates import Gates, check, judged
from .kit.model_judges import judging_of
from .kit.suite import (
    LONG_TURNS,
    MISSES_KEPT,
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


class Job(Protocol):
    """A scenario to play."""

    @property
    def id(self) -> str: ...

    @property
    def turns(self) -> int:
        """User turns, which estimate the duration."""

    @property
    def split(self) -> Split: ...


JobType = TypeVar("JobType", bound=Job)
ScenarioJudge = Callable[[ScenarioResult, int], ScenarioResult]
"""Put the cases of a played scenario to model judges; the number is the 0-based repeat."""


def play_one(draw: Draw, setup: Setup) -> ScenarioResult:
    """Make and play a scenario of a shipped suite; add up its scores."""
    suite = suite_named(draw.suite)
    suite.check(setup)
    return play_made(lambda: suite.make(draw), suite.scores, suite.metrics, setup)


def play_made(make: Callable[[], Scenario], play: Play, metrics: Iterable[Metric], setup: Setup) -> ScenarioResult:
    """Play the scenario that `make` returns; add up its scores."""
    started = time.process_time()
    scenario, stage, error = make(), PlayCounts(), None
    by_name = {metric.name: metric for metric in metrics}
    tallies = {name: ScoreTally() for name in by_name}
    try:
        add_to(tallies, play(scenario, setup, stage), by_name)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:500] + answers.raised_at(problem)
    return ScenarioResult(
        id=scenario.id,
        turns=scenario.turns,
        messages=len(scenario.messages),
        builds=stage.builds,
        cpu_seconds=time.process_time() - started,
        tallies=tallies,
        error=error,
        cases=() if error else tuple(stage.cases),
        ratings=() if error else tuple(stage.ratings),
    )


def run_all(
    jobs: Sequence[tuple[JobType, Setup]],
    *,
    workers: int = 1,
    play: Callable[[JobType, Setup], ScenarioResult] = play_one,  # type: ignore[assignment]
) -> Iterator[tuple[int, ScenarioResult]]:
    """Play scenarios with a setup each; yield index and result of each job as it ends."""
    if workers == 1 or len(jobs) < 2:
        yield from ((place, play(*job)) for place, job in enumerate(jobs))
        return
    try:
        pickle.dumps([setup for _, setup in jobs])
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"this setup cannot be sent to other processes ({error}); run with one worker") from error
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        # Long scenarios first, so that none runs alone at the end.
        by_length = sorted(range(len(jobs)), key=lambda place: -jobs[place][0].turns)
        waiting = {pool.submit(play, *jobs[place]): place for place in by_length}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            what = "a process that played scenarios died (memory, or a program without its `__main__` guard?)"
            raise InputError(f"{what}; run with one worker") from error


def in_order(played: Iterable[ScenarioResult], draws: Iterable[Job]) -> list[ScenarioResult]:
    """Sort results into the order of their draws."""
    by_id = {result.id: result for result in played}
    return [by_id[draw.id] for draw in draws]


MISSES_TOLD = 10
"""Misses reported per figure, over all scenarios."""


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
    judge: ScenarioJudge | None = None,
) -> EvalResult:
    """Play scenarios of a suite in `workers` processes, judge them, and report the run to telemetry.

    Calls `tell` with the number of finished scenarios and `keep` with each result. `finished` scenarios are not played
    again.
    """
    results = list(finished)
    finished_ids = {scenario.id for scenario in results}
    missing = [draw for draw in draws if draw.id not in finished_ids]
    for scenario in _over_repeats(missing, setup, workers=workers, play=play, judge=judge):
        keep(scenario)
        results.append(scenario)
        tell(len(results))
    ended = result(
        suite_named(suite) if isinstance(suite, str) else suite,
        in_order(results, draws),
        split=draws[0].split,
        setup=setup,
        gates=gates,
        when=when,
        revision=revision,
        reproduce=reproduce,
    )
    tell_eval(ended)
    return ended


def _over_repeats(
    draws: Sequence[JobType],
    setup: Setup,
    *,
    workers: int,
    play: Callable[[JobType, Setup], ScenarioResult],
    judge: ScenarioJudge | None,
) -> Iterator[ScenarioResult]:
    """Yield each scenario over its repeats as it ends; with model judges, in the order of the draws.

    Judges have bounds on calls and cost, so the order decides which scenarios they reach. If only the judge varies, one
    playing is judged repeatedly.
    """
    plays = setup.repeat if setup.may_vary else 1
    waiting: dict[int, dict[int, ScenarioResult]] = {}
    following = 0
    for place, repeat_played in run_all(
        [(draw, setup) for draw in draws for _ in range(plays)], workers=workers, play=play
    ):
        waiting.setdefault(place // plays, {})[place % plays] = repeat_played
        ready = [number for number, repeats in waiting.items() if len(repeats) == plays]
        if judge is not None:
            ready = list(takewhile(lambda number: len(waiting.get(number, ())) == plays, count(following)))
        following += len(ready)
        for number in ready:
            repeats = [repeat for _, repeat in sorted(waiting.pop(number).items())]
            if judge is not None:
                repeats += [replace(repeats[0], cpu_seconds=0.0)] * (setup.repeat - plays)
                repeats = [judge(repeat, again) for again, repeat in enumerate(repeats)]
            yield mean_of_repeats(repeats)


def mean_of_repeats(repeats: Sequence[ScenarioResult]) -> ScenarioResult:
    """Average a scenario over its repeats: the number of checks of one playing, with their mean value.

    Identical playings give the same result as one. Each reason for unscored checks counts with its highest number over
    the repeats; misses of later repeats name their repeat; the scenario broke off if any repeat did.
    """
    first = repeats[0]
    if len(repeats) == 1:
        return first
    error = next(
        (f"repeat {n}: {repeat.error}" for n, repeat in enumerate(repeats, 1) if repeat.error is not None), None
    )
    return replace(
        first,
        cpu_seconds=sum(repeat.cpu_seconds for repeat in repeats),
        error=error,
        tallies={name: _mean_tally([repeat.tallies[name] for repeat in repeats]) for name in first.tallies},
        ratings=tuple(rating for repeat in repeats for rating in repeat.ratings),
    )


def _mean_tally(repeats: Sequence[ScoreTally]) -> ScoreTally:
    parts = tuple(ScenarioPart(repeat.total, repeat.count) for repeat in repeats)
    mean, misses, unscored = _mean_part(parts), list(repeats[0].misses), Counter[str]()
    told_already = {(miss.at, miss.why) for miss in misses}
    for number, repeat in enumerate(repeats, 1):
        unscored |= repeat.unscored
        new = [miss for miss in repeat.misses if (miss.at, miss.why) not in told_already]
        told_already.update((miss.at, miss.why) for miss in new)
        misses += [miss._replace(at=f"repeat {number}, {miss.at}") for miss in new] if number > 1 else []
    names = dict.fromkeys(name for repeat in repeats for name in repeat.things)
    things = {name: _mean_part([repeat.things[name] for repeat in repeats if name in repeat.things]) for name in names}
    return ScoreTally(
        count=mean.checks,
        total=mean.total,
        misses=misses[:MISSES_KEPT],
        unscored=unscored,
        things=things,
        repeats=parts,
    )


def _mean_part(repeats: Sequence[ScenarioPart]) -> ScenarioPart:
    """Return the mean over all checks of all repeats, with the weight of the repeat with most checks."""
    if len(set(repeats)) == 1:
        return repeats[0]
    checks = max(part.checks for part in repeats)
    mean = sum(part.total for part in repeats) / sum(part.checks for part in repeats)
    return ScenarioPart(checks * mean, checks)


class FigureSource(Protocol):
    """A suite, or the head of its record."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def metrics(self) -> tuple[Metric, ...]: ...


def result(
    suite: FigureSource,
    played: Sequence[ScenarioResult],
    *,
    split: Split,
    setup: Setup | Mapping[str, str | int | float | None],
    gates: Gates,
    when: str,
    revision: str | None = None,
    reproduce: str = "",
) -> EvalResult:
    """Build the result of played scenarios; raise `InputError` for gates over unknown figures.

    `setup` may be its description, as a record holds it.
    """
    check(gates, suite.name, (metric.name for metric in suite.metrics))
    described = setup.describe() if isinstance(setup, Setup) else dict(setup)
    by_scenario = {
        metric.name: {
            scenario.id: ScenarioPart(_rounded(tally.total), tally.count)
            for scenario in played
            if (tally := scenario.tallies.get(metric.name)) is not None and tally.count
        }
        for metric in suite.metrics
    }
    metrics = tuple(_figure(metric, played, tuple(by_scenario[metric.name].values())) for metric in suite.metrics)
    parts = {name: tuple(by_id.values()) for name, by_id in by_scenario.items()}
    if "subject" in described:  # another subject may lack a shipped gate's figure; the caller's own gates stay
        gates = {
            name: tuple(replace(gate, required=gate.required and not gate.shipped) for gate in rules)
            for name, rules in gates.items()
        }
    gate_results = judged(gates, {metric.name: metric for metric in metrics}, parts, scenarios=len(played))
    errors = {scenario.id: scenario.error for scenario in played if scenario.error is not None}
    if errors:  # a gate that holds over the scenarios that ended says nothing about the others
        why = f"holds in what was played, but {len(errors)} of {len(played)} scenarios broke off"
        undecided = {"passed": False, "verdict": "undecided", "why": why}
        gate_results = tuple(gate.model_copy(update=undecided if gate.passed else {}) for gate in gate_results)
    return EvalResult(
        suite=suite.name,
        about=suite.about,
        product=f"ctxsteward {version('ctxsteward')}",
        when=when,
        revision=revision,
        split=split,
        setup=described,
        scenarios=len(played),
        long_scenarios=sum(scenario.turns >= LONG_TURNS[0] for scenario in played),
        turns=sum(scenario.turns for scenario in played),
        messages=sum(scenario.messages for scenario in played),
        builds=sum(scenario.builds for scenario in played),
        cpu_seconds=round(sum(scenario.cpu_seconds for scenario in played), 3),
        metrics=metrics,
        gates=gate_results,
        passed=not errors and not any(gate.fails_run for gate in gate_results),
        errors=errors,
        misses=_misses(suite, played),
        reproduce=reproduce,
        scenario_ids=tuple(scenario.id for scenario in played),
        by_scenario={name: by_id for name, by_id in by_scenario.items() if by_id},
        judging=judging_of(played),
    )


def _figure(metric: Metric, played: Sequence[ScenarioResult], parts: Sequence[ScenarioPart]) -> MetricResult:
    tallies = [scenario.tallies[metric.name] for scenario in played if metric.name in scenario.tallies]
    unscored: Counter[str] = Counter()
    for tally in tallies:
        unscored.update(tally.unscored)
    bounds = None if metric.kind == "count" else interval(parts, is_rate=metric.kind == "rate")
    deviations = repeat_deviations([tally.repeats for tally in tallies if tally.repeats])
    things = [tally.distinct for tally in tallies if any(tally.things)] if metric.kind == "rate" else []
    distinct = sum(part.checks for part in things)
    value = None
    if parts:
        total = sum(part.total for part in parts)
        value = _rounded(total if metric.kind == "count" else total / sum(part.checks for part in parts))
    return MetricResult(
        name=metric.name,
        about=metric.about,
        kind=metric.kind,
        better=metric.better,
        unit=metric.unit,
        value=value,
        low=_rounded(bounds.low) if bounds else None,
        high=_rounded(bounds.high) if bounds else None,
        method=bounds.method if bounds else None,
        checks=sum(part.checks for part in parts),
        scenarios=len(parts),
        unscored=dict(sorted(unscored.items())),
        within_sd=_rounded(deviations[0]) if deviations else None,
        between_sd=_rounded(deviations[1]) if deviations and deviations[1] is not None else None,
        distinct=distinct if things else None,
        distinct_value=_rounded(sum(part.total for part in things) / distinct) if things else None,
    )


def _rounded(value: float) -> float:
    return round(value, 6)


def _misses(suite: FigureSource, played: Sequence[ScenarioResult]) -> tuple[EvalMiss, ...]:
    misses: list[EvalMiss] = []
    for metric in suite.metrics:
        of_metric = [
            EvalMiss(scenario=scenario.id, metric=metric.name, at=miss.at, why=miss.why)
            for scenario in played
            if metric.name in scenario.tallies
            for miss in scenario.tallies[metric.name].misses
        ]
        misses += of_metric[:MISSES_TOLD]
    return tuple(misses)
