"""What a run of an eval suite came to: figures with intervals, gates, misses, and what would reproduce it.

A figure is over scenarios; `value` is None where nothing could be scored, which no gate takes for a pass. Rates lie in
0..1. Times are CPU seconds of the processes that played the scenarios. Nothing here names a user or holds a transcript
but for scenarios' own made-up words in `why`.

A gate ends in one of four verdicts: ``passed``, the figure and all of its interval hold the bound; ``failed``, nothing
of them does; ``undecided``, the bound lies inside the interval; ``unscored``, there is no figure. Promises and point
gates ask no interval (`ctxsteward.evals.suites.gates`). Results of earlier versions lack the fields named in `LATER`:
their gates had passed or failed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from .frozen import FrozenModel

SCHEMA_VERSION = 1
Verdict = Literal["passed", "failed", "undecided", "unscored"]


class ScenarioPart(NamedTuple):
    """What one scenario gives to a figure: a sum over so many checks."""

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
    """None: nothing could be scored."""
    low: float | None
    """Of the interval at 95 %; None where it has none."""
    high: float | None
    method: Literal["wilson", "student", "bootstrap"] | None
    """How the interval was made; `bootstrap` in results of earlier versions."""
    checks: int = Field(ge=0)
    scenarios: int = Field(ge=0)
    """Those that gave at least one check."""
    unscored: dict[str, int]
    """Checks that could not be made, by reason."""
    distinct: int | None = Field(default=None, ge=0)
    """Distinct things that were checked (an aim, a planted value, a tool result); None where checks name none."""
    distinct_value: float | None = None
    """The rate with each thing counted once: as the share of its own checks that held."""
    within_sd: float | None = Field(default=None, ge=0)
    """Standard deviation between repeats of one scenario; None without repeats."""
    between_sd: float | None = Field(default=None, ge=0)
    """Between scenarios, without what chance within them adds; None of a single scenario."""


class GateResult(FrozenModel):
    """One gate over one figure."""

    LATER = frozenset(("verdict", "fails_run", "promise", "detects"))
    metric: str
    rule: str
    """As the gate file has it: ``below 0.05``."""
    value: float | None
    passed: bool
    """Whether the verdict is `passed`."""
    why: str
    """Empty where it passed."""
    verdict: Verdict = "undecided"
    fails_run: bool = False
    """Whether the run fails by it: it failed, or is undecided and the gate file does not allow that."""
    promise: bool = False
    """Whether a single counterexample breaks it."""
    detects: float | None = None
    """The smallest true shortfall from the bound that fails the gate with a probability of 80 % in so many scenarios;
    of a promise, the share of scenarios that must hold a counterexample. None: no shortfall does, or none can be
    given."""

    @model_validator(mode="before")
    @classmethod
    def _earlier(cls, values: Any) -> Any:
        """In a result of an earlier version a gate had passed or failed, and only a failed one failed the run."""
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
    """How often two raters gave which answers."""

    both_yes: int
    first_yes: int
    """And the second said no."""
    second_yes: int
    both_no: int

    @property
    def agree(self) -> float:
        """The share of pairs in which both said the same."""
        return (self.both_yes + self.both_no) / sum(self)

    @property
    def kappa(self) -> float | None:
        """Agreement beyond that of chance, 1 at most (Cohen 1960); None where both gave but one and the same answer.

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
        """Where a rater gave but one answer: why kappa is undefined, or 0 whatever was said; else empty."""
        pairs = sum(self)
        if pairs in (self.both_yes, self.both_no):
            return f"both say {'yes' if self.both_yes else 'no'} every time: kappa is undefined"
        for rater, yes in ((first, self.both_yes + self.first_yes), (second, self.both_yes + self.second_yes)):
            if yes in (0, pairs):
                return f"{rater} says {'yes' if yes else 'no'} every time: kappa is 0 whatever the other says"
        return ""


class RaterAgreement(FrozenModel):
    """How far two raters agree; a model with itself: between repeats over the same text."""

    first: str
    """``code``, ``label`` or the name of a model."""
    second: str
    cases: int = Field(ge=1)
    """Asks that both answered; the table has each of their repeats."""
    table: RatingTable
    agree: float
    """Raw agreement, 0..1."""
    kappa: float | None
    """Cohen's; None: undefined."""
    note: str
    """Why it is undefined, or says nothing; else empty."""
    differing: int
    differ: tuple[str, ...]
    """Where they differ, the first few: scenario, place, question, and what each said."""


class ModelUsage(FrozenModel):
    """What one model judge was asked, and what that cost."""

    model: str
    calls: int
    verdicts: int
    unscored: dict[str, int]
    """Cases without a verdict, by reason."""
    tokens_in: int
    tokens_out: int
    cost: float | None
    """In the currency of the suite's prices; None: it has no price for the model."""


class ModelJudging(FrozenModel):
    """What raters came to: usage of each model judge, agreement of each two raters."""

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
    """No gate fails the run and no scenario broke off."""
    errors: dict[str, str]
    """Scenarios that broke off, by id."""
    misses: tuple[EvalMiss, ...]
    """The first few of each figure."""
    reproduce: str
    """Command that makes this result again; with ``--only ID`` a single scenario."""
    scenario_ids: tuple[str, ...] = ()
    """Which scenarios were played, in order; empty in results of earlier versions."""
    by_scenario: dict[str, dict[str, ScenarioPart]] = Field(default_factory=dict)
    """By figure and id of the scenario: the sum of its checks, and how many they were."""
    judging: ModelJudging | None = None
    """None: no case was rated by anybody."""
