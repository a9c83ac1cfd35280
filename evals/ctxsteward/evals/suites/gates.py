"""Gates: bounds on the figures of suites, in one YAML file.

    schema_version: 1
    required: true                                   # a figure that could not be scored fails its gate
    allow_undecided: true                            # an undecided gate does not fail the run; left out: it does
    gates:
      goal-continuity:
        goals_shown: {at_least: 0.9}                 # the whole 95 % interval must lie there
        goal_drift: {below: 0.08, scenarios: 26}     # point gate: of 26 scenarios and more, the figure alone
      verbatim:
        last_turn: {at_least: 1}                     # promise: one counterexample breaks it

`below` and `above` are strict, `at_most` and `at_least` are not. The shipped file, ``gates.yaml``, names every suite; a
file of your own replaces it whole.

A figure comes from a sample, so a gate compares its 95 % interval with the bound: *passed* if the whole interval is
within the bound, *failed* if no part of it is, *undecided* if the bound lies inside the interval, or if too few
scenarios give no interval. An undecided gate does not count as passed; it fails the run unless the file says
``allow_undecided: true``.

Three kinds of gate use no interval:

- a *promise* (a rate of 0 or 1, or a count): no sample can prove it and one counterexample refutes it, so a passed
  promise says only that the sample has no counterexample;
- a *point gate* (``scenarios: N``): in a run of N or more scenarios, the figure itself is compared with the bound. A
  smaller run is judged by its interval;
- a gate over one end (``low: true``, ``high: true``): it passes if that end of the interval is within the bound.

A gate over an unscored figure is *unscored* and does not fail the run, unless the file says ``required: true``: then it
fails at any size, so that no run passes because nothing was measured.

Raises `InputError` with the line of the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import GateResult, MetricResult, ScenarioPart, Verdict
from ctxsteward.store.strict_yaml import DocumentKind, Tree, read_mapping, read_text, show

from ..intervals import Spread, detects, promise_detects

VERSION = 1
SHIPPED = "gates.yaml"
Rule = Literal["below", "at_most", "at_least", "above"]
RULES: tuple[Rule, ...] = ("below", "at_most", "at_least", "above")
End = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One rule over one figure."""

    rule: Rule
    bound: float
    end: End = "value"
    scenarios: int | None = None
    """For a point gate: least number of scenarios in a run for which the figure alone decides."""
    required: bool = False
    """Whether an unscored figure fails the gate."""
    allow_undecided: bool = False
    """Whether a run may pass with the gate undecided."""
    shipped: bool = False
    """Whether the gate is ours; it is not required of other subjects, which may lack some capabilities."""

    @property
    def at_least(self) -> bool:
        """Return whether more is better."""
        return self.rule in ("at_least", "above")

    def is_promise(self, kind: str) -> bool:
        """Return whether a single counterexample fails it: a bound of 0 or 1 on a rate, or any bound on a count."""
        return kind == "count" or (kind == "rate" and self.bound == float(self.at_least))

    def holds(self, value: float) -> bool:
        match self.rule:
            case "below":
                return value < self.bound
            case "at_most":
                return value <= self.bound
            case "at_least":
                return value >= self.bound
            case "above":
                return value > self.bound

    def __str__(self) -> str:
        end = "" if self.end == "value" else f" at the {self.end} end"
        point = "" if self.scenarios is None else f" over {self.scenarios} scenarios"
        return f"{self.rule.replace('_', ' ')} {self.bound:g}{end}{point}"


Gates = Mapping[str, tuple[Gate, ...]]
"""By metric."""


def check(gates: Gates, suite: str, metrics: Iterable[str]) -> None:
    """Raise `InputError` for a gate over a figure that the suite does not have."""
    names = list(metrics)
    for name in gates:
        if name not in names:
            raise InputError(f"gate over {suite} {name!r}: the suite has no such figure; it has: {', '.join(names)}")


def judged(
    gates: Gates, metrics: Mapping[str, MetricResult], parts: Mapping[str, Sequence[ScenarioPart]], *, scenarios: int
) -> tuple[GateResult, ...]:
    """Judge every gate over the figures of a suite; `parts` are the scenarios' parts of each figure."""
    rows = ((name, gate) for name, rules in gates.items() for gate in rules)
    return tuple(_judged(gate, metrics[name], parts.get(name, ()), scenarios) for name, gate in rows)


def _judged(gate: Gate, metric: MetricResult, parts: Sequence[ScenarioPart], scenarios: int) -> GateResult:
    is_point = gate.scenarios is not None and scenarios >= gate.scenarios
    verdict, why = _verdict(gate, metric, is_point=is_point)
    smallest = _detects(gate, metric, parts, is_point=is_point)
    return GateResult(
        metric=metric.name,
        rule=str(gate),
        value=_held(gate, metric),
        passed=verdict == "passed",
        why=why,
        verdict=verdict,
        fails_run=verdict == "failed" or (verdict == "undecided" and not gate.allow_undecided),
        promise=gate.is_promise(metric.kind),
        detects=None if smallest is None else round(smallest, 6),
    )


def _held(gate: Gate, metric: MetricResult) -> float | None:
    """Return the value that a gate compares: the figure, or the chosen end of its interval if it has one."""
    end: float | None = getattr(metric, gate.end)
    return metric.value if end is None else end


