"""Cards in the background: following sessions into an index, rebuilding it, erasing from it.

An append gives only a hint, the key of its session, which takes no lock and never waits. A session is behind if the
highest ordinal in its log is above the index's mark. No other state is kept, so the next start, also after a kill,
finds the same messages. One thread at a time works on a session, in batches of ten messages, so a long session does not
delay the others. While appends come in, each thread rests after every message, so that appends take as long as without
cards. It runs at full speed when they pause, or while `flush` waits. If a summarizer fails, the summary is only worse;
if a store fails, it is tried again after a pause; any other error is a finding and waits for the next hint. No error
here reaches an append.

A fork has cards of its own messages only; cards of the shared part are its parent's.

`CardEraser` deletes the cards of a forgotten session or principal, as an `Eraser` of the store. It also deletes
*strays*: cards of messages that are no longer in the log, because a writer that had lost the session appended them.
Anything forgotten while an index was closed is erased when the index is next updated (`settle`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctxsteward.schemas import ContextError, Erased, Finding, InputError, ReferenceNotFound, StoreError
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store import Journal, process_forks as forking
from ctxsteward.store.journal.erasures import Deletion
from ctxsteward.store.journal.events import MessageAppended, from_record
from ctxsteward.store.journal.port import SessionKey

from ..history.session import Session
from ..history.tool_groups import LogEntry
from .index import EVERYTHING, CardIndex, open_cards, ordinals_of
from .maker import CardMaker, PhasePosition, card_maker, one_line, pinned

if TYPE_CHECKING:
    from ctxsteward.store.journal.erasures import Eraser
    from ctxsteward.store.journal.log import Listener

READ_RECORDS = 32
"""Records of a log that are read at a time in the search for its last message."""
BATCH_MESSAGES, REBUILD_BATCH_MESSAGES = 10, 100
THREADS = 2
JOIN_SECONDS = CLOSE_SECONDS = 5.0
MAX_FINDINGS = 1_000
"""Most findings that are kept; older ones are dropped."""
MAX_OPEN_SESSIONS = 64
"""Most sessions kept open between batches; the least recently used one leaves."""
BUSY_SECONDS = 0.02
"""For this long after an append, the next one is expected."""
REST_SECONDS = 0.01
"""Rest after each message while appends are expected."""
_PAUSES_SECONDS = (0.1, 0.5, 2.0, 10.0)
"""Pauses after the first, second, … failure of a store in a row; the last one repeats."""
_ALL = ""
"""Queue item in place of a tenant that means all tenants."""
_Queue = SimpleQueue[SessionKey | str | None]
"""Sessions to check, tenants to scan, None to wake a thread that shall end."""


class CardedStore(Protocol):
    """A store whose sessions get cards; the envelope's `Store` is one."""

    uri: str
    cards_uri: str
    """URI of its card index."""
    journal: Journal
    erasers: list[Eraser]
    appended: list[Listener]

    def at(self, tenant: str, id: str, position: int | None = None) -> Session:
        """Return a session as it was at a log position, for reading only."""

    def card_uris(self) -> tuple[str, ...]:
        """Return the URIs of all indexes that have, or may have, its cards."""


