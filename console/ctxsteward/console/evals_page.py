"""Eval results as one HTML file: figures with intervals and gates, what failed, what changed, trends; nothing loaded.

Light and dark follow the reader's setting; the page's own policy forbids scripts and every request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from ctxsteward.evals.result_formats import delta, figure, interval
from ctxsteward.evals.result_history import ResultDifference, trend
from ctxsteward.schemas.eval_result import EvalResult, GateResult, MetricResult

from .charts import STYLE, Bar, Series, bars, lines
from .steward.page import PAGE_STYLE, POLICY, section, table

FOREST_WIDTH, FOREST_HEIGHT = 220, 18
_STYLE = """
.ok{color:#1a7f37}.bad{color:#cf222e;font-weight:600}.forest{width:220px;max-width:none}
.span{stroke:var(--dim);stroke-width:2}.point{fill:#0969da}.bound{stroke:#bc4c00;stroke-width:2}
@media (prefers-color-scheme:dark){.ok{color:#56d364}.bad{color:#ff7b72}.point{fill:#58a6ff}.bound{stroke:#f0883e}}
"""


def page(
    results: Sequence[EvalResult], differences: Mapping[str, ResultDifference], history: Sequence[EvalResult]
) -> str:
    """The page; the same bytes for the same results."""
    title = "Context evals"
    body = "\n".join(part for part in _body(results, differences, history) if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{title}</title>'
        f"<style>{PAGE_STYLE}{STYLE}{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _body(
    results: Sequence[EvalResult], differences: Mapping[str, ResultDifference], history: Sequence[EvalResult]
) -> Iterator[str]:
    if results:
        yield f'<p class="dim">{escape(_about(results))}</p>'
    gates = [gate for one in results for gate in one.gates]
    if gates:
        failed = sum(not gate.passed for gate in gates)
        mark = '<span class="bad">failed</span>' if failed else '<span class="ok">passed</span>'
        yield f"<p><strong>{mark}</strong>: {len(gates) - failed} of {len(gates)} gates hold.</p>"
    for result in results:
        yield _suite(result, differences.get(result.suite))
    if results:
        yield '<h2>Over time</h2><div class="cards">'
        for result in results:
            yield f'<section class="card"><h2>{escape(result.suite)}</h2>{_trend(result, history)}</section>'
        cost = [Bar(one.suite, (round(one.cpu_seconds),)) for one in results]
        yield f'<section class="card"><h2>CPU seconds</h2>{bars("CPU seconds", cost)}</section></div>'


def _about(results: Sequence[EvalResult]) -> str:
    first = results[0]
    scenarios, turns = sum(one.scenarios for one in results), sum(one.turns for one in results)
    long = sum(one.long_scenarios for one in results)
    revision = f", revision {first.revision}" if first.revision else ""
    return (
        f"{first.product}{revision}; {scenarios:,} scenarios of split {first.split}, {long} of 200 and more turns, "
        f"{turns:,} turns; made {first.when}"
    )


def _suite(result: EvalResult, difference: ResultDifference | None) -> str:
    was = {one.metric: one.before for one in difference.changes} if difference else {}
    columns = ["figure", "value", "95 % interval", "", "checks", "gate", *(("since last run",) if difference else ())]
    rows = []
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        before = was.get(metric.name)
        since = [escape(delta(metric, before)) if before is not None else ""] if difference else []
        name = f'<span title="{escape(metric.about, quote=True)}">{escape(metric.name)}</span>'
        rows.append(
            [name, escape(figure(metric, metric.value)), escape(interval(metric)), _forest(metric, gates),
             f"{metric.checks:,}", _gates(gates), *since]
        )  # fmt: skip
    parts = [f'<p class="dim">{escape(result.about)}</p>', table(columns, rows, escaped=True), *_failures(result)]
    parts.append(f"<p><code>{escape(result.reproduce)}</code></p>" if result.reproduce else "")
    return section(result.suite, "\n".join(part for part in parts if part))


def _gates(gates: Sequence[GateResult]) -> str:
    return ", ".join(f'<span class="{"ok" if g.passed else "bad"}">{escape(g.rule)}</span>' for g in gates)


def _forest(metric: MetricResult, gates: Sequence[GateResult]) -> str:
    """A rate's interval on the line from 0 to 1, with the bounds of its gates."""
    if metric.kind != "rate" or metric.value is None:
        return ""
    middle, scale = FOREST_HEIGHT / 2, FOREST_WIDTH - 12
    low = metric.value if metric.low is None else metric.low
    high = metric.value if metric.high is None else metric.high
    said = f"{metric.name}: {figure(metric, metric.value)}, {interval(metric)}"
    drawn = [
        f'<line class="grid" x1="6" x2="{6 + scale}" y1="{middle}" y2="{middle}"/>',
        f'<line class="span" x1="{6 + scale * low:.1f}" x2="{6 + scale * high:.1f}" y1="{middle}" y2="{middle}"/>',
        f'<circle class="point" cx="{6 + scale * metric.value:.1f}" cy="{middle}" r="4"/>',
    ]
    for gate in gates:
        bound = next((float(word) for word in gate.rule.split() if _is_number(word)), None)
        if bound is not None and 0 <= bound <= 1:
            x = 6 + scale * bound
            drawn.append(f'<line class="bound" x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="{FOREST_HEIGHT - 2}"/>')
    return (
        f'<svg class="forest" viewBox="0 0 {FOREST_WIDTH} {FOREST_HEIGHT}" role="img" '
        f'aria-label="{escape(said, quote=True)}">{"".join(drawn)}</svg>'
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _failures(result: EvalResult) -> Iterator[str]:
    failed = {gate.metric for gate in result.gates if not gate.passed}
    rows = [(miss.metric, miss.scenario, miss.at, miss.why) for miss in result.misses if miss.metric in failed]
    rows += [("broke off", id, "", error) for id, error in result.errors.items()]
    if rows:
        yield table(("figure", "scenario", "where", "what was found"), rows)


def _trend(result: EvalResult, history: Sequence[EvalResult]) -> str:
    """Rates of the suite that have a gate, run by run."""
    gated = {gate.metric for gate in result.gates}
    rates = [metric for metric in result.metrics if metric.kind == "rate" and (metric.name in gated or not gated)]
    series = [Series(rate.name, trend(history, result.suite, result.split, rate.name)) for rate in rates]
    runs = [one.when[:10] for one in history if (one.suite, one.split) == (result.suite, result.split)]
    longest = max((len(one.values) for one in series), default=0)
    return lines("Rates", series, runs[-longest:] if longest else [])
