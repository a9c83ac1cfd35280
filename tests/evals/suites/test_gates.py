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


def verdict(gate: Gate, found: MetricResult, *, decisive: bool = True) -> GateResult:
    (result,) = judged({"drift": (gate,)}, {"drift": found}, {}, decisive=decisive)
    return result


@pytest.mark.parametrize(("gate", "found", "why"), GATES)
def test_a_gate_holds_or_says_why_not(gate: Gate, found: MetricResult, why: str) -> None:
    result = verdict(gate, found)
    assert (result.passed, result.why, result.rule) == (not why, why, str(gate))
    assert result.verdict == ("unscored" if found.value is None else "failed" if why else "passed")


ALL, HALF, BELOW = (Gate(rule="at_least", bound=1), Gate(rule="at_least", bound=0.5), Gate(rule="below", bound=0.05))
SMALL: list[tuple[str, Gate, MetricResult, str]] = [
    ("the value holds", HALF, metric(0.5, 0.1, 0.8), "passed"),
    ("the interval has values that do", HALF, metric(0.4, 0.1, 0.8), "undecided"),
    ("it just reaches the bound", HALF, metric(0.4, 0.1, 0.5), "undecided"),
    ("it has none", HALF, metric(0.4, 0.1, 0.49), "failed"),
    ("lower is better", BELOW, metric(0.2, 0.049, 0.4), "undecided"),
    ("a strict bound is not reached", BELOW, metric(0.2, 0.05, 0.4), "failed"),
    ("one scenario has no interval", HALF, metric(0.4), "undecided"),
    ("a promise, all of a rate", ALL, metric(0.99, 0.8, 0.999), "failed"),
    ("a promise, rounded", ALL, metric(0.999999, 0.9, 1.0), "failed"),
    ("a promise, none of a rate", Gate(rule="at_most", bound=0), metric(0.01, 0.0, 0.2), "failed"),
    ("a promise, a count", Gate(rule="at_most", bound=3), metric(4.0).model_copy(update={"kind": "count"}), "failed"),
    ("a mean has no end", ALL, metric(0.9, 0.4, 1.6).model_copy(update={"kind": "mean"}), "undecided"),
    ("proof is asked for", Gate(rule="at_least", bound=0.5, end="low"), metric(0.6, 0.4, 0.8), "failed"),
    ("nothing was scored", HALF, metric(None), "unscored"),
    ("nothing was scored of what must be", Gate(rule="at_least", bound=0.5, required=True), metric(None), "failed"),
]  # fmt: skip


@pytest.mark.parametrize(("gate", "found", "says"), [row[1:] for row in SMALL], ids=[row[0] for row in SMALL])
def test_a_small_run_fails_a_gate_only_by_what_refutes_it(gate: Gate, found: MetricResult, says: str) -> None:
    assert verdict(gate, found, decisive=False).verdict == says


def test_at_full_size_nothing_but_a_figure_that_is_not_required_stays_open() -> None:
    """A gate is no weaker there than its bound."""
    for _, gate, found, _ in SMALL:
        says = "unscored" if found.value is None else "passed" if gate.holds(found.value) else "failed"
        if gate.end == "value":
            wanted = "failed" if found.value is None and gate.required else says
            assert verdict(gate, found).verdict == wanted


def test_an_undecided_gate_says_between_what_it_is_undecided() -> None:
    assert verdict(HALF, metric(0.4, 0.1, 0.8), decisive=False).why == (
        "0.4 is not at least 0.5, but 5 scenarios leave it between 0.1 and 0.8"
    )
    assert verdict(HALF, metric(0.4), decisive=False).why == (
        "0.4 is not at least 0.5, but 5 scenarios say nothing of its spread"
    )


SHARES = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=8)
BOUNDS = st.sampled_from((0.0, 0.05, 0.5, 0.9, 1.0))


@settings(max_examples=examples(200), deadline=None)
@given(SHARES, BOUNDS, st.sampled_from(RULES))
def test_more_of_the_same_scenarios_never_open_what_fewer_decided(
    rows: list[tuple[int, int]], bound: float, rule: Rule
) -> None:
    """The value stays, the interval narrows: passed stays passed, failed stays failed; full size decides the rest."""
    gate = Gate(rule=rule, bound=bound)
    suite = replace(SUITE, scenarios=40)

    def of(times: int) -> GateResult:
        each = [played(n, min(shown, checks), checks) for n, (shown, checks) in enumerate(rows * times)]
        found = result(suite, each, split="ci", setup=Setup(), gates={"shown": (gate,)}, when="2026-11-22")
        assert found.passed == (found.gates[0].verdict != "failed")
        return found.gates[0]

    verdicts = [of(times).verdict for times in (1, 2, 4)]
    full = of(40 // len(rows) + 1)
    assert set(verdicts) <= {"passed", "failed", "undecided"}
    assert full.verdict == ("passed" if gate.holds(full.value or 0.0) else "failed")
    for earlier, later in pairwise((*verdicts, full.verdict)):
        assert later == earlier or earlier == "undecided"
        assert (earlier == "passed") == (later == "passed")


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
    "required that is no flag": (
        "schema_version: 1\nrequired: all\ngates: {a: {b: {below: 1}}}",
        "g.yaml:2: `required`: the text 'all'; write true",
    ),
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
