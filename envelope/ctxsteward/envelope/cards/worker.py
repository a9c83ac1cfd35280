"""Cards beside the conversation: following sessions into an index, making it again, erasing from it.

An append gives at most a hint, the key of its session, which takes no lock and never waits. A session is behind where
the highest ordinal in its log is above the index's mark; nothing else is kept about it, so the next start, also after a
kill, finds the same messages. One thread works on a session at a time, ten messages in turn, so a long session does not
hold up the others. While appends come in each thread rests after every message, so that appends cost what they cost
without it; it goes on at full speed when they pause, or when somebody waits in `flush`. A summarizer that fails costs
a better summary; a store that fails is tried again after a pause; any other error is a finding and waits for the next
hint. Nothing that happens here reaches an append.

A fork has cards of its own messages only; those of the shared part are its parent's.

`CardEraser` deletes the cards of a session or principal that was forgotten, as an `Eraser` of the store. With them go
*strays*: cards of messages that the log does not hold any more, because a writer that had lost the session had appended
them. What was forgotten while an index was not open is erased when it is next kept up (`settle`).
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
"""How much of a log is read at a time while its last message is looked for."""
BATCH_MESSAGES, REBUILD_BATCH_MESSAGES = 10, 100
THREADS = 2
JOIN_SECONDS = CLOSE_SECONDS = 5.0
MAX_FINDINGS = 1_000
"""Kept; older ones are dropped."""
MAX_OPEN_SESSIONS = 64
"""Kept open between batches; the one used longest ago leaves."""
BUSY_SECONDS = 0.02
"""So long after an append the next one is expected."""
REST_SECONDS = 0.01
"""After each message, where appends are expected."""
_PAUSES_SECONDS = (0.1, 0.5, 2.0, 10.0)
"""After a store has failed so many times in a row; the last one again and again."""
_ALL = ""
"""In the queue, in place of a tenant: all of them."""
_Queue = SimpleQueue[SessionKey | str | None]
"""Sessions to look at, tenants to look through, None to wake a thread that is to end."""


class CardedStore(Protocol):
    """A store whose sessions get cards; the envelope's `Store` is one."""

    uri: str
    cards_uri: str
    """Where its cards are."""
    journal: Journal
    erasers: list[Eraser]
    appended: list[Listener]

    def at(self, tenant: str, id: str, position: int | None = None) -> Session:
        """A session as it was at a log position, for reading only."""

    def card_uris(self) -> tuple[str, ...]:
        """Where there are cards of it, or may be."""


@dataclass(slots=True)
class PendingSession:
    """One session on its way into the index: opened once, then followed as its log grows."""

    session: Session
    generation: int
    """Of the session: it changes when messages that were read are replaced."""
    carded: int
    position: PhasePosition = field(default_factory=PhasePosition)
    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def open(
        cls, store: CardedStore, index: CardIndex, key: SessionKey, *, anew: bool = False
    ) -> PendingSession | None:
        """Begin at the index's mark or (`anew`) at the first message; None for a session without a log.

        Begins at the first message, too, if the newest cards are of other messages than the log has now.
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
        """Read newer messages; False if the log was replaced, so that the session is to be opened again."""
        self.session.refresh()
        return self.session.generation == self.generation and self.carded <= len(self.session)

    @property
    def left(self) -> int:
        """Messages left to card."""
        return max(0, len(self.session) - self.carded)

    def make(self, maker: CardMaker, count: int, between: Callable[[], None] = lambda: None) -> list[ContextCard]:
        """Make cards of the next `count` messages and move `carded` on."""
        first, self.carded = self.carded + 1, min(self.carded + count, len(self.session))
        entries = [entry for n in range(first, self.carded + 1) if (entry := self.entry(n)) is not None]
        pins = self.session.state.pins
        cards, self.position = maker.make(self.session.key, entries, self.position, pins, self.findings, between)
        return cards

    def entry(self, ordinal: int) -> LogEntry | None:
        """Return an original, or None if it was erased or cannot be read: one bad record never stops the others."""
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
    """Return the cards of a session in ordinal order, those of the part that a fork shares included.

    Pins are those of the session now, whenever the card was made. Cards of messages that the log does not have are
    left out.
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
    """Counts of a rebuild, and what went wrong."""

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

    Cards that stand are replaced as the new ones arrive; beside a worker the card generated last stands. Erased
    messages get none. Of all sessions, a damaged one is left with a finding. Raises `InputError` for a session that
    does not exist; `StoreError`.
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
            # an earlier mark would have a worker make the rest, later and thus for good
            done = [] if pending.left else [(tenant, name, pending.carded)]
            cards += index.put(made, done)
        findings += pending.findings
    return RebuildResult(sessions, messages, cards, tuple(findings))


