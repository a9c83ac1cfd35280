"""Run the suites with a model in the loop: it writes the summaries and selects the messages to recall.

    run = ModelRun(run_model("https://HOST/v1#MODEL"), max_dollars=2.0)
    setup = run.setup(Setup(), "verbatim")          # summarizer and selector by the model, other settings unchanged
    run.told("verbatim")                            # calls, cost and fallbacks

Suites, scenarios and judges are unchanged; compare with a run by rules (`result_history.compare`, with `MEANT`). A
build waits for the model here, unlike in service (`SummaryAhead`), so times do not compare. One process plays a whole
suite, so that the bound on dollars counts all of its calls.

Raises `InputError` for an unknown model, and for a bound on dollars without a price.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

from ctxsteward.envelope import SelectionRequest
from ctxsteward.envelope.recall.selection import Ranking
from ctxsteward.envelope.recall.strategies import ModelSelector
from ctxsteward.schemas import ChatModel, InputError, ModelPrice, SummarizerInput, Summary
from ctxsteward.summarizers.models import CallLimits, GovernedModel, ModelSummarizer, SpendingLedger, model_at

from .subjects.registry import named_object
from .suites.kit.model_judges import ADDRESSES
from .suites.kit.suite import Setup

MEANT = ("in_loop", "summarizer", "selector")
"""Settings that differ between the run by rules and the one with a model."""
MODEL_KEY_VARIABLE = "CTXSTEWARD_MODEL_KEY"
"""Environment variable with the key of a model that a command names."""
SELECTION_SECONDS = 60.0
"""Long, since no user waits for an answer here."""


def run_model(named: str, key: str | None = None) -> ChatModel:
    """Find a model by address or Python path (``module:name``, ``FILE.py:name``)."""
    if named.startswith(ADDRESSES):
        return model_at(named, key or os.environ.get(MODEL_KEY_VARIABLE) or None)
    model = named_object("model", named)
    if isinstance(model, type) or not isinstance(model, ChatModel):
        raise InputError(f"model {named}: {model!r:.60} is no ChatModel; it has `name`, `reply` and `reply_async`")
    return model


def price_of(text: str) -> ModelPrice:
    """Parse a price from the command line: dollars per million tokens of prompt, cached prompt, reply.

    >>> price_of("0.15,0.075,0.6").output
    0.6
    """
    try:
        prompt, cached, output = map(float, text.split(","))
        return ModelPrice(prompt=prompt, cached=cached, output=output)
    except ValueError:
        what = "three numbers: dollars a million tokens of prompt, cached prompt, reply"
        raise InputError(f"price {text!r:.40}: write {what}, such as 0.15,0.075,0.6") from None


class ModelRun:
    """A model that summarizes and selects in a run of suites, and the record of its calls."""

    def __init__(
        self,
        model: ChatModel,
        *,
        price: ModelPrice | None = None,
        max_dollars: float | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        """Bound the cost of each suite by `max_dollars`."""
        if max_dollars is not None and price is None:
            raise InputError(f"a bound of ${max_dollars:g} without a price of {model.name}; give its price, too")
        ledger = SpendingLedger(
            {model.name: price} if price else {}, limits=None if max_dollars is None else {"suite": max_dollars}
        )
        self._model = GovernedModel(model, limits=limits, spending=ledger)
        self._counts: dict[str, Counter[str]] = {}

    def setup(self, base: Setup, suite: str) -> Setup:
        """Return the setup with the model in it; its calls are charged to the suite."""
        counts = self._counts.setdefault(suite, Counter())
        model = self._model.charged(suite=suite)
        by_model = ModelSummarizer(model)
        select = ModelSelector(model, deadline_seconds=SELECTION_SECONDS)

        def summarizer(source: SummarizerInput, *, budget_tokens: int) -> Summary:
            summary = by_model(source, budget_tokens=budget_tokens)
            origin = summary.origin
            if origin is not None:
                counts["summaries"] += 1
                counts["summaries_fell_back"] += bool(origin.fell_back)
                counts["grounded"] += origin.grounded
                counts["refused"] += sum(origin.refused.values())
            return summary

        def selector(request: SelectionRequest) -> Ranking:
            ranking = select(request)
            counts["selections"] += 1
            counts["selections_fell_back"] += ranking.strategy != selector.__name__
            return ranking

        # the names under which results and findings give the two
        summarizer.__name__, selector.__name__ = "model", "llm"
        return replace(base, in_loop=model.name, summarizer=summarizer, selector=selector)

    def told(self, suite: str) -> list[str]:
        """Return lines on a suite's calls, their cost, and the fallbacks to rules."""
        rows = [row for row in self._model.spending.rows() if (row.account, row.name) == ("suite", suite)]
        lines = [
            f"{row.purpose}: {row.calls:,} calls, {row.failures:,} without an answer, "
            f"{row.usage.prompt_tokens:,} tokens read ({row.usage.cached_tokens:,} cached), "
            f"{row.usage.output_tokens:,} written, ${row.dollars:.4f}"
            for row in rows
        ]
        counts = self._counts.get(suite, Counter())
        lines.append(
            f"summaries: {counts['summaries']:,}, of them {counts['summaries_fell_back']:,} fell back in part or "
            f"whole; bullets: {counts['grounded']:,} stood, {counts['refused']:,} were refused"
        )
        lines.append(f"selections: {counts['selections']:,}, of them {counts['selections_fell_back']:,} fell back")
        return lines
