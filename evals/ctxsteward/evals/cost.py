"""Measure the cost of context policies on agent runs: raw and cache-priced prompt tokens, beside baselines.

Each row is one strategy for the same runs under the same head, measured by one judge (`prompt_cost`): our default, ours
without recall, the baselines, and the cheapest masking schedule in hindsight. Ratios are to sending everything.

A *step* is an assistant message with its tool results; messages before the first are step 0. Masking replaces the tool
results of older steps by one line and keeps the newest `kept_steps` whole, at least the newest one, which the model has
not seen. The *boundary* of a call is the number of masked steps among those with something to mask; it never moves
back. A window sends only its newest steps and the messages after them.

The schedule in hindsight is found by dynamic programming over calls and boundaries. The cheapest way to have boundary
b at call c either had it at call c - 1 already, whose whole prompt is then a cached prefix, or moved there from some
b' < b; then the prefix ends at the first result of step b', wherever b lies. So one running minimum serves all moves:
O(calls × steps) time and memory.

Raises `InvalidTranscript`, `InputError`, and the builder's exceptions. Source: observation masking, arXiv 2508.21433.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import inf
from pathlib import Path
from random import Random
from typing import NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.schemas import InputError

from .prompt_cost import Bill, PricedPrompt, Prices, Sizer
from .replay import AgentRun, MaskedRun, masking_of, read_runs

WINDOW_STEPS = 5
RARELY_STEPS = 10
BUDGET_STEPS = 8
"""Newest steps that masking within a budget keeps: 97 of 100 values that replies took from a result stood in their
prompt; with five steps, 96."""


Schedule = Callable[[MaskedRun], list[PricedPrompt]]
"""Return the prompt of each call of a run."""


def never(masking: MaskedRun) -> list[PricedPrompt]:
    """Send everything."""
    return masking.prompts([0] * len(masking.run.seen))


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
    """Return the boundary of each call; of equal schedules the one that moves later."""
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


OURS = "ours"
OURS_WITHOUT_RECALL = "ours, no recall"
EVERYTHING = "never: everything"
HINDSIGHT = "best in hindsight"
AGENT = "ours, for tool loops"
HINDSIGHT_IN_BUDGET = f"best in hindsight, keep {BUDGET_STEPS}, in budget"
ALL = "all"

MOST_PRICED_RATIO = 1.05
"""Most that a bounded prompt may cost relative to an unbounded one, cache-priced."""


class CostRow(NamedTuple):
    """Figures of one strategy on a set of runs."""

    runs_of: str
    """Format of the transcripts, or `ALL`."""
    strategy: str
    runs: int
    calls: int
    raw_tokens: int
    priced_tokens: float
    """In tokens at full price."""
    raw_ratio: float
    """Ratio to sending everything."""
    priced_ratio: float
    hindsight_ratio: float
    """Cache-priced, to the cheapest masking schedule known in hindsight."""
    budget_ratio: float
    """Cache-priced, to the cheapest schedule that keeps the policies' steps and, if masking can, the budget."""
    prefix_reuse: float
    """Part of the tokens that came from the cache."""
    compactions: int
    """Calls before which history was compacted, masked or dropped."""
    breaks: int
    """Calls that did not begin with all that the call before was sent."""
    over_budget: float
    """Share of the calls."""
    invalid: float
    """Part of the calls that a provider would refuse."""
    task_shown: float
    """Part of the runs whose task stood word for word in every call."""
    task_reachable: float
    """Share of the runs whose task was shown or named by a reference in every call."""
    values_shown: float | None
    """Share of used found values that the prompt showed; None if no value was used."""


