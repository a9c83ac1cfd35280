"""Replay: a transcript again, with one build for each model call that its assistant messages came from.

A `ReplayCall` is one line of ``replay --json``. A `ReplayTotals` adds calls up, beside what sending all of the history
under the same head would have cost. Tokens are the builder's; `_ms` are milliseconds of wall time.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxsteward.envelope.telemetry.prefix_breaks import prefix_tokens
from ctxsteward.envelope.tokens.models import DEFAULT_CACHE_BLOCK_TOKENS, model_info
from ctxsteward.evals.prompt_cost import Prices
from ctxsteward.evals.replay import replay
from ctxsteward.schemas import Finding

if TYPE_CHECKING:
    from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session
    from ctxsteward.envelope.transcripts import Transcript


class ReplayCall(BaseModel):
    """What one model call was shown, in numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transcript: str
    """Session it was replayed in."""
    call: int
    """1-based in the transcript."""
    turn: int
    """User turns so far."""
    prompt_tokens: int
    prefix_tokens: int
    """Unchanged beginning, against the call before."""
    tokens_by_section: dict[str, int]
    overflow_tokens: int
    compacted: bool
    report_ids: tuple[str, ...]
    build_ms: float
    selection_ms: float
    findings: tuple[Finding, ...]
    envelope: str
    """Address."""


class ReplayStep(NamedTuple):
    """A call, its envelope, and what sending everything would have taken."""

    call: ReplayCall
    envelope: Envelope
    full_tokens: int
    """The same head and every message so far, whole."""
    full_prefix_tokens: int


def replay_calls(builder: EnvelopeBuilder, session: Session, transcript: Transcript) -> Iterator[ReplayStep]:
    """Append the transcript to an empty session, building just before each assistant message."""
    before: Envelope | None = None
    history_tokens = full_before = counted = 0
    for call in replay(transcript, builder, session):
        envelope = call.envelope
        history_tokens += sum(entry.tokens(builder.counter) for entry in session.entries(counted + 1))
        counted = len(session)
        prefix = prefix_tokens(before, envelope, builder.counter.text)
        full = envelope.tokens - envelope.section("dynamic").tokens + history_tokens
        yield ReplayStep(_call(envelope, session, call.number, prefix), envelope, full, full_before)
        before, full_before = envelope, full


def _call(envelope: Envelope, session: Session, number: int, prefix_tokens: int) -> ReplayCall:
    tokens = {name: section.tokens for name, section in envelope.sections.items()}
    return ReplayCall(
        transcript=session.id,
        call=number,
        turn=session.state.turns,
        prompt_tokens=envelope.tokens,
        prefix_tokens=prefix_tokens,
        tokens_by_section={**tokens, "tools": envelope.head.tools_tokens},
        overflow_tokens=sum(section.overflow_tokens for section in envelope.sections.values()),
        compacted=bool(envelope.reports),
        report_ids=tuple(report.id for report in envelope.reports),
        build_ms=envelope.build_ms,
        selection_ms=envelope.selection_ms,
        findings=envelope.findings,
        envelope=envelope.address,
    )


@dataclass(slots=True)
class ReplayTotals:
    """Calls added up."""

    cache_block_tokens: int = DEFAULT_CACHE_BLOCK_TOKENS
    transcripts: int = 0
    formats: Count[str] = field(default_factory=Count)
    calls: int = 0
    sent_tokens: int = 0
    full_tokens: int = 0
    sent_priced: float = 0.0
    """With the cached prefix at a tenth."""
    full_priced: float = 0.0
    compactions: int = 0
    over_budget_calls: int = 0
    findings: Count[str] = field(default_factory=Count)
    """By kind; what one transcript's calls repeat counts once."""
    build_ms: list[float] = field(default_factory=list)
    _noticed: set[tuple[str, str, str | None, str | None]] = field(default_factory=set)

    @classmethod
    def for_builder(cls, builder: EnvelopeBuilder) -> ReplayTotals:
        """With the shortest prefix that the builder's model caches."""
        return cls(model_info(builder.model).cache_block_tokens) if builder.model else cls()

    def add(self, replayed: ReplayStep) -> None:
        """Count one call."""
        call, prices = replayed.call, Prices(block_tokens=self.cache_block_tokens)
        self.calls += 1
        self.sent_tokens += call.prompt_tokens
        self.full_tokens += replayed.full_tokens
        self.sent_priced += prices.of(call.prompt_tokens, call.prefix_tokens)
        self.full_priced += prices.of(replayed.full_tokens, replayed.full_prefix_tokens)
        self.compactions += len(call.report_ids)
        self.over_budget_calls += call.overflow_tokens > 0
        self.build_ms.append(call.build_ms)
        self.notice(call.transcript, call.findings)

    def notice(self, transcript: str, findings: tuple[Finding, ...]) -> None:
        """Count findings that were not seen in this transcript before."""
        for finding in findings:
            key = (transcript, finding.kind, finding.ref, finding.field)
            if key not in self._noticed:
                self._noticed.add(key)
                self.findings[finding.kind] += 1

    def build_ms_at(self, fraction: float) -> float:
        """The build time that this part of the calls did not exceed; 0 without calls."""
        ranked = sorted(self.build_ms)
        return ranked[min(len(ranked) - 1, int(len(ranked) * fraction))] if ranked else 0.0
