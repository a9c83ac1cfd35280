"""A suite that a team writes: conversations, questions at places in them, and the values that must be shown.

    schema_version: 1
    name: support-desk
    about: What customers told the desk is still shown when they come back to it.
    budget_tokens: 1500
    metrics:
      - {name: orders_shown, about: Order numbers that customers gave are shown.}
    gates:
      orders_shown: {at_least: 0.9}
      stale: {at_most: 0}
    scenarios: conversations.jsonl     # a `SuiteScenario` a line; or a list of them here
    asks:                              # in addition to those in the scenarios themselves
      - {scenario: refund-7, after: 40, question: Which order was it?, wants: [W-1047], of: [3], metric: orders_shown}

Places of messages count from 1. Code that reads such a file maps pydantic's `ValidationError` to the place in it, and
checks the references between its parts: ids, figures, places.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from .frozen import FrozenModel

SCHEMA_VERSION = 1
MAX_BUDGET_TOKENS = 10_000_000
MAX_VALUES = 100
"""Most values of one ask."""

SuiteName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
ScenarioName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_.-]{1,120}$")]
FigureName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Line = Annotated[StrictStr, Field(min_length=1, max_length=2_000, pattern=r"\S")]
Values = Annotated[tuple[Line, ...], Field(max_length=MAX_VALUES)]
Place = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
"""Place of a message, from 1."""
Tokens = Annotated[StrictInt, Field(ge=50, le=MAX_BUDGET_TOKENS)]
Price = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Bound = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class SuiteMetric(FrozenModel):
    """A figure to which asks contribute."""

    name: FigureName
    about: Line
    """Description of the figure in one sentence."""
    kind: Literal["rate", "mean", "count"] = "rate"
    """rate: share of asks with all wanted values; mean: share of wanted values; count: number of missing ones."""
    better: Literal["higher", "lower"] = "higher"
    """lower: wanted values must not be shown; a count is always better lower."""


class FigureGate(FrozenModel):
    """The bound of a figure: rules for its 95 % interval, for one end of the interval, or for the figure alone."""

    below: Bound | None = None
    at_most: Bound | None = None
    at_least: Bound | None = None
    above: Bound | None = None
    scenarios: Annotated[StrictInt, Field(ge=1)] | None = None
    """Number of conversations in a run from which on only the figure, not its interval, must meet the rule."""
    low: StrictBool = False
    high: StrictBool = False


class TokenPrices(FrozenModel):
    """The prices of a model, in any one currency."""

    input_per_million: Price
    """Price of a million tokens that the model reads."""
    output_per_million: Price
    """Price of a million tokens that the model writes."""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return the price of a call.

        >>> TokenPrices(input_per_million=2.0, output_per_million=8.0).of(1_000, 500)
        0.006
        """
        return (self.input_per_million * tokens_in + self.output_per_million * tokens_out) / 1_000_000


class SuiteJudge(FrozenModel):
    """The judging of a suite."""

    kind: Literal["code", "model"] = "code"
    """code: values are searched in the request, and only asks with a `judge` go to a model; model: model judges answer
    each ask, too. `evals run --judge-model` names the models, so that a file alone sends nothing anywhere."""
    stale: Literal["alone", "always"] = "alone"
    """alone: an outdated value counts only if the wanted values are not shown with it; always: wherever it is shown."""
    cached_price: Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)] = 0.1
    """Price of a cached token relative to an uncached one; for `cost_ratio`."""
    prices: Annotated[dict[Line, TokenPrices], Field(max_length=20)] = Field(default={})
    """Prices of model judges, by name."""
    max_calls: Annotated[StrictInt, Field(ge=1)] | None = None
    """Most calls of all model judges in one run; the remaining cases are unscored."""
    max_cost: Annotated[Price, Field(gt=0)] | None = None
    """Highest cost of all model judges in one run; then each needs a price, and the remaining cases are unscored."""


class AskJudge(FrozenModel):
    """The question to model judges about the text of the request; yes is the wanted answer."""

    kind: Literal["model"] = "model"
    statement: Line | None = None
    """Statement that the judge calls true or false, from the request's text alone."""
    question: Line | None = None
    """Question to answer yes or no from the request's text alone. Without statement and question, the judge answers
    whether the text contains the wanted values."""


class SuiteAsk(FrozenModel):
    """A question at one place of a conversation, which continues without it."""

    after: Place
    """Number of messages before the question."""
    question: Line
    wants: Values = ()
    """Values that must all be shown; empty if only model judges answer."""
    avoids: Values = ()
    """Outdated values."""
    of: Annotated[tuple[Place, ...], Field(max_length=MAX_VALUES)] = ()
    """Places of the messages that the answer needs; each must be shown, cited or found by one search."""
    metric: FigureName = "shown"
    kind: Annotated[StrictStr, Field(max_length=60)] = ""
    """Kind of the wanted thing, for the report."""
    judge: AskJudge | None = None
    label: Literal["yes", "no"] | None = None
    """Answer of a person who saw the text of the request; compared with the other raters."""


class ScenarioAsk(SuiteAsk):
    """A question outside its conversation's file."""

    scenario: ScenarioName


class SuiteScenario(FrozenModel):
    """One conversation."""

    id: ScenarioName
    messages: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=100_000)]
    """OpenAI chat messages, oldest first, without the system prompt."""
    asks: tuple[SuiteAsk, ...] = ()
    system: Annotated[StrictStr, Field(min_length=1)] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    """OpenAI tool declarations."""
    budget_tokens: Tokens | None = None
    """Tokens of the request without system prompt and tools; None means the suite's value."""
    profile: Line | None = None
    """Profile file for the head, relative to the suite's file."""


def _form(value: Any) -> str:
    return "file" if isinstance(value, str) else "list"


Scenarios = Annotated[
    Annotated[Line, Tag("file")] | Annotated[tuple[SuiteScenario, ...], Field(min_length=1), Tag("list")],
    Discriminator(_form),
]


class SuiteFile(FrozenModel):
    """An eval suite."""

    schema_version: Literal[1]
    name: SuiteName
    about: Line
    status: Literal["draft", "kept"] = "kept"
    """draft: written by rules and not yet read by a person; its gates are not applied."""
    budget_tokens: Tokens = 2_000
    """Tokens of the request without system prompt and tools, for scenarios without a value of their own."""
    profile: Line | None = None
    """Profile file for the head, relative to this file, for scenarios without one of their own."""
    metrics: Annotated[tuple[SuiteMetric, ...], Field(max_length=100)] = ()
    """Figures in addition to those of every suite."""
    gates: dict[FigureName, FigureGate] = Field(default={})
    allow_undecided: StrictBool = False
    """Whether a run passes if the bound lies inside the interval of a gated figure."""
    judge: SuiteJudge = SuiteJudge()
    scenarios: Scenarios
    """A file of JSON lines, relative to this file, or a list."""
    asks: tuple[ScenarioAsk, ...] = ()
    """Questions in addition to those in the scenarios themselves."""
