"""Baselines of the cost benchmark: schedules that mask old tool results, and the cheapest one known in hindsight.

A *step* is an assistant message with its tool results; messages before the first are step 0. Masking replaces the tool
results of older steps by one line and keeps the newest `kept_steps` whole, at least the newest one, which the model has
not seen. The *boundary* of a call is the number of masked steps among those with something to mask; it never moves
back. A window sends only its newest steps and the messages after them.

The schedule in hindsight is found by dynamic programming over calls and boundaries. The cheapest way to have boundary
b at call c either had it at call c - 1 already, whose whole prompt is then a cached prefix, or moved there from some
b' < b; then the prefix ends at the first result of step b', for any b. So one running minimum serves all moves:
O(calls × steps) time and memory.

Source: observation masking, arXiv 2508.21433.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import inf
from random import Random
from typing import NamedTuple

from ctxsteward.evals.cost import Strategy
from ctxsteward.evals.prompt_cost import PricedPrompt, Prices, PromptPiece, Sizer
from ctxsteward.evals.replay import AgentRun

MASK = "[tool result left out]"
KEPT_STEPS = 5
WINDOW_STEPS = 5
RARELY_STEPS = 10
BUDGET_STEPS = 8
"""Newest steps that masking within a budget keeps: prompts then had 97 of 100 values that replies took from a result;
with five steps, 96."""
HINDSIGHT = "best in hindsight"
HINDSIGHT_IN_BUDGET = f"best in hindsight, keep {BUDGET_STEPS}, in budget"


class MaskableStep(NamedTuple):
    """A step with tool results that masking makes shorter."""

    step: int
    places: tuple[int, ...]
    """Indices of these results among the run's messages; ascending."""


@dataclass(frozen=True, slots=True)
class MaskedRun:
    """A run, its steps, and its masked messages."""

    run: AgentRun
    masked: tuple[PromptPiece, ...]
    """Each message masked, or unchanged if masking saves nothing."""
    steps: tuple[int, ...]
    """Step of each message."""
    maskable: tuple[MaskableStep, ...]
    kept_steps: int = KEPT_STEPS

    def eligible(self, call: int) -> int:
        """Return the number of steps that may be masked at this 0-based call."""
        newest = self.newest_step(call)
        return sum(maskable.step <= newest - self.kept_steps for maskable in self.maskable)

    def newest_step(self, call: int) -> int:
        """Return the step of the last message of this call."""
        return self.steps[self.run.seen[call] - 1]

    def prompt(self, call: int, boundary: int) -> tuple[PromptPiece, ...]:
        """Return a call's prompt with the first `boundary` maskable steps masked."""
        hidden = {place for maskable in self.maskable[:boundary] for place in maskable.places}
        shown = self.run.messages[: self.run.seen[call]]
        return (*self.run.system, *(self.masked[i] if i in hidden else piece for i, piece in enumerate(shown)))

    def prompts(self, boundaries: Sequence[int]) -> list[PricedPrompt]:
        """Return each call's prompt under these boundaries."""
        moved = [now != before for before, now in zip((0, *boundaries), boundaries, strict=False)]
        return [PricedPrompt(self.prompt(call, b), moved[call]) for call, b in enumerate(boundaries)]


def masking_of(run: AgentRun, sizer: Sizer) -> MaskedRun:
    """Find a run's steps and mask their results."""
    steps: list[int] = []
    masked: list[PromptPiece] = []
    places: dict[int, list[int]] = {}
    step = 0
    for place, piece in enumerate(run.messages):
        step += piece.wire.get("role") == "assistant"
        short = sizer.piece({**piece.wire, "content": MASK}) if piece.wire.get("role") == "tool" else piece
        if short.tokens < piece.tokens:
            places.setdefault(step, []).append(place)
        masked.append(short if short.tokens < piece.tokens else piece)
        steps.append(step)
    maskable = tuple(MaskableStep(step, tuple(results)) for step, results in places.items())
    return MaskedRun(run, tuple(masked), tuple(steps), maskable)


Schedule = Callable[[MaskedRun], list[PricedPrompt]]
"""Returns the prompt of each call of a masked run."""


def every_step(masking: MaskedRun) -> list[PricedPrompt]:
    """Mask every maskable step at every call."""
    return masking.prompts([masking.eligible(call) for call in range(len(masking.run.seen))])


def every_ten_steps(masking: MaskedRun) -> list[PricedPrompt]:
    """Mask every maskable step when ten steps have passed since the last time."""
    boundaries: list[int] = []
    boundary = moved_at = 0
    for call in range(len(masking.run.seen)):
        step = masking.newest_step(call)
        if step - moved_at >= RARELY_STEPS:
            boundary, moved_at = masking.eligible(call), step
        boundaries.append(boundary)
    return masking.prompts(boundaries)


def window_of_five(masking: MaskedRun) -> list[PricedPrompt]:
    """Send the newest five steps and the messages after them; older messages, the task among them, are left out."""
    prompts = []
    start = 0
    for call, seen in enumerate(masking.run.seen):
        first = masking.newest_step(call) - WINDOW_STEPS + 1
        before, start = start, next(i for i, step in enumerate(masking.steps[:seen]) if step >= first)
        prompts.append(PricedPrompt((*masking.run.system, *masking.run.messages[start:seen]), start != before))
    return prompts