@dataclass(slots=True)
class PendingSession:
    """One session on its way into the index: opened once, then followed as its log grows."""

    session: Session
    generation: int
    """Generation of the session, which changes if messages that were read are replaced."""
    carded: int
    position: PhasePosition = field(default_factory=PhasePosition)
    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def open(
        cls, store: CardedStore, index: CardIndex, key: SessionKey, *, anew: bool = False
    ) -> PendingSession | None:
        """Begin at the index's mark or (`anew`) at the first message; None for a session without a log.

        It also begins at the first message if the newest cards belong to other messages than the log has now.
        """
        if store.journal.length(key) == 0:
            return None
        session = store.at(key.tenant, key.session)
        before = next((origin.ordinal for origin in session.origins()), 0)
        pending = cls(session, session.generation, before)
        carded = 0 if anew else index.carded(*key)
        below = 0
        if before < carded <= len(session):
            refs = [f"§{n}" for n in range(max(before, carded - BATCH_MESSAGES) + 1, carded + 1)]
            cards = index.of_session(*key, refs=refs)
            entries = [pending.entry(card.ordinal) for card in cards]
            if all(e is None or e.event.address == c.address for e, c in zip(entries, cards, strict=True)):
                pending.carded = carded
                if cards:
                    below = cards[-1].ordinal
                    pending.position = PhasePosition(cards[-1].phase_name, cards[-1].turn_number or 0)
        for ordinal in range(below + 1, pending.carded + 1):
            entry = pending.entry(ordinal)
            pending.position = pending.position if entry is None else pending.position.after(entry)
        return pending

    def refresh(self) -> bool:
        """Read newer messages; return False if the log was replaced and the session must be opened again."""
        self.session.refresh()
        return self.session.generation == self.generation and self.carded <= len(self.session)

    @property
    def left(self) -> int:
        """Number of messages without a card."""
        return max(0, len(self.session) - self.carded)

    def make(self, maker: CardMaker, count: int, between: Callable[[], None] = lambda: None) -> list[ContextCard]:
        """Make cards of the next `count` messages and move `carded` on."""
        first, self.carded = self.carded + 1, min(self.carded + count, len(self.session))
        entries = [entry for n in range(first, self.carded + 1) if (entry := self.entry(n)) is not None]
        pins = self.session.state.pins
        cards, self.position = maker.make(self.session.key, entries, self.position, pins, self.findings, between)
        return cards

    def entry(self, ordinal: int) -> LogEntry | None:
        """Return an original; None if it was erased or is unreadable, so that one bad record never stops the others."""
        try:
            entry = self.session.entry(ordinal)
            if entry.event.erased:
                return None
            _ = entry.message
            return entry
        except (Erased, ReferenceNotFound):
            return None
        except ContextError as error:
            if isinstance(error, StoreError) and not isinstance(error, Damaged):
                raise
            self.findings.append(Finding(kind="card_not_made", ref=f"§{ordinal}", text=str(error)))
        return None


def cards_of(
    index: CardIndex, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
) -> list[ContextCard]:
    """Return the cards of a session in ordinal order, including those of the part that a fork shares.

    Pins are the session's present ones, whatever the age of the card. Cards of messages that the log does not have
    are left out.
    """
    wanted = None if refs is None else ordinals_of(refs)
    pins = {f"§{ordinal}": pin for ordinal, pin in session.state.pins.items()}
    cards: list[ContextCard] = []
    name, stop = session.id, len(session)
    for origin in (*session.origins(), None):
        first = 1 if origin is None else origin.ordinal + 1
        part = None if wanted is None else [f"§{n}" for n in wanted if first <= n <= stop]
        own = index.of_session(session.tenant, name, phase=phase, refs=part) if part is None or part else []
        cards[:0] = [pinned(card, pins.get(card.ref)) for card in own if first <= card.ordinal <= stop]
        if origin is not None:
            name, stop = origin.session, min(stop, origin.ordinal)
    return cards


class RebuildResult(NamedTuple):
    """Counts of a rebuild, and its findings."""

    sessions: int
    messages: int
    cards: int
    findings: tuple[Finding, ...]


def rebuild(
    store: CardedStore,
    index: CardIndex,
    maker: CardMaker,
    tenant: str = "default",
    session: str | None = None,
    *,
    on_session: Callable[[str], None] = lambda name: None,
) -> RebuildResult:
    """Make all cards of a session (None: of every session of the tenant) again.

    New cards replace existing ones as they arrive; if a worker runs as well, the card generated last remains. Erased
    messages get none. Among all sessions, a damaged one is skipped with a finding. Raises `InputError` for a session
    that does not exist; `StoreError`.
    """
    sessions = messages = cards = 0
    findings: list[Finding] = []
    for name in store.journal.sessions(tenant) if session is None else [session]:
        on_session(name)
        try:
            pending = PendingSession.open(store, index, SessionKey(tenant, name), anew=True)
        except Damaged as error:
            if session is not None:
                raise
            findings.append(Finding(kind="cards_failed", text=f"session {name!r}: {error}"))
            continue
        if pending is None:
            if session is not None:
                raise InputError(f"{store.uri}: no session {session!r} of tenant {tenant!r}; nothing was rebuilt")
            continue
        sessions += 1
        messages += pending.left
        while pending.left:
            made = pending.make(maker, REBUILD_BATCH_MESSAGES)
            # with an earlier mark a worker would make the rest again, and its later cards would remain
            done = [] if pending.left else [(tenant, name, pending.carded)]
            cards += index.put(made, done)
        findings += pending.findings
    return RebuildResult(sessions, messages, cards, tuple(findings))


