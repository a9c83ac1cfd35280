"""The worker that keeps cards up beside the conversation, and what `Store.cards` gives.

    with open_store("file:.ctxsteward") as store:
        cards = store.cards()                    # sqlite:.ctxsteward/cards.sqlite; returns at once
        session.append(…)                        # hints, and never waits
        cards.of(session, phase="research")      # what is carded by now

`StoreCards` is an index, a worker that follows the journal into it, and an eraser among the store's. It ends with the
store. Nothing is lost with the process: what is not carded then is found from the journal the next time (`backlog`).

An append gives at most a *hint*, the key of its session, which takes no lock and never waits. Only hints are lost with
the process: `start` looks through all sessions, and each batch is stored in one step with the mark of how far its
session is done. One thread works on a session at a time, ten messages in turn, so that a long session does not hold up
the others. While appends come in, each thread rests after every message, so that they cost what they cost without it;
it goes on at full speed when they pause, or when somebody waits in `flush`. A summarizer that fails costs a better
summary; a store that fails is tried again after a pause; anything else leaves a finding and waits for the session's
next hint. Nothing that happens here reaches an append.

`CardEraser` deletes the cards of a session or principal that was forgotten. An erasure calls it with what is gone, as
an `Eraser` of `ctxsteward.store`. The one of the index that a store keeps up is among `Store.erasers`. An index that
lies where the store has its cards, but that is not open in this process, is opened for the erasure
(`lazy_card_eraser`), so that a command or a process without cards forgets as much as one with them.

What was forgotten while an index was not at hand is erased when it is next kept up (`settle`); the journal's notes say
what that is. *Strays* are deleted with the rest: cards of messages that the log does not hold any more, because a
writer that had lost the session had appended them.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue

from ctxsteward.schemas import ContextCard, ContextError, Damaged, Finding, InputError, StoreError
from ctxsteward.store import Deletion, MessageAppended, SessionKey, from_record, process_forks as forking

from ..history import Session
from .backlog import PendingSession, behind, cards_of
from .index import open_cards
from .maker import CardMaker, card_maker, one_line, without_embedding
from .port import EVERYTHING, CardedStore, CardIndex, CardProgress


class CardEraser:
    """Deletes the cards of what is gone; the files are scrubbed once, at the end."""

    def __init__(self, store: CardedStore, index: CardIndex | None, uri: str = "") -> None:
        """`index`: None: the one at `uri` is opened when something is to be erased from it."""
        self._journal, self._index = store.journal, index
        self.uri = uri
        """Where the index is; empty where that has no name."""

    @contextmanager
    def _at_hand(self) -> Iterator[CardIndex]:
        if self._index is not None:
            yield self._index
            return
        with closing(open_cards(self.uri)) as index:
            yield index

    def __call__(self, gone: Sequence[Deletion]) -> int:
        count, last = 0, len(gone) - 1
        with self._at_hand() as index:
            for one in gone:
                if one.ordinals is not None:
                    count += self._erase_strays(index, SessionKey(one.tenant, one.session))
            for at, one in enumerate(gone):
                count += index.erase(one.tenant, one.session, one.ordinals, scrub=at == last)
        return count

    def sessions(self, tenant: str) -> list[str]:
        """Sessions that are not erased whole."""
        with self._at_hand() as index:
            return [row.session for row in index.sessions(tenant) if EVERYTHING not in row.erased]

    def settle(self, key: SessionKey) -> int:
        """Erase what the journal notes as forgotten of this session, should the index not have been told."""
        notes = self._journal.forgotten(*key)
        with self._at_hand() as index:
            if not notes or not index.of_session(*key):
                return 0
            if any(note.principal is None for note in notes):
                return index.erase(*key)
            return self._erase_strays(index, key, scrub=True)

    def settle_all(self, tenant: str) -> int:
        """The same for every session of a tenant."""
        sessions = {note.session for note in self._journal.forgotten(tenant)}
        return sum(self.settle(SessionKey(tenant, session)) for session in sorted(sessions))

    def _erase_strays(self, index: CardIndex, key: SessionKey, *, scrub: bool = False) -> int:
        """Delete cards that are not of the log's messages; those of erased messages for good.

        A log that another machine owns may be further there: then what is behind its end here is not judged.
        """
        cards = index.of_session(*key)  # before the log, which may grow meanwhile
        if self._journal.length(key) == 0:
            return 0
        known = dict(self._messages(key))
        last = max(known, default=0) if self._journal.drained(key).epoch < 0 else None
        burnt: list[int] = []
        strays: list[int] = []
        for card in cards:
            event = known.get(card.ordinal)
            if (last is not None and card.ordinal > last) or (event is not None and event.address == card.address):
                continue
            (burnt if event is not None and event.erased else strays).append(card.ordinal)
        if strays:
            # made again, if there
            index.put((), [CardProgress(*key, min(min(strays) - 1, index.carded(*key)))])
        count = index.erase(*key, strays, scrub=scrub and not burnt, burn=False) if strays else 0
        return count + (index.erase(*key, burnt, scrub=scrub) if burnt else 0)

    def _messages(self, key: SessionKey) -> Iterator[tuple[int, MessageAppended]]:
        """Messages of the log by ordinal, without such as cannot be read."""
        for record in self._journal.read(key, 0):
            try:
                event = from_record(record) if record.kind == "message" else None
            except ContextError:
                continue
            if isinstance(event, MessageAppended):
                yield event.ordinal, event


def lazy_card_eraser(store: CardedStore) -> list[CardEraser]:
    """Erasers of the indexes that the store has and that no eraser of it is for."""
    told = {eraser.uri for eraser in store.erasers if isinstance(eraser, CardEraser)}
    return [CardEraser(store, None, uri) for uri in store.card_uris() if uri not in told and _is_there(uri)]


def _is_there(uri: str) -> bool:
    """Whether an index at this URI can hold cards: one in memory is elsewhere, and a missing file holds none."""
    scheme, _, rest = uri.partition(":")
    return scheme != "memory" and (scheme != "sqlite" or Path(rest).is_file())


BATCH_MESSAGES = 10
THREADS = 2
JOIN_SECONDS = 5.0
CLOSE_SECONDS = 5.0
"""That is waited for what is not carded yet."""
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


def _run(
    reference: weakref.ref[CardWorker], queue: SimpleQueue[SessionKey | str | None], stopping: threading.Event
) -> None:
    """A thread. Between two batches it keeps nothing alive: with the worker it ends."""
    while not stopping.is_set():
        item = queue.get()
        worker = reference()
        if worker is not None and item is not None:
            worker._serve(item)
        del worker


def _end(queue: SimpleQueue[SessionKey | str | None], stopping: threading.Event, threads: int) -> None:
    stopping.set()
    for _ in range(threads):
        queue.put(None)


class CardWorker:
    """Keeps an index up with the sessions of a store. `with CardWorker(…) as worker:` starts and stops it."""

    def __init__(
        self,
        store: CardedStore,
        index: CardIndex,
        maker: CardMaker,
        *,
        tenants: Sequence[str] | None = None,
        threads: int = THREADS,
        batch_messages: int = BATCH_MESSAGES,
        join_seconds: float = JOIN_SECONDS,
    ) -> None:
        """`tenants`: whose sessions are carded; None: everybody's. Nothing runs before `start`."""
        if min(threads, batch_messages) < 1:
            raise InputError(f"threads={threads}, batch_messages={batch_messages}; both are at least 1")
        self._store, self._index, self._maker = store, index, maker
        self._tenants = None if tenants is None else frozenset(tenants)
        self._eraser = CardEraser(store, index)
        self._batch_messages, self._join_seconds = batch_messages, join_seconds
        self.findings: deque[Finding] = deque(maxlen=MAX_FINDINGS)
        """What went wrong, newest last."""
        self._count = threads
        self._grown = 0.0
        """When the last hint came; the clock's own zero for none."""
        self._failures = 0
        self._resting = False
        """It was started in the parent of this process, and here it was not asked for anything yet."""
        self._renew()
        forking.renew_in_child(self)

    def _renew(self) -> None:
        self._queue: SimpleQueue[SessionKey | str | None] = SimpleQueue()
        """Sessions to look at, tenants to look through, None to wake a thread that is to end."""
        self._waiting: set[SessionKey | str] = set()
        """In the queue; sets and queues of CPython change in one step, so `hint` needs no lock."""
        self._state = threading.Condition()
        """Guards what follows; never held while anything is read, made or written."""
        self._busy: set[SessionKey | str] = set()
        self._again: set[SessionKey | str] = set()
        self._open: OrderedDict[SessionKey, PendingSession] = OrderedDict()
        self._awaited = 0
        """How many wait in `flush`."""
        self._stopping = threading.Event()
        serves = weakref.ref(self), self._queue, self._stopping
        self._threads = [
            threading.Thread(target=_run, args=serves, name=f"ctxsteward-cards-{n + 1}", daemon=True)
            for n in range(self._count)
        ]
        weakref.finalize(self, _end, self._queue, self._stopping, self._count).atexit = False

    def forked(self) -> None:
        """The threads are not here, and what they were at is the parent's; they start again with the first hint."""
        self._resting = self._resting or (self._threads[0].ident is not None and not self._stopping.is_set())
        self._renew()

    def __enter__(self) -> CardWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the threads and look through all sessions for what is behind; returns at once."""
        for tenant in (_ALL,) if self._tenants is None else sorted(self._tenants):
            self._enqueue(tenant)
        for thread in self._threads:
            thread.start()

    def hint(self, key: SessionKey) -> None:
        """Say that a session has grown; takes no lock, never waits, never raises."""
        self._grown = time.monotonic()
        self._wake_up()
        if self._tenants is None or key.tenant in self._tenants:
            self._enqueue(key)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything hinted at so far is done; whether that was so in time."""
        self._wake_up()
        with self._state:
            self._awaited += 1
            try:
                return self._state.wait_for(lambda: not self._waiting and not self._busy, timeout_seconds)
            finally:
                self._awaited -= 1

    def stop(self) -> bool:
        """End after the batches in hand; whether all threads ended within `join_seconds` (the rest is daemons)."""
        self._resting = False
        _end(self._queue, self._stopping, self._count)
        share = self._join_seconds / len(self._threads)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(share)
        return not any(thread.is_alive() for thread in self._threads)

    # -- inside -------------------------------------------------------------------------------------------------

    def _wake_up(self) -> None:
        if self._resting:
            with self._state:
                resting, self._resting = self._resting, False
            if resting:
                self.start()

    def _enqueue(self, item: SessionKey | str) -> None:
        if item not in self._waiting:
            self._waiting.add(item)
            self._queue.put(item)

    def _serve(self, item: SessionKey | str) -> None:
        if self._take(item):
            more = False
            try:
                more = self._work(item)
            finally:
                self._release(item, more)

    def _take(self, item: SessionKey | str) -> bool:
        """Whether this thread has it now. It leaves `_waiting` before the journal is read: a later hint counts."""
        with self._state:
            mine = item not in self._busy
            (self._busy if mine else self._again).add(item)
            self._waiting.discard(item)
            return mine

    def _release(self, item: SessionKey | str, more: bool) -> None:
        with self._state:
            if more or item in self._again:
                self._again.discard(item)
                self._enqueue(item)
            self._busy.discard(item)
            self._state.notify_all()

    def _work(self, item: SessionKey | str) -> bool:
        """Do a batch; whether there is more to do. Nothing escapes from here."""
        try:
            more = self._scan(item) if isinstance(item, str) else self._batch(item)
        except Exception as error:
            retry = isinstance(error, StoreError) and not isinstance(error, Damaged | KeyError)
            self._note(item, error, retry)
            if retry:
                self._failures += 1
                self._stopping.wait(_PAUSES_SECONDS[min(self._failures, len(_PAUSES_SECONDS)) - 1])
            return retry
        self._failures = 0
        return more

    def _scan(self, tenant: str) -> bool:
        if tenant == _ALL:
            held = {row.tenant for row in self._index.sessions()}
            for name in sorted(held.union(self._store.journal.tenants())):
                self._enqueue(name)
            return False
        self._eraser.settle_all(tenant)
        for key in behind(self._store, self._index, tenant):
            self._enqueue(key)
        return False

    def _batch(self, key: SessionKey) -> bool:
        self._give_way()
        backlog = self._opened(key)
        if backlog is None:
            return False
        self._give_way()
        entries = backlog.next(self._batch_messages)
        upto = min(backlog.carded + self._batch_messages, len(backlog.session))
        if upto > backlog.carded:
            batch = self._maker.make(key, entries, backlog.standing, backlog.session.state.pins, self._give_way)
            self.findings += batch.findings
            done = (CardProgress(key.tenant, key.session, upto),)
            try:
                self._index.put(batch.cards, done)
            except InputError as error:  # embeddings that this index cannot hold: the cards go without
                self._note(key, error, False)
                self._index.put([without_embedding(card) for card in batch.cards], done)
            backlog.carded, backlog.standing = upto, batch.standing
        self.findings += backlog.findings
        backlog.findings.clear()
        with self._state:
            self._open[key] = backlog
            while len(self._open) > MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
        return len(backlog) > 0 or backlog.more

    def _opened(self, key: SessionKey) -> PendingSession | None:
        """The session up to its newest message. Only the thread that has it in hand calls this."""
        with self._state:
            backlog = self._open.pop(key, None)
        if backlog is not None and backlog.refresh():
            return backlog
        self._eraser.settle(key)  # the log may have been replaced because somebody was forgotten
        return PendingSession.open(self._store, self._index, key)

    def _note(self, item: SessionKey | str, error: Exception, retry: bool) -> None:
        where = f"tenant {item!r}" if isinstance(item, str) else f"session {item.session!r}"
        said = str(error) if isinstance(error, ContextError) else f"{type(error).__name__}: {error}"
        then = "; it is tried again" if retry else ""
        self.findings.append(Finding(kind="cards_failed", text=one_line(f"{where}: {said}{then}")[:500]))

    def _give_way(self) -> None:
        """Let a thread that appends have the interpreter."""
        if self._awaited or time.monotonic() - self._grown > BUSY_SECONDS:
            time.sleep(0)  # now, not after the switch interval of 5 ms
        else:
            self._stopping.wait(REST_SECONDS)


