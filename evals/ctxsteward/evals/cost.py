"""Measure the cost of our context on agent runs, in raw and cache-priced prompt tokens, against sending everything.

Each row is one strategy for the same runs under the same head, measured by one judge (`prompt_cost`): our default, ours
without recall, ours for tool loops, and everything. Ratios are to sending everything. `baselines` adds strategies of
the caller, as the cost benchmark does.

Raises `InvalidTranscript`, `InputError`, and the builder's exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.schemas import InputError

from .prompt_cost import Bill, PricedPrompt, Prices, Sizer
from .replay import AgentRun, read_runs

OURS = "ours"
OURS_WITHOUT_RECALL = "ours, no recall"
EVERYTHING = "never: everything"
AGENT = "ours, for tool loops"
ALL = "all"

MOST_PRICED_RATIO = 1.05
"""Most that a bounded prompt may cost relative to an unbounded one, cache-priced."""


Strategy = Callable[[AgentRun], Sequence[PricedPrompt]]
"""Return the prompt of each call of a run."""
Baselines = Callable[[Sizer, Prices, int], Mapping[str, Strategy]]
"""Make strategies by name for a budget of dynamic tokens."""


class CostRow(NamedTuple):
    """Figures of one strategy on a set of runs."""

    runs_of: str
    """Format of the transcripts, or `ALL`."""
    strategy: str
    runs: int
    calls: int
    raw_tokens: int
    priced_tokens: float
    """Cost in tokens at full price."""
    raw_ratio: float
    """Ratio to sending everything."""
    priced_ratio: float
    prefix_reuse: float
    """Part of the tokens that came from the cache."""
    compactions: int
    """Calls before which history was compacted, masked or dropped."""
    breaks: int
    """Calls whose prompt does not begin with the whole prompt of the previous call."""
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
    baselines: Baselines = lambda sizer, prices, budget_tokens: {},
    tell: Callable[[str], None] = lambda text: None,
) -> list[CostRow]:
    """Measure these builders, sending everything, and `baselines`, by format of the runs and over all.

    The first builder's counter and `dynamic_tokens` hold for all strategies.
    """
    prices = prices or Prices()
    first = next(iter(builders.values()))
    sizer = Sizer(first.counter)
    budget_tokens = first.budgets.dynamic_tokens
    strategies = {EVERYTHING: everything, **baselines(sizer, prices, budget_tokens)}
    bills: dict[str, dict[str, Bill]] = {}
    for number, run in enumerate(read_runs(paths, builders, sizer), 1):
        tell(f"run {number}: {run.name}, {len(run.seen)} calls")
        for name, prompts in (*run.ours.items(), *((name, sent(run)) for name, sent in strategies.items())):
            bill = run.bill(prompts, sizer, prices, budget_tokens=budget_tokens)
            bills.setdefault(run.format, {}).setdefault(name, Bill()).add(bill)
    if not bills:
        raise InputError(f"{', '.join(map(str, paths))}: no model call in these transcripts; pass runs with replies")
    return list(_rows(bills))


def agent_builder(builder: EnvelopeBuilder) -> EnvelopeBuilder:
    """Return our builder for tool loops: no recall, and results whole on arrival up to three quarters of dynamic."""
    budgets = Budgets.from_document(builder.budgets.document())
    if budgets.arrival_cap_tokens is None:
        cap = Budgets.agent().cap_tokens * budgets.dynamic_tokens // Budgets.agent().dynamic_tokens
        budgets = budgets.model_copy(update={"arrival_cap_tokens": max(16, cap)})
    tokenizer = None if builder.model else builder.counter.tokenizer
    return EnvelopeBuilder(builder.model, tokenizer=tokenizer, budgets=budgets, selector=None)


def everything(run: AgentRun) -> list[PricedPrompt]:
    """Send all messages."""
    return [PricedPrompt((*run.system, *run.messages[:seen])) for seen in run.seen]


def _rows(bills: Mapping[str, Mapping[str, Bill]]) -> Iterator[CostRow]:
    summed: dict[str, Bill] = {}
    for by_strategy in bills.values():
        for name, bill in by_strategy.items():
            summed.setdefault(name, Bill()).add(bill)
    together = {ALL: summed} if len(bills) > 1 else {}
    for label, by_strategy in {**bills, **together}.items():
        everything = by_strategy[EVERYTHING]
        for name, bill in by_strategy.items():
            yield CostRow(
                runs_of=label,
                strategy=name,
                runs=bill.runs,
                calls=bill.calls,
                raw_tokens=bill.tokens,
                priced_tokens=round(bill.priced, 1),
                raw_ratio=round(bill.tokens / everything.tokens, 4),
                priced_ratio=round(bill.priced / everything.priced, 4),
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
