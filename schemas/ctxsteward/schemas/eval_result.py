"""The result of a run of an eval suite: figures with intervals, gates, misses, and the command to reproduce it.

A figure is computed over scenarios. Its `value` is None if nothing could be scored; then no gate passes. Rates lie in
0..1. Times are CPU seconds of the processes that played the scenarios. A result names no user and contains no
transcript, except invented words of scenarios in `why`.

A gate has one of four verdicts: ``passed`` if the figure and its whole interval meet the bound, ``failed`` if neither
the figure nor any of its interval does, ``undecided`` if the bound lies inside the interval, ``unscored`` if there is
no figure. Promises and point gates need no interval (`ctxsteward.evals.suites.gates`). Results of earlier versions lack
the fields in `LATER`; their gates had only passed or failed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from .frozen import FrozenModel

SCHEMA_VERSION = 1
Verdict = Literal["passed", "failed", "undecided", "unscored"]


class ScenarioPart(NamedTuple):
    """One scenario's part of a figure: a sum, and the number of checks."""

    total: float
    checks: int


class MetricResult(FrozenModel):
    """One figure of a suite."""

    LATER = frozenset(("distinct", "distinct_value", "within_sd", "between_sd"))
    name: str
    about: str
    kind: Literal["rate", "mean", "ratio", "count"]
    better: Literal["higher", "lower"]
    unit: str
    value: float | None
    """The figure, or None if nothing could be scored."""
    low: float | None
    """Lower end of the 95 % interval, or None without an interval."""
    high: float | None
    method: Literal["wilson", "student", "bootstrap"] | None
    """Method of the interval; `bootstrap` in results of earlier versions."""
    checks: int = Field(ge=0)
    scenarios: int = Field(ge=0)
    """Number of scenarios with at least one check."""
    unscored: dict[str, int]
    """Number of checks that could not be made, by reason."""
    distinct: int | None = Field(default=None, ge=0)
    """Number of distinct things checked (an aim, a planted value, a tool result); None if checks name none."""
    distinct_value: float | None = None
    """The rate with each distinct thing counted once, by the share of its checks that passed."""
    within_sd: float | None = Field(default=None, ge=0)
    """Standard deviation between repeats of one scenario; None without repeats."""
    between_sd: float | None = Field(default=None, ge=0)
    """Standard deviation between scenarios, without the part due to chance within them; None for one scenario."""


class GateResult(FrozenModel):
    """One gate over one figure."""

    LATER = frozenset(("verdict", "fails_run", "promise", "detects"))
    metric: str
    rule: str
    """The rule in the gate file, such as ``below 0.05``."""
    value: float | None
    passed: bool
    """Whether the verdict is `passed`."""
    why: str
    """Reason of the verdict; empty if the gate passed."""
    verdict: Verdict = "undecided"
    fails_run: bool = False
    """Whether it fails the run: it failed, or is undecided and the gate file does not allow that."""
    promise: bool = False
    """Whether a single counterexample breaks the gate."""
    detects: float | None = None
    """The smallest true shortfall from the bound that fails the gate with a probability of 80 % in this number of
    scenarios; for a promise, the share of scenarios that must have a counterexample. None if no shortfall does, or it
    is unknown."""

    @model_validator(mode="before")
    @classmethod
    def _earlier(cls, values: Any) -> Any:
        """Add the verdict, passed or failed, to a gate of an earlier version; only a failed one fails the run."""
        if not isinstance(values, dict):
            return values
        if "verdict" not in values and isinstance(values.get("passed"), bool):
            values = values | {"verdict": "passed" if values["passed"] else "failed"}
        return {"fails_run": values.get("verdict") == "failed"} | values

    @model_validator(mode="after")
    def _agrees(self) -> GateResult:
        if self.passed != (self.verdict == "passed"):
            raise ValueError(f"passed is {self.passed} where the verdict is {self.verdict}")
        if self.verdict != "undecided" and self.fails_run != (self.verdict == "failed"):
            raise ValueError(f"fails_run is {self.fails_run} where the verdict is {self.verdict}")
        return self


class EvalMiss(FrozenModel):
    """One check that did not hold."""

    scenario: str
    metric: str
    at: str
    why: str


