"""Results as JUnit XML: a test suite for each eval suite, a test case for each gate and each scenario that broke off.

Figures without a gate are properties of their suite. Source: the JUnit schema of the Jenkins xUnit plugin, as CI
services read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from ctxsteward.schemas.eval_result import EvalMiss, EvalResult, GateResult

_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(results: Iterable[EvalResult]) -> str:
    """One document of all results."""
    root = Xml.Element("testsuites", name="ctxsteward evals")
    for result in results:
        root.append(_suite(result))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(result: EvalResult) -> Xml.Element:
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
        _gate(suite, result, gate)
    for id, error in result.errors.items():
        case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=id, time="0")
        Xml.SubElement(case, "error", message=_legal(error))
    return suite


def _gate(suite: Xml.Element, result: EvalResult, gate: GateResult) -> None:
    name = f"{gate.metric} {gate.rule}"
    case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=name, time="0")
    if not gate.passed:
        failure = Xml.SubElement(case, "failure", message=_legal(gate.why))
        failure.text = _legal("\n".join(_line(miss) for miss in result.misses if miss.metric == gate.metric))


def _line(miss: EvalMiss) -> str:
    return f"{miss.scenario}, {miss.at}: {miss.why}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
