"""What is under test: how a suite opens stores and builds envelopes.

The default is the product's own default; a team puts its budgets, profile, tokenizer and summarizer here and runs the
same suites over them. A suite asks for smaller budgets where its scenarios must outgrow them; what the team has set
itself stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Selector, Session, Store, open_store
from ctxsteward.schemas import Summarizer
from ctxsteward.schemas.profile import ProfileDocument

from .scenario import Scenario

DYNAMIC_TOKENS = 2_000
"""Of a scenario: 50 turns outgrow it several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of the builder under test."""

    model: str | None = None
    tokenizer: str = "o200k_base"
    budgets: Budgets = field(default_factory=Budgets)
    """Fields that were set count for every suite; `dynamic_tokens` is the suite's where it was not set."""
    summarizer: str | Summarizer = "extractive"
    selector: Selector | Literal["heuristic"] | None = "heuristic"
    profile: ProfileDocument | None = None
    """Stands in every scenario that brings none of its own."""

    def builder(self, *, dynamic_tokens: int = DYNAMIC_TOKENS) -> EnvelopeBuilder:
        """A new builder; `dynamic_tokens` where the setup says nothing."""
        budgets = self.budgets
        if "dynamic_tokens" not in budgets.model_fields_set:
            budgets = Budgets(**(budgets.model_dump(exclude_unset=True) | {"dynamic_tokens": dynamic_tokens}))
        tokenizer = None if self.model else self.tokenizer
        return EnvelopeBuilder(
            self.model, tokenizer=tokenizer, budgets=budgets, summarizer=self.summarizer, selector=self.selector
        )

    def session(self, scenario: Scenario, store: Store, *, tenant: str = "evals") -> Session:
        """The scenario's session in a store, with its head."""
        document = scenario.profile or self.profile
        profile = None if document is None else Profile.from_document(document)
        return store.session(
            scenario.id, tenant=tenant, profile=profile, tools=list(scenario.tools), system=scenario.system
        )

    def store(self) -> Store:
        """A new store in memory."""
        return open_store("memory:")

    def describe(self) -> dict[str, str | int | float | None]:
        """The settings by name, for results: scalars only."""
        named = self.summarizer if isinstance(self.summarizer, str) else getattr(self.summarizer, "__name__", "own")
        selector = self.selector if self.selector is None or isinstance(self.selector, str) else "own"
        set_budgets = {f"budgets.{name}": getattr(self.budgets, name) for name in sorted(self.budgets.model_fields_set)}
        return {
            "model": self.model,
            "tokenizer": self.tokenizer,
            "summarizer": named,
            "selector": selector,
        } | set_budgets
