"""`SessionCall`: one call of a model, its envelope, and what the provider reported of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxsteward.schemas import Finding
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import Loss

from ..audit.auditor import audit
from ..building.builder import EnvelopeBuilder
from ..envelope import Envelope, Provider
from ..history.session import Session
from ..telemetry.spans import usage_reported
from ..tokens.models import Prices, dollars_of
from ..tokens.tokenizer import prompt_tokens_of

_log = logging.getLogger("ctxsteward.envelope.integrations")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCost:
    """Cost of the prompts of one call, or of several."""

    prompt_tokens: int
    """As the provider reported them, else as estimated."""
    cached_tokens: int
    """Read from the provider's cache, as far as the provider reported it."""
    whole_tokens: int
    """Estimate for the same head with the whole history."""
    priced_tokens: float
    """In tokens at full price: cached ones at the model's price for them."""
    dollars: float | None
    """None if no price of the model is known."""

    def __add__(self, other: PromptCost) -> PromptCost:
        dollars = None if self.dollars is None or other.dollars is None else self.dollars + other.dollars
        return PromptCost(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            whole_tokens=self.whole_tokens + other.whole_tokens,
            priced_tokens=self.priced_tokens + other.priced_tokens,
            dollars=dollars,
        )


NO_COST = PromptCost(prompt_tokens=0, cached_tokens=0, whole_tokens=0, priced_tokens=0.0, dollars=0.0)


@dataclass(slots=True, kw_only=True, eq=False)
class SessionCall:
    """One call of the model: what it is shown, and once it is finished what came of it."""

    session: Session
    """Where it stands: the session of its conversation, a fork of it, or that session as it was."""
    envelope: Envelope
    model: str | None
    builder: EnvelopeBuilder
    usage: object = None
    """As the provider reported it."""
    findings: tuple[Finding, ...] = ()
    """Of the envelope, and of the audit of what was sent."""
    sent: object = field(default=None, repr=False)
    arguments: Wire = field(default_factory=dict, repr=False)
    """The caller's own arguments of the call: what it sends beside the envelope is meant so."""

    def render(self, provider: Provider, *, cache: bool = True) -> Wire:
        """The arguments that take the place of the caller's messages, system and tools; see `Envelope.render`."""
        return self.envelope.render(provider, cache=cache)

    @property
    def cached_tokens(self) -> int | None:
        """Prompt tokens that the provider read from its cache; None: it did not say."""
        return cached_tokens_of(self.usage)

    @property
    def lost(self) -> tuple[Loss, ...]:
        """What compactions of this call left out of the prompt; each resolves by its `ref`."""
        return tuple(loss for report in self.envelope.reports for loss in report.losses)

    @property
    def recalled(self) -> tuple[str, ...]:
        """References of the older messages that were brought back into this prompt, oldest first."""
        context = self.envelope.dynamic.context
        return () if context is None else tuple(f"§{ordinal}" for ordinal in context.refs)

    @property
    def cost(self) -> PromptCost:
        """What the prompt cost, beside the tokens of the whole history; reads the session's messages."""
        counter, envelope = self.builder.counter, self.envelope
        history = self.session.entries(1, int(envelope.metrics["messages"]))
        head_tokens = envelope.tokens - envelope.section("dynamic").tokens
        prompt_tokens = envelope.tokens if self.usage is None else prompt_tokens_of(self.usage)
        cached_tokens = self.cached_tokens or 0
        priced_tokens = (self.builder.prices or Prices()).of(prompt_tokens, cached_tokens)
        return PromptCost(
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            whole_tokens=head_tokens + self.builder.provider_tokens(sum(entry.tokens(counter) for entry in history)),
            priced_tokens=priced_tokens,
            dollars=dollars_of(self.model, priced_tokens),
        )

    def learn(self) -> None:
        """Correct the builder's estimates by the usage, and tell telemetry; raises `InputError` for an unknown form."""
        self.builder.calibrate(self.usage, self.envelope)
        usage_reported(
            self.session,
            self.envelope,
            self.model,
            input_tokens=prompt_tokens_of(self.usage),
            cache_read=self.cached_tokens,
            cache_creation=_reported(self.usage, _WRITTEN),
        )

    def audit(self, provider: Provider | None) -> None:
        """Compare what was sent with the envelope: differences are findings, and a warning."""
        differences = audit(
            self.envelope, self.sent, provider=provider, counter=self.builder.counter, arguments=self.arguments
        )
        self.findings = (*self.envelope.findings, *differences)
        if differences:
            kinds = ", ".join(sorted({finding.kind for finding in differences}))
            _log.warning("what was sent is not the envelope that was built: %s", kinds)


def cached_tokens_of(usage: object) -> int | None:
    """Prompt tokens that were read from the provider's cache, of its usage report; None: it says nothing of them.

    >>> cached_tokens_of({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}})
    8
    """
    return _reported(usage, _CACHED)


def _reported(usage: object, paths: Sequence[Sequence[str]]) -> int | None:
    """The first of these numbers that the report has."""
    for path in paths:
        value: Any = usage
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        if isinstance(value, int):
            return value
    return None


_WRITTEN = (
    ("cache_creation_input_tokens",),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("cache_write_tokens",),
)
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("cache_read_tokens",),
    ("cached_content_token_count",),
    ("cachedContentTokenCount",),
)

__all__ = ["NO_COST", "PromptCost", "SessionCall", "cached_tokens_of"]
