"""`SummaryAhead`: summaries made beside the session, so that no build waits for a model.

Once the history has come to `START_FRACTION` of what makes a compaction due, the groups that one would take there are
given to the summarizer in a thread. When it is due, what came of that is taken if it is there and its base still
stands: it is the same log (nonce, and the addresses of what was summarized), no compaction was made since, nothing was
replaced, none of those groups was pinned. What must leave beside those groups by then is summarized at once, as all of
it is where there is nothing to take; a finding says why (`summary_not_ready`, `summary_fell_back`). Whatever fails
here, in whatever way, is told by that finding alone: a build raises nothing because of it.

With a `provider` the request that was just built is handed on (`prefix`), so that a model of the same provider is asked
behind what it has read already, and bills that as cached.

A summary is forgotten once its compaction is committed; drafts only look at it. One of a session whose log was replaced
(a principal or the session was erased) is not asked for any more and not kept when it comes. One that is there is
deleted at once by a `forget` of this process (`erasers_of`, which the store asks); after one of another process by the
session's next build, and by any build after `SWEEP_SECONDS`.

What is under way is known to this process alone: another one, a fork, or one that was restarted, compacts without. Its
threads hold no process at its end; `close` gives everything up.
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
from .policy import CompactionChoice, Window

START_FRACTION = 0.6
"""Of the tokens that make a compaction due."""
MAX_JOBS = 1000
"""Sessions with a summary under way or waiting; the oldest is given up."""
SWEEP_SECONDS = 30.0


class PrefixedSummarizer(Protocol):
    """A summarizer that can be asked behind a rendered request."""

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCompaction:
    """What a compaction would take, and what its summarizer would be given."""

    choice: CompactionChoice
    source: SummarizerInput
    budget_tokens: int


PreparedSummary = tuple[CompactionChoice, Summary]
"""What a compaction takes, and the bullets of it that were made ahead."""


@dataclass(frozen=True, slots=True)
class _Base:
    """The state of a log that a summary was begun on."""

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
    """Of the session's log, and of those it was forked from."""
    drop: frozenset[int]
    mask: frozenset[int]
    addresses: tuple[str, ...]
    """Of all originals of the groups that leave, in their order."""
    future: Future[Summary] = field(default_factory=Future)

    def stands(self) -> bool:
        """Whether nothing of the log was replaced since, nor the session forgotten; read from the journal."""
        try:
            if any(note.principal is None for note in self.journal.forgotten(self.key.tenant, self.key.session)):
                return False
            return all(self.journal.generation(key) == number for key, number in self.generations)
        except Exception:  # closed, damaged, out of reach: nobody can say that it stands
            return False

    def run(self, summarize: Callable[[], Summary]) -> None:
        """Make the summary; what was erased meanwhile is neither asked for nor kept."""
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
    """What was to be summarized was erased."""


_ALIVE: WeakSet[SummaryAhead] = WeakSet()
"""Of this process; each goes with its builder."""
_ALIVE_LOCK = forking.lock()


def erasers_of(journal: Journal) -> list[Eraser]:
    """What deletes the summaries that this process holds of a journal's sessions."""
    with _ALIVE_LOCK:
        return [partial(ahead, journal=journal) for ahead in _ALIVE]


class SummaryAhead:
    """Summaries under way, by session; safe with threads."""

    place = "summaries made ahead"

    def __init__(self, summarizer: PrefixedSummarizer, provider: str | None = None, *, workers: int = 2) -> None:
        self.summarizer: PrefixedSummarizer = summarizer
        self.provider: str | None = provider
        """Of `EnvelopeBuilder`'s; it refuses another one."""
        self._workers, self._lock = workers, forking.lock()
        self._jobs: dict[tuple[SessionKey, str], _Job] = {}
        self._waiting: deque[tuple[_Job, Callable[[], Summary]]] = deque()
        self._running = 0
        self._swept = time.monotonic()
        forking.renew_in_child(self)
        with _ALIVE_LOCK:
            _ALIVE.add(self)

    def forked(self) -> None:
        """In a child: what the parent's threads make is the parent's."""
        self._jobs.clear()
        self._waiting.clear()
        self._running = 0

    # -- beginning ----------------------------------------------------------------------------------------------

    def consider(
        self,
        session: Session,
        window: Window,
        plan: Callable[[int], PlannedCompaction | None],
        render: Callable[[Any], Wire],
    ) -> None:
        """Begin a summary where one will be wanted soon. `plan` says what a compaction at so many more tokens takes."""
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
        with suppress(Exception):  # whatever cannot be planned is compacted without, as a finding will say
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
            return  # replaced since it was read: the next build reads it anew
        try:
            summarize = self._prepared(session, planned, render)
        except Exception as error:  # `charged` and `render` are others' code
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
        """Have it done by a thread; under the lock. Where none can be started any more it is never done."""
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
            del job, summarize  # what was erased is not held until there is more to do

    # -- landing ------------------------------------------------------------------------------------------------

    def landing(self, session: Session, window: Window) -> PreparedSummary | Finding:
        """The summary for the compaction that is due, and what it takes; or the finding that says why there is none.

        It changes nothing: a compaction that is not committed after all leaves the summary to the next one.
        """
        with self._lock:
            job = self._jobs.get(_name(session))
        if job is None or job.base != _Base.of(session):
            return Finding(kind="summary_not_ready", text="no summary of the model was under way when one was due")
        if not job.future.done():
            return Finding(kind="summary_not_ready", text="the model's summary was not ready when it was due")
        return _landed(job, session, window)

    def settle(self, session: Session, event: Event) -> None:
        """A compaction was committed: what was begun before it is over. Of a draft nothing is committed."""
        if isinstance(event, WindowCompacted) and not isinstance(session.journal, DraftJournal):
            with self._lock:
                job = self._jobs.pop(_name(session), None)
            if job is not None:
                job.future.cancel()

    def wait(self, seconds: float) -> bool:
        """Wait for what is under way, in tests and at the end of a process; whether all of it is done."""
        from concurrent.futures import wait

        with self._lock:
            futures = [job.future for job in self._jobs.values()]
        return not wait(futures, seconds).not_done

    # -- giving up ----------------------------------------------------------------------------------------------

    def __call__(self, gone: Sequence[Deletion], *, journal: Journal | None = None) -> int:
        """As an eraser of `forget`: summaries of these sessions, of one journal or of all, are deleted; how many."""
        names = {(one.tenant, one.session) for one in gone}
        return self._give_up(lambda job: (job.key.tenant, job.key.session) in names and journal in (None, job.journal))

    def close(self) -> None:
        """Give up everything. A call that is under way ends by itself; its answer is dropped."""
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
        """Now and then delete what was made of logs that have been replaced since."""
        with self._lock:
            if time.monotonic() < self._swept + SWEEP_SECONDS:
                return
            self._swept = time.monotonic()
            jobs = list(self._jobs.values())
        over = [job for job in jobs if not job.stands()]
        self._give_up(lambda job: any(job is one for one in over))


def _name(session: Session) -> tuple[SessionKey, str]:
    """Of a log: sessions of two stores may have one id."""
    return session.key, session.state.nonce


def _addresses(session: Session, groups: set[int] | frozenset[int]) -> tuple[str, ...]:
    """Of the originals of these groups of the window, in order."""
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
    """The finding of a summary that was made and not used."""
    return Finding(kind="summary_fell_back", text=f"the model's summary was not used: {why}")
