"""What a context policy costs on agent runs: raw and cache-priced prompt tokens, ours beside baselines and hindsight.

Every row is one way of sending the same runs under the same head, measured by one judge (`cost_prompts`): ours as it is
by default and without recall, the baselines of `cost_baselines`, and the cheapest masking schedule that could have been
chosen had the run been known (`cost_hindsight`). Ratios are to sending everything. Raises `InvalidTranscript`,
`InputError`, and what the builder raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.schemas import InputError

from .cost_baselines import Masking, Schedule, every_step, every_ten_steps, masking_of, never, window_of_five
from .cost_hindsight import cheapest
from .cost_prompts import Bill, Judge, Prices, Prompt, Sizer
from .cost_runs import AgentRun, read_runs

OURS = "ours"
OURS_WITHOUT_RECALL = "ours, no recall"
EVERYTHING = "never: everything"
HINDSIGHT = "best in hindsight"
ALL = "all"

MOST_PRICED_RATIO = 1.05
"""A bounded prompt may cost so much more than one that grows without bound, cache-priced."""


class Row(NamedTuple):
    """One way of sending a set of runs."""

    runs_of: str
    """Format of the transcripts, or `ALL`."""
    strategy: str
    runs: int
    calls: int
    raw_tokens: int
    priced_tokens: float
    """In tokens at full price."""
    raw_ratio: float
    """To sending everything."""
    priced_ratio: float
    hindsight_ratio: float
    """Cache-priced, to the cheapest masking schedule known in hindsight."""
    prefix_reuse: float
    """Part of the tokens that came from the cache."""
    compactions: int
    """Calls before which history was compacted, masked or dropped."""
    breaks: int
    """Calls that did not begin with all that the call before was sent."""
    over_budget: float
    """Part of the calls."""
    invalid: float
    """Part of the calls that a provider would refuse."""
    task_shown: float
    """Part of the runs whose task stood word for word in every call."""
    task_reachable: float
    """The same, or a reference led to it."""


def measure(
    paths: Sequence[str | Path],
    builders: Mapping[str, EnvelopeBuilder],
    *,
    prices: Prices | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Cost of these builders and of every baseline on the runs of files and folders, by format and over all.

    The first builder's counter counts for all, and its `dynamic_tokens` is everybody's budget.
    """
    prices = prices or Prices()
    first = next(iter(builders.values()))
    sizer = Sizer(first.counter)
    bills: dict[str, dict[str, Bill]] = {}
    for number, run in enumerate(read_runs(paths, builders, sizer), 1):
        tell(f"run {number}: {run.name}, {len(run.seen)} calls")
        for name, prompts in _sent(run, sizer, prices):
            judge = Judge(
                sizer=sizer, prices=prices, budget_tokens=first.budgets.dynamic_tokens, task=run.task,
                tools_tokens=run.tools_tokens, task_ordinal=run.task_ordinal,
            )  # fmt: skip
            for prompt in prompts:
                judge.read(prompt)
            bills.setdefault(run.format, {}).setdefault(name, Bill()).add(judge.bill)
    if not bills:
        raise InputError(f"{', '.join(map(str, paths))}: no model call in these transcripts; pass runs with replies")
    return list(_rows(bills))


def strategies(sizer: Sizer, prices: Prices) -> Mapping[str, Schedule]:
    """The baselines by name."""

    def close(strategy: Schedule, masking: Masking) -> list[Prompt]:
        return strategy(replace(masking, kept_steps=1))

    best = partial(cheapest, sizer=sizer, prices=prices)
    return {
        EVERYTHING: never,
        "mask every step": every_step,
        "mask every 10 steps": every_ten_steps,
        "window of 5 steps": window_of_five,
        HINDSIGHT: best,
        "mask every step, keep 1": partial(close, every_step),
        "best in hindsight, keep 1": partial(close, best),
    }


def _sent(run: AgentRun, sizer: Sizer, prices: Prices) -> Iterator[tuple[str, Sequence[Prompt]]]:
    masking = masking_of(run, sizer)
    yield from run.ours.items()
    for name, strategy in strategies(sizer, prices).items():
        yield name, strategy(masking)


def _rows(bills: Mapping[str, Mapping[str, Bill]]) -> Iterator[Row]:
    summed: dict[str, Bill] = {}
    for by_strategy in bills.values():
        for name, bill in by_strategy.items():
            summed.setdefault(name, Bill()).add(bill)
    together = {ALL: summed} if len(bills) > 1 else {}
    for label, by_strategy in {**bills, **together}.items():
        for name, bill in by_strategy.items():
            yield _row(label, name, bill, by_strategy[EVERYTHING], by_strategy[HINDSIGHT])


def _row(label: str, name: str, bill: Bill, everything: Bill, best: Bill) -> Row:
    return Row(
        runs_of=label,
        strategy=name,
        runs=bill.runs,
        calls=bill.calls,
        raw_tokens=bill.tokens,
        priced_tokens=round(bill.priced, 1),
        raw_ratio=round(bill.tokens / everything.tokens, 4),
        priced_ratio=round(bill.priced / everything.priced, 4),
        hindsight_ratio=round(bill.priced / best.priced, 4),
        prefix_reuse=round(bill.cached_tokens / bill.tokens, 4),
        compactions=bill.rewrites,
        breaks=bill.breaks,
        over_budget=round(bill.over_budget / bill.calls, 4),
        invalid=round(bill.invalid / bill.calls, 4),
        task_shown=round(bill.task_shown / bill.runs, 4),
        task_reachable=round(bill.task_reachable / bill.runs, 4),
    )


def missed_bars(rows: Sequence[Row]) -> list[str]:
    """What our default does not hold, in words; empty where the gate is green."""
    missed = []
    for row in rows:
        if row.strategy != OURS:
            continue
        for what, value, bar, ok in (
            ("calls a provider would refuse", row.invalid, "0", row.invalid == 0),
            ("runs whose task is lost", round(1 - row.task_reachable, 4), "0", row.task_reachable == 1),
            ("raw tokens to sending everything", row.raw_ratio, "≤ 1", row.raw_ratio <= 1),
            ("cache-priced tokens to sending everything", row.priced_ratio, f"≤ {MOST_PRICED_RATIO:g}",
             row.priced_ratio <= MOST_PRICED_RATIO),
        ):  # fmt: skip
            if not ok:
                missed.append(f"{row.runs_of}: {what}: {value:g}, held to {bar}")
    return missed
