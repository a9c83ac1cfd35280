"""From scenarios to a result: figures with intervals, gates, misses, and how to make it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version

from ctxsteward.schemas.eval_result import EvalMiss, EvalResult, MetricResult

from ..telemetry import tell_eval
from .catalogue import suite_named
from .gates import Gates, check, judged
from .intervals import Part, interval
from .running import in_order, run
from .scenario import LONG_TURNS, Draw, Split
from .scoring import Metric, ScenarioResult
from .setup import Setup
from .suite import Suite

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
    found: list[ScenarioResult] = []
    for one in run(draws, setup, workers=workers):
        found.append(one)
        tell(len(found))
    ended = result(
        suite_named(name), in_order(found, draws), split=draws[0].split, setup=setup, gates=gates, when=when,
        revision=revision, reproduce=reproduce,
    )  # fmt: skip
    tell_eval(ended)
    return ended


def result(
    suite: Suite,
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
    metrics = tuple(_figure(metric, played) for metric in suite.metrics)
    held = judged(gates, {metric.name: metric for metric in metrics})
    errors = {one.id: one.error for one in played if one.error is not None}
    return EvalResult(
        suite=suite.name, about=suite.about, product=f"ctxsteward {version('ctxsteward')}", when=when,
        revision=revision, split=split, setup=setup.describe(), scenarios=len(played),
        long_scenarios=sum(one.turns >= LONG_TURNS[0] for one in played), turns=sum(one.turns for one in played),
        messages=sum(one.messages for one in played), builds=sum(one.builds for one in played),
        cpu_seconds=round(sum(one.cpu_seconds for one in played), 3), metrics=metrics, gates=held,
        passed=not errors and all(gate.passed for gate in held), errors=errors, misses=_misses(suite, played),
        reproduce=reproduce,
    )  # fmt: skip


def _figure(metric: Metric, played: Sequence[ScenarioResult]) -> MetricResult:
    tallies = [one.tallies[metric.name] for one in played if metric.name in one.tallies]
    parts = [Part(tally.total, tally.count) for tally in tallies if tally.count]
    unscored: Counter[str] = Counter()
    for tally in tallies:
        unscored.update(tally.unscored)
    found = None if metric.kind == "count" else interval(parts, is_rate=metric.kind == "rate")
    return MetricResult(
        name=metric.name, about=metric.about, kind=metric.kind, better=metric.better, unit=metric.unit,
        value=_value(metric, parts), low=_rounded(found.low) if found else None,
        high=_rounded(found.high) if found else None, method=found.method if found else None,
        checks=sum(part.checks for part in parts), scenarios=len(parts), unscored=dict(sorted(unscored.items())),
    )  # fmt: skip


def _value(metric: Metric, parts: Sequence[Part]) -> float | None:
    if not parts:
        return None
    total = sum(part.total for part in parts)
    return _rounded(total if metric.kind == "count" else total / sum(part.checks for part in parts))


def _rounded(value: float) -> float:
    return round(value, 6)


def _misses(suite: Suite, played: Sequence[ScenarioResult]) -> tuple[EvalMiss, ...]:
    found: list[EvalMiss] = []
    for metric in suite.metrics:
        each = [
            EvalMiss(scenario=one.id, metric=metric.name, at=miss.at, why=miss.why)
            for one in played
            if metric.name in one.tallies
            for miss in one.tallies[metric.name].misses
        ]
        found += each[:MISSES_TOLD]
    return tuple(found)
