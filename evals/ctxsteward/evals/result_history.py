"""Keep a history of results (one JSON line per result), and compare two runs of a suite.

A result is compared with the newest earlier one of the same suite and split, with the same setup (budgets, model,
summarizer, …) and the same scenarios. If there is none, `incomparable` lists the differences from the newest of the
same suite and split. An unreadable file is not changed.

Two runs are compared paired by scenario: the difference of each figure, and its certainty.

    compared = compare(before, after, meant=("budgets.dynamic_tokens",))
    compared.figures[0].difference, compared.figures[0].low, compared.figures[0].p

Both must have the same suite, split and setup. Settings named in `meant` may differ; product, revision and time always
may. The figures are over the scenarios that both played, so a run of 4 and one of 26 share the first 4.

A difference is after minus before. Its interval at 95 % is Student's over the scenarios' shares in it: with :math:`r =
Σt/Σc` in each run, scenario `i` has :math:`n·((t'_i - r'·c'_i)/Σc' - (t_i - r·c_i)/Σc)`, whose mean is 0 and whose
spread is that of the difference; variation common to both runs cancels. `p` is of a permutation test: the frequency of
a difference at least as large when the two runs of each scenario are swapped at random; exact up to `EXACT` differing
scenarios, else over `SWAPS` seeded draws. Neither corrects for the number of figures.

Raises `InputError` for runs that cannot be compared, with their differences, and for an invalid line of a file.
Source: Fisher 1935, "The design of experiments" (the permutation of pairs); Cochran 1977, "Sampling techniques",
chapter 6 (ratio estimators); Phipson & Smyth 2010, "Permutation p-values should never be zero".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile
from math import sqrt
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import counted
from ctxsteward.schemas.eval_result import EvalResult, MetricResult, ScenarioPart, Verdict
from ctxsteward.schemas.publish import validate

from .intervals import ALIKE, student_quantile

TREND = 20
"""Runs that a trend shows."""


def read(path: Path, other: str = "pass another --history") -> tuple[EvalResult, ...]:
    """Read all results of a history, oldest first; empty without a file. `other` is a hint for errors."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable history ({error}); {other}") from error
    return tuple(_result(line, f"{path}:{number}", other) for number, line in enumerate(lines, 1) if line.strip())


def _result(line: str, where: str, other: str) -> EvalResult:
    try:
        with counted("eval_result"):
            result = EvalResult.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise InputError(
            f"{where}: not a result ({field}: {first['msg']}); mend or remove the line, or {other}"
        ) from error
    validate("eval_result", json.loads(line), where)  # the model takes "5" for a number
    return result


def append(path: Path, results: Iterable[EvalResult]) -> None:
    """Append results to a history, creating it if missing; whole lines, synced."""
    results = tuple(results)
    for result in results:
        validate("eval_result", result.model_dump(mode="json", warnings=False), str(path))
    append_lines(path, (result.model_dump_json() for result in results), "the history cannot be written")


def append_lines(path: Path, lines: Iterable[str], failed: str) -> None:
    """Append whole lines to a file and sync it, creating it if missing; `failed` begins the error message."""
    rows = "".join(f"{line}\n" for line in lines)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(rows)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: {failed} ({error.strerror})") from error


def before(history: Sequence[EvalResult], result: EvalResult) -> EvalResult | None:
    """Return the newest comparable result, or None; if `result` is in the history, only earlier ones count."""
    earlier = tuple(takewhile(lambda other: other is not result, history))
    return next((other for other in reversed(earlier) if not any(differing(other, result))), None)


def incomparable(history: Sequence[EvalResult], result: EvalResult) -> tuple[str, ...]:
    """Return how the newest result of the same suite and split differs, if no result is comparable; else empty."""
    if before(history, result) is not None:
        return ()
    same = (other for other in reversed(history) if (other.suite, other.split) == (result.suite, result.split))
    newest = next(same, None)
    return () if newest is None else tuple(map(str, differing(newest, result)))


class SettingDifference(NamedTuple):
    """A setting in which two runs differ.

    >>> str(SettingDifference("scenarios", "26", "4"))
    'scenarios: 26 and 4'
    """

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name}: {self.before} and {self.after}"


UNSET = "not set"
UNSET_AS = {"subject": "ours"}
"""Meaning of a missing setting."""