class RatingTable(NamedTuple):
    """Counts of the answers of two raters."""

    both_yes: int
    first_yes: int
    """Number of cases in which the first said yes and the second no."""
    second_yes: int
    both_no: int

    @property
    def agree(self) -> float:
        """The share of pairs with equal answers."""
        return (self.both_yes + self.both_no) / sum(self)

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, at most 1 (Cohen 1960); None if both always gave the same one answer.

        >>> round(RatingTable(20, 5, 10, 15).kappa, 3)
        0.4
        """
        pairs = sum(self)
        if pairs in (self.both_yes, self.both_no):
            return None
        first, second = self.both_yes + self.first_yes, self.both_yes + self.second_yes
        by_chance = (first * second + (pairs - first) * (pairs - second)) / pairs**2
        return (self.agree - by_chance) / (1 - by_chance)

    def note(self, first: str, second: str) -> str:
        """Return why kappa is undefined or 0 if a rater always gave one answer; else ""."""
        pairs = sum(self)
        if pairs in (self.both_yes, self.both_no):
            return f"both say {'yes' if self.both_yes else 'no'} every time: kappa is undefined"
        for rater, yes in ((first, self.both_yes + self.first_yes), (second, self.both_yes + self.second_yes)):
            if yes in (0, pairs):
                return f"{rater} says {'yes' if yes else 'no'} every time: kappa is 0 whatever the other says"
        return ""


class RaterAgreement(FrozenModel):
    """The agreement of two raters, or of a model with itself between repeats over the same text."""

    first: str
    """Name of the first rater: ``code``, ``label`` or a model."""
    second: str
    cases: int = Field(ge=1)
    """Number of asks that both answered; the table counts each of their repeats."""
    table: RatingTable
    agree: float
    """Raw agreement, 0..1."""
    kappa: float | None
    """Cohen's kappa, or None if it is undefined."""
    note: str
    """Reason why kappa is undefined or meaningless; else empty."""
    differing: int
    differ: tuple[str, ...]
    """The first few differences: scenario, place, question, and both answers."""


class ModelUsage(FrozenModel):
    """The calls of one model judge and their cost."""

    model: str
    calls: int
    verdicts: int
    unscored: dict[str, int]
    """Number of cases without a verdict, by reason."""
    tokens_in: int
    tokens_out: int
    cost: float | None
    """Cost in the currency of the suite's prices, or None if the suite has no price for the model."""


class ModelJudging(FrozenModel):
    """The ratings of a run: usage of each model judge, and agreement of each pair of raters."""

    prompt_version: int
    models: tuple[ModelUsage, ...]
    agreement: tuple[RaterAgreement, ...]


class EvalResult(FrozenModel):
    """One run of one suite."""

    LATER = frozenset(("scenario_ids", "by_scenario", "judging"))
    schema_version: Literal[1] = 1
    suite: str
    about: str
    product: str
    """Name and version of the product: ``ctxsteward 0.1.0``."""
    when: str
    """Time of the run in ISO 8601."""
    revision: str | None
    """Revision of the user's own repository, if given."""
    split: Literal["docs", "ci", "sealed"]
    setup: dict[str, str | int | float | None]
    """Settings of the builder under test, by name."""
    scenarios: int
    long_scenarios: int
    """Number of scenarios with at least 200 turns."""
    turns: int
    messages: int
    builds: int
    cpu_seconds: float
    metrics: tuple[MetricResult, ...]
    gates: tuple[GateResult, ...]
    passed: bool
    """Whether no gate fails the run and no scenario ended in an error."""
    errors: dict[str, str]
    """Errors that ended a scenario, by its id."""
    misses: tuple[EvalMiss, ...]
    """The first few misses of each figure."""
    reproduce: str
    """Command that makes this result again; with ``--only ID`` a single scenario."""
    scenario_ids: tuple[str, ...] = ()
    """Ids of the played scenarios, in order; empty in results of earlier versions."""
    by_scenario: dict[str, dict[str, ScenarioPart]] = Field(default_factory=dict)
    """Sum and number of the checks, by figure and id of the scenario."""
    judging: ModelJudging | None = None
    """Ratings, or None if no case was rated."""
