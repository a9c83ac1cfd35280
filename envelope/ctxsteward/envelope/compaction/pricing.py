"""Compaction policies by price: when masking old tool results pays for the prefix that it rewrites.

    builder = EnvelopeBuilder("gpt-4o", policy="ski_rental")
    builder = EnvelopeBuilder("gpt-4o", policy=price_policy("every_n", every_steps=20, kept_steps=8))

Providers serve a prompt's unchanged beginning from a cache, far below the price of a new token. A masked result saves
its tokens at each later call, and the call that masks it pays the full price for all that stands behind it. A tool
result is *droppable* once `kept_steps` newer steps (assistant messages) stand behind it and the model has seen it.

    threshold    near the share of the budget, and deep: the builder's default
    never        over the budget only
    every_turn   at every step that has something droppable
    every_n      when something has been droppable for `every_steps` steps
    ski_rental   when the rent paid so far for droppable tokens (the cached price, once a call) has reached what masking
                 them now would cost more than leaving them; at once where the cache has expired

    middle_out   when `threshold` is due; masks tool results by levels, from the middle of the window outward
    importance   when `threshold` is due; whole groups leave, those of least worth first

`never`, `every_turn`, `every_n` and `ski_rental` mask what is droppable and write no bullets: each masked line keeps
its reference. They wait until that saves a tenth of the section. The budget always wins: over it, `kept_steps` gives
way, oldest first, and what then leaves becomes bullets; a finding ``policy_fell_back`` says so.

Of prompts that are longer than the provider's block `ski_rental` costs at most twice the best schedule known in
hindsight (a property test; 1.6 is the worst that a search for bad runs found, 1.01 what real runs cost). Shorter ones
are cached by nobody, and what keeps a prompt that short may cost more than the bound.

Everything is read off the log, so every process that opens a session decides alike. A step counts as one call. The
work is linear in the window, which its budget bounds, and does not grow with the session.

Raises `InputError`. Source: online ski rental (Karlin et al., 1988); observation masking, arXiv 2508.21433.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, get_args

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import PolicyName

from ..layout.fragments import RenderOptions, group_fragment
from ..tokens.budgets import MIN_PROGRESS_FRACTION, Budgets
from ..tokens.models import Prices
from .importance import importance_policy, middle_out_policy
from .policy import Choose, CompactionChoice, Due, Policy, ToolGroup, Window, choose, due, with_default

KEPT_STEPS = 8
"""With eight, 97 of 100 values that replies to real runs took from a result stood in their prompt; with five, 96."""
EVERY_STEPS = 10
Spared = Callable[[ToolGroup], bool]
"""Whether a tool group's results stay whole, whatever their age."""
OVER_TARGET_FRACTION = 0.65
"""Of the section's budget: where a window that is over it is taken, whatever recall's share of it."""


def price_policy(
    name: PolicyName,
    prices: Prices | None = None,
    *,
    kept_steps: int = KEPT_STEPS,
    every_steps: int = EVERY_STEPS,
    choose: Choose | None = None,
    spared: Spared | None = None,
) -> Policy:
    """The policy of this name.

    `kept_steps`: how many of the newest steps stay verbatim, at least one; `choose`: another way of choosing what
    leaves once it is due; `spared`: tool groups that it never masks, so that nothing waits for them.
    """
    if name not in get_args(PolicyName):
        raise InputError(f"no policy named {name!r:.60}; known: {', '.join(get_args(PolicyName))}")
    for what, value in (("kept_steps", kept_steps), ("every_steps", every_steps)):
        if type(value) is not int or value < 1:
            raise InputError(f"{what}={value!r:.40}: expected a whole number of steps, at least 1")
    if name == "threshold":
        return Policy() if choose is None else Policy(choose=choose)
    if name in ("middle_out", "importance"):
        return middle_out_policy() if name == "middle_out" else importance_policy()
    label = f"{name}/1 keep={kept_steps}" + (f" every={every_steps}" if name == "every_n" else "")
    dues: dict[str, Due] = {
        "never": _is_over,
        "every_turn": partial(_is_idle, kept_steps, spared, 1),
        "every_n": partial(_is_idle, kept_steps, spared, every_steps),
        "ski_rental": partial(_pays, kept_steps, spared, prices or Prices()),
    }
    return Policy(name=label, due=dues[name], choose=choose or partial(mask_old, kept_steps, spared))


def asked_policy(keep_tokens: int | None = None) -> Policy:
    """Compact now, whatever the thresholds say, for one call of `build` or `preview`.

    It is made as if what stands there now filled its budget: as deep as one that is due, with bullets in proportion.
    With `keep_tokens` it goes until what may leave takes no more than so many.
    """

    def chosen(window: Window, need_tokens: int) -> CompactionChoice:
        return choose(window, need_tokens if keep_tokens is None else window.movable_tokens - keep_tokens)

    def full(window: Window) -> Budgets:
        budgets = window.budgets
        tight = budgets.limited(max(1, min(budgets.dynamic_tokens, window.section_tokens)))
        return tight.model_copy(update={"arrival_cap_tokens": budgets.cap_tokens})

    return Policy(name="asked/1", due=lambda window: True, choose=chosen, within=full)


# -- what may be masked ----------------------------------------------------------------------------------------------


class DroppableGroup(NamedTuple):
    """A tool group whose results may be masked."""

    place: int
    """Among the window's groups."""
    saved_tokens: int
    """What masking takes off."""
    idle_steps: int
    """Calls so far that were sent it although it was droppable."""