def setting_differences(before: EvalResult, after: EvalResult) -> Iterator[SettingDifference]:
    """Yield the differences in suite, split and setup of two results."""
    for name in ("suite", "split"):
        if getattr(before, name) != getattr(after, name):
            yield SettingDifference(name, getattr(before, name), getattr(after, name))
    for name in dict.fromkeys((*before.setup, *after.setup)):
        was, now = (result.setup.get(name, UNSET_AS.get(name, UNSET)) for result in (before, after))
        if was != now:
            yield SettingDifference(name, str(was), str(now))


def differing(before: EvalResult, after: EvalResult) -> Iterator[SettingDifference]:
    """Yield the differences in settings and scenarios of two results."""
    yield from setting_differences(before, after)
    ids = [set(result.scenario_ids) for result in (before, after)]
    if before.scenarios != after.scenarios:
        yield SettingDifference("scenarios", str(before.scenarios), str(after.scenarios))
    elif all(ids) and ids[0] != ids[1]:
        yield SettingDifference("scenarios", f"{len(ids[0] - ids[1])} others", f"{len(ids[0] & ids[1])} in both")


def trend(history: Sequence[EvalResult], result: EvalResult) -> tuple[EvalResult, ...]:
    """Return the newest `TREND` comparable runs, oldest first, including `result` if it is in the history."""
    return tuple(other for other in history if not any(differing(other, result)))[-TREND:]


def values(runs: Iterable[EvalResult], metric: str) -> tuple[float | None, ...]:
    """Return a figure run by run; None for a run without it."""
    return tuple(next((m.value for m in run.metrics if m.name == metric), None) for run in runs)


EXACT = 12
SWAPS = 4_999
SURE = 0.05
ROUNDING = 1e-12


