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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import GateResult, MetricResult, ScenarioPart, Verdict
from ctxsteward.schemas.eval_suite import FigureGate
from ctxsteward.store.strict_yaml import DocumentKind, read_mapping, read_text

from ..document_faults import PlacedPart, checked, refused
from ..intervals import Spread, detects, promise_detects

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
    """Least number of scenarios in a run with which the figure alone decides, for a point gate."""
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
"""Gates by metric."""


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
    results = []
    for name, rules in gates.items():
        metric = metrics[name]
        for gate in rules:
            is_point = gate.scenarios is not None and scenarios >= gate.scenarios
            verdict, why = _verdict(gate, metric, is_point=is_point)
            smallest = _detects(gate, metric, parts.get(name, ()), is_point=is_point)
            results.append(
                GateResult(
                    metric=name,
                    rule=str(gate),
                    value=_held(gate, metric),
                    passed=verdict == "passed",
                    why=why,
                    verdict=verdict,
                    fails_run=verdict == "failed" or (verdict == "undecided" and not gate.allow_undecided),
                    promise=gate.is_promise(metric.kind),
                    detects=None if smallest is None else round(smallest, 6),
                )
            )
    return tuple(results)


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


class _GatesFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    required: StrictBool = False
    allow_undecided: StrictBool = False
    gates: Annotated[dict[str, Annotated[dict[str, FigureGate], Field(min_length=1)]], Field(min_length=1)]


_READING = DocumentKind(
    what="gates", refuse=refused, max_bytes=1 << 20, max_depth=6, expected="a mapping with `schema_version` and `gates`"
)


def read_gates(text: str, source: str) -> Mapping[str, Gates]:
    """Parse gates, by suite."""
    tree = read_mapping(text, source, _READING)
    root = PlacedPart(tree.place)
    file = checked(_GatesFile, tree.value, root, "gates")
    return {
        suite: for_all(
            {name: tuple(gates_of(gate, root.at("gates", suite, name))) for name, gate in gates.items()},
            required=file.required,
            allow_undecided=file.allow_undecided,
        )
        for suite, gates in file.gates.items()
    }


def gates_of(gate: FigureGate, part: PlacedPart) -> Iterator[Gate]:
    """Yield a gate for each rule of a figure."""
    if gate.low and gate.high:
        raise part.refused("both ends", "hold one end of the interval to a rule")
    if gate.scenarios is not None and (gate.low or gate.high):
        raise part.refused("`scenarios` beside an end", "hold the figure or one end of its interval")
    bounds = {rule: getattr(gate, rule) for rule in RULES}
    if not any(bound is not None for bound in bounds.values()):
        raise part.refused("no rule", f"write one of: {', '.join(RULES)}")
    for rule, bound in bounds.items():
        if bound is not None:
            end: End = "low" if gate.low else "high" if gate.high else "value"
            yield Gate(rule=rule, bound=bound, end=end, scenarios=gate.scenarios)


def for_all(gates: Gates, *, required: bool, allow_undecided: bool) -> Gates:
    """Return the gates with the settings that a file makes for all of them."""
    return {
        metric: tuple(replace(gate, required=required, allow_undecided=allow_undecided) for gate in rules)
        for metric, rules in gates.items()
    }