class CardEraser:
    """Deletes the cards of what was forgotten; the files are scrubbed once, at the end."""

    place = "context cards"

    def __init__(self, journal: Journal, index: CardIndex | None, uri: str = "") -> None:
        """Without an `index` the one at `uri` is opened when something is to be erased from it."""
        self._journal, self._index = journal, index
        self.uri = uri
        """Where the index is; empty where that has no name."""

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
        """Sessions that are not erased whole."""
        with self._opened() as index:
            return [row.session for row in index.sessions(tenant) if EVERYTHING not in row.erased]

    def settle(self, key: SessionKey) -> None:
        """Erase what the journal notes as forgotten of this session, should the index not have been told."""
        notes = self._journal.forgotten(*key)
        with self._opened() as index:
            if notes and index.of_session(*key):
                if any(note.principal is None for note in notes):
                    index.erase(*key)
                else:
                    self._erase_strays(index, key, scrub=True)

    def _erase_strays(self, index: CardIndex, key: SessionKey, *, scrub: bool = False) -> int:
        """Delete cards that are not of the log's messages; those of erased messages for good.

        A log that another machine owns may be further there: cards behind its end here are left alone.
        """
        cards = index.of_session(*key)  # before the log, which may grow meanwhile
        if self._journal.length(key) == 0:
            return 0
        known: dict[int, MessageAppended] = {}
        for record in self._journal.read(key, 0):
            try:
                event = from_record(record) if record.kind == "message" else None
            except ContextError:  # cannot be read
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
            index.put((), [(*key, min(min(strays) - 1, index.carded(*key)))])  # made again, where the log has them
            count += index.erase(*key, strays, scrub=scrub and not burnt, burn=False)
        return count + (index.erase(*key, burnt, scrub=scrub) if burnt else 0)


def erasers_of_closed_indexes(store: CardedStore) -> list[CardEraser]:
    """Erasers of the indexes that the store has, or may have, and that nobody has open in this process."""
    open_uris = {eraser.uri for eraser in store.erasers if isinstance(eraser, CardEraser)}
    erasers = []
    for uri in store.card_uris():
        scheme, _, rest = uri.partition(":")
        can_hold = scheme != "memory" and (scheme != "sqlite" or Path(rest).is_file())
        if uri not in open_uris and can_hold:
            erasers.append(CardEraser(store.journal, None, uri))
    return erasers


def _run(cards: weakref.ref[StoreCards], queue: _Queue, stopping: threading.Event) -> None:
    """A thread. Between two batches it keeps nothing alive: it ends with its `StoreCards`."""
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
    """An index that two threads keep up with a store's sessions, and an eraser of it; made by `Store.cards`."""

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
        """What went wrong while cards were made, newest last."""
        self.closed: bool = False
        self._closing = forking.lock()
        self._last_hint = 0.0
        self._failures = 0
        self._is_inherited = False
        """The threads are a parent process's, and here nothing was asked of them yet."""
        self._renew()
        forking.renew_in_child(self)
        store.erasers.append(self._eraser)
        store.appended.append(self.hint)
        self._start()

    def _renew(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._waiting: set[SessionKey | str] = set()
        """In the queue; sets and queues of CPython change in one step, so `hint` needs no lock."""
        self._state = threading.Condition()
        """Guards what follows; never held while anything is read, made or written."""
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
        """Threads do not come through a fork; a child's own start with its first hint."""
        self._is_inherited = not self.closed
        self._renew()

    def _start(self) -> None:
        self._enqueue(_ALL)
        for thread in self._threads:
            thread.start()

    def of(
        self, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """The cards of a session so far, as `cards_of` reads them."""
        return cards_of(self.index, session, phase=phase, refs=refs)

    def hint(self, key: SessionKey) -> None:
        """Say that a session has grown; takes no lock, never waits, never raises."""
        self._last_hint = time.monotonic()
        self._wake()
        self._enqueue(key)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything that was appended has its card; whether that was so in time."""
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

    # -- inside -------------------------------------------------------------------------------------------------

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
            # a session that another machine owns, and has carded further than it is known here, is left to it
            if last != carded and not (last < carded and journal.drained(key).epoch < 0):
                self._enqueue(key)
        return False

    def _card_some(self, key: SessionKey) -> bool:
        """Card ten messages of a session; whether there is more to do."""
        self._give_way()
        with self._state:
            pending = self._open.pop(key, None)
        if pending is None or not pending.refresh():
            self._eraser.settle(key)  # the log may have been replaced because somebody was forgotten
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
        """Let a thread that appends have the interpreter."""
        if self._flushing or time.monotonic() - self._last_hint > BUSY_SECONDS:
            time.sleep(0)  # now, not after the switch interval of 5 ms
        else:
            self._stopping.wait(REST_SECONDS)


def _last_ordinal(journal: Journal, key: SessionKey) -> int:
    """The highest ordinal of a session's own messages; 0 where it has none."""
    stop = journal.length(key)
    while stop > 0:
        start = max(0, stop - READ_RECORDS)
        for record in reversed(journal.read(key, start, stop)):
            if record.ordinal:
                return record.ordinal
        stop = start
    return 0
