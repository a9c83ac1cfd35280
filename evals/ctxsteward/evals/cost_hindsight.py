"""The cheapest masking schedule of a run, known only when the run is over: the bound for every masking policy.

Dynamic programming over calls and boundaries (`cost_baselines`): the cheapest way to have boundary b at call c either
had it at call c - 1 already, whose whole prompt is then a cached prefix, or moved it there from some b' < b, and then
the prefix ends at the first result of step b', wherever b lies. So one running minimum serves all moves: O(calls ×
steps) time and memory, no search. Costs are those of `cost_prompts.Judge`, to the last token.
"""

from __future__ import annotations

from itertools import accumulate
from math import inf
from typing import NamedTuple

from .cost_baselines import Masking
from .cost_prompts import Prices, Prompt, Sizer


class Sizes(NamedTuple):
    """What a run's prompts weigh."""

    whole: tuple[int, ...]
    """By call: tokens with nothing masked."""
    masked_off: tuple[int, ...]
    """By boundary: tokens that this many masked steps take off."""
    kept: tuple[int, ...]
    """By boundary b: tokens of the prefix that a move away from b leaves in place."""
    eligible: tuple[int, ...]
    """By call: the furthest boundary."""


def cheapest(masking: Masking, sizer: Sizer, prices: Prices) -> list[Prompt]:
    """What each call is sent under the schedule that costs least in the end."""
    return masking.prompts(cheapest_boundaries(sizes_of(masking, sizer), prices))


def sizes_of(masking: Masking, sizer: Sizer) -> Sizes:
    """Weigh a run's prompts."""
    run = masking.run
    head = run.tools_tokens + sum(piece.tokens for piece in run.system)
    upto = (head, *accumulate((piece.tokens for piece in run.messages), initial=head))[1:]
    saved = [sum(run.messages[i].tokens - masking.masked[i].tokens for i in m.places) for m in masking.maskable]
    off = tuple(accumulate(saved, initial=0))
    first = [found.places[0] for found in masking.maskable]
    overlap = [sizer.overlap_tokens(run.messages[i], masking.masked[i]) for i in first]
    return Sizes(
        whole=tuple(upto[seen] for seen in run.seen),
        masked_off=off,
        kept=tuple(upto[place] - off[b] + overlap[b] for b, place in enumerate(first)),
        eligible=tuple(masking.eligible(call) for call in range(len(run.seen))),
    )


def cheapest_boundaries(sizes: Sizes, prices: Prices) -> list[int]:
    """The boundary of each call; of equal schedules the one that moves later."""
    cost = [prices.fresh(sizes.whole[0] - sizes.masked_off[b]) for b in range(sizes.eligible[0] + 1)]
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
            now.append(prices.fresh(sizes.whole[call] - sizes.masked_off[b]) + min(stay, best))
            if b < len(cost) and b < len(sizes.kept) and cost[b] - prices.saved(sizes.kept[b]) < best:
                best, best_from = cost[b] - prices.saved(sizes.kept[b]), b
        cost = now
        chosen.append(came)
    return _traced(chosen, cost.index(min(cost)))


def _traced(chosen: list[list[int]], last: int) -> list[int]:
    boundaries = [last]
    for came in reversed(chosen):
        boundaries.append(came[boundaries[-1]])
    return boundaries[::-1]
