"""`SessionCall`: one call of a model, its envelope, and the provider's report about it."""

from __future__ import annotations

import logging
import time
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
from .cache_misses import AnsweredPrompt, cache_missed

_log = logging.getLogger("ctxsteward.envelope.integrations")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCost:
    """Cost of the prompts of one call, or of several."""

    prompt_tokens: int
    """Count of the provider, or an estimate if it reported none."""
    cached_tokens: int
    """Tokens read from the provider's cache, or 0 if it did not report them."""
    whole_tokens: int
    """Estimate for the same head with the whole history."""
    priced_tokens: float
    """Tokens at full price; cached tokens count at the model's cache price."""
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
    """One call of the model: its envelope, and after `finish` its usage and findings."""

    session: Session
    """The session of its conversation, a fork of it, or an earlier state of it."""
    envelope: Envelope
    model: str | None
    builder: EnvelopeBuilder
    usage: object = None
    """The provider's usage report."""
    findings: tuple[Finding, ...] = ()
    """Findings of the envelope, of the audit of the sent request, and about the provider's cache."""
    sent: object = field(default=None, repr=False)
    arguments: Wire = field(default_factory=dict, repr=False)
    """The caller's own arguments of the call; the audit accepts them next to the envelope."""

    def render(self, provider: Provider, *, cache: bool = True) -> Wire:
        """Return the arguments that replace the caller's messages, system and tools; see `Envelope.render`."""
        return self.envelope.render(provider, cache=cache)

    @property
    def cached_tokens(self) -> int | None:
        """Prompt tokens that the provider read from its cache; None if not reported."""
        return cached_tokens_of(self.usage)

    @property
    def lost(self) -> tuple[Loss, ...]:
        """Losses of this call's compactions: originals left out of the prompt, each resolvable by its `ref`."""
        return tuple(loss for report in self.envelope.reports for loss in report.losses)

    @property
    def recalled(self) -> tuple[str, ...]:
        """References of the older messages that were brought back into this prompt, oldest first."""
        context = self.envelope.dynamic.context
        return () if context is None else tuple(f"§{ordinal}" for ordinal in context.refs)

    @property
    def cost(self) -> PromptCost:
        """Cost of the prompt, with the tokens of the whole history to compare. Reads the session's messages."""
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
        """Correct the builder's estimates by the usage and report it; raise `InputError` for an unknown form.

        If the provider read less from its cache than it could, `findings` says so.
        """
        self.builder.calibrate(self.usage, self.envelope)
        usage_reported(
            self.session,
            self.envelope,
            self.model,
            input_tokens=prompt_tokens_of(self.usage),
            cache_read=self.cached_tokens,
            cache_creation=written_tokens_of(self.usage),
        )
        before = self.session.cache.get(AnsweredPrompt)
        now = AnsweredPrompt(self.envelope, self.model, time.monotonic())
        self.session.cache[AnsweredPrompt] = now
        if isinstance(before, AnsweredPrompt) and self.cached_tokens is not None:
            missed = cache_missed(before, now, self.cached_tokens, self.builder, self.usage)
            self.findings += () if missed is None else (missed,)

    def audit(self, provider: Provider | None) -> None:
        """Compare the sent request with the envelope. Differences become findings and one warning."""
        differences = audit(
            self.envelope, self.sent, provider=provider, counter=self.builder.counter, arguments=self.arguments
        )
        self.findings += tuple(differences)
        if differences:
            kinds = ", ".join(sorted({finding.kind for finding in differences}))
            _log.warning("what was sent is not the envelope that was built: %s", kinds)


def cached_tokens_of(usage: object) -> int | None:
    """Return the prompt tokens read from the provider's cache, from its usage report; None if not reported.

    >>> cached_tokens_of({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}})
    8
    """
    return _reported(usage, _CACHED)


def written_tokens_of(usage: object) -> int | None:
    """Return the prompt tokens written to the provider's cache, from its usage report; None if not reported.

    >>> written_tokens_of({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}})
    5
    """
    return _reported(usage, _WRITTEN)


def _reported(usage: object, paths: Sequence[Sequence[str]]) -> int | None:
    """Return the first of these numbers that the report contains."""
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
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cache_write_tokens",),
    ("cacheWriteInputTokens",),
)
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("cache_read_tokens",),
    ("cached_content_token_count",),
    ("cachedContentTokenCount",),
    ("cacheReadInputTokens",),
)

__all__ = ["NO_COST", "PromptCost", "SessionCall", "cached_tokens_of"]