class StoreCards:
    """Made by `Store.cards`."""

    def __init__(
        self, store: CardedStore, index: CardIndex | str | None, maker: CardMaker | None, tenants: Sequence[str] | None
    ) -> None:
        maker = maker or card_maker()
        if index is None or isinstance(index, str):
            uri = index or store.cards_uri
            self.index: CardIndex = open_cards(uri)
            self._opened = True
            store.cards_uri = uri
            self._eraser = CardEraser(store, self.index, uri)
        else:
            self.index = index
            self._opened = False
            self._eraser = CardEraser(store, index)
        self.closed: bool = False
        self._store, self._closing = store, forking.lock()
        store.erasers.append(self._eraser)
        self._worker = CardWorker(store, self.index, maker, tenants=tenants)
        self._worker.start()
        store.appended.append(self._worker.hint)

    @property
    def findings(self) -> deque[Finding]:
        """What went wrong while cards were made, newest last."""
        return self._worker.findings

    def of(
        self, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """The cards of a session so far, as `cards_of` reads them."""
        return cards_of(self.index, session, phase=phase, refs=refs)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything that was appended has its card; whether that was so in time."""
        return self._worker.flush(timeout_seconds)

    def close(self, flush_seconds: float = CLOSE_SECONDS) -> bool:
        """Give what is not carded yet some time, and end the threads; whether all was done."""
        with self._closing:
            if self.closed:
                return True
            self.closed = True
            self._store.appended.remove(self._worker.hint)
            done = self._worker.flush(flush_seconds)
            ended = self._worker.stop()
            self._store.erasers.remove(self._eraser)
            if self._opened:
                self.index.close()
            return done and ended
