"""Every call of the public transcripts: validity, budgets, references, append-only, and how often it compacts.

The simulation compacts as late as the trigger allows, on the same arrivals, and always down to the larger of the target
and the groups that never leave. A second simulation waits until the budget itself is full. Both concern history alone,
so nothing is recalled there; the promises are counted again with recall, as by default.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.compaction.policy import Window
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.replay import ModelCall, Prefix, check, named_messages, open_session, replay

from .rows import BenchmarkRow, row

NAME = "transcripts"
SETS = {"tau-bench": "tau_bench_airline/*.jsonl", "SWE-agent": "swe_agent/*.traj", "LoCoMo": "locomo/*.json"}
DYNAMIC_TOKENS = (900, 2_000, 4_000)


class LatestSchedule:
    """The fewest possible compactions on a session's arrivals, at a trigger."""

    def __init__(self, budgets: Budgets, trigger_tokens: int) -> None:
        self.budgets = budgets
        self.trigger_tokens = trigger_tokens
        self.count = 0
        self.history = 0
        self.seen = 0

    def call(self, call: ModelCall, budgets: Budgets) -> None:
        """Take one call's arrivals; compact if this is the latest moment."""
        layout = call.envelope.dynamic
        fragments = [f for f in layout.strip.fragments[: layout.stop] if f.refs[-1] > self.seen]
        self.history += sum(fragment.tokens for fragment in fragments)
        self.seen = call.session.state.ordinal
        floor = max(budgets.target_tokens, Window(call.session.state, layout, budgets).must_tokens)
        if self.history >= self.trigger_tokens and self.history - floor >= 0.1 * self.history:
            self.count += 1
            self.history = floor


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Yield the figures, or one row that says that the folder is missing."""
    if data is None or not data.is_dir():
        yield BenchmarkRow(bench=NAME, what="skipped: no folder of public transcripts; pass --data", value="-")
        return
    for dynamic_tokens in DYNAMIC_TOKENS:
        yield from _run(data, dynamic_tokens, recalls=False)
        yield from _run(data, dynamic_tokens, recalls=True)


@dataclass(slots=True)
class TranscriptTotals:
    """Counts over transcripts at one budget."""

    calls: int = 0
    faults: list[str] = field(default_factory=list)
    refs: int = 0
    over_budget: int = 0
    head_grown: int = 0
    compactions: int = 0
    shallow: int = 0
    """Compactions that saved less than a tenth."""
    turns: int = 0
    prefix_faults: int = 0
    compared: int = 0
    latest: int = 0
    full: int = 0
    dropped: int = 0

    def play(self, transcript: Transcript, builder: EnvelopeBuilder) -> None:
        """Replay one transcript and add its counts."""
        budgets = builder.effective_budgets
        prefix = Prefix()
        late = LatestSchedule(budgets, budgets.trigger_tokens)
        last = LatestSchedule(budgets, budgets.history_tokens)
        session = open_session(open_store("memory:"), transcript)
        for call in replay(transcript, builder, session):
            self._read(call)
            prefix.check(call)
            late.call(call, budgets)
            last.call(call, budgets)
        self.turns += session.state.turns
        self.prefix_faults += prefix.faults
        self.compared += prefix.compared
        self.dropped += prefix.dropped
        self.latest += late.count
        self.full += last.count

    def _read(self, call: ModelCall) -> None:
        envelope = call.envelope
        self.calls += 1
        self.faults += check(call)
        self.refs += len(named_messages(envelope, call.session))
        self.over_budget += envelope.section("dynamic").overflow_tokens > 0
        self.head_grown += any(finding.kind == "head_budget_grown" for finding in envelope.findings)
        self.compactions += len(envelope.reports)
        self.shallow += sum(r.pre_tokens - r.post_tokens < 0.1 * r.pre_tokens for r in envelope.reports)


def _run(data: Path, dynamic_tokens: int, *, recalls: bool) -> Iterator[BenchmarkRow]:
    budgets = Budgets(dynamic_tokens=dynamic_tokens)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=budgets, selector="heuristic" if recalls else None)
    head = f"dynamic {dynamic_tokens}" + (", recall" if recalls else "")
    totals = TranscriptTotals()
    started = time.process_time()
    for label, pattern in SETS.items():
        calls, compactions, turns = totals.calls, totals.compactions, totals.turns
        for path in sorted(data.glob(pattern)):
            for transcript in read_transcripts(path):
                totals.play(transcript, builder)
        rate = (totals.compactions - compactions) / max(1, totals.turns - turns)
        yield row(NAME, f"{label}, {head}: calls", totals.calls - calls)
        yield row(NAME, f"{label}, {head}: compactions a user turn", rate)
    yield from _promises(totals, head)
    yield from (_recall_rows(totals, head) if recalls else _economy(totals, head, dynamic_tokens))
    yield row(NAME, f"{head}: CPU for all calls, checks included", time.process_time() - started, "s")


def _promises(totals: TranscriptTotals, head: str) -> Iterator[BenchmarkRow]:
    promises = "validity, budget, task, newest, last raw turn, refs, citations"
    broken = f"append-only broken (of {totals.compared:,} compared)"
    yield row(NAME, f"{head}: calls", totals.calls)
    yield row(NAME, f"{head}: faults ({promises})", len(totals.faults), at_most=0)
    for fault in totals.faults[:5]:
        yield BenchmarkRow(bench=NAME, what=f"  {fault}", value="fault", ok=False)
    yield row(NAME, f"{head}: references resolved to the same bytes", totals.refs)
    yield row(NAME, f"{head}: calls over budget, each legitimately", totals.over_budget)
    yield row(NAME, f"{head}: calls with a head budget grown, each with a finding", totals.head_grown)
    yield row(NAME, f"{head}: {broken}", totals.prefix_faults, at_most=0)
    yield row(NAME, f"{head}: compactions", totals.compactions)
    yield row(NAME, f"{head}: compactions that saved under a tenth", totals.shallow, at_most=0)


def _recall_rows(totals: TranscriptTotals, head: str) -> Iterator[BenchmarkRow]:
    yield row(NAME, f"{head}: compactions a user turn", totals.compactions / max(1, totals.turns))
    yield row(NAME, f"{head}: calls whose live turn took the place of recall, each with a finding", totals.dropped)


def _economy(totals: TranscriptTotals, head: str, dynamic_tokens: int) -> Iterator[BenchmarkRow]:
    late, full = totals.compactions / max(1, totals.latest), totals.compactions / max(1, totals.full)
    yield row(NAME, f"{head}: compactions / fewest at the same trigger and depth", late, "×", at_most=1.15)
    yield row(NAME, f"{head}: compactions / fewest if it waited for a full budget", full, "×")
    bar = 0.25 if dynamic_tokens >= 2_000 else None
    yield row(NAME, f"{head}: compactions a user turn", totals.compactions / max(1, totals.turns), at_most=bar)