ScenarioPair = tuple[ScenarioPart, ScenarioPart]
"""A scenario's part of a figure before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureComparison:
    """One figure over the scenarios that both runs scored."""

    metric: str
    kind: Literal["rate", "mean", "ratio", "count"]
    better: Literal["higher", "lower"]
    unit: str
    before: float | None
    """None if no scenario was scored."""
    after: float | None
    difference: float | None
    """None if no scenario was scored in both."""
    low: float | None
    """Low end of the difference; None for a single scenario, or fewer than `intervals.ALIKE` equal differences."""
    high: float | None
    p: float | None
    scenarios: int
    differing: int
    """Scenarios whose own values differ."""
    is_surely: Literal["better", "worse"] | None
    """Set if the interval excludes 0 and `p` is at most `SURE`."""


class GateChange(NamedTuple):
    """A gate with another verdict."""

    metric: str
    rule: str
    before: Verdict | None
    """None if the run had no such gate."""
    after: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultComparison:
    """Two runs of one suite."""

    suite: str
    split: str
    before: EvalResult
    after: EvalResult
    scenario_ids: tuple[str, ...]
    """Scenarios that both runs finished."""
    broke_off: tuple[str, ...]
    """Scenarios of both runs that at least one did not finish; left out."""
    meant: tuple[SettingDifference, ...]
    """Intended differences."""
    figures: tuple[FigureComparison, ...]
    gates: tuple[GateChange, ...]


def compare(before: EvalResult, after: EvalResult, *, meant: Sequence[str] = ()) -> ResultComparison:
    """Compare two runs; raise `InputError` if they differ in settings not named in `meant`."""
    differences = tuple(setting_differences(before, after))
    for name in meant:
        if name not in before.setup | after.setup:
            raise InputError(
                f"{name!r} is no setting of these runs; there are: {', '.join(before.setup | after.setup)}"
            )
    unmeant = [difference for difference in differences if difference.name not in meant]
    if unmeant:
        what = "; ".join(map(str, unmeant))
        names = " ".join(
            f"--meant {difference.name}" for difference in unmeant if difference.name not in ("suite", "split")
        )
        todo = f"compare runs that asked the same{f', or say that it is meant: {names}' if names else ''}"
        raise InputError(f"{before.suite}: the runs differ in {what}; {todo}")
    common, broke_off = _common(before, after)
    earlier_names = {metric.name: metric for metric in before.metrics}
    metrics = [metric for metric in after.metrics if metric.name in earlier_names]
    figures = tuple(_figure(metric, before, after, common) for metric in metrics)
    if all(figure.difference is None for figure in figures):
        raise InputError(f"{before.suite}: no figure has a value in both runs over the scenarios that both played")
    return ResultComparison(
        suite=after.suite,
        split=after.split,
        before=before,
        after=after,
        scenario_ids=common,
        broke_off=broke_off,
        meant=differences,
        figures=figures,
        gates=tuple(_gates(before, after)),
    )


def read_runs(named: str) -> dict[str, EvalResult]:
    """Read the newest result of each suite from a file of JSON lines (``evals run --json``, ``--history``).

    ``FILE@WHICH`` selects the newest of that revision, or of a time that begins with WHICH.
    """
    file, which = (named, "") if os.path.lexists(named) or "@" not in named else _split(named)
    path = Path(file)
    if not os.path.lexists(path):
        raise InputError(f"{path}: no such file; write one with `ctxsteward evals run SUITE --json > FILE`")
    results = read(path, "name another file")
    if not results:
        raise InputError(f"{path}: no result in it; write one with `ctxsteward evals run SUITE --json > FILE`")
    chosen = [result for result in results if not which or which == result.revision or result.when.startswith(which)]
    if not chosen:
        newest = dict.fromkeys(f"{result.revision or 'no revision'} of {result.when}" for result in results[:-4:-1])
        raise InputError(f"{named}: no result of revision or time {which!r}; the newest are: {', '.join(newest)}")
    return {result.suite: result for result in chosen}


def _split(named: str) -> tuple[str, str]:
    file, _, which = named.rpartition("@")
    return file, which


def compare_runs(
    first: str, second: str, *, suite: str | None = None, metrics: Sequence[str] = (), meant: Sequence[str] = ()
) -> tuple[ResultComparison, ...]:
    """Compare two files of results (`read_runs`) suite by suite, limited to `suite` and `metrics` if given."""
    runs = [read_runs(named) for named in (first, second)]
    common = [name for name in runs[0] if name in runs[1] and suite in (None, name)]
    if not common:
        has = " and ".join(
            f"{named} has {', '.join(suites)}" for named, suites in zip((first, second), runs, strict=True)
        )
        raise InputError(f"no result of {suite or 'the same suite'} in both: {has}")
    files = {Path(named if os.path.lexists(named) else _split(named)[0]).resolve() for named in (first, second)}
    if len(files) == 1 and all(runs[0][name] == runs[1][name] for name in common):
        raise InputError(f"{first} and {second} name the same run; name two: other files, or FILE@REVISION of one")
    compared = tuple(compare(runs[0][name], runs[1][name], meant=meant) for name in common)
    names = dict.fromkeys(figure.metric for comparison in compared for figure in comparison.figures)
    for name in metrics:
        if name not in names:
            raise InputError(f"--metric {name}: the runs have no such figure; there are: {', '.join(names)}")
    if not metrics:
        return compared
    chosen = (
        replace(comparison, figures=tuple(f for f in comparison.figures if f.metric in metrics))
        for comparison in compared
    )
    return tuple(comparison for comparison in chosen if comparison.figures)


def _common(before: EvalResult, after: EvalResult) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the scenarios that both finished, and those that one broke off: figures of a beginning do not compare."""
    for result in (before, after):
        if not result.scenario_ids:
            what = f"{result.suite} of {result.when} was written by a version that kept no values by scenario"
            raise InputError(f"{what}; play it again: {result.reproduce or 'ctxsteward evals run'}")
    common = tuple(id for id in before.scenario_ids if id in set(after.scenario_ids))
    if not common:
        first, second = before.scenario_ids[0], after.scenario_ids[0]
        raise InputError(f"{before.suite}: no scenario was played in both runs ({first} …, {second} …); play the same")
    broken = before.errors | after.errors
    ended = tuple(id for id in common if id not in broken)
    if not ended:
        id = common[0]
        raise InputError(f"{before.suite}: no scenario ended in both runs; {id} broke off: {broken[id]}")
    return ended, tuple(id for id in common if id in broken)


