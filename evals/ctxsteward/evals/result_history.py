"""The history of results: a JSON line a result, appended; what changed since the last run, and the trend.

A result is compared with the newest earlier one that asked the same: of the same suite and split, with the same setup
(budgets, model, summarizer, …) over the same scenarios. Where there is none, it is told in what the newest of the suite
and split differs. A figure *moved* where its value lies outside the other's interval. A file that cannot be read is
left as it is.

Raises `InputError` with the line that does not fit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas import EvalResult, InputError, MetricResult, counted, validate

TREND = 20
"""Runs that a trend shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """One figure, now and in the run before."""

    metric: str
    now: float | None
    before: float | None
    moved: bool
    """Whether it lies outside the interval that it had."""
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDifference:
    """A result against the one before."""

    before: EvalResult
    changes: tuple[MetricChange, ...]
    newly_failed: tuple[str, ...]
    """Gates that had not."""
    newly_passed: tuple[str, ...]


def read(path: Path, other: str = "pass another --history") -> tuple[EvalResult, ...]:
    """All results of a history, oldest first; none where there is no file yet. `other`: what else to do about it."""
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
    """Add results at the end of a history, made if missing; whole lines, synced."""
    results = tuple(results)
    for result in results:
        validate("eval_result", result.model_dump(mode="json", warnings=False), str(path))
    append_lines(path, (result.model_dump_json() for result in results), "the history cannot be written")


def append_lines(path: Path, lines: Iterable[str], failed: str) -> None:
    """Add lines at the end of a file, made if missing; whole lines, synced. `failed` says what could not be done."""
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
    """The newest result that asked the same."""
    return next((one for one in reversed(history) if not any(differing(one, result))), None)


def incomparable(history: Sequence[EvalResult], result: EvalResult) -> tuple[str, ...]:
    """In what the newest result of the same suite and split differs; nothing where there is none."""
    same = (one for one in reversed(history) if (one.suite, one.split) == (result.suite, result.split))
    newest = next(same, None)
    return () if newest is None else tuple(map(str, differing(newest, result)))


class SettingDifference(NamedTuple):
    """Something that two runs did not ask alike.

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
"""What a setting that is not there stands for."""


def setting_differences(before: EvalResult, after: EvalResult) -> Iterator[SettingDifference]:
    """In what suite, split and setup of two results differ."""
    for name in ("suite", "split"):
        if getattr(before, name) != getattr(after, name):
            yield SettingDifference(name, getattr(before, name), getattr(after, name))
    for name in dict.fromkeys((*before.setup, *after.setup)):
        was, now = (result.setup.get(name, UNSET_AS.get(name, UNSET)) for result in (before, after))
        if was != now:
            yield SettingDifference(name, str(was), str(now))


def differing(before: EvalResult, after: EvalResult) -> Iterator[SettingDifference]:
    """In what two results did not ask the same: the settings, and the scenarios."""
    yield from setting_differences(before, after)
    ids = [set(result.scenario_ids) for result in (before, after)]
    if before.scenarios != after.scenarios:
        yield SettingDifference("scenarios", str(before.scenarios), str(after.scenarios))
    elif all(ids) and ids[0] != ids[1]:
        yield SettingDifference("scenarios", f"{len(ids[0] - ids[1])} others", f"{len(ids[0] & ids[1])} in both")


def difference(now: EvalResult, earlier: EvalResult) -> ResultDifference:
    """What changed from one result to the next."""
    known = {metric.name: metric for metric in earlier.metrics}
    verdicts = {(gate.metric, gate.rule): gate.verdict for gate in earlier.gates}
    turned = [gate for gate in now.gates if verdicts.get((gate.metric, gate.rule), gate.verdict) != gate.verdict]
    return ResultDifference(
        before=earlier,
        changes=tuple(_change(metric, known.get(metric.name)) for metric in now.metrics),
        newly_failed=tuple(f"{gate.metric} {gate.rule}" for gate in turned if gate.verdict == "failed"),
        newly_passed=tuple(f"{gate.metric} {gate.rule}" for gate in turned if gate.verdict == "passed"),
    )


def _change(now: MetricResult, earlier: MetricResult | None) -> MetricChange:
    was = earlier.value if earlier is not None else None
    if now.value is None or was is None or earlier is None:
        return MetricChange(metric=now.name, now=now.value, before=was, moved=False, worse=False)
    low = was if earlier.low is None else earlier.low
    high = was if earlier.high is None else earlier.high
    worse = now.value < was if now.better == "higher" else now.value > was
    return MetricChange(metric=now.name, now=now.value, before=was, moved=not low <= now.value <= high, worse=worse)


def trend(history: Sequence[EvalResult], result: EvalResult) -> tuple[EvalResult, ...]:
    """The newest `TREND` runs that asked the same as a result, oldest first; it is among them where it was kept."""
    return tuple(one for one in history if not any(differing(one, result)))[-TREND:]


def values(runs: Iterable[EvalResult], metric: str) -> tuple[float | None, ...]:
    """A figure run by run; None where a run had none."""
    return tuple(next((m.value for m in one.metrics if m.name == metric), None) for one in runs)
