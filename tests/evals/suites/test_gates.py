"""Gates: what passes, what does not, and a line of reason for every file that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import Gate, check, judged, load_gates, read_gates, shipped_gates
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import MetricResult


def metric(value: float | None, low: float | None = None, high: float | None = None) -> MetricResult:
    return MetricResult(
        name="drift", about="", kind="rate", better="lower", unit="", value=value, low=low, high=high, method=None,
        checks=10, scenarios=5, unscored={"no store": 3} if value is None else {},
    )  # fmt: skip


GATES = [
    (Gate(rule="below", bound=0.05), metric(0.049), ""),
    (Gate(rule="below", bound=0.05), metric(0.05), "0.05 is not below 0.05"),
    (Gate(rule="at_most", bound=0.05), metric(0.05), ""),
    (Gate(rule="at_least", bound=1), metric(1.0), ""),
    (Gate(rule="at_least", bound=1), metric(0.999), "0.999 is not at least 1"),
    (Gate(rule="above", bound=0), metric(0.0), "0 is not above 0"),
    (Gate(rule="at_least", bound=0.9, end="low"), metric(0.95, 0.89, 0.99), "0.89 is not at least 0.9 at the low end"),
    (Gate(rule="at_most", bound=0.1, end="high"), metric(0.05, 0.0, 0.09), ""),
    (Gate(rule="at_least", bound=0.9, end="low"), metric(0.95), ""),
    (Gate(rule="at_most", bound=1), metric(None), "nothing was scored: no store (3)"),
]


@pytest.mark.parametrize(("gate", "found", "why"), GATES)
def test_a_gate_holds_or_says_why_not(gate: Gate, found: MetricResult, why: str) -> None:
    (result,) = judged({"drift": (gate,)}, {"drift": found})
    assert (result.passed, result.why, result.rule) == (not why, why, str(gate))


def test_a_gate_over_a_figure_that_the_suite_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="'drifd': the suite has no such figure; it has: drift"):
        check({"drifd": (Gate(rule="below", bound=1),)}, "goals", ["drift"])


REFUSED = {
    "nothing": ("", "nothing"),
    "a list": ("- 1", "a list"),
    "not YAML": ("a: [", "no YAML"),
    "no version": ("gates: {verbatim: {x: {below: 1}}}", "`schema_version`: nothing; write 1"),
    "another version": ("schema_version: 2\ngates: {a: {b: {below: 1}}}", "g.yaml:1: `schema_version`: the number 2"),
    "a key too many": ("schema_version: 1\ngate: {}\ngates: {a: {b: {below: 1}}}", "g.yaml:2: `gate`: no such key"),
    "no gates": ("schema_version: 1", "`gates`: nothing; write a mapping from suites to gates"),
    "gates as a list": ("schema_version: 1\ngates: [1]", "g.yaml:2: `gates`: a list"),
    "an empty suite": ("schema_version: 1\ngates:\n  a: {}", "g.yaml:3: `gates.a`: an empty mapping"),
    "a bare number": ("schema_version: 1\ngates:\n  a:\n    b: 0.05", "g.yaml:4: `gates.a.b`: the number 0.05"),
    "an unknown rule": ("schema_version: 1\ngates:\n  a:\n    b: {less: 1}", "`gates.a.b.less`: no such rule"),
    "a rule without a bound": ("schema_version: 1\ngates:\n  a:\n    b: {low: true}", "`gates.a.b`: no rule"),
    "a text for a bound": ("schema_version: 1\ngates:\n  a:\n    b: {below: five}", "the text 'five'; write a number"),
    "a truth value for a bound": ("schema_version: 1\ngates:\n  a:\n    b: {below: true}", "write a number"),
    "not a number": ("schema_version: 1\ngates:\n  a:\n    b: {below: .nan}", "g.yaml"),
    "both ends": ("schema_version: 1\ngates:\n  a:\n    b: {below: 1, low: true, high: true}", "both ends"),
    "an end that is no flag": ("schema_version: 1\ngates:\n  a:\n    b: {below: 1, low: 0.9}", "write true"),
    "a repeated key": ("schema_version: 1\ngates:\n  a: {b: {below: 1}}\n  a: {b: {below: 2}}", "g.yaml:4"),
}


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_is_none_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read_gates(text, "g.yaml")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_gates(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_gates(tmp_path / "b.yaml")


def test_several_rules_over_one_figure_are_several_gates() -> None:
    gates = read_gates("schema_version: 1\ngates: {a: {b: {at_most: 3, at_least: 1, low: true}}}", "g")
    assert gates == {"a": {"b": (Gate(rule="at_most", bound=3, end="low"), Gate(rule="at_least", bound=1, end="low"))}}


def test_the_shipped_gates_hold_every_suite_over_figures_that_it_has() -> None:
    gates = shipped_gates()
    assert set(gates) == set(NAMES)
    for name in NAMES:
        assert set(gates[name]) <= {metric.name for metric in suite_named(name).metrics}
