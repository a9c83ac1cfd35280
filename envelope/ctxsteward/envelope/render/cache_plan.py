"""What a request tells the provider's prompt cache: where repeated prefixes end, how long they stay.

Anthropic caches what a mark ends, for five minutes or an hour. OpenAI caches the whole prompt by itself; from GPT-5.6
on it finds a shorter prefix again only where a breakpoint ends it, so a request without breakpoints is written anew
whenever what was recalled changes. Gemini caches without being told.

A write costs more than a plain token, so what no later call repeats is not marked: recalled messages and what follows
them where the turn is expected to end with this reply, and notes (`DynamicLayout.repeated`).

The longer lifetime is chosen where users come back after the shorter one has run out and before the longer one has: the
median time between the user messages of the window, if they have times.

After a compaction the next request waits until the provider has read the shorter prompt anew. A caller that is idle
then may send the prompt beforehand: it is written once, and the user's request reads it.

Sources: openai 3.57 (`prompt_cache_key`, `prompt_cache_options`; `prompt_cache_breakpoint`: ttl 30m or 12h), anthropic
2.13 (`cache_control`: ttl 5m or 1h), and the providers' pages that `models.toml` names.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ctxsteward.schemas.message import Wire

from ..layout.composition import DynamicLayout
from ..layout.fragments import MessageStep
from ..tokens.models import ModelInfo

MIN_GAPS = 2
"""Times between user messages that must be known."""
NEWEST = 9
"""User messages whose times are looked at."""


class CachePlan(NamedTuple):
    """How a request uses the provider's prompt cache."""

    key: str = ""
    """OpenAI sends requests with one key to one cache, and is told where prefixes end; empty: it is told neither."""
    is_long: bool = False
    """Whether prefixes stay for the longer lifetime that the provider sells."""
    is_prewarm: bool = False
    """Whether the request only fills the cache and gets no reply: OpenAI's Responses, for models that have a key."""

    is_explicit: bool = False
    """Whether the provider writes only what a request's marks end, so that the rest costs no write."""

    @property
    def mark(self) -> Wire:
        """Anthropic's cache mark."""
        return {"type": "ephemeral", "ttl": "1h"} if self.is_long else {"type": "ephemeral"}

    @property
    def breakpoint(self) -> Wire:
        """OpenAI's breakpoint."""
        return {"mode": "explicit", "ttl": "12h"} if self.is_long else {"mode": "explicit"}


def plan_for(info: ModelInfo | None, dynamic: DynamicLayout, secret: str) -> CachePlan:
    """Return the plan for a model; `secret` is equal for all calls of a session and of no other one."""
    if info is None:
        return CachePlan()
    prices, gap = info.prices, gap_seconds(dynamic)
    is_long = prices.long_write is not None and prices.lifetime_seconds < gap <= prices.long_lifetime_seconds
    if info.maker != "openai" or prices.write == 1.0:
        return CachePlan(is_long=is_long, is_explicit=info.maker == "anthropic")
    return CachePlan(hashlib.sha256(secret.encode()).hexdigest()[:32], is_long, is_explicit=True)


def gap_seconds(dynamic: DynamicLayout) -> float:
    """Return the median time between the newest user messages of the window; 0 where too few have times."""
    steps = [step for fragment in dynamic.strip.fragments[: dynamic.stop] for step in fragment.steps]
    entries = [step.entry for step in steps if isinstance(step, MessageStep) and step.entry.message.role == "user"]
    times = [time for entry in entries[-NEWEST:] if (time := entry.unix_seconds) is not None]
    gaps = [abs(after - before) for before, after in pairwise(times)]
    return median(gaps) if len(gaps) >= MIN_GAPS else 0.0