def _figure(metric: MetricResult, before: EvalResult, after: EvalResult, common: Sequence[str]) -> FigureComparison:
    rows = [result.by_scenario.get(metric.name, {}) for result in (before, after)]
    pairs = [(rows[0][id], rows[1][id]) for id in common if id in rows[0] and id in rows[1]]
    pairs = [(was, now) for was, now in pairs if was.checks and now.checks]
    values = [_value(metric, [pair[side] for pair in pairs]) if pairs else None for side in (0, 1)]
    if not pairs:  # nothing to compare, but show the value of either run
        alone = [[row[id] for id in common if id in row and row[id].checks] for row in rows]
        values = [_value(metric, parts) if parts else None for parts in alone]
    difference = values[1] - values[0] if pairs and values[0] is not None and values[1] is not None else None
    half = _half_width(metric, pairs)
    if difference and half is not None and half < ROUNDING and len(pairs) < ALIKE:
        half = None
    low, high = (None, None) if half is None or difference is None else (difference - half, difference + half)
    p = _p(metric, pairs)
    surely: Literal["better", "worse"] | None = None
    if low is not None and high is not None and (low > 0 or high < 0) and p is not None and p <= SURE:
        surely = "better" if (low > 0) == (metric.better == "higher") else "worse"
    return FigureComparison(
        metric=metric.name,
        kind=metric.kind,
        better=metric.better,
        unit=metric.unit,
        before=values[0],
        after=values[1],
        difference=difference,
        low=low,
        high=high,
        p=p,
        scenarios=len(pairs),
        differing=sum(was != now for was, now in pairs),
        is_surely=surely,
    )


def _value(metric: MetricResult, parts: Sequence[ScenarioPart]) -> float:
    whole = _sum(parts)
    return whole.total if metric.kind == "count" else whole.total / whole.checks


def _half_width(metric: MetricResult, pairs: Sequence[ScenarioPair]) -> float | None:
    """Return half the width of the difference's interval, from the scenarios' shares in it."""
    count = len(pairs)
    if count < 2:
        return None

    def residuals(parts: Sequence[ScenarioPart]) -> list[float]:
        whole = _sum(parts)
        if metric.kind == "count":
            return [part.total - whole.total / count for part in parts]
        return [(part.total - whole.total / whole.checks * part.checks) / whole.checks for part in parts]

    sides = [residuals([pair[side] for pair in pairs]) for side in (0, 1)]
    variance = sum((now - was) ** 2 for was, now in zip(*sides, strict=True)) * count / (count - 1)
    return student_quantile(count - 1) * sqrt(variance)


def _p(metric: MetricResult, pairs: Sequence[ScenarioPair]) -> float | None:
    """Return how often swapping the runs of scenarios makes a difference as large; equal pairs change nothing."""
    if not pairs:
        return None
    sums = [_sum([pair[side] for pair in pairs]) for side in (0, 1)]
    steps = [ScenarioPart(now.total - was.total, now.checks - was.checks) for was, now in pairs if was != now]

    def distance(swaps: Sequence[bool]) -> float:
        moved = _sum([step for step, swap in zip(steps, swaps, strict=True) if swap])
        was = ScenarioPart(sums[0].total + moved.total, sums[0].checks + moved.checks)
        now = ScenarioPart(sums[1].total - moved.total, sums[1].checks - moved.checks)
        return abs(_value(metric, [now]) - _value(metric, [was]))

    observed = distance([False] * len(steps)) - ROUNDING
    if len(steps) <= EXACT:
        every = [distance(swaps) for swaps in product((False, True), repeat=len(steps))]
        return sum(swapped >= observed for swapped in every) / len(every)
    draw = Random("swaps")
    drawn = (distance([draw.random() < 0.5 for _ in steps]) for _ in range(SWAPS))
    return (1 + sum(swapped >= observed for swapped in drawn)) / (SWAPS + 1)


def _sum(parts: Sequence[ScenarioPart]) -> ScenarioPart:
    return ScenarioPart(sum(part.total for part in parts), sum(part.checks for part in parts))


def _gates(before: EvalResult, after: EvalResult) -> Iterator[GateChange]:
    verdicts: list[Mapping[tuple[str, str], Verdict]] = [
        {(gate.metric, gate.rule): gate.verdict for gate in result.gates} for result in (before, after)
    ]
    for metric, rule in dict.fromkeys((*verdicts[0], *verdicts[1])):
        was, now = (by_gate.get((metric, rule)) for by_gate in verdicts)
        if was != now:
            yield GateChange(metric, rule, was, now)
