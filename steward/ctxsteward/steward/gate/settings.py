"""An application's settings of the gate: model and head budgets, its own cases, margins, eval suites.

    gate:
      model: gpt-4o                     # or tokenizer: o200k_base
      budgets: {system_tokens: 600, static_tokens: 400}
      cases: gate.yaml                  # merged with the shipped ones
      margins: {hit_rate: 0.1}
      suites: [verbatim, compression]   # played in addition

The history budget of the replay cannot be set, so that every case is compacted. The player of eval suites is found by
the entry-point group ``ctxsteward.eval_gates`` as ``suites`` and called ``(names, model=…, tokenizer=…, budgets=…) ->
EvalGate``, because the steward must not import the room above it. The report has the guards of all gates, and none may
fall.

Raises `InputError` (also if no player is installed, or a suite is unknown), `InputTooLarge`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr, field_validator

from ctxsteward.envelope import Budgets, EnvelopeBuilder, model_info
from ctxsteward.schemas import InputError, UnknownModel
from ctxsteward.schemas.profile import ProfileDocument

from .port import EvalGate, GateReport, Guard
from .suite import (
    GUARDS,
    REPLAY_BUDGETS,
    TOKENIZER,
    FrozenGate,
    FrozenSuite,
    HeldOutRequest,
    SuiteValue,
    load_suite,
    shipped,
)

Tokens = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
MAX_HELD = 200
"""Held cases of one night in addition to the suite's: the first by id."""


class HeadBudgets(SuiteValue):
    """The application's budgets of the head sections; None for the default."""

    system_tokens: Tokens | None = None
    static_tokens: Tokens | None = None
    meta_tokens: Tokens | None = None


class GateSettings(SuiteValue):
    """How champion and challenger are replayed."""

    model: StrictStr | None = None
    """Model whose tokens are counted; None to use `tokenizer`."""
    tokenizer: Literal["o200k_base", "cl100k_base"] | None = None
    """None for the model's tokenizer, or ``o200k_base`` without a model."""
    budgets: HeadBudgets = HeadBudgets()
    cases: StrictStr | None = None
    """YAML or JSON file of cases and held cases (form: see `suite`), replayed with the shipped ones."""
    margins: dict[StrictStr, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """How much worse the mean of a guard may be; other guards keep their margin (`suite.GUARDS`)."""

    suites: tuple[StrictStr, ...] = ()
    """Eval suites that champion and challenger also play, two scenarios each; each adds seconds to a promotion."""

    @field_validator("model")
    @classmethod
    def _is_known(cls, model: str | None) -> str | None:
        try:
            if model is not None:
                model_info(model)
        except UnknownModel as error:
            raise ValueError(f"no such model is known: {model!r:.60}; name its tokenizer instead") from error
        return model

    @field_validator("margins")
    @classmethod
    def _are_guards(cls, margins: dict[str, float]) -> dict[str, float]:
        known = [guard.name for guard in GUARDS]
        for name in margins:
            if name not in known:
                raise ValueError(f"no guard is called {name!r:.40}; one of: {', '.join(known)}")
        return margins

    def builder(self) -> EnvelopeBuilder:
        """Make a builder for one replay."""
        given = {name: value for name, value in self.budgets.model_dump().items() if value is not None}
        budgets = Budgets(**given).model_copy(update=REPLAY_BUDGETS).held()
        tokenizer = self.tokenizer or (None if self.model else TOKENIZER)
        return EnvelopeBuilder(model=self.model, tokenizer=tokenizer, budgets=budgets)

    def suite(self, held: Iterable[HeldOutRequest] = ()) -> FrozenSuite:
        """Return the shipped cases, the application's own, and these held cases."""
        suite = shipped() if self.cases is None else shipped().with_(load_suite(self.cases))
        more = sorted(set(held), key=lambda request: (request.id, request.event))[:MAX_HELD]
        return suite.holding((*suite.held, *more))

    def guards(self) -> tuple[Guard, ...]:
        """Return all guards with the configured margins."""
        return tuple(guard._replace(margin=self.margins.get(guard.name, guard.margin)) for guard in GUARDS)


def configured(settings: GateSettings, held: Iterable[HeldOutRequest] = ()) -> FrozenGate:
    """Return the frozen gate of the settings."""
    return FrozenGate(suite=settings.suite(held), guards=settings.guards(), builder=settings.builder)


GROUP, NAME = "ctxsteward.eval_gates", "suites"


def with_suites(settings: GateSettings, frozen: EvalGate) -> EvalGate:
    """Return the frozen gate, combined with the eval suites that the settings name."""
    if not settings.suites:
        return frozen
    point = next(iter(entry_points(group=GROUP, name=NAME)), None)
    if point is None:
        raise InputError(f"gate.suites: no player of eval suites is installed (entry-point group {GROUP})")
    budgets = {name: value for name, value in settings.budgets.model_dump().items() if value is not None}
    tokenizer = settings.tokenizer or TOKENIZER
    suites: EvalGate = point.load()(settings.suites, model=settings.model, tokenizer=tokenizer, budgets=budgets)

    def both(champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        one, other = frozen(champion, challenger), suites(champion, challenger)
        name = f"{one.suite} and {other.suite}"
        return replace(one, suite=name, results=one.results + other.results, pairs=one.pairs + other.pairs)

    return both
