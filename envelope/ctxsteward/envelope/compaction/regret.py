"""Whether a compaction would cost more now than a session may lose by it: then it waits, while there is room.

A session may end with any call. It never costs more than `REGRET_FRACTION` beyond sending everything if its first cut
costs at most that part of the bill so far, and each later one at most what was saved since the one before it. A cut
costs what the provider writes to its cache anew. Where waiting has cost `DEAR_WAIT` times as much, the first cut goes
deeper, so that its price is right. Where the cache has run out meanwhile, all is written anew anyway, and the cut costs
nothing. Recall is not known beforehand and not counted.

A cut also makes replies short once they are old, which moves what stands behind them: the user message of each turn is
written twice from then on. The first cut waits until what left saves that at calls as the newest ones were.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ..tokens.budgets import NEW_FLOOR_FRACTION, REGRET_FRACTION, Budgets

if TYPE_CHECKING:
    from .policy import Window


DEAR_WAIT = 12
"""With this, a session costs at most twice what the best cuts in hindsight would have cost."""


class _Call(NamedTuple):
    """A model call as it was billed."""

    prompt_tokens: int
    prefix_tokens: int
    """What the provider's cache had of it."""


def affordable(window: Window, aimed: Budgets, part: float = 1.0) -> Budgets | None:
    """Return the budgets of a cut that may be made now: `aimed` or deeper ones; None if it waits.

    Where dynamic may not grow beyond its budget, no cut waits. With a smaller `part` a cut may be made if so much of
    its price may be lost: it will be made soon.
    """
    budgets, state, prices = window.budgets, window.state, window.prices
    most = budgets.most_tokens
    calls = [*_calls(window)]
    if (
        budgets.dynamic_tokens == most
        or window.section_tokens > part * most
        or state.left_out_tokens is None
        or not calls
    ):
        return aimed
    call, after = calls[-1], _tokens_after(window, aimed)
    kept = min(_kept_tokens(window), call.prefix_tokens)
    price = part * (prices.of(after, kept) - prices.of(*call))
    left_out = max(0, state.left_out_tokens - window.bullets_tokens)
    everything = sum(
        prices.of(call.prompt_tokens + left_out, call.prefix_tokens and call.prefix_tokens + left_out) for call in calls
    )
    twice = [*_written_twice(window)][-len(calls) :]
    again = [
        (prices.write - prices.cached) * tokens * (call.prefix_tokens > 0)
        for tokens, call in zip(twice, calls, strict=True)
    ]
    if state.compactions:
        saved = everything - sum(prices.of(*call) for call in calls) - sum(again)
        return aimed if price <= saved else None
    saving = prices.cached * (call.prompt_tokens - after)
    of_newest = accumulate(reversed(again))  # of the newest call, the newest two, …
    if any(part * cost > saving * number for number, cost in enumerate(of_newest, 1)):
        return None
    may_lose = REGRET_FRACTION * everything
    if price <= may_lose:
        return aimed
    full = window.head_tokens + budgets.dynamic_tokens
    waited = prices.cached * sum(max(0, call.prompt_tokens - after) for call in calls if call.prompt_tokens > full)
    tokens = int((may_lose + prices.of(*call) + prices.saved(kept)) / prices.write) - window.head_tokens
    if waited < DEAR_WAIT * price or tokens < _least_tokens(window, aimed):
        return None
    return aimed.reaching(tokens)


def _calls(window: Window) -> Iterator[_Call]:
    """Yield the calls since the last cut as if nothing was recalled, and last the present one without a cut.

    The call that the cut was made for is left out: its price was counted when it was made.
    """
    state, prices = window.state, window.prices
    lifetime = prices.lifetime_seconds if prices.long_write is None else prices.long_lifetime_seconds
    prompt, before, seconds = window.head_tokens + window.bullets_tokens, -1 if state.compactions else 0, None
    for group, fragment in zip(state.groups, window.layout.strip.fragments, strict=True):
        entry = group.entries[0]
        if entry.message.role == "assistant" and entry.ordinal > state.compacted_at:
            now = entry.unix_seconds
            if before >= 0:
                yield _Call(prompt, 0 if _is_lost(seconds, now, lifetime) else before)
            before, seconds = prompt, now
        prompt += fragment.tokens
    if before >= 0 and state.groups:
        yield _Call(prompt, 0 if _is_lost(seconds, state.groups[-1].entries[-1].unix_seconds, lifetime) else before)


def _is_lost(before: float | None, now: float | None, lifetime_seconds: int) -> bool:
    return before is not None and now is not None and now - before > lifetime_seconds


def _tokens_after(window: Window, aimed: Budgets) -> int:
    """Return about how many tokens the prompt would have after a cut."""
    bullets = min(aimed.bullets_tokens, window.bullets_tokens + window.movable_tokens)
    target = aimed.target_tokens + aimed.lent_tokens(bullets)
    return window.head_tokens + max(target, _least_tokens(window, aimed))


def _least_tokens(window: Window, aimed: Budgets) -> int:
    """Return what a cut cannot take: messages that must stay, and bullets of what leaves."""
    return window.must_tokens + window.notes_tokens + int(aimed.sure_bullets_tokens * NEW_FLOOR_FRACTION)


def _kept_tokens(window: Window) -> int:
    """Return what of the prompt stays as it is: the head, and the task where it comes first."""
    state = window.state
    is_task_first = bool(state.groups) and state.task in state.groups[0].ordinals
    return window.head_tokens + (window.layout.strip.fragments[0].tokens if is_task_first else 0)


def _written_twice(window: Window) -> Iterator[int]:
    """Yield for each call since the last cut the tokens of the message behind a reply that is short once it is old.

    Such a reply stays whole if the turn behind it calls tools.
    """
    state, reply_tokens = window.state, window.budgets.old_reply_tokens
    tokens, is_short = 0, False
    for group, fragment in zip(state.groups, window.layout.strip.fragments, strict=True):
        if group.first > state.compacted_at:
            if group.entries[0].message.role == "assistant":
                yield 0 if len(group.entries) > 1 else tokens
                tokens = 0
            elif is_short:
                tokens += fragment.tokens
        is_short = state.shortened.get(group.first) == reply_tokens or state.will_be_short(group, reply_tokens)
    yield tokens
