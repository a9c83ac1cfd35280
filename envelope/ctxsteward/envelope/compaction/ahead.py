"""Make summaries in the background (`SummaryAhead`), so that no build waits for a model.

When the history reaches `START_FRACTION` of the tokens that make a compaction due, and that part of its price may be
lost if it waits, a thread gives the summarizer the groups that a compaction would take then. When the compaction is
due, that summary is used if it is ready and its base is unchanged: the same log (nonce, and the addresses of the
summarized messages), no compaction since, nothing replaced, none of the groups pinned. Further groups that must leave
by then are summarized at once. Without a usable summary all groups are summarized at once, and a finding gives the
reason (`summary_not_ready`, `summary_fell_back`). Any failure here is reported by that finding alone: a build never
raises because of it.

With a `provider` the summarizer also gets the request that was just built (`prefix`). A model of the same provider then
reads its instructions behind text that it has read already, which is billed as cached.

A summary is dropped once its compaction is committed; drafts only read it. If a session's log was replaced (a principal
or the session was erased), its summary is not requested any more and not kept when it arrives. An existing one is
deleted at once by a `forget` in this process (`erasers_of`, which the store calls). After a `forget` in another
process, the session's next build deletes it, or any build after `SWEEP_SECONDS`.

Summaries exist in this process alone: another process, a fork, or a restarted process compacts without them. The
threads never delay the end of the process; `close` gives up all work.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from ctxsteward.schemas import Finding, SummarizerInput, Summary
from ctxsteward.schemas.message import Wire
from ctxsteward.store import Journal, process_forks as forking
from ctxsteward.store.journal.draft import DraftJournal
from ctxsteward.store.journal.erasures import Deletion, Eraser
from ctxsteward.store.journal.events import Event, WindowCompacted
from ctxsteward.store.journal.port import SessionKey

from ..history.session import Session
from .policy import CompactionChoice, Window, paced
from .regret import affordable

START_FRACTION = 0.6
"""Fraction of the tokens that make a compaction due at which its summary is begun."""
MAX_JOBS = 1000
"""Most sessions with a summary running or waiting; beyond it the oldest is given up."""
SWEEP_SECONDS = 30.0


class PrefixedSummarizer(Protocol):
    """A summarizer that can send its instructions behind a rendered request."""

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCompaction:
    """The groups that a compaction would take, and its summarizer's arguments."""

    choice: CompactionChoice
    source: SummarizerInput
    budget_tokens: int


PreparedSummary = tuple[CompactionChoice, Summary]
"""The groups that a compaction takes, and their summary made ahead."""


