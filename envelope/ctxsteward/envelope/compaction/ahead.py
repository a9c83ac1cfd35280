"""`SummaryAhead`: summaries made beside the session, so that no build waits for a model.

Once the history has come to `START_FRACTION` of what makes a compaction due, the groups that one would take there are
given to the summarizer in a thread. When it is due, what came of that is taken if it is there and its base still
stands: no compaction was made since, nothing was replaced, none of those groups was pinned. Else the compaction is
extractive, as without a model, and a finding says why (`summary_not_ready`, `summary_fell_back`).

With a `provider` the request that was just built is handed on (`prefix`), so that a model of the same provider is asked
behind what it has read already, and bills that as cached.

What is under way is known to this process alone: another one, or one that was restarted, compacts without.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ctxsteward.schemas import Finding, SummarizerInput, Summary, Wire

from ..history import Session
from .policy import CompactionChoice, Window

START_FRACTION = 0.6
"""Of the tokens that make a compaction due."""
MAX_JOBS = 1000
"""Sessions with a summary under way or waiting; the oldest is given up."""


class PrefixedSummarizer(Protocol):
    """A summarizer that can be asked behind a rendered request."""

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCompaction:
    """What a compaction would take, and what its summarizer would be given."""

    choice: CompactionChoice
    source: SummarizerInput
    budget_tokens: int


@dataclass(frozen=True, slots=True)
class _Job:
    base: tuple[int, int, int]
    drop: frozenset[int]
    mask: frozenset[int]
    future: Future[Summary]


class SummaryAhead:
    """Summaries under way, by session; safe with threads."""

    def __init__(self, summarizer: PrefixedSummarizer, provider: str | None = None, *, workers: int = 2) -> None:
        self.summarizer: PrefixedSummarizer = summarizer
        self.provider: str | None = provider
        self._workers, self._lock, self._pid = workers, threading.Lock(), 0
        self._jobs: dict[tuple[str, str], _Job] = {}
        self._pool: ThreadPoolExecutor | None = None

    def consider(
        self,
        session: Session,
        window: Window,
        plan: Callable[[int], PlannedCompaction | None],
        render: Callable[[Any], Wire],
    ) -> None:
        """Begin a summary where one will be wanted soon. `plan` says what a compaction at so many more tokens takes."""
        due_tokens = window.budgets.trigger_at(window.next_share_tokens)
        if window.history_tokens < START_FRACTION * due_tokens or self._job(session) is not None:
            return
        planned = plan(max(0, due_tokens - window.history_tokens))
        if planned is None or not planned.source.messages:
            return
        prefix = None if self.provider is None else render(self.provider)
        self._begin(session, planned, prefix)

    def _begin(self, session: Session, planned: PlannedCompaction, prefix: Wire | None) -> None:
        charged: Any = getattr(self.summarizer, "charged", None)
        summarizer = charged(session=session.id, tenant=session.tenant) if charged is not None else self.summarizer
        more: dict[str, Any] = {} if prefix is None else {"prefix": prefix}
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool, self._pid = ThreadPoolExecutor(self._workers, "ctxsteward-summaries"), os.getpid()
                self._jobs.clear()
            future = self._pool.submit(partial(summarizer, planned.source, budget_tokens=planned.budget_tokens, **more))
            choice = planned.choice
            self._jobs[session.key] = _Job(
                _base(session), frozenset(group.first for group in choice.drop),
                frozenset(group.first for group in choice.mask), future,
            )  # fmt: skip
            while len(self._jobs) > MAX_JOBS:
                self._jobs.pop(next(iter(self._jobs))).future.cancel()

    def _job(self, session: Session) -> _Job | None:
        """What was begun on the state as it is; what was begun on another is given up."""
        with self._lock:
            job = self._jobs.get(session.key)
            if job is None or job.base == _base(session):
                return job
            del self._jobs[session.key]
        job.future.cancel()
        return None

    def landing(
        self, session: Session, window: Window, findings: list[Finding]
    ) -> tuple[CompactionChoice, Summary] | None:
        """The summary for the compaction that is due, and what it takes; None: there is none, as a finding says."""
        job = self._job(session)
        if job is None:
            text = "no summary of the model was under way when one was due"
            findings.append(Finding(kind="summary_not_ready", text=text))
            return None
        with self._lock:
            self._jobs.pop(session.key, None)
        landed = _landed(job, window)
        if isinstance(landed, Finding):
            findings.append(landed)
            return None
        return landed

    def wait(self, seconds: float) -> bool:
        """Wait for what is under way, in tests and at the end of a process; whether all of it is done."""
        from concurrent.futures import wait

        with self._lock:
            futures = [job.future for job in self._jobs.values()]
        return not wait(futures, seconds).not_done


def _landed(job: _Job, window: Window) -> tuple[CompactionChoice, Summary] | Finding:
    if not job.future.done():
        job.future.cancel()
        return Finding(kind="summary_not_ready", text="the model's summary was not ready when it was due")
    error = job.future.exception()
    if error is not None:
        return Finding(kind="summary_fell_back", text=f"the model's summary failed: {type(error).__name__}: {error}")
    summary = job.future.result()
    if summary.origin is not None and not summary.origin.grounded:
        why = "; ".join(summary.origin.fell_back) or f"none of its bullets holds: {summary.origin.refused}"
        return Finding(kind="summary_fell_back", text=f"the model's summary was not used: {why}")
    rows = {row.group.first: row for row in window.candidates}
    if not job.drop | job.mask <= {first for first, row in rows.items() if not row.must}:
        return Finding(kind="summary_fell_back", text="what the model summarized may not leave any more")
    choice = CompactionChoice(
        drop=tuple(row.group for first, row in rows.items() if first in job.drop),
        mask=tuple(row.group for first, row in rows.items() if first in job.mask),
        detail="summary made ahead",
    )
    return choice, summary


def _base(session: Session) -> tuple[int, int, int]:
    return session.generation, session.state.compactions, session.state.compacted_at
