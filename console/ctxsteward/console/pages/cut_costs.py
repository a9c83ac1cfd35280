"""Profit and loss of each compaction of a session, from the numbers of its calls alone.

A compaction (a *cut*) makes every later prompt shorter, and has the provider write what stands behind the cut anew. It
is compared with sending on what it took out: the same calls with the tokens that it removed and without recalled
messages, appended to and not cut again. Up to the next cut each call is priced both ways; from there on the removed
tokens count as read from the cache. The sum over all cuts is what the cuts of the session saved.

Recall is a decision of its own, made at each user turn, so its price is also told apart: what recalled messages added
to these calls, and what stood behind them and was written anew when they changed.

The *prediction* is of the cut without recall. It is made of what the cut's own call shows: its price with and without
the cut, and the price of each later call both ways, if the history grows as it did so far.

Prices are in plain prompt tokens, by the published ratios of the call's model, as the timeline has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise, takewhile
from math import ceil
from typing import NamedTuple

from ctxsteward.envelope import Prices
from ctxsteward.envelope.building.past_calls import SOURCES, CallCompaction, PastCall
from ctxsteward.envelope.tokens.budgets import HEAD_SECTIONS
from ctxsteward.envelope.tokens.models import prices_of
from ctxsteward.schemas.frozen import FrozenModel


class CutCost(FrozenModel):
    """Profit and loss of one compaction; prices in plain prompt tokens."""

    call: int
    """Number of the call that it was made for."""
    turn: int
    reports: tuple[str, ...]
    broke_at: str | None
    """Block of the prompt in which the prefix ended (`PastCall.broke_at`)."""
    removed_tokens: int
    rewritten_tokens: int
    """Tokens that the cache would have served without the cut."""
    rewritten: float
    """What the cut's own call cost beyond the same call without the cut; below 0 if it was cheaper at once."""
    break_even_call: int | None
    """Call at which it pays for itself, as predicted at the cut; None if never."""
    expected: float
    """Saving predicted at the cut if the session makes as many calls again as it had made."""
    predicted: float
    """Saving predicted at the cut for the calls that did follow, without recall."""
    saved: float
    """Saving so far, less what was recalled."""
    recall: float
    """What recall cost since the cut; the cut alone saved `saved + recall`."""
    paid_back_call: int | None
    """Call from which on the saving so far was never below 0; None if it is."""
    dollars: float | None
    """`saved` in dollars; None if no price was given."""


def cut_costs(calls: Sequence[PastCall], price: float | None = None) -> tuple[CutCost, ...]:
    """Return the cuts of a session, oldest first; `price` is in dollars for a million prompt tokens."""
    calls = [call for call in calls if not call.fault]
    places = [at for at, call in enumerate(calls) if _made(call)]
    bare = list(_without_recall(calls))
    costs: list[CutCost] = []
    for at, upto in pairwise((*places, len(calls))):
        said = bare[at].prompt_tokens - bare[0].prompt_tokens + sum(cost.removed_tokens for cost in costs)
        costs.append(_cut_cost(calls, bare, at, upto, said, price))
    return tuple(costs)


class _Prompt(NamedTuple):
    """A call's prompt, and how much of its beginning the cache had."""

    prompt_tokens: int
    prefix_tokens: int


def _without_recall(calls: Sequence[PastCall]) -> Iterator[_Prompt]:
    """Yield the prompt that each call would have had without recalled messages."""
    before: PastCall | None = None
    stable = 0
    for call in calls:
        recalls = [_before_recall(each) for each in (before, call) if each is not None and each.recall_tokens]
        prompt, prefix = call.prompt_tokens - call.recall_tokens, call.prefix_tokens
        # Each source of a prompt is rounded, so the place of recalled messages is off by at most one token a source.
        if before is not None and recalls and prefix >= min(recalls) - len(SOURCES):
            if call.recall_tokens and prefix >= _before_recall(call) + call.recall_tokens:
                prefix -= call.recall_tokens
            elif not _made(call):
                prefix = min(stable, prompt)
        yield _Prompt(prompt, prefix)
        before, stable = call, prompt - _unstable_tokens(call)


