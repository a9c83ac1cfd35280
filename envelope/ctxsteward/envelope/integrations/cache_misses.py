"""Where the provider's prompt cache read less than it could, joined to the sections of the prompt.

Two envelopes of one session begin alike. The provider reports how much of a prompt it read from its cache. If it read
less than that common beginning, the rest was paid anew although nothing in it had changed. The finding `cache_missed`
says where reading ended and why, as far as that can be known:

    the provider's own reason       an answer with `diagnostics` (Anthropic) or `prompt_cache_diagnostics` (OpenAI)
    the lifetime was over           more time between the calls than a prefix stays cached
    the provider did not keep it    none of these: another machine answered, or the cache was full

A beginning shorter than the provider's minimum is not expected to be read. Token counts are estimates, so a miss of
less than a tenth, or of less than one block, is none.

Sources: the usage and diagnostics types of openai 3.57 and anthropic 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from ctxsteward.schemas import Finding

from ..building.builder import EnvelopeBuilder
from ..envelope import Envelope
from ..telemetry.spans import Layouts, first_prefix_break
from ..tokens.budgets import SECTIONS
from ..tokens.models import Prices

TOLERATED = 0.1
"""Share of the common beginning that may be missed: the builder's counts are estimates."""
OWN_REASON = "cache_miss_reason"
"""Key of a usage report under which the provider's own reason is kept."""


class AnsweredPrompt(NamedTuple):
    """An envelope that was sent, and when its answer came."""

    envelope: Envelope
    model: str | None
    seconds: float
    """Of a clock that only goes forward."""


def cache_missed(
    before: AnsweredPrompt, now: AnsweredPrompt, read_tokens: int, builder: EnvelopeBuilder, usage: object
) -> Finding | None:
    """Return the finding that the provider read `read_tokens` of a longer common beginning; None if it read enough."""
    prices = builder.prices or Prices()
    common = 0
    if before.model == now.model:
        layouts = Layouts.of(before.envelope), Layouts.of(now.envelope)
        common = builder.provider_tokens(first_prefix_break(*layouts, builder.counter.text).prefix_tokens)
    missed = common - read_tokens
    if common < prices.block_tokens or missed < max(prices.block_tokens, TOLERATED * common):
        return None
    plan = now.envelope.cache_plan
    lifetime = prices.long_lifetime_seconds if plan.is_long else prices.lifetime_seconds
    gap = now.seconds - before.seconds
    own = usage.get(OWN_REASON) if isinstance(usage, Mapping) else None
    if own is not None:
        why = f"the provider says {str(own)[:60]!r}"
    elif gap > lifetime:
        why = f"{gap:,.0f} s lay between the calls, and a prefix stays for {lifetime:,} s"
    else:
        why = "the provider did not keep it, or another of its machines answered"
    section = _section_at(now.envelope, read_tokens)
    text = f"the provider read {read_tokens:,} of {common:,} tokens unchanged since the call before; {why}"
    return Finding(kind="cache_missed", field=section, text=text)


def _section_at(envelope: Envelope, tokens: int) -> str:
    """Return the section in which the prompt's first `tokens` tokens end."""
    sizes = (int(envelope.metrics["tools_tokens"]), *(envelope.section(name).tokens for name in SECTIONS))
    ends = zip(("tools", *SECTIONS), accumulate(sizes), strict=True)
    return next((name for name, end in ends if tokens < end), SECTIONS[-1])
