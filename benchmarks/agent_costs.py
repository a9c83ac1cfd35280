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
from ctxsteward.evals.prompt_cost import Bill, PricedPrompt, Prices, Sizer
from ctxsteward.evals.replay import AgentRun, everything, read_runs
from ctxsteward.schemas import InputError

OURS = "ours"
OURS_WITHOUT_RECALL = "ours, no recall"
EVERYTHING = "never: everything"
AGENT = "ours, for tool loops"
ALL = "all"

MOST_PRICED_RATIO = 1.05
"""Most that a bounded prompt may cost relative to an unbounded one, cache-priced."""


Strategy = Callable[[AgentRun], Sequence[PricedPrompt]]
"""Return the prompt of each call of a run."""
Baselines = Callable[[Sizer], Mapping[str, Strategy]]
"""Make strategies by name."""


class CostRow(NamedTuple):
    """Figures of one strategy on a set of runs."""

    runs_of: str
    """Format of the transcripts, or `ALL`."""
    strategy: str
    runs: int
    calls: int
    raw_ratio: float
    """Ratio to sending everything."""
    priced_ratio: float
    dearest_run: float
    """Highest ratio of a single run, cache-priced."""
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
    baselines: Baselines = lambda sizer: {},
    tell: Callable[[str], None] = lambda text: None,
) -> list[CostRow]:
    """Measure these builders, sending everything, and `baselines`, by format of the runs and over all.

    The first builder's counter and budget of dynamic hold for all strategies.
    """
    prices = prices or Prices()
    first = next(iter(builders.values()))
    sizer = Sizer(first.counter)
    budget_tokens = first.budgets.most_tokens
    strategies = {EVERYTHING: everything, **baselines(sizer)}
    bills: dict[str, dict[str, list[Bill]]] = {}
    for number, run in enumerate(read_runs(paths, builders, sizer), 1):
        tell(f"run {number}: {run.name}, {len(run.seen)} calls")
        for name, prompts in (*run.ours.items(), *((name, sent(run)) for name, sent in strategies.items())):
            bill = run.bill(prompts, sizer, prices, budget_tokens=budget_tokens)
            bills.setdefault(run.format, {}).setdefault(name, []).append(bill)
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


def _rows(bills: Mapping[str, Mapping[str, Sequence[Bill]]]) -> Iterator[CostRow]:
    """Yield the rows for the bills of the runs, by format and strategy."""
    together: dict[str, list[Bill]] = {}
    for by_strategy in bills.values():
        for name, of_runs in by_strategy.items():
            together.setdefault(name, []).extend(of_runs)
    for label, by_strategy in {**bills, **({ALL: together} if len(bills) > 1 else {})}.items():
        baseline = by_strategy[EVERYTHING]
        everything = _summed(baseline)
        for name, of_runs in by_strategy.items():
            bill = _summed(of_runs)
            ratios = [run.priced / other.priced for run, other in zip(of_runs, baseline, strict=True)]
            yield CostRow(
                runs_of=label,
                strategy=name,
                runs=bill.runs,
                calls=bill.calls,
                raw_ratio=round(bill.tokens / everything.tokens, 4),
                priced_ratio=round(bill.priced / everything.priced, 4),
                dearest_run=round(max(ratios), 4),
                over_budget=round(bill.over_budget / bill.calls, 4),
                invalid=round(bill.invalid / bill.calls, 4),
                task_shown=round(bill.task_shown / bill.runs, 4),
                task_reachable=round(bill.task_reachable / bill.runs, 4),
                values_shown=round(bill.values_shown / bill.values_used, 4) if bill.values_used else None,
            )


def _summed(bills: Sequence[Bill]) -> Bill:
    whole = Bill()
    for bill in bills:
        whole.add(bill)
    return whole


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


def title(rows: Sequence[CostRow], dynamic_tokens: int | None) -> str:
    """Return the title of a table; None for the default budgets."""
    first = rows[0]
    budget = "default budgets" if dynamic_tokens is None else f"budget {dynamic_tokens:,} tokens"
    return f"{first.runs_of}: {first.runs:,} runs, {first.calls:,} calls, {budget}"
