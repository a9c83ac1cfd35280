"""What a run of an eval suite came to: figures with intervals, gates, misses, and what would reproduce it.

A figure is over scenarios; `value` is None where nothing could be scored, which no gate takes for a pass. Rates lie in
0..1. Times are CPU seconds of the processes that played the scenarios. Nothing here names a user or holds a transcript
but for scenarios' own made-up words in `why`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class _EvalValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MetricResult(_EvalValue):
    """One figure of a suite."""

    name: str
    about: str
    kind: Literal["rate", "mean", "ratio", "count"]
    better: Literal["higher", "lower"]
    unit: str
    value: float | None
    """None: nothing could be scored."""
    low: float | None
    """Of the interval at 95 %; None where it has none."""
    high: float | None
    method: Literal["wilson", "bootstrap"] | None
    checks: int = Field(ge=0)
    scenarios: int = Field(ge=0)
    """Those that gave at least one check."""
    unscored: dict[str, int]
    """Checks that could not be made, by reason."""


class GateResult(_EvalValue):
    """One gate over one figure."""

    metric: str
    rule: str
    """As the gate file has it: ``below 0.05``."""
    value: float | None
    passed: bool
    why: str
    """Empty where it passed."""


class EvalMiss(_EvalValue):
    """One check that did not hold."""

    scenario: str
    metric: str
    at: str
    why: str


class EvalResult(_EvalValue):
    """One run of one suite."""

    schema_version: Literal[1] = 1
    suite: str
    about: str
    product: str
    """Name and version of what ran: ``ctxsteward 0.1.0``."""
    when: str
    """ISO 8601."""
    revision: str | None
    """Of the user's own repository, where it was told."""
    split: Literal["docs", "ci", "sealed"]
    setup: dict[str, str | int | float | None]
    """Settings of the builder under test, by name."""
    scenarios: int
    long_scenarios: int
    """Of 200 turns and more."""
    turns: int
    messages: int
    builds: int
    cpu_seconds: float
    metrics: tuple[MetricResult, ...]
    gates: tuple[GateResult, ...]
    passed: bool
    """No gate failed and no scenario broke off."""
    errors: dict[str, str]
    """Scenarios that broke off, by id."""
    misses: tuple[EvalMiss, ...]
    """The first few of each figure."""
    reproduce: str
    """Command that makes this result again; with ``--only ID`` a single scenario."""