def measure(
    paths: Sequence[str | Path],
    builders: Mapping[str, EnvelopeBuilder],
    *,
    prices: Prices | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[CostRow]:
    """Measure these builders and every baseline on the runs of files and folders, by format and over all.

    The first builder's counter and `dynamic_tokens` hold for all strategies.
    """
    prices = prices or Prices()
    first = next(iter(builders.values()))
    sizer = Sizer(first.counter)
    bills: dict[str, dict[str, Bill]] = {}
    for number, run in enumerate(read_runs(paths, builders, sizer), 1):
        tell(f"run {number}: {run.name}, {len(run.seen)} calls")
        for name, prompts in _sent(run, sizer, prices, first.budgets.dynamic_tokens):
            bill = run.bill(prompts, sizer, prices, budget_tokens=first.budgets.dynamic_tokens)
            bills.setdefault(run.format, {}).setdefault(name, Bill()).add(bill)
    if not bills:
        raise InputError(f"{', '.join(map(str, paths))}: no model call in these transcripts; pass runs with replies")
    return list(_rows(bills))


def strategies(sizer: Sizer, prices: Prices, budget_tokens: int | None = None) -> Mapping[str, Schedule]:
    """Return the baselines by name; `budget_tokens` bounds the last one."""

    def close(strategy: Schedule, masking: MaskedRun, kept_steps: int = 1) -> list[PricedPrompt]:
        return strategy(replace(masking, kept_steps=kept_steps))

    def bounded(strategy: Callable[..., list[PricedPrompt]]) -> Schedule:
        within = partial(strategy, sizer=sizer, prices=prices, budget_tokens=budget_tokens)
        return partial(close, within, kept_steps=BUDGET_STEPS)

    best = partial(cheapest, sizer=sizer, prices=prices)
    return {
        EVERYTHING: never,
        "mask every step": every_step,
        "mask every 10 steps": every_ten_steps,
        "window of 5 steps": window_of_five,
        "random steps left out": random_steps_out,
        HINDSIGHT: best,
        "mask every step, keep 1": partial(close, every_step),
        "best in hindsight, keep 1": partial(close, best),
        HINDSIGHT_IN_BUDGET: bounded(cheapest),
    }


def agent_builder(builder: EnvelopeBuilder) -> EnvelopeBuilder:
    """Return our builder for tool loops: no recall, and results whole on arrival up to three quarters of dynamic."""
    budgets = Budgets.from_document(builder.budgets.document())
    if budgets.arrival_cap_tokens is None:
        cap = Budgets.agent().cap_tokens * budgets.dynamic_tokens // Budgets.agent().dynamic_tokens
        budgets = budgets.model_copy(update={"arrival_cap_tokens": max(16, cap)})
    tokenizer = None if builder.model else builder.counter.tokenizer
    return EnvelopeBuilder(builder.model, tokenizer=tokenizer, budgets=budgets, selector=None)


def _sent(
    run: AgentRun, sizer: Sizer, prices: Prices, budget_tokens: int
) -> Iterator[tuple[str, Sequence[PricedPrompt]]]:
    masking = masking_of(run, sizer)
    yield from run.ours.items()
    for name, strategy in strategies(sizer, prices, budget_tokens).items():
        yield name, strategy(masking)


def _rows(bills: Mapping[str, Mapping[str, Bill]]) -> Iterator[CostRow]:
    summed: dict[str, Bill] = {}
    for by_strategy in bills.values():
        for name, bill in by_strategy.items():
            summed.setdefault(name, Bill()).add(bill)
    together = {ALL: summed} if len(bills) > 1 else {}
    for label, by_strategy in {**bills, **together}.items():
        for name, bill in by_strategy.items():
            best, in_budget = by_strategy[HINDSIGHT], by_strategy[HINDSIGHT_IN_BUDGET]
            yield _row(label, name, bill, by_strategy[EVERYTHING], best, in_budget)


def _row(label: str, name: str, bill: Bill, everything: Bill, best: Bill, in_budget: Bill) -> CostRow:
    return CostRow(
        runs_of=label,
        strategy=name,
        runs=bill.runs,
        calls=bill.calls,
        raw_tokens=bill.tokens,
        priced_tokens=round(bill.priced, 1),
        raw_ratio=round(bill.tokens / everything.tokens, 4),
        priced_ratio=round(bill.priced / everything.priced, 4),
        hindsight_ratio=round(bill.priced / best.priced, 4),
        budget_ratio=round(bill.priced / in_budget.priced, 4),
        prefix_reuse=round(bill.cached_tokens / bill.tokens, 4),
        compactions=bill.rewrites,
        breaks=bill.breaks,
        over_budget=round(bill.over_budget / bill.calls, 4),
        invalid=round(bill.invalid / bill.calls, 4),
        task_shown=round(bill.task_shown / bill.runs, 4),
        task_reachable=round(bill.task_reachable / bill.runs, 4),
        values_shown=round(bill.values_shown / bill.values_used, 4) if bill.values_used else None,
    )


def missed_bars(rows: Sequence[CostRow]) -> list[str]:
    """Describe the bounds that our default misses; empty if it meets all."""
    missed = []
    for row in rows:
        if row.strategy != OURS:
            continue
        for what, value, bar, ok in (
            ("calls a provider would refuse", row.invalid, "0", row.invalid == 0),
            ("runs whose task is lost", round(1 - row.task_reachable, 4), "0", row.task_reachable == 1),
            ("raw tokens to sending everything", row.raw_ratio, "≤ 1", row.raw_ratio <= 1),
            (
                "cache-priced tokens to sending everything",
                row.priced_ratio,
                f"≤ {MOST_PRICED_RATIO:g}",
                row.priced_ratio <= MOST_PRICED_RATIO,
            ),
        ):
            if not ok:
                missed.append(f"{row.runs_of}: {what}: {value:g}, held to {bar}")
    return missed


def grouped(rows: Iterable[CostRow]) -> dict[str, list[CostRow]]:
    """Group rows by their runs, in order."""
    groups: dict[str, list[CostRow]] = {}
    for row in rows:
        groups.setdefault(row.runs_of, []).append(row)
    return groups


def title(rows: Sequence[CostRow], dynamic_tokens: int) -> str:
    """Return the title of a table."""
    first = rows[0]
    return f"{first.runs_of}: {first.runs:,} runs, {first.calls:,} calls, budget {dynamic_tokens:,} tokens"
