"""Gates: what passes, what does not, and a line of reason for every file that is none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import RULES, Gate, Rule, check, judged, load_gates, read_gates, shipped_gates
from ctxsteward.evals.suites.kit.suite import Setup
from ctxsteward.evals.suites.results import result
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import GateResult, MetricResult

from ...examples import examples
from .made import SUITE, played


def metric(value: float | None, low: float | None = None, high: float | None = None) -> MetricResult:
    return MetricResult(
        name="drift",
        about="",
        kind="rate",
        better="lower",
        unit="",
        value=value,
        low=low,
        high=high,
        method=None,
        checks=10,
        scenarios=5,
        unscored={"no store": 3} if value is None else {},
    )


POINT = 5
"""Scenarios of every made-up figure here; a gate with so many is a point gate."""
GATES = [
    (Gate(rule="below", bound=0.05, scenarios=POINT), metric(0.049, 0.01, 0.2), ""),
    (
        Gate(rule="below", bound=0.05, scenarios=POINT),
        metric(0.05, 0.01, 0.2),
        "0.05 is not below 0.05 over 5 scenarios",
    ),
    (Gate(rule="at_most", bound=0.05, scenarios=POINT), metric(0.05, 0.01, 0.2), ""),
    (Gate(rule="at_least", bound=1), metric(1.0, 0.6, 1.0), ""),
    (Gate(rule="at_least", bound=1), metric(0.999, 0.6, 1.0), "0.999 is not at least 1"),
    (Gate(rule="above", bound=0), metric(0.0, 0.0, 0.0), "0 is not above 0"),
    (Gate(rule="at_least", bound=0.9, end="low"), metric(0.95, 0.89, 0.99), "0.89 is not at least 0.9 at the low end"),
    (Gate(rule="at_most", bound=0.1, end="high"), metric(0.05, 0.0, 0.09), ""),
    (Gate(rule="at_most", bound=1), metric(None), "nothing was scored: no store (3)"),
]


def verdict(gate: Gate, found: MetricResult) -> GateResult:
    (result,) = judged({"drift": (gate,)}, {"drift": found}, {}, scenarios=found.scenarios)
    return result


@pytest.mark.parametrize(("gate", "found", "why"), GATES)
def test_a_gate_holds_or_says_why_not(gate: Gate, found: MetricResult, why: str) -> None:
    result = verdict(gate, found)
    assert (result.passed, result.why, result.rule) == (not why, why, str(gate))
    assert result.verdict == ("unscored" if found.value is None else "failed" if why else "passed")
    assert result.fails_run == (result.verdict == "failed")


ALL, HALF, BELOW = (Gate(rule="at_least", bound=1), Gate(rule="at_least", bound=0.5), Gate(rule="below", bound=0.05))
OVER_5, OVER_6 = (Gate(rule="at_least", bound=0.5, scenarios=number) for number in (5, 6))
NO_MISS = Gate(rule="at_most", bound=0)
COUNT, MEAN = {"kind": "count"}, {"kind": "mean"}
VERDICTS: list[tuple[str, Gate, MetricResult, str]] = [
    ("all of the interval holds", HALF, metric(0.7, 0.51, 0.8), "passed"),
    ("all of it, up to the bound", HALF, metric(0.7, 0.5, 0.8), "passed"),
    ("the value holds, the interval has values that do not", HALF, metric(0.7, 0.49, 0.8), "undecided"),
    ("it does not, the interval has values that do", HALF, metric(0.4, 0.1, 0.5), "undecided"),
    ("nothing of it holds", HALF, metric(0.4, 0.1, 0.49), "failed"),
    ("lower is better, all of it holds", BELOW, metric(0.01, 0.0, 0.049), "passed"),
    ("none was seen, the interval reaches a strict bound", BELOW, metric(0.0, 0.0, 0.05), "undecided"),
    ("lower is better, some of it holds", BELOW, metric(0.2, 0.049, 0.4), "undecided"),
    ("a strict bound is not reached", BELOW, metric(0.2, 0.05, 0.4), "failed"),
    ("nothing is known of the spread, the value holds", HALF, metric(0.6), "undecided"),
    ("nothing is known of the spread, it does not", HALF, metric(0.4), "undecided"),
    ("a point gate, the value holds", OVER_5, metric(0.7, 0.1, 0.8), "passed"),
    ("a point gate, it does not", OVER_5, metric(0.4, 0.1, 0.8), "failed"),
    ("a point gate without an interval", OVER_5, metric(0.7), "passed"),
    ("a point gate of more scenarios, the value holds", OVER_6, metric(0.7, 0.1, 0.8), "undecided"),
    ("a point gate of more scenarios, nothing holds", OVER_6, metric(0.4, 0.1, 0.49), "failed"),
    ("a promise, none broke it", ALL, metric(1.0, 0.6, 1.0), "passed"),
    ("a promise, all of a rate", ALL, metric(0.99, 0.8, 0.999), "failed"),
    ("a promise, rounded", ALL, metric(0.999999, 0.9, 1.0), "failed"),
    ("a promise, none of a rate", NO_MISS, metric(0.01, 0.0, 0.2), "failed"),
    ("a promise, a count", Gate(rule="at_most", bound=3), metric(4.0).model_copy(update=COUNT), "failed"),
    ("a promise, a count that holds", Gate(rule="at_most", bound=3), metric(3.0).model_copy(update=COUNT), "passed"),
    ("a mean has no end", ALL, metric(0.9, 0.4, 1.6).model_copy(update=MEAN), "undecided"),
    ("one end holds", Gate(rule="at_least", bound=0.5, end="low"), metric(0.6, 0.5, 0.8), "passed"),
    ("one end does not", Gate(rule="at_least", bound=0.5, end="low"), metric(0.6, 0.4, 0.8), "failed"),
    ("one end that is unknown", Gate(rule="at_least", bound=0.5, end="low"), metric(0.95), "undecided"),
    ("nothing was scored", HALF, metric(None), "unscored"),
    ("nothing was scored of what must be", Gate(rule="at_least", bound=0.5, required=True), metric(None), "failed"),
]


@pytest.mark.parametrize(("gate", "found", "says"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_a_gate_passes_or_fails_by_its_whole_interval(gate: Gate, found: MetricResult, says: str) -> None:
    assert verdict(gate, found).verdict == says


@pytest.mark.parametrize("allowed", [False, True])
def test_an_undecided_gate_fails_the_run_unless_its_file_allows_it(allowed: bool) -> None:
    gates = {"shown": (Gate(rule="at_least", bound=0.9, allow_undecided=allowed),)}
    found = result(SUITE, [played(0, 19, 20), played(1, 20, 20)], split="ci", setup=Setup(), gates=gates, when="2026")
    (gate,) = found.gates
    assert (gate.verdict, gate.passed, gate.fails_run, found.passed) == ("undecided", False, not allowed, allowed)


def test_none_of_26_says_nothing_of_a_bound_of_1_percent() -> None:
    rows = [played(number, 0, 1) for number in range(26)]
    gates = {"shown": (Gate(rule="below", bound=0.01), Gate(rule="at_most", bound=0))}
    found = result(replace(SUITE, scenarios=26), rows, split="ci", setup=Setup(), gates=gates, when="2026")
    assert [gate.verdict for gate in found.gates] == ["undecided", "passed"]
    assert found.gates[0].why == "0 is below 0.01, but 26 scenarios leave it between 0 and 0.1287"
    assert not found.passed


def test_an_undecided_gate_says_between_what_it_is_undecided() -> None:
    assert verdict(HALF, metric(0.4, 0.1, 0.8)).why == (
        "0.4 is not at least 0.5, but 5 scenarios leave it between 0.1 and 0.8"
    )
    assert verdict(HALF, metric(0.4)).why == "0.4 is not at least 0.5, but 5 scenarios say nothing of its spread"


SHARES = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=8)
BOUNDS = st.sampled_from((0.0, 0.05, 0.5, 0.9, 1.0))


@settings(max_examples=examples(200))
@given(SHARES, BOUNDS, st.sampled_from(RULES))
def test_more_of_the_same_scenarios_never_open_what_fewer_decided(
    rows: list[tuple[int, int]], bound: float, rule: Rule
) -> None:
    """The value stays, the interval narrows: passed and failed stay; a point gate decides the rest."""

    def of(times: int, scenarios: int | None = None) -> GateResult:
        each = [played(n, min(shown, checks), checks) for n, (shown, checks) in enumerate(rows * times)]
        gate = Gate(rule=rule, bound=bound, scenarios=scenarios)
        found = result(SUITE, each, split="ci", setup=Setup(), gates={"shown": (gate,)}, when="2026-11-22")
        assert found.passed == (found.gates[0].verdict == "passed")
        return found.gates[0]

    verdicts = [of(times).verdict for times in (1, 2, 4)]
    point = of(4, scenarios=4 * len(rows))
    assert set(verdicts) <= {"passed", "failed", "undecided"}
    assert point.verdict == ("passed" if Gate(rule=rule, bound=bound).holds(point.value or 0.0) else "failed")
    for earlier, later in pairwise((*verdicts, point.verdict)):
        assert later == earlier or earlier == "undecided"


def test_a_gate_over_a_figure_that_the_suite_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="'drifd': the suite has no such figure; it has: drift"):
        check({"drifd": (Gate(rule="below", bound=1),)}, "goals", ["drift"])


REFUSED = {
    "nothing": ("", "nothing"),
    "a list": ("- 1", "a list"),
    "not YAML": ("a: [", "no YAML"),
    "no version": ("gates: {verbatim: {x: {below: 1}}}", "`schema_version`: nothing; add this key"),
    "another version": ("schema_version: 2\ngates: {a: {b: {below: 1}}}", "g.yaml:1: `schema_version`: the number 2"),
    "a key too many": ("schema_version: 1\ngate: {}\ngates: {a: {b: {below: 1}}}", "g.yaml:2: `gate`: no such key"),
    "no gates": ("schema_version: 1", "`gates`: nothing; add this key"),
    "gates as a list": ("schema_version: 1\ngates: [1]", "g.yaml:2: `gates`: a list"),
    "an empty suite": ("schema_version: 1\ngates:\n  a: {}", "g.yaml:3: `gates.a`: nothing; write at least one"),
    "a bare number": ("schema_version: 1\ngates:\n  a:\n    b: 0.05", "g.yaml:4: `gates.a.b`: the number 0.05"),
    "required that is no flag": (
        "schema_version: 1\nrequired: all\ngates: {a: {b: {below: 1}}}",
        "g.yaml:2: `required`: the text 'all'; write true",
    ),
    "allow_undecided that is no flag": (
        "schema_version: 1\nallow_undecided: 1\ngates: {a: {b: {below: 1}}}",
        "g.yaml:2: `allow_undecided`: the number 1; write true",
    ),
    "no scenarios": (
        "schema_version: 1\ngates:\n  a:\n    b: {below: 1, scenarios: 0}",
        "g.yaml:4: `gates.a.b.scenarios`",
    ),
    "half a scenario": (
        "schema_version: 1\ngates:\n  a:\n    b: {below: 1, scenarios: 1.5}",
        "write a whole number",
    ),
    "a point and an end": (
        "schema_version: 1\ngates:\n  a:\n    b: {below: 1, scenarios: 3, low: true}",
        "`scenarios` beside an end",
    ),
    "an unknown rule": (
        "schema_version: 1\ngates:\n  a:\n    b: {less: 1}",
        "`gates.a.b.less`: no such key; allowed: below",
    ),
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
    with pytest.raises(InputError, match="no such file or directory"):
        load_gates(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_gates(tmp_path / "b.yaml")


def test_several_rules_over_one_figure_are_several_gates() -> None:
    gates = read_gates("schema_version: 1\ngates: {a: {b: {at_most: 3, at_least: 1, low: true}}}", "g")
    assert gates == {"a": {"b": (Gate(rule="at_most", bound=3, end="low"), Gate(rule="at_least", bound=1, end="low"))}}


def test_what_a_file_says_of_all_its_gates_is_said_of_each() -> None:
    text = "schema_version: 1\nrequired: true\nallow_undecided: true\ngates: {a: {b: {below: 1, scenarios: 7}}}"
    gate = Gate(rule="below", bound=1, scenarios=7, required=True, allow_undecided=True)
    assert read_gates(text, "g") == {"a": {"b": (gate,)}}


def test_every_shipped_bound_that_is_no_promise_says_over_how_many_scenarios_or_holds_the_interval() -> None:
    gates = [gate for each in shipped_gates().values() for rules in each.values() for gate in rules]
    points = [gate for gate in gates if gate.scenarios is not None]
    assert points != []
    assert {gate.scenarios for gate in points} == {26}
    assert not any(gate.allow_undecided for gate in gates)


def test_the_shipped_gates_hold_every_suite_over_figures_that_it_has() -> None:
    gates = shipped_gates()
    assert set(gates) == set(NAMES)
    for name in NAMES:
        assert set(gates[name]) <= {metric.name for metric in suite_named(name).metrics}