@dataclass(frozen=True, slots=True)
class _Base:
    """State of a log when a summary was begun."""

    nonce: str
    generation: int
    compactions: int
    compacted_at: int

    @classmethod
    def of(cls, session: Session) -> _Base:
        state = session.state
        return cls(state.nonce, session.generation, state.compactions, state.compacted_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    base: _Base
    journal: Journal
    key: SessionKey
    generations: tuple[tuple[SessionKey, int], ...]
    """Generations of the session's log and of the logs it was forked from."""
    drop: frozenset[int]
    mask: frozenset[int]
    addresses: tuple[str, ...]
    """Addresses of all originals of the leaving groups, in order."""
    future: Future[Summary] = field(default_factory=Future)

    def stands(self) -> bool:
        """Return whether the journal shows that no record was replaced since and the session was not forgotten."""
        try:
            if any(note.principal is None for note in self.journal.forgotten(self.key.tenant, self.key.session)):
                return False
            return all(self.journal.generation(key) == number for key, number in self.generations)
        except Exception:  # closed, damaged or out of reach: the base cannot be confirmed
            return False

    def run(self, summarize: Callable[[], Summary]) -> None:
        """Make the summary; text erased meanwhile is not sent, and a summary of it is not kept."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            summary = summarize() if self.stands() else None
            if summary is None or not self.stands():
                raise _Erased
            self.future.set_result(summary)
        except BaseException as error:  # the thread's last frame
            self.future.set_exception(error.with_traceback(None))


class _Erased(Exception):
    """The text to be summarized was erased."""


_ALIVE: WeakSet[SummaryAhead] = WeakSet()
"""All instances of this process; each lives as long as its builder."""
_ALIVE_LOCK = forking.lock()


def erasers_of(journal: Journal) -> list[Eraser]:
    """Return erasers of the summaries that this process has of a journal's sessions."""
    with _ALIVE_LOCK:
        return [partial(ahead, journal=journal) for ahead in _ALIVE]


class SummaryAhead:
    """Running and finished summaries by session; safe with threads."""

    place = "summaries made ahead"

    def __init__(self, summarizer: PrefixedSummarizer, provider: str | None = None, *, workers: int = 2) -> None:
        self.summarizer: PrefixedSummarizer = summarizer
        self.provider: str | None = provider
        """Name of a provider that `EnvelopeBuilder` accepts, or None to send no prefix."""
        self._workers, self._lock = workers, forking.lock()
        self._jobs: dict[tuple[SessionKey, str], _Job] = {}
        self._waiting: deque[tuple[_Job, Callable[[], Summary]]] = deque()
        self._running = 0
        self._swept = time.monotonic()
        forking.renew_in_child(self)
        with _ALIVE_LOCK:
            _ALIVE.add(self)

    def forked(self) -> None:
        """Drop all jobs in a child process: the parent's threads serve the parent alone."""
        self._jobs.clear()
        self._waiting.clear()
        self._running = 0

    # -- starting -----------------------------------------------------------------------------------------------

    def consider(
        self,
        session: Session,
        window: Window,
        plan: Callable[[int], PlannedCompaction | None],
        render: Callable[[Any], Wire],
    ) -> None:
        """Start a summary if one will be needed soon; `plan(n)` gives the compaction after n more tokens."""
        self._sweep()
        with self._lock:
            job = self._jobs.get(_name(session))
            if job is not None and job.base != _Base.of(session):
                del self._jobs[_name(session)]
                job.future.cancel()
                job = None
        due_tokens = min(window.budgets.trigger_at(window.next_share_tokens), window.budgets.dynamic_tokens)
        if job is not None or window.history_tokens < START_FRACTION * due_tokens:
            return
        if affordable(window, paced(window), START_FRACTION) is None:
            return  # the compaction waits, and what it takes is not known yet
        with suppress(Exception):  # the compaction goes without a summary then, and a finding reports it
            planned = plan(max(0, due_tokens - window.history_tokens))
            if planned is not None and planned.source.messages:
                self._begin(session, planned, render)

    def _begin(self, session: Session, planned: PlannedCompaction, render: Callable[[Any], Wire]) -> None:
        drop, mask = ({group.first for group in groups} for groups in (planned.choice.drop, planned.choice.mask))
        keys = [session.key, *(SessionKey(session.tenant, origin.session) for origin in session.origins())]
        job = _Job(
            base=_Base.of(session),
            journal=session.journal,
            key=session.key,
            generations=tuple((key, session.journal.generation(key)) for key in keys),
            drop=frozenset(drop),
            mask=frozenset(mask),
            addresses=_addresses(session, drop | mask),
        )
        if sum(number for _, number in job.generations) != job.base.generation:
            return  # the log was replaced since it was read: the next build reads it anew
        try:
            summarize = self._prepared(session, planned, render)
        except Exception as error:  # `charged` and `render` may raise anything
            job.future.set_exception(error.with_traceback(None))
            summarize = None
        with self._lock:
            self._jobs[_name(session)] = job
            while len(self._jobs) > MAX_JOBS:
                self._jobs.pop(next(iter(self._jobs))).future.cancel()
            if summarize is not None:
                self._start(job, summarize)

    def _prepared(
        self, session: Session, planned: PlannedCompaction, render: Callable[[Any], Wire]
    ) -> Callable[[], Summary]:
        charged: Any = getattr(self.summarizer, "charged", None)
        summarizer = charged(session=session.id, tenant=session.tenant) if charged is not None else self.summarizer
        more: dict[str, Any] = {} if self.provider is None else {"prefix": render(self.provider)}
        return partial(summarizer, planned.source, budget_tokens=planned.budget_tokens, **more)

    def _start(self, job: _Job, summarize: Callable[[], Summary]) -> None:
        """Queue a job and start a thread for it; call under the lock. If no thread can start, the job is never done."""
        self._waiting.append((job, summarize))
        if self._running < self._workers:
            with suppress(RuntimeError):  # the interpreter is about to end, or has no more threads
                threading.Thread(target=self._work, name="ctxsteward-summaries", daemon=True).start()
                self._running += 1

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                job, summarize = self._waiting.popleft()
            job.run(summarize)
            del job, summarize  # else erased text would stay in memory until the next job

    # -- using a summary ----------------------------------------------------------------------------------------

    def landing(self, session: Session, window: Window) -> PreparedSummary | Finding:
        """Return the summary for the compaction that is due, with its groups, or a finding why there is none.

        It changes nothing: if the compaction is not committed, the next one can use the summary.
        """
        with self._lock:
            job = self._jobs.get(_name(session))
        if job is None or job.base != _Base.of(session):
            return Finding(kind="summary_not_ready", text="no summary of the model was under way when one was due")
        if not job.future.done():
            return Finding(kind="summary_not_ready", text="the model's summary was not ready when it was due")
        return _landed(job, session, window)

    def settle(self, session: Session, event: Event) -> None:
        """Drop a session's summary after a committed compaction; a draft commits nothing."""
        if isinstance(event, WindowCompacted) and not isinstance(session.journal, DraftJournal):
            with self._lock:
                job = self._jobs.pop(_name(session), None)
            if job is not None:
                job.future.cancel()

    def wait(self, seconds: float) -> bool:
        """Wait for running summaries, in tests and at the end of a process; return whether all are done."""
        from concurrent.futures import wait

        with self._lock:
            futures = [job.future for job in self._jobs.values()]
        return not wait(futures, seconds).not_done

    # -- giving up ----------------------------------------------------------------------------------------------

    def __call__(self, gone: Sequence[Deletion], *, journal: Journal | None = None) -> int:
        """Delete summaries of forgotten sessions, of one journal or of all, and return how many (an `Eraser`)."""
        names = {(one.tenant, one.session) for one in gone}
        return self._give_up(lambda job: (job.key.tenant, job.key.session) in names and journal in (None, job.journal))

    def close(self) -> None:
        """Give up all jobs. A running call ends by itself, and its answer is dropped."""
        self._give_up(lambda job: True)

    def _give_up(self, is_over: Callable[[_Job], bool]) -> int:
        with self._lock:
            names = [name for name, job in self._jobs.items() if is_over(job)]
            jobs = [self._jobs.pop(name) for name in names]
            for job in jobs:
                job.future.cancel()
            self._waiting = deque(row for row in self._waiting if not row[0].future.cancelled())
        return len(jobs)

    def _sweep(self) -> None:
        """Every `SWEEP_SECONDS` delete summaries of logs that were replaced."""
        with self._lock:
            if time.monotonic() < self._swept + SWEEP_SECONDS:
                return
            self._swept = time.monotonic()
            jobs = list(self._jobs.values())
        over = [job for job in jobs if not job.stands()]
        self._give_up(lambda job: any(job is one for one in over))


def _name(session: Session) -> tuple[SessionKey, str]:
    """Return the key of a log; sessions of two stores may have the same id."""
    return session.key, session.state.nonce


def _addresses(session: Session, groups: set[int] | frozenset[int]) -> tuple[str, ...]:
    """Return the addresses of the originals in these groups of the window, in order."""
    there = (group for group in session.state.groups if group.first in groups)
    return tuple(entry.event.address for group in there for entry in group.entries)


def _landed(job: _Job, session: Session, window: Window) -> PreparedSummary | Finding:
    error = job.future.exception()
    if error is not None:
        return fell_back(f"it failed: {type(error).__name__}")
    summary = job.future.result()
    origin = summary.origin if isinstance(summary, Summary) else None
    if origin is not None and not origin.grounded:
        return fell_back("; ".join(origin.fell_back) or f"none of its bullets holds: {origin.refused}")
    rows = {row.group.first: row for row in window.candidates}
    if not job.drop | job.mask <= {first for first, row in rows.items() if not row.must}:
        return fell_back("what it is of may not leave any more")
    if job.addresses != _addresses(session, job.drop | job.mask):
        return fell_back("what it is of is not what is there now")
    choice = CompactionChoice(
        drop=tuple(row.group for first, row in rows.items() if first in job.drop),
        mask=tuple(row.group for first, row in rows.items() if first in job.mask),
        detail="summary made ahead",
    )
    return choice, summary


def fell_back(why: str) -> Finding:
    """Return the finding that a summary was made and not used."""
    return Finding(kind="summary_fell_back", text=f"the model's summary was not used: {why}")