def _verdict(gate: Gate, metric: MetricResult, *, is_point: bool) -> tuple[Verdict, str]:
    value = _held(gate, metric)
    if value is None:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in metric.unscored.items())
        why = f"nothing was scored{': ' + reasons if reasons else ''}"
        return ("failed" if gate.required else "unscored"), why
    held = gate.holds(value)
    why = "" if held else f"{value:.4g} is not {gate}"
    if is_point or gate.is_promise(metric.kind):
        return ("passed" if held else "failed"), why
    comparison = f"{metric.value:.4g} is {'' if held else 'not '}{gate}"
    if metric.low is None or metric.high is None:
        says = "one scenario says" if metric.scenarios == 1 else f"{metric.scenarios} scenarios say"
        return "undecided", f"{comparison}, but {says} nothing of its spread"
    if gate.end != "value":
        return ("passed" if held else "failed"), why
    match gate.holds(metric.low), gate.holds(metric.high):
        case True, True:
            return "passed", ""
        case False, False:
            return "failed", why
    leave = "one scenario leaves" if metric.scenarios == 1 else f"{metric.scenarios} scenarios leave"
    return "undecided", f"{comparison}, but {leave} it between {metric.low:.4g} and {metric.high:.4g}"


def _detects(gate: Gate, metric: MetricResult, parts: Sequence[ScenarioPart], *, is_point: bool) -> float | None:
    spread = Spread.of(parts)
    if spread is None or gate.end != "value":
        return None
    if gate.is_promise(metric.kind):
        return promise_detects(spread.scenarios) if gate.bound == float(gate.at_least) else None
    is_rate = metric.kind == "rate"
    return detects(spread, gate.bound, is_rate=is_rate, at_least=gate.at_least, is_point=is_point)


def shipped_gates() -> Mapping[str, Gates]:
    """Return the shipped gates by suite."""
    read = read_gates((files(__package__) / SHIPPED).read_text(encoding="utf-8"), SHIPPED)
    return {
        suite: {metric: tuple(replace(gate, shipped=True) for gate in rules) for metric, rules in gates.items()}
        for suite, gates in read.items()
    }


def load_gates(path: Path) -> Mapping[str, Gates]:
    """Read the gates of a file, by suite."""
    return read_gates(read_text(path, _READING), str(path))


def read_gates(text: str, source: str) -> Mapping[str, Gates]:
    """Parse gates, by suite."""
    tree = read_mapping(text, source, _READING)
    reader, fields = _Reader(tree), tree.value
    if fields.get("schema_version") != VERSION:
        raise reader.refused(("schema_version",), show(fields.get("schema_version")), f"write {VERSION}")
    for key in fields.keys() - {"schema_version", "required", "allow_undecided", "gates"}:
        keys = "there are `schema_version`, `required`, `allow_undecided` and `gates`"
        raise reader.refused((key,), "no such key", keys)
    required = reader.flag(fields.get("required", False), ("required",))
    allow_undecided = reader.flag(fields.get("allow_undecided", False), ("allow_undecided",))
    suites = reader.mapping(fields.get("gates"), ("gates",), "a mapping from suites to gates")
    read = {name: reader.suite(value, ("gates", name)) for name, value in suites.items()}
    return {suite: for_all(gates, required=required, allow_undecided=allow_undecided) for suite, gates in read.items()}


def for_all(gates: Gates, *, required: bool, allow_undecided: bool) -> Gates:
    """Return the gates with the settings that a file makes for all of them."""
    return {
        metric: tuple(replace(gate, required=required, allow_undecided=allow_undecided) for gate in rules)
        for metric, rules in gates.items()
    }


def _refuse(where: str, key: str, found: str, todo: str) -> InputError:
    named = f"`{key}`: " if key else ""
    return InputError(f"{where}: {named}{found}; {todo}")


_READING = DocumentKind(
    what="gates", refuse=_refuse, max_bytes=1 << 20, max_depth=6, expected="a mapping with `schema_version` and `gates`"
)


@dataclass(frozen=True, slots=True)
class _Reader:
    tree: Tree

    def mapping(self, value: object, path: tuple[str, ...], expected: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not value:
            raise self.refused(path, show(value), f"write {expected}")
        return value

    def suite(self, value: object, path: tuple[str, ...]) -> Gates:
        metrics = self.mapping(value, path, "a mapping from figures to rules")
        return {name: self.rules(rules, (*path, name)) for name, rules in metrics.items()}

    def rules(self, value: object, path: tuple[str, ...]) -> tuple[Gate, ...]:
        fields = dict(self.mapping(value, path, "a rule such as {below: 0.05}"))
        ends: list[End] = [end for end in ("low", "high") if self.flag(fields.pop(end, False), (*path, end))]
        if len(ends) > 1:
            raise self.refused(path, "both ends", "hold one end of the interval to a rule")
        scenarios = self._count(fields.pop("scenarios", None), (*path, "scenarios"))
        if ends and scenarios is not None:
            raise self.refused(path, f"`scenarios` beside `{ends[0]}`", "hold the figure or one end of its interval")
        for name in fields.keys() - set(RULES):
            raise self.refused((*path, name), "no such rule", f"there are: {', '.join(RULES)}, scenarios, low, high")
        if not fields:
            raise self.refused(path, "no rule", f"write one of: {', '.join(RULES)}")
        end: End = ends[0] if ends else "value"
        return tuple(
            Gate(rule=rule, bound=self._number(fields[rule], (*path, rule)), end=end, scenarios=scenarios)
            for rule in RULES
            if rule in fields
        )

    def flag(self, value: object, path: tuple[str, ...]) -> bool:
        if not isinstance(value, bool):
            raise self.refused(path, show(value), "write true, or leave it out")
        return value

    def _count(self, value: object, path: tuple[str, ...]) -> int | None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise self.refused(path, show(value), "write a number of scenarios, from 1")
        return value

    def _number(self, value: object, path: tuple[str, ...]) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise self.refused(path, show(value), "write a number")
        return float(value)

    def refused(self, path: tuple[str, ...], found: str, todo: str) -> InputError:
        return _refuse(self.tree.place(path), ".".join(path), found, todo)
