"""The gate as an application has it: its model and head budgets, its own cases, its margins; told in settings.

    gate:
      model: gpt-4o                     # or tokenizer: o200k_base
      budgets: {system_tokens: 600, static_tokens: 400}
      cases: gate.yaml                  # merged with the shipped ones (`cases`)
      margins: {hit_rate: 0.1}
      suites: [verbatim]                # eval suites that are played besides (`together`)

The history of the replay stays as small as the suite has it, so that every case is compacted. Raises `InputError`,
`InputTooLarge` when the gate is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, field_validator

from ctxsteward.envelope.budgets import Budgets
from ctxsteward.envelope.builder import EnvelopeBuilder
from ctxsteward.envelope.models import model_info
from ctxsteward.schemas import UnknownModel

from .cases import Held, Suite, load_suite, shipped
from .port import Guard
from .suite import DYNAMIC_TOKENS, GUARDS, TOKENIZER, FrozenGate, Known, unknown

Tokens = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
MAX_HELD = 200
"""Held cases of one night beside those of the suite: the first by id."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeadBudgets(_Value):
    """Budgets of the head sections, as the application gives them to its builder; None: the default."""

    system_tokens: Tokens | None = None
    static_tokens: Tokens | None = None
    meta_tokens: Tokens | None = None


class GateSettings(_Value):
    """How champion and challenger are replayed."""

    model: StrictStr | None = None
    """Whose tokens are counted; None: those of `tokenizer`."""
    tokenizer: Literal["o200k_base", "cl100k_base"] | None = None
    """None: the model's, else ``o200k_base``."""
    budgets: HeadBudgets = HeadBudgets()
    cases: StrictStr | None = None
    """A YAML or JSON file of cases and held events (`cases`), replayed beside the shipped ones."""
    margins: dict[StrictStr, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """By how much the mean of a guard may be worse; a guard that is not named keeps its margin (`suite.GUARDS`)."""

    suites: tuple[StrictStr, ...] = ()
    """Eval suites that champion and challenger play besides, two scenarios each; each costs seconds a promotion."""

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
        """A builder for one replay."""
        told = {name: value for name, value in self.budgets.model_dump().items() if value is not None}
        budgets = Budgets(**told).model_copy(update={"dynamic_tokens": DYNAMIC_TOKENS}).held()
        tokenizer = self.tokenizer or (None if self.model else TOKENIZER)
        return EnvelopeBuilder(model=self.model, tokenizer=tokenizer, budgets=budgets)

    def suite(self, held: Iterable[Held] = ()) -> Suite:
        """The shipped cases, the application's own, and these held ones."""
        suite = shipped() if self.cases is None else shipped().with_(load_suite(self.cases))
        more = sorted(set(held))[:MAX_HELD]
        return suite.with_(Suite(name="", cases=(), held=tuple(more))) if more else suite

    def guards(self) -> tuple[Guard, ...]:
        """All guards, with the margins told."""
        return tuple(guard._replace(margin=self.margins.get(guard.name, guard.margin)) for guard in GUARDS)


def configured(settings: GateSettings, held: Iterable[Held] = (), known: Known = unknown) -> FrozenGate:
    """The frozen gate as the settings have it; `known` gives replays that need not be made again."""
    builds = settings.model_dump_json(include={"model", "tokenizer", "budgets"})
    return FrozenGate(
        suite=settings.suite(held), guards=settings.guards(), builder=settings.builder, builds=builds, known=known
    )