class CardEraser:
    """Deletes the cards of forgotten sessions and messages. The files are scrubbed once, at the end."""

    place = "context cards"

    def __init__(self, journal: Journal, index: CardIndex | None, uri: str = "") -> None:
        """Without an `index`, the one at `uri` is opened when there is something to erase from it."""
        self._journal, self._index = journal, index
        self.uri = uri
        """URI of the index; empty if it has none."""

    @contextmanager
    def _opened(self) -> Iterator[CardIndex]:
        if self._index is not None:
            yield self._index
            return
        with closing(open_cards(self.uri)) as index:
            yield index

    def __call__(self, gone: Sequence[Deletion]) -> int:
        count = 0
        with self._opened() as index:
            for deletion in gone:
                if deletion.ordinals is not None:
                    count += self._erase_strays(index, SessionKey(deletion.tenant, deletion.session))
            for deletion in gone:
                is_last = deletion is gone[-1]
                count += index.erase(deletion.tenant, deletion.session, deletion.ordinals, scrub=is_last)
        return count

    def sessions(self, tenant: str) -> list[str]:
        """Return the sessions that are not erased as a whole."""
        with self._opened() as index:
            return [row.session for row in index.sessions(tenant) if EVERYTHING not in row.erased]

    def settle(self, key: SessionKey) -> None:
        """Erase what the journal notes as forgotten of this session, in case the index missed it."""
        notes = self._journal.forgotten(*key)
        with self._opened() as index:
            if notes and index.of_session(*key):
                if any(note.principal is None for note in notes):
                    index.erase(*key)
                else:
                    self._erase_strays(index, key, scrub=True)

    def _erase_strays(self, index: CardIndex, key: SessionKey, *, scrub: bool = False) -> int:
        """Delete cards of messages that the log lacks, and for good those of erased messages.

        A log that another machine owns may be longer there, so cards after its end here are kept.
        """
        cards = index.of_session(*key)  # before the log, which may grow meanwhile
        if self._journal.length(key) == 0:
            return 0
        known: dict[int, MessageAppended] = {}
        for record in self._journal.read(key, 0):
            try:
                event = from_record(record) if record.kind == "message" else None
            except ContextError:  # the record cannot be read
                continue
            if isinstance(event, MessageAppended):
                known[event.ordinal] = event
        last = max(known, default=0) if self._journal.drained(key).epoch < 0 else None
        burnt: list[int] = []
        strays: list[int] = []
        for card in cards:
            held = known.get(card.ordinal)
            if (last is None or card.ordinal <= last) and (held is None or held.address != card.address):
                (burnt if held is not None and held.erased else strays).append(card.ordinal)
        count = 0
        if strays:
            index.put((), [(*key, min(min(strays) - 1, index.carded(*key)))])  # makes those in the log again
            count += index.erase(*key, strays, scrub=scrub and not burnt, burn=False)
        return count + (index.erase(*key, burnt, scrub=scrub) if burnt else 0)


def erasers_of_closed_indexes(store: CardedStore) -> list[CardEraser]:
    """Return erasers of the indexes that the store has, or may have, and that are not open in this process."""
    open_uris = {eraser.uri for eraser in store.erasers if isinstance(eraser, CardEraser)}
    erasers = []
    for uri in store.card_uris():
        scheme, _, rest = uri.partition(":")
        can_hold = scheme != "memory" and (scheme != "sqlite" or Path(rest).is_file())
        if uri not in open_uris and can_hold:
            erasers.append(CardEraser(store.journal, None, uri))
    return erasers