def _before_recall(call: PastCall) -> int:
    return sum(tokens for _, tokens in takewhile(lambda row: row[0] != "recall", call.sources))


def _unstable_tokens(call: PastCall) -> int:
    """Return what no later call's beginning shares: notes, and what opens the reply."""
    return call.prompt_tokens - sum(tokens for source, tokens in call.sources if source != "notes")


def _made(call: PastCall) -> list[CallCompaction]:
    return [made for made in call.compactions if made.section == "dynamic"]


def _cut_cost(
    calls: Sequence[PastCall], bare: Sequence[_Prompt], at: int, upto: int, said_tokens: int, price: float | None
) -> CutCost:
    """Price the cut of the call at `at`; `said_tokens` is what was said since the first call and stands there still."""
    call, prices = calls[at], prices_of(calls[at].model) or Prices()
    removed = sum(made.pre_tokens - made.post_tokens for made in _made(call))
    uncut = list(_uncut(calls, bare, at, upto, removed))
    gains = [prices.of(*prompt) - prices.of(*shorter) for prompt, shorter in zip(uncut, bare[at:upto], strict=True)]
    recall = [
        prices.of(each.prompt_tokens, each.prefix_tokens, each.unwritten_tokens) - prices.of(*shorter)
        for each, shorter in zip(calls[at:upto], bare[at:upto], strict=True)
    ]
    carried = uncut[-1].prompt_tokens - bare[upto - 1].prompt_tokens
    net = (gain - cost for gain, cost in zip(gains, recall, strict=True))
    sums = list(accumulate((*net, *[carried * prices.cached] * (len(calls) - upto))))
    growth = max(0, said_tokens + removed) // max(1, at)
    stable = bare[at].prompt_tokens - _unstable_tokens(call)
    foreseen = accumulate(_foreseen(bare[at].prompt_tokens, stable, removed, growth, prices), initial=gains[0])
    predicted = list(islice(foreseen, max(len(sums), at + 2)))
    below = [place for place, saved in enumerate(sums) if saved < 0]
    paid_back = below[-1] + 1 if below else 0
    even = next((place for place, saved in enumerate(predicted) if saved >= 0), None)
    if even is None and (step := predicted[-1] - predicted[-2]) > 0:
        even = len(predicted) - 1 + ceil(-predicted[-1] / step)
    return CutCost(
        call=call.number,
        turn=call.turn,
        reports=tuple(made.report for made in _made(call)),
        broke_at=call.broke_at,
        removed_tokens=removed,
        rewritten_tokens=max(0, uncut[0].prefix_tokens - call.prefix_tokens),
        rewritten=round(recall[0] - gains[0], 1),
        break_even_call=None if even is None else call.number + even,
        expected=round(predicted[at + 1], 1),
        predicted=round(predicted[len(sums) - 1], 1),
        saved=round(sums[-1], 1),
        recall=round(sum(recall), 1),
        paid_back_call=calls[at + paid_back].number if paid_back < len(sums) else None,
        dollars=None if price is None else round(sums[-1] * price / 1e6, 8),
    )


def _uncut(calls: Sequence[PastCall], bare: Sequence[_Prompt], at: int, upto: int, removed: int) -> Iterator[_Prompt]:
    """Yield the prompts of the calls with what the cut removed, and without recall."""
    stable = 0
    if at and calls[at - 1].model == calls[at].model:
        stable = bare[at - 1].prompt_tokens - _unstable_tokens(calls[at - 1])
    prompt = bare[at].prompt_tokens + removed
    for number, call in enumerate(calls[at:upto]):
        if number:
            prompt += call.new_tokens
        broke_before = call.broke_in in ("tools", *HEAD_SECTIONS)
        yield _Prompt(prompt, call.prefix_tokens if broke_before else min(stable, prompt))
        stable = prompt - _unstable_tokens(call)


def _foreseen(prompt: int, stable: int, removed: int, growth: int, prices: Prices) -> Iterator[float]:
    """Yield what each further call saves if each adds `growth` tokens to its prompt."""
    while True:
        prompt += growth
        yield prices.of(prompt + removed, stable + removed) - prices.of(prompt, stable)
        stable += growth