def droppable(window: Window, kept_steps: int, spared: Spared | None = None) -> list[DroppableGroup]:
    """Groups with results that the model has seen, that are older than the kept steps and not masked, oldest first."""
    return list(_droppable(window, kept_steps, spared))[::-1]


def _droppable(window: Window, kept_steps: int, spared: Spared | None) -> Iterator[DroppableGroup]:
    state, strip = window.state, window.layout.strip
    shape = RenderOptions(cap_tokens=window.budgets.cap_tokens, masked=True)
    steps = 0
    for index in range(len(state.groups) - 1, -1, -1):
        group = state.groups[index]
        is_old = steps >= kept_steps and len(group.entries) > 1 and group.last <= state.last_reply
        steps += group.entries[0].message.role == "assistant"
        if not is_old or group.first in state.masked or any(n in state.pins for n in group.ordinals):
            continue
        saved = strip.fragments[index].tokens - group_fragment(group, shape, state.nonce, strip.counter).tokens
        if saved > 0 and not (spared is not None and spared(group)):
            yield DroppableGroup(index, saved, steps - kept_steps - 1)


# -- when ------------------------------------------------------------------------------------------------------------


def rewriting_pays(paid: float, prompt_tokens: int, sent_tokens: int, kept_tokens: int, saved: int, p: Prices) -> bool:
    """Whether the rent paid has reached what masking costs more than leaving.

    `prompt_tokens` would be sent now, of which `sent_tokens` are in the cache; masking takes `saved` off and leaves a
    prefix of `kept_tokens`. Where masking makes a
    prompt too short to be cached, less of what was paid was rent: what is left would cost the full price each call.

    >>> rewriting_pays(400, 5_000, 4_800, 4_000, 600, Prices()), rewriting_pays(10, 5_000, 4_800, 4_000, 600, Prices())
    (True, False)
    """
    if p.served(sent_tokens) and not p.served(prompt_tokens - saved):
        rent = p.cached * sent_tokens - (sent_tokens - saved)
        if rent <= 0:
            return False
        paid *= rent / (p.cached * saved)
    return paid >= p.of(prompt_tokens - saved, kept_tokens) - p.of(prompt_tokens, sent_tokens)


def _pays(kept_steps: int, spared: Spared | None, prices: Prices, window: Window) -> bool:
    if _is_over(window):
        return True
    rows = droppable(window, kept_steps, spared)
    saved = sum(row.saved_tokens for row in rows)
    if not _is_deep(window, saved):
        return False
    state, upto = window.state, window.layout.strip.tokens
    before = window.head_tokens + window.bullets_tokens
    newest = len(state.groups)
    while newest and state.groups[newest - 1].first >= state.last_reply:
        newest -= 1
    sent, kept = before + upto[newest], before + upto[rows[0].place]
    if _seconds_idle(window) > prices.lifetime_seconds:
        sent = kept = 0
    rate = prices.cached if prices.served(sent) else prices.write
    paid = rate * sum(row.saved_tokens * row.idle_steps for row in rows)
    return rewriting_pays(paid, window.head_tokens + window.section_tokens, sent, kept, saved, prices)


def _is_idle(kept_steps: int, spared: Spared | None, every_steps: int, window: Window) -> bool:
    if _is_over(window):
        return True
    rows = droppable(window, kept_steps, spared)
    is_time = bool(rows) and rows[0].idle_steps >= every_steps - 1
    return is_time and _is_deep(window, sum(row.saved_tokens for row in rows))


def _is_over(window: Window) -> bool:
    """Whether the section is over its budget, and a compaction would help."""
    return window.over and due(window)


def _is_deep(window: Window, saved: int) -> bool:
    """Whether this saves a tenth, and nothing was refused since the section grew by one."""
    refused = window.refused_at and window.section_tokens < window.refused_at * (1 + MIN_PROGRESS_FRACTION)
    return saved > 0 and not refused and saved >= window.section_tokens * MIN_PROGRESS_FRACTION


def _seconds_idle(window: Window) -> float:
    """Between the newest reply and the newest message; 0 where messages carry no times."""
    state = window.state
    times: dict[int, str | None] = {}
    for group in reversed(state.groups):
        times |= {entry.ordinal: entry.event.ts for entry in group.entries}
        if group.first <= state.last_reply:
            break
    began, ended = times.get(state.last_reply), times.get(state.ordinal)
    try:
        gap = datetime.fromisoformat(ended or "") - datetime.fromisoformat(began or "")
    except (ValueError, TypeError):
        return 0.0
    return gap.total_seconds()


# -- what ------------------------------------------------------------------------------------------------------------


def mask_old(kept_steps: int, spared: Spared | None, window: Window, need_tokens: int) -> CompactionChoice:
    """Mask what is droppable; over the budget newer results too, and then what the default takes."""
    old = {window.state.groups[row.place].first for row in droppable(window, kept_steps, spared)}
    groups = window.state.groups
    alone = CompactionChoice(mask=tuple(g for g in groups if g.first in old), is_summarized=False)
    if not window.over:
        return alone
    window.price_masks(closed=True)
    need = min(need_tokens, window.history_tokens - int(window.budgets.dynamic_tokens * OVER_TARGET_FRACTION))
    freed = sum(row.tokens - row.masked_tokens for row in window.candidates if row.group.first in old)
    masked = set(old)
    for row in window.candidates:
        if freed >= need:
            break
        if not row.must and not row.soft and row.masked_tokens < row.tokens and row.group.first not in masked:
            masked.add(row.group.first)
            freed += row.tokens - row.masked_tokens
    chosen = replace(alone, mask=tuple(g for g in groups if g.first in masked), is_summarized=True)
    return with_default(window, chosen, need, kept=lambda first: first not in old)
