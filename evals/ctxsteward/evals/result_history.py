"""The history of results: a JSON line a result, appended; what changed since the last run, and the trend.

Results are compared with the newest earlier one of the same suite and split. A figure *moved* where its value lies
outside the other's interval. A file that cannot be read is left as it is.

Raises `InputError` with the line that does not fit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """Gates that had passed."""
    newly_passed: tuple[str, ...]


def read(path: Path) -> tuple[EvalResult, ...]:
    """All results of a history, oldest first; none where there is no file yet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable history ({error}); pass another file to --history") from error
    return tuple(_result(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def _result(line: str, where: str) -> EvalResult:
    try:
        with counted("eval_result"):
            result = EvalResult.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise InputError(
            f"{where}: not a result ({field}: {first['msg']}); mend or remove the line, or pass another --history"
        ) from error
    validate("eval_result", json.loads(line), where)  # the model takes "5" for a number
    return result


def append(path: Path, results: Iterable[EvalResult]) -> None:
    """Add results at the end of a history, made if missing; whole lines, synced."""
    results = tuple(results)
    for result in results:
        validate("eval_result", result.model_dump(mode="json", warnings=False), str(path))
    rows = "".join(result.model_dump_json() + "\n" for result in results)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(rows)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: the history cannot be written ({error.strerror})") from error


def before(history: Sequence[EvalResult], result: EvalResult) -> EvalResult | None:
    """The newest result of the same suite and split."""
    found = [one for one in history if (one.suite, one.split) == (result.suite, result.split)]
    return found[-1] if found else None


def difference(now: EvalResult, earlier: EvalResult) -> ResultDifference:
    """What changed from one result to the next."""
    known = {metric.name: metric for metric in earlier.metrics}
    passed = {(gate.metric, gate.rule): gate.passed for gate in earlier.gates}
    turned = [gate for gate in now.gates if passed.get((gate.metric, gate.rule), gate.passed) != gate.passed]
    return ResultDifference(
        before=earlier,
        changes=tuple(_change(metric, known.get(metric.name)) for metric in now.metrics),
        newly_failed=tuple(f"{gate.metric} {gate.rule}" for gate in turned if not gate.passed),
        newly_passed=tuple(f"{gate.metric} {gate.rule}" for gate in turned if gate.passed),
    )


def _change(now: MetricResult, earlier: MetricResult | None) -> MetricChange:
    was = earlier.value if earlier is not None else None
    if now.value is None or was is None or earlier is None:
        return MetricChange(metric=now.name, now=now.value, before=was, moved=False, worse=False)
    low = was if earlier.low is None else earlier.low
    high = was if earlier.high is None else earlier.high
    worse = now.value < was if now.better == "higher" else now.value > was
    return MetricChange(metric=now.name, now=now.value, before=was, moved=not low <= now.value <= high, worse=worse)


def trend(history: Sequence[EvalResult], suite: str, split: str, metric: str) -> tuple[float | None, ...]:
    """A figure in the newest `TREND` runs of a suite, oldest first; None where a run had none."""
    runs = [one for one in history if (one.suite, one.split) == (suite, split)][-TREND:]
    return tuple(next((m.value for m in one.metrics if m.name == metric), None) for one in runs)
