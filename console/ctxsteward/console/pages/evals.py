"""Eval results as one HTML file: figures with intervals and gates, what failed, what changed, trends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ctxsteward.evals.result_formats import (
    REPEATS,
    delta,
    deviations,
    distinct,
    figure,
    has_repeats,
    interval,
    judging_lines,
    notices,
    outcome,
    tally,
)
from ctxsteward.evals.result_history import before, incomparable, read, trend, values
from ctxsteward.schemas.eval_result import EvalResult, GateResult, MetricResult

from .charts import Bar, Series, Shape, bars, drawing, lines, render, shape

FOREST_WIDTH, FOREST_HEIGHT = 220, 18


def page(results: Sequence[EvalResult], history: Sequence[EvalResult]) -> str:
    """The page as one file; the same bytes for the same results."""
    return render("evals.html.j2", title="Context evals", **contents(results, history))


def history_contents(path: Path | None) -> dict[str, Any]:
    """The newest result of each suite in a history, beside the ones before; None: there is none."""
    known = () if path is None else read(path, "name another history")
    return contents(tuple({result.suite: result for result in known}.values()), known)


def contents(results: Sequence[EvalResult], history: Sequence[EvalResult]) -> dict[str, Any]:
    """What the page shows, for a template; the results may stand in the history, too."""
    history = (*history, *(result for result in results if not any(result is one for one in history)))
    gates = [gate for result in results for gate in result.gates]
    trends = [(result.suite, _trend(result, history)) for result in results]
    seconds = bars("CPU seconds", [Bar(one.suite, (round(one.cpu_seconds),)) for one in results])
    return {
        "about": _about(results),
        "outcome": outcome(results),
        "tally": tally(gates) if gates else "",
        "suites": [_suite(one, history) for one in results],
        "trends": [*trends, ("CPU seconds", seconds)],
        "figures": [(result.suite, *_trend_figures(result, history)) for result in results],
    }


def _about(results: Sequence[EvalResult]) -> str:
    if not results:
        return ""
    first = results[0]
    scenarios, turns = sum(one.scenarios for one in results), sum(one.turns for one in results)
    long = sum(one.long_scenarios for one in results)
    revision = f", revision {first.revision}" if first.revision else ""
    return (
        f"{first.product}{revision}; {scenarios:,} scenarios of split {first.split}, {long} of 200 and more turns, "
        f"{turns:,} turns; made {first.when}"
    )


def _suite(result: EvalResult, history: Sequence[EvalResult]) -> dict[str, Any]:
    earlier = before(history, result)
    rows = []
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        rows.append(
            {
                "name": metric.name,
                "about": metric.about,
                "value": figure(metric, metric.value),
                "interval": interval(metric),
                "deviations": deviations(metric),
                "forest": _forest(metric, gates),
                "checks": f"{metric.checks:,}",
                "distinct": distinct(metric),
                "gates": gates,
                "notices": [notices(metric, gate) for gate in gates],
                "since": delta(metric, earlier),
            }
        )
    return {
        "result": result,
        "compared": earlier is not None,
        "repeats": REPEATS if has_repeats(result) else "",
        "incomparable": "; ".join(incomparable(history, result)),
        "rows": rows,
        "failures": list(_failures(result)),
        "judging": list(judging_lines(result)),
    }


def _forest(metric: MetricResult, gates: Sequence[GateResult]) -> Markup | str:
    """A rate's interval on the line from 0 to 1, with the bounds of its gates."""
    if metric.kind != "rate" or metric.value is None:
        return ""
    middle, scale = FOREST_HEIGHT / 2, FOREST_WIDTH - 12
    low = metric.value if metric.low is None else metric.low
    high = metric.value if metric.high is None else metric.high
    shapes: list[Shape] = [
        shape("rule", "grid", x1=6, x2=6 + scale, y1=middle, y2=middle),
        shape("rule", "span", x1=6 + scale * low, x2=6 + scale * high, y1=middle, y2=middle),
        shape("dot", "point", x=6 + scale * metric.value, y=middle, radius=4),
    ]
    for gate in gates:
        bound = next((float(word) for word in gate.rule.split() if _is_number(word)), None)
        if bound is not None and 0 <= bound <= 1:
            at = 6 + scale * bound
            shapes.append(shape("rule", "bound", x1=at, x2=at, y1=2, y2=FOREST_HEIGHT - 2))
    said = f"{metric.name}: {figure(metric, metric.value)}, {interval(metric)}"
    return drawing(said, FOREST_WIDTH, FOREST_HEIGHT, shapes, kind="forest")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _failures(result: EvalResult) -> Iterator[tuple[str, str, str, str]]:
    failed = {gate.metric: gate for gate in result.gates if not gate.passed}
    for gate in failed.values():
        if gate.verdict != "failed":
            yield gate.metric, "", gate.verdict, gate.why
    for miss in result.misses:
        if miss.metric in failed:
            yield miss.metric, miss.scenario, miss.at, miss.why
    for id, error in result.errors.items():
        yield "broke off", id, "", error


def _trend_figures(result: EvalResult, history: Sequence[EvalResult]) -> tuple[list[str], list[list[str]]]:
    """What the plot of the suite's rates shows, as a table: days, and a row a rate."""
    runs = trend(history, result)
    rows = [
        [rate.name, *("-" if value is None else f"{value:.1%}" for value in values(runs, rate.name))]
        for rate in _rates(result)
    ]
    return [one.when[:10] for one in runs], rows


def _rates(result: EvalResult) -> list[MetricResult]:
    """Rates that have a gate, or all where none has."""
    gated = {gate.metric for gate in result.gates}
    return [metric for metric in result.metrics if metric.kind == "rate" and (metric.name in gated or not gated)]


def _trend(result: EvalResult, history: Sequence[EvalResult]) -> Markup:
    """Rates of the suite that have a gate, run by run."""
    runs = trend(history, result)
    return lines(
        "Rates",
        [Series(rate.name, values(runs, rate.name)) for rate in _rates(result)],
        [one.when[:10] for one in runs],
    )
