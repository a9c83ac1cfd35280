"""Results as Markdown, for people, and as JUnit XML, for CI services.

Markdown is a table of figures with intervals and gates, what failed, and what changed since the last run. In JUnit
each eval suite is a test suite; each gate, and each scenario that broke off, is a test case; figures without a gate are
properties. Source: the JUnit schema of the Jenkins xUnit plugin, as CI services read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree as Xml

from ctxsteward.schemas import EvalMiss, EvalResult, GateResult, MetricResult

from .result_history import ResultDifference

MISSES = 5
"""Shown of one figure."""


def markdown(results: Sequence[EvalResult], differences: Mapping[str, ResultDifference]) -> str:
    """A page of all results; `differences` by suite, where there was a run before."""
    passed = all(result.passed for result in results)
    held = sum(len(result.gates) for result in results)
    verdict = f"{'All' if passed else 'Not all'} of {held} gates passed" if held else "No gates were asked for"
    scenarios, turns = sum(one.scenarios for one in results), sum(one.turns for one in results)
    rows = [
        f"# Context evals: {'passed' if passed else 'failed'}",
        "",
        f"{verdict}; {scenarios:,} scenarios, {turns:,} turns.",
    ]
    for result in results:
        rows += ["", *_suite(result, differences.get(result.suite))]
    return "\n".join(rows) + "\n"


def _suite(result: EvalResult, difference: ResultDifference | None) -> Iterator[str]:
    yield f"## {'✅' if result.passed else '❌'} {result.suite}"
    yield ""
    yield _cell(result.about)
    yield ""
    yield "| figure | value | 95 % interval | checks | gate | since last run |"
    yield "|---|---:|---|---:|---|---|"
    changes = {one.metric: one for one in difference.changes} if difference else {}
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        change = changes.get(metric.name)
        since = "" if change is None or change.before is None else delta(metric, change.before)
        yield (
            f"| {metric.name} | {figure(metric, metric.value)} | {interval(metric)} | {metric.checks:,} "
            f"| {', '.join(map(_gate, gates))} | {since} |"
        )
    yield from _failures(result)
    yield ""
    yield f"`{result.reproduce}`" if result.reproduce else ""


def _failures(result: EvalResult) -> Iterator[str]:
    failed = {gate.metric for gate in result.gates if not gate.passed}
    for metric in sorted(failed):
        missed = [miss for miss in result.misses if miss.metric == metric]
        yield ""
        yield f"**{metric}**" + ("" if missed else ": nothing was scored")
        yield ""
        for miss in missed[:MISSES]:
            yield f"- `{miss.scenario}`, {_cell(miss.at)}: {_cell(miss.why)}"
    for id, error in result.errors.items():
        yield f"- `{id}` broke off: {_cell(error)}"


def figure(metric: MetricResult, value: float | None) -> str:
    """A figure as people read it.

    >>> from ctxsteward.schemas.eval_result import MetricResult
    >>> one = MetricResult(name="goal_drift", about="", kind="rate", better="lower", unit="", value=0.0125, low=None,
    ...     high=None, method=None, checks=80, scenarios=26, unscored={})
    >>> figure(one, one.value)
    '1.25 %'
    """
    if value is None:
        return "unscored"
    if metric.kind == "rate":
        return f"{100 * value:.4g} %"
    return f"{value:,.4g}{' ' + metric.unit if metric.unit else ''}"


def interval(metric: MetricResult) -> str:
    """Its interval, as people read it; empty where it has none."""
    if metric.low is None or metric.high is None:
        return ""
    return f"{figure(metric, metric.low)} to {figure(metric, metric.high)}"


def delta(metric: MetricResult, was: float) -> str:
    """How far a figure is from what it was; empty where it is the same."""
    if metric.value is None or metric.value == was:
        return "="
    worse = metric.value < was if metric.better == "higher" else metric.value > was
    scale, unit = (100, " points") if metric.kind == "rate" else (1, "")
    return f"{scale * (metric.value - was):+.3g}{unit}{' worse' if worse else ''}"


def _gate(gate: GateResult) -> str:
    return f"{'✅' if gate.passed else '❌'} {gate.rule}"


def _cell(text: str) -> str:
    """A text that cannot break a table or a list, nor be taken for markup."""
    flat = " ".join(text.split())
    return "".join(f"\\{char}" if char in "|<>*_`[]\\" else char for char in flat)


_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(results: Iterable[EvalResult]) -> str:
    """One document of all results."""
    root = Xml.Element("testsuites", name="ctxsteward evals")
    for result in results:
        root.append(_junit_suite(result))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _junit_suite(result: EvalResult) -> Xml.Element:
    failed = [gate for gate in result.gates if not gate.passed]
    suite = Xml.Element(
        "testsuite", name=result.suite, tests=str(len(result.gates) + len(result.errors)), failures=str(len(failed)),
        errors=str(len(result.errors)), time=f"{result.cpu_seconds:.3f}", timestamp=result.when,
    )  # fmt: skip
    properties = Xml.SubElement(suite, "properties")
    told = {metric.name: "unscored" if metric.value is None else f"{metric.value:g}" for metric in result.metrics}
    for name, value in {"product": result.product, "reproduce": result.reproduce, **told}.items():
        Xml.SubElement(properties, "property", name=name, value=_legal(value))
    for gate in result.gates:
        _junit_gate(suite, result, gate)
    for id, error in result.errors.items():
        case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=id, time="0")
        Xml.SubElement(case, "error", message=_legal(error))
    return suite


def _junit_gate(suite: Xml.Element, result: EvalResult, gate: GateResult) -> None:
    name = f"{gate.metric} {gate.rule}"
    case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=name, time="0")
    if not gate.passed:
        failure = Xml.SubElement(case, "failure", message=_legal(gate.why))
        failure.text = _legal("\n".join(_line(miss) for miss in result.misses if miss.metric == gate.metric))


def _line(miss: EvalMiss) -> str:
    return f"{miss.scenario}, {miss.at}: {miss.why}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