def random_steps_out(masking: MaskedRun) -> list[PricedPrompt]:
    """Leave out closed steps at random until a call takes no more tokens than ours; no step returns.

    User messages stay. The order is seeded by the run's name.
    """
    run = masking.run
    targets = next(iter(run.ours.values()))
    order = list(dict.fromkeys(masking.steps))
    Random(run.name).shuffle(order)
    spoken = [piece.wire.get("role") == "user" for piece in run.messages]
    prompts: list[PricedPrompt] = []
    out: set[int] = set()
    for call, seen in enumerate(run.seen):
        newest, before = masking.newest_step(call), len(out)
        budget = sum(piece.tokens for piece in targets[call].pieces)
        while True:
            shown = [run.messages[i] for i in range(seen) if spoken[i] or masking.steps[i] not in out]
            closed = next((step for step in order if step < newest and step not in out), None)
            pieces = (*run.system, *shown)
            if closed is None or sum(piece.tokens for piece in pieces) <= budget:
                break
            out.add(closed)
        prompts.append(PricedPrompt(pieces, len(out) > before))
    return prompts


class ScheduleSizes(NamedTuple):
    """Token counts of a run's prompts."""

    whole: tuple[int, ...]
    """By call: tokens with nothing masked."""
    masked_off: tuple[int, ...]
    """By boundary: tokens that this many masked steps save."""
    prefix_tokens: tuple[int, ...]
    """By boundary b: tokens of the prefix that stays cached when the boundary moves on from b."""
    eligible: tuple[int, ...]
    """By call: the furthest boundary."""
    least: tuple[int, ...] = ()
    """By call: the boundary that the budget requires; empty without a budget."""


def cheapest(masking: MaskedRun, sizer: Sizer, prices: Prices, budget_tokens: int | None = None) -> list[PricedPrompt]:
    """Return each call's prompt under the cheapest schedule, within `budget_tokens` if given."""
    return masking.prompts(cheapest_boundaries(sizes_of(masking, sizer, budget_tokens), prices))


def sizes_of(masking: MaskedRun, sizer: Sizer, budget_tokens: int | None = None) -> ScheduleSizes:
    """Count a run's prompts; under a budget all kept steps but the newest may be masked."""
    run = masking.run
    head = run.tools_tokens + sum(piece.tokens for piece in run.system)
    upto = (head, *accumulate((piece.tokens for piece in run.messages), initial=head))[1:]
    saved = [sum(run.messages[i].tokens - masking.masked[i].tokens for i in m.places) for m in masking.maskable]
    off = tuple(accumulate(saved, initial=0))
    first = [maskable_step.places[0] for maskable_step in masking.maskable]
    overlap = [sizer.overlap_tokens(run.messages[i], masking.masked[i]) for i in first]
    eligible = [masking.eligible(call) for call in range(len(run.seen))]
    least: list[int] = []
    if budget_tokens is not None:
        closed = replace(masking, kept_steps=1)
        for call, seen in enumerate(run.seen):
            furthest = max(eligible[call], closed.eligible(call))
            fitting = (b for b in range(furthest) if upto[seen] - head - off[b] <= budget_tokens)
            least.append(next(fitting, furthest))
            eligible[call] = max(eligible[call], least[-1])
    return ScheduleSizes(
        whole=tuple(upto[seen] for seen in run.seen),
        masked_off=off,
        prefix_tokens=tuple(upto[place] - off[b] + overlap[b] for b, place in enumerate(first)),
        eligible=tuple(eligible),
        least=tuple(least),
    )


def cheapest_boundaries(sizes: ScheduleSizes, prices: Prices) -> list[int]:
    """Return the boundary of each call; among equal schedules the one that moves later."""
    least = sizes.least or (0,) * len(sizes.whole)
    cost = [
        prices.fresh(sizes.whole[0] - sizes.masked_off[b]) if b >= least[0] else inf
        for b in range(sizes.eligible[0] + 1)
    ]
    chosen: list[list[int]] = []
    """By call after the first, by boundary: the boundary of the call before."""
    for call in range(1, len(sizes.whole)):
        came: list[int] = []
        now: list[float] = []
        best, best_from = inf, 0
        for b in range(sizes.eligible[call] + 1):
            stay = inf
            if b < len(cost):
                stay = cost[b] - prices.saved(sizes.whole[call - 1] - sizes.masked_off[b])
            came.append(b if stay <= best else best_from)
            fresh = prices.fresh(sizes.whole[call] - sizes.masked_off[b]) if b >= least[call] else inf
            now.append(fresh + min(stay, best))
            if b < len(cost) and b < len(sizes.prefix_tokens) and cost[b] - prices.saved(sizes.prefix_tokens[b]) < best:
                best, best_from = cost[b] - prices.saved(sizes.prefix_tokens[b]), b
        cost = now
        chosen.append(came)
    boundaries = [cost.index(min(cost))]
    for came in reversed(chosen):
        boundaries.append(came[boundaries[-1]])
    return boundaries[::-1]


def strategies(sizer: Sizer, prices: Prices, budget_tokens: int) -> Mapping[str, Strategy]:
    """Return the baselines by name; `budget_tokens` bounds the last one."""

    def masked(schedule: Schedule, kept_steps: int = KEPT_STEPS) -> Strategy:
        return lambda run: schedule(replace(masking_of(run, sizer), kept_steps=kept_steps))

    best = partial(cheapest, sizer=sizer, prices=prices)
    return {
        "mask every step": masked(every_step),
        "mask every 10 steps": masked(every_ten_steps),
        "window of 5 steps": masked(window_of_five),
        "random steps left out": masked(random_steps_out),
        HINDSIGHT: masked(best),
        "mask every step, keep 1": masked(every_step, 1),
        HINDSIGHT_IN_BUDGET: masked(partial(best, budget_tokens=budget_tokens), BUDGET_STEPS),
    }
