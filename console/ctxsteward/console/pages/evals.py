"""Eval results as one HTML file: figures with intervals and gates, what failed, what changed, trends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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
    """Return the page as one HTML text; the same results give the same bytes."""
    return render("evals.html.j2", title="Context evals", about="", **contents(results, history))


def history_contents(path: Path | None, say: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the page's values for the newest result of each suite in a history file; empty if `path` is None."""
    results = () if path is None else read(path, "name another history")
    return contents(tuple({result.suite: result for result in results}.values()), results, say)


def contents(
    results: Sequence[EvalResult], history: Sequence[EvalResult], say: Callable[[str], str] = str
) -> dict[str, Any]:
    """Return the values of the page's template; `history` may contain `results`, `say` translates headings."""
    history = (*history, *(result for result in results if not any(result is each for each in history)))
    gates = [gate for result in results for gate in result.gates]
    plots: list[tuple[str, Markup]] = []
    figures = []  # the plots' figures as tables: the days, and one row for each rate
    for result in results:
        days, rates = _trends(result, history)
        plots.append((result.suite, lines(say("Rates"), [Series(*rate) for rate in rates.items()], days)))
        cells = [[name, *("-" if each is None else f"{each:.1%}" for each in rate)] for name, rate in rates.items()]
        figures.append((result.suite, days, cells))
    seconds = bars(say("CPU seconds"), [Bar(each.suite, (round(each.cpu_seconds),)) for each in results])
    return {
        "outcome": outcome(results),
        "tally": tally(gates) if gates else "",
        "suites": [_suite(each, history) for each in results],
        "trends": [*plots, (say("CPU seconds"), seconds)],
        "figures": figures,
    }


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
    """Return a plot of a rate's interval between 0 and 1, with the bounds of its gates; empty for other kinds."""
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
        bound = re.search(r"(?<!\S)[0-9.]+(?!\S)", gate.rule)
        if bound is not None and float(bound[0]) <= 1:
            at = 6 + scale * float(bound[0])
            shapes.append(shape("rule", "bound", x1=at, x2=at, y1=2, y2=FOREST_HEIGHT - 2))
    alt_text = f"{metric.name}: {figure(metric, metric.value)}, {interval(metric)}"
    return drawing(alt_text, FOREST_WIDTH, FOREST_HEIGHT, shapes, kind="forest")


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


def _trends(result: EvalResult, history: Sequence[EvalResult]) -> tuple[list[str], dict[str, tuple[float | None, ...]]]:
    """Return the days of the suite's runs, and its rates' values by name: rates with a gate, or all if none has one."""
    runs = trend(history, result)
    gated = {gate.metric for gate in result.gates}
    rates = [one.name for one in result.metrics if one.kind == "rate" and (one.name in gated or not gated)]
    return [run.when[:10] for run in runs], {name: values(runs, name) for name in rates}
