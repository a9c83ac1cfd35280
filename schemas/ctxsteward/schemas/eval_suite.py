"""A suite that a team brings: conversations, what is asked at places of them, and what an answer must be shown.

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
    asks:                              # beside those that stand in the scenarios themselves
      - {scenario: refund-7, after: 40, question: Which order was it?, wants: [W-1047], of: [3], metric: orders_shown}

Places of messages count from 1. Code that reads such a file maps pydantic's `ValidationError` to the place in it, and
checks what one part may say of another: ids, figures, places.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from .frozen import FrozenModel

SCHEMA_VERSION = 1
MAX_BUDGET_TOKENS = 10_000_000
MAX_VALUES = 100
"""Of one ask."""

SuiteName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
ScenarioName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_.-]{1,120}$")]
FigureName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Line = Annotated[StrictStr, Field(min_length=1, max_length=2_000, pattern=r"\S")]
Values = Annotated[tuple[Line, ...], Field(max_length=MAX_VALUES)]
Place = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
"""Of a message, from 1."""
Tokens = Annotated[StrictInt, Field(ge=50, le=MAX_BUDGET_TOKENS)]
Price = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Bound = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class SuiteMetric(FrozenModel):
    """A figure that asks count for."""

    name: FigureName
    about: Line
    """One sentence: what is counted."""
    kind: Literal["rate", "mean", "count"] = "rate"
    """rate: share of asks with all that is wanted; mean: share of what is wanted; count: of what is wanted, missing."""
    better: Literal["higher", "lower"] = "higher"
    """lower: what is wanted must not be shown; a count is always better lower."""


class FigureGate(FrozenModel):
    """What a figure is held to: one rule or several, over its 95 % interval, the figure alone, or one end."""

    below: Bound | None = None
    at_most: Bound | None = None
    at_least: Bound | None = None
    above: Bound | None = None
    scenarios: Annotated[StrictInt, Field(ge=1)] | None = None
    """In a run of so many conversations, and more, the figure alone is held to the rule and not its interval."""
    low: StrictBool = False
    high: StrictBool = False


class TokenPrices(FrozenModel):
    """What a model costs, in any one currency."""

    input_per_million: Price
    """For a million tokens that it reads."""
    output_per_million: Price
    """For a million that it writes."""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The price of a call.

        >>> TokenPrices(input_per_million=2.0, output_per_million=8.0).of(1_000, 500)
        0.006
        """
        return (self.input_per_million * tokens_in + self.output_per_million * tokens_out) / 1_000_000


class SuiteJudge(FrozenModel):
    """How it is judged."""

    kind: Literal["code", "model"] = "code"
    """code: values are looked for in what would be sent, and a model is asked where an ask says so; model: each ask is
    put to model judges as well. Which models, `evals run --judge-model` says: a file alone sends nothing anywhere."""
    stale: Literal["alone", "always"] = "alone"
    """An outdated value counts where what is wanted is not shown beside it, or wherever it is shown."""
    cached_price: Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)] = 0.1
    """Of a token that the provider has cached, against one that it has not; for `cost_ratio`."""
    prices: Annotated[dict[Line, TokenPrices], Field(max_length=20)] = Field(default={})
    """Of model judges, by name."""
    max_calls: Annotated[StrictInt, Field(ge=1)] | None = None
    """Of all model judges in one run; what is left then is unscored."""
    max_cost: Annotated[Price, Field(gt=0)] | None = None
    """The same of what they cost; every one needs a price."""


class AskJudge(FrozenModel):
    """What model judges are asked of the text that would be sent; yes is what is wanted."""

    kind: Literal["model"] = "model"
    statement: Line | None = None
    """Whether it is true by that text alone."""
    question: Line | None = None
    """Answered with yes or no from that text alone. With neither: whether the text gives what the ask wants."""


class SuiteAsk(FrozenModel):
    """A question at one place of a conversation; the conversation goes on without it."""

    after: Place
    """How many messages were said before."""
    question: Line
    wants: Values = ()
    """Every one of them must be shown; nothing where model judges alone are asked."""
    avoids: Values = ()
    """Outdated values."""
    of: Annotated[tuple[Place, ...], Field(max_length=MAX_VALUES)] = ()
    """Places of the messages that the answer rests on; each must be shown, cited or found by one search."""
    metric: FigureName = "shown"
    kind: Annotated[StrictStr, Field(max_length=60)] = ""
    """What sort of thing is asked for, for the report."""
    judge: AskJudge | None = None
    label: Literal["yes", "no"] | None = None
    """What a person answers who was shown the text that would be sent; compared with the other raters."""


class ScenarioAsk(SuiteAsk):
    """A question that stands apart from its conversation."""

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
    """For all that is sent but system prompt and tools; None: the suite's."""
    profile: Line | None = None
    """A profile file of the head, as seen from the suite's."""


def _form(value: Any) -> str:
    return "file" if isinstance(value, str) else "list"


Scenarios = Annotated[
    Annotated[Line, Tag("file")] | Annotated[tuple[SuiteScenario, ...], Field(min_length=1), Tag("list")],
    Discriminator(_form),
]


class SuiteFile(FrozenModel):
    """A suite."""

    schema_version: Literal[1]
    name: SuiteName
    about: Line
    status: Literal["draft", "kept"] = "kept"
    """draft: drafted by rule and read by nobody; its gates are not held."""
    budget_tokens: Tokens = 2_000
    """For all that is sent but system prompt and tools, in scenarios that say nothing else."""
    profile: Line | None = None
    """A profile file of the head, as seen from this one, in scenarios that say nothing else."""
    metrics: Annotated[tuple[SuiteMetric, ...], Field(max_length=100)] = ()
    """Beside the figures that every such suite has."""
    gates: dict[FigureName, FigureGate] = Field(default={})
    allow_undecided: StrictBool = False
    """Whether a run passes where the interval of a gated figure has the bound inside."""
    judge: SuiteJudge = SuiteJudge()
    scenarios: Scenarios
    """A file of JSON lines as seen from this one, or a list."""
    asks: tuple[ScenarioAsk, ...] = ()
    """Beside those that stand in the scenarios themselves."""
