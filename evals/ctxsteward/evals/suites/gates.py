"""Gates: what each figure is held to, in one YAML file.

    schema_version: 1
    gates:
      goal-continuity:
        goal_drift: {below: 0.05}
        goals_shown: {at_least: 0.95, low: true}     # the low end of the interval must reach it
      verbatim:
        last_turn: {at_least: 1}

`below` and `above` are strict, `at_most` and `at_least` are not; ``low: true`` (or ``high: true``) holds an end of the
95 % interval to the rule instead of the figure itself. A figure that could not be scored passes no gate. The shipped
file, ``gates.yaml``, names every suite; a file of your own replaces it whole.

Raises `InputError` with the line of what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from ctxsteward.schemas import GateResult, InputError, MetricResult
from ctxsteward.store import Lines, YamlSource, place, read_mapping, show

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


def judged(gates: Gates, metrics: Mapping[str, MetricResult]) -> tuple[GateResult, ...]:
    """Every gate over the figures of one suite."""
    return tuple(_judged(name, gate, metrics[name]) for name, each in gates.items() for gate in each)


def _judged(name: str, gate: Gate, metric: MetricResult) -> GateResult:
    value: float | None = getattr(metric, gate.end)
    if value is None and gate.end != "value":
        value = metric.value  # no interval: every scenario says the same mean
    why = ""
    if value is None:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in metric.unscored.items())
        why = f"nothing was scored{': ' + reasons if reasons else ''}"
    elif not gate.holds(value):
        why = f"{value:.4g} is not {gate}"
    return GateResult(metric=name, rule=str(gate), value=value, passed=not why, why=why)


def shipped_gates() -> Mapping[str, Gates]:
    """The gates that the product itself is held to, by suite."""
    return read_gates((files(__package__) / SHIPPED).read_text(encoding="utf-8"), SHIPPED)


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
    for key in tree.keys() - {"schema_version", "gates"}:
        raise _refuse(place(source, lines, (key,)), key, "no such key", "there are `schema_version` and `gates`")
    reader = _Reader(source, lines)
    suites = reader.mapping(tree.get("gates"), ("gates",), "a mapping from suites to gates")
    return {name: reader.suite(value, ("gates", name)) for name, value in suites.items()}


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
        ends: list[End] = [end for end in ("low", "high") if self._flag(fields.pop(end, False), (*path, end))]
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

    def _flag(self, value: object, path: tuple[str, ...]) -> bool:
        if not isinstance(value, bool):
            raise self.refused(path, show(value), "write true, or leave it out")
        return value

    def _number(self, value: object, path: tuple[str, ...]) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise self.refused(path, show(value), "write a number")
        return float(value)

    def refused(self, path: tuple[str, ...], found: str, todo: str) -> InputError:
        return _refuse(place(self.source, self.lines, path), ".".join(path), found, todo)
