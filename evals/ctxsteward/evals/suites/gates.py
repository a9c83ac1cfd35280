"""Gates: what each figure is held to, in one YAML file.

    schema_version: 1
    required: true                                   # a figure that could not be scored fails its gate
    gates:
      goal-continuity:
        goal_drift: {below: 0.05}
        goals_shown: {at_least: 0.95, low: true}     # the low end of the interval must reach it
      verbatim:
        last_turn: {at_least: 1}

`below` and `above` are strict, `at_most` and `at_least` are not; ``low: true`` (or ``high: true``) holds an end of the
95 % interval to the rule instead of the figure itself. The shipped file, ``gates.yaml``, names every suite; a file of
your own replaces it whole.

A gate is set for a run of the suite's full size. There it passes where the figure holds it and fails where it does not.
A smaller run fails it only by what refutes it: where not even the favourable end of the interval holds the bound;
between the two the gate is undecided. Three rules ask no interval. A promise (all of a rate, or none; a count) is
broken by a single counterexample at any size. An end of the interval asks for proof: a run too small for it fails. A
figure that could not be scored is `unscored` and fails nothing, but where the file says ``required: true``: then it
fails at any size, so that nothing turns green because nothing was asked.

Raises `InputError` with the line of what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from ctxsteward.schemas import GateResult, InputError, MetricResult, ScenarioPart, Verdict
from ctxsteward.store import Lines, YamlSource, place, read_mapping, show

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
    required: bool = False
    """Whether a figure that could not be scored fails it."""
    shipped: bool = False
    """One of ours: of another subject it is not required, which need not have everything that ours has."""

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.rule in ("at_least", "above")

    def is_promise(self, kind: str) -> bool:
        """Whether a single counterexample breaks it: a bound at the end of what a rate can be, or on a count."""
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
        return f"{self.rule.replace('_', ' ')} {self.bound:g}{end}"


Gates = Mapping[str, tuple[Gate, ...]]
"""By metric."""


def check(gates: Gates, suite: str, metrics: Iterable[str]) -> None:
    """Refuse gates over figures that a suite has not."""
    known = list(metrics)
    for name in gates:
        if name not in known:
            raise InputError(f"gate over {suite} {name!r}: the suite has no such figure; it has: {', '.join(known)}")


def judged(
    gates: Gates, metrics: Mapping[str, MetricResult], parts: Mapping[str, Sequence[ScenarioPart]], *, decisive: bool
) -> tuple[GateResult, ...]:
    """Every gate over the figures of one suite; `parts` are what scenarios gave to each.

    `decisive`: the run has the size that gates are set for.
    """
    rows = ((name, gate) for name, each in gates.items() for gate in each)
    return tuple(_judged(gate, metrics[name], parts.get(name, ()), decisive=decisive) for name, gate in rows)


def _judged(gate: Gate, metric: MetricResult, parts: Sequence[ScenarioPart], *, decisive: bool) -> GateResult:
    verdict, why = _verdict(gate, metric, decisive=decisive)
    smallest = _detects(gate, metric, parts, decisive=decisive)
    return GateResult(
        metric=metric.name, rule=str(gate), value=_held(gate, metric), passed=verdict == "passed", why=why,
        verdict=verdict, promise=gate.is_promise(metric.kind), detects=None if smallest is None else round(smallest, 6),
    )  # fmt: skip


def _held(gate: Gate, metric: MetricResult) -> float | None:
    """What the gate is held against; without an interval, since every scenario says the same, the figure."""
    end: float | None = getattr(metric, gate.end)
    return metric.value if end is None else end


def _verdict(gate: Gate, metric: MetricResult, *, decisive: bool) -> tuple[Verdict, str]:
    value = _held(gate, metric)
    if value is None:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in metric.unscored.items())
        why = f"nothing was scored{': ' + reasons if reasons else ''}"
        return ("failed" if gate.required else "unscored"), why
    if gate.holds(value):
        return "passed", ""
    why = f"{value:.4g} is not {gate}"
    if decisive or gate.end != "value" or gate.is_promise(metric.kind):
        return "failed", why
    alone = metric.scenarios == 1
    if metric.low is None or metric.high is None:
        return (
            "undecided",
            f"{why}, but {'one scenario says' if alone else f'{metric.scenarios} scenarios say'} nothing of its spread",
        )
    if gate.holds(metric.high if gate.at_least else metric.low):
        few = "one scenario leaves" if alone else f"{metric.scenarios} scenarios leave"
        return "undecided", f"{why}, but {few} it between {metric.low:.4g} and {metric.high:.4g}"
    return "failed", why


def _detects(gate: Gate, metric: MetricResult, parts: Sequence[ScenarioPart], *, decisive: bool) -> float | None:
    spread = Spread.of(parts)
    if spread is None or gate.end != "value":
        return None
    if gate.is_promise(metric.kind):
        return promise_detects(spread.scenarios) if gate.bound == float(gate.at_least) else None
    is_rate = metric.kind == "rate"
    return detects(spread, gate.bound, is_rate=is_rate, at_least=gate.at_least, decisive=decisive)


def shipped_gates() -> Mapping[str, Gates]:
    """The gates that the product itself is held to, by suite."""
    read = read_gates((files(__package__) / SHIPPED).read_text(encoding="utf-8"), SHIPPED)
    return {
        suite: {metric: tuple(replace(gate, shipped=True) for gate in each) for metric, each in gates.items()}
        for suite, gates in read.items()
    }


def load_gates(path: Path) -> Mapping[str, Gates]:
    """The gates of a file, by suite."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError(
            f"{path}: {reason}; write a file of gates, or pass --gate alone for the shipped ones"
        ) from error
    return read_gates(text, str(path))