def _run(cards: weakref.ref[StoreCards], queue: _Queue, stopping: threading.Event) -> None:
    """Run a thread. Between batches it keeps no reference to its `StoreCards`, and it ends with them."""
    while not stopping.is_set():
        item = queue.get()
        owner = cards()
        if owner is not None and item is not None:
            owner._serve(item)
        del owner


def _end(queue: _Queue, stopping: threading.Event) -> None:
    stopping.set()
    for _ in range(THREADS):
        queue.put(None)


class StoreCards:
    """An index that two threads update from a store's sessions, and an eraser of it; made by `Store.cards`."""

    def __init__(
        self, store: CardedStore, index: CardIndex | str | None = None, maker: CardMaker | None = None
    ) -> None:
        self._store, self._maker = store, maker or card_maker()
        self._is_own_index = not isinstance(index, CardIndex)
        self.index: CardIndex = index if isinstance(index, CardIndex) else open_cards(index or store.cards_uri)
        if self._is_own_index:
            store.cards_uri = str(index or store.cards_uri)
        self._eraser = CardEraser(store.journal, self.index, store.cards_uri if self._is_own_index else "")
        self.findings: deque[Finding] = deque(maxlen=MAX_FINDINGS)
        """Findings while cards were made, newest last."""
        self.closed: bool = False
        self._closing = forking.lock()
        self._last_hint = 0.0
        self._failures = 0
        self._is_inherited = False
        """Whether the threads are a parent process's and this process has given no hint yet."""
        self._renew()
        forking.renew_in_child(self)
        store.erasers.append(self._eraser)
        store.appended.append(self.hint)
        self._start()

    def _renew(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._waiting: set[SessionKey | str] = set()
        """Items in the queue. Sets and queues of CPython change in one step, so `hint` needs no lock."""
        self._state = threading.Condition()
        """Guards the fields below. It is never held while anything is read, made or written."""
        self._busy: set[SessionKey | str] = set()
        self._again: set[SessionKey | str] = set()
        self._open: OrderedDict[SessionKey, PendingSession] = OrderedDict()
        self._flushing = 0
        self._stopping = threading.Event()
        parts = weakref.ref(self), self._queue, self._stopping
        self._threads = [
            threading.Thread(target=_run, args=parts, name=f"ctxsteward-cards-{n + 1}", daemon=True)
            for n in range(THREADS)
        ]
        weakref.finalize(self, _end, self._queue, self._stopping).atexit = False

    def forked(self) -> None:
        """Renew the threads in a forked child, because threads do not survive a fork; its first hint starts them."""
        self._is_inherited = not self.closed
        self._renew()

    def _start(self) -> None:
        self._enqueue(_ALL)
        for thread in self._threads:
            thread.start()

    def of(
        self, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """Return the cards of a session so far, as `cards_of` reads them."""
        return cards_of(self.index, session, phase=phase, refs=refs)

    def hint(self, key: SessionKey) -> None:
        """Report that a session has grown. It takes no lock, never waits and never raises."""
        self._last_hint = time.monotonic()
        self._wake()
        self._enqueue(key)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until every appended message has its card; return whether that was so in time."""
        self._wake()
        with self._state:
            self._flushing += 1
            try:
                return self._state.wait_for(lambda: not self._waiting and not self._busy, timeout_seconds)
            finally:
                self._flushing -= 1

    def close(self, flush_seconds: float = CLOSE_SECONDS) -> bool:
        """Wait for pending cards, end the threads, and return whether every card was made."""
        with self._closing:
            if self.closed:
                return True
            self.closed = True
            self._store.appended.remove(self.hint)
            done = self.flush(flush_seconds)
            _end(self._queue, self._stopping)
            for thread in self._threads:
                if thread.ident is not None:
                    thread.join(JOIN_SECONDS / THREADS)
            self._store.erasers.remove(self._eraser)
            if self._is_own_index:
                self.index.close()
            return done and not any(thread.is_alive() for thread in self._threads)

    # -- internal steps -----------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._is_inherited:
            with self._state:
                inherited, self._is_inherited = self._is_inherited, False
            if inherited:
                self._start()

    def _enqueue(self, item: SessionKey | str) -> None:
        if item not in self._waiting:
            self._waiting.add(item)
            self._queue.put(item)

    def _serve(self, item: SessionKey | str) -> None:
        with self._state:
            self._waiting.discard(item)  # before the journal is read: a later hint counts
            if item in self._busy:
                self._again.add(item)
                return
            self._busy.add(item)
        more = False
        try:
            more = self._scan(item) if isinstance(item, str) else self._card_some(item)
            self._failures = 0
        except Exception as error:
            more = isinstance(error, StoreError) and not isinstance(error, Damaged | KeyError)
            self._note(item, error, more)
            if more:
                self._failures += 1
                self._stopping.wait(_PAUSES_SECONDS[min(self._failures, len(_PAUSES_SECONDS)) - 1])
        finally:
            with self._state:
                if more or item in self._again:
                    self._again.discard(item)
                    self._enqueue(item)
                self._busy.discard(item)
                self._state.notify_all()

    def _scan(self, tenant: str) -> bool:
        """Queue the tenants, or those sessions of one that have messages without a card."""
        journal = self._store.journal
        if tenant == _ALL:
            for name in sorted({row.tenant for row in self.index.sessions()}.union(journal.tenants())):
                self._enqueue(name)
            return False
        for session in sorted({note.session for note in journal.forgotten(tenant)}):
            self._eraser.settle(SessionKey(tenant, session))
        marks = {row.session: row.carded for row in self.index.sessions(tenant)}
        for session in journal.sessions(tenant):
            key = SessionKey(tenant, session)
            last, carded = _last_ordinal(journal, key), marks.get(session, 0)
            # another machine owns this session and has made more cards than are known here: it is left to that machine
            if last != carded and not (last < carded and journal.drained(key).epoch < 0):
                self._enqueue(key)
        return False

    def _card_some(self, key: SessionKey) -> bool:
        """Card ten messages of a session; return whether there is more to do."""
        self._give_way()
        with self._state:
            pending = self._open.pop(key, None)
        if pending is None or not pending.refresh():
            self._eraser.settle(key)  # the log may have been replaced because of an erasure
            pending = PendingSession.open(self._store, self.index, key)
            if pending is None:
                return False
        self._give_way()
        if pending.left:
            cards = pending.make(self._maker, BATCH_MESSAGES, self._give_way)
            self.index.put(cards, [(*key, pending.carded)])
        self.findings += pending.findings
        pending.findings.clear()
        with self._state:
            self._open[key] = pending
            while len(self._open) > MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
        return pending.left > 0

    def _note(self, item: SessionKey | str, error: Exception, retried: bool) -> None:
        where = f"tenant {item!r}" if isinstance(item, str) else f"session {item.session!r}"
        problem = str(error) if isinstance(error, ContextError) else f"{type(error).__name__}: {error}"
        text = f"{where}: {problem}{'; it is tried again' if retried else ''}"
        self.findings.append(Finding(kind="cards_failed", text=one_line(text)[:500]))

    def _give_way(self) -> None:
        """Give the interpreter to a thread that appends."""
        if self._flushing or time.monotonic() - self._last_hint > BUSY_SECONDS:
            time.sleep(0)  # at once, not after the switch interval of 5 ms
        else:
            self._stopping.wait(REST_SECONDS)


def _last_ordinal(journal: Journal, key: SessionKey) -> int:
    """Return the highest ordinal of a session's own messages, or 0."""
    stop = journal.length(key)
    while stop > 0:
        start = max(0, stop - READ_RECORDS)
        for record in reversed(journal.read(key, start, stop)):
            if record.ordinal:
                return record.ordinal
        stop = start
    return 0