def read_gates(text: str, source: str) -> Mapping[str, Gates]:
    """The gates of a text, by suite."""
    tree, lines = read_mapping(text, source, _READING)
    if tree.get("schema_version") != VERSION:
        found = show(tree.get("schema_version"))
        raise _refuse(place(source, lines, ("schema_version",)), "schema_version", found, f"write {VERSION}")
    for key in tree.keys() - {"schema_version", "required", "gates"}:
        known = "there are `schema_version`, `required` and `gates`"
        raise _refuse(place(source, lines, (key,)), key, "no such key", known)
    reader = _Reader(source, lines)
    required = reader.flag(tree.get("required", False), ("required",))
    suites = reader.mapping(tree.get("gates"), ("gates",), "a mapping from suites to gates")
    read = {name: reader.suite(value, ("gates", name)) for name, value in suites.items()}
    if not required:
        return read
    return {
        suite: {metric: tuple(replace(gate, required=True) for gate in each) for metric, each in gates.items()}
        for suite, gates in read.items()
    }


def _refuse(where: str, key: str, found: str, todo: str) -> InputError:
    named = f"`{key}`: " if key else ""
    return InputError(f"{where}: {named}{found}; {todo}")


_READING = YamlSource(
    what="gates", refuse=_refuse, max_bytes=1 << 20, max_depth=6, expected="a mapping with `schema_version` and `gates`"
)


@dataclass(frozen=True, slots=True)
class _Reader:
    source: str
    lines: Lines

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
        for name in fields.keys() - set(RULES):
            raise self.refused((*path, name), "no such rule", f"there are: {', '.join(RULES)}, low, high")
        if not fields:
            raise self.refused(path, "no rule", f"write one of: {', '.join(RULES)}")
        end: End = ends[0] if ends else "value"
        return tuple(
            Gate(rule=rule, bound=self._number(fields[rule], (*path, rule)), end=end)
            for rule in RULES
            if rule in fields
        )

    def flag(self, value: object, path: tuple[str, ...]) -> bool:
        if not isinstance(value, bool):
            raise self.refused(path, show(value), "write true, or leave it out")
        return value

    def _number(self, value: object, path: tuple[str, ...]) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise self.refused(path, show(value), "write a number")
        return float(value)

    def refused(self, path: tuple[str, ...], found: str, todo: str) -> InputError:
        return _refuse(place(self.source, self.lines, path), ".".join(path), found, todo)
