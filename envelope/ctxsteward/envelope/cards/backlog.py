"""What is still to be carded, found from the journal; and making an index's cards again.

The worker (`worker`) and `cards rebuild` use it. A session is behind where the highest ordinal in its log is above the
index's mark. Nothing else is kept about it, so the next worker, also after a kill, finds the same messages. A fork has
cards of its own messages only; those of the shared part are its parent's. Reads `sessions`, `length`, `read` and
`message` of a journal, and originals through a session opened for reading.

`rebuild` makes cards again from originals: after an index was lost, or with another summarizer or embedder. Cards that
stand are replaced as the new ones arrive; a reader sees one or the other. Erased messages get none. It may run beside
workers: whoever generates last wins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxsteward.schemas import ContextCard, ContextError, Damaged, Finding, InputError, StoreError
from ctxsteward.store import DamagedRecord, Journal, Log, SessionKey, fork_point

from ..history import LogEntry, Session, fold
from .maker import CardMaker, PhasePosition, pinned
from .port import CardedStore, CardIndex, CardProgress, ordinals_of

_TAIL_RECORDS = 32
"""Read at a time from the end of a log to find its last message."""
READ_RECORDS = 32
"""How much of a growing log is read at a time: reading all of it would hold up its writers."""
_STANDING_CARDS = 16
"""Looked at to find where in its phases a session stands."""


def last_ordinal(journal: Journal, key: SessionKey) -> int:
    """The highest ordinal of a session's own messages; 0 where it has none."""
    stop = journal.length(key)
    while stop > 0:
        start = max(0, stop - _TAIL_RECORDS)
        for record in reversed(journal.read(key, start, stop)):
            if record.ordinal:
                return record.ordinal
        stop = start
    return 0


def behind(store: CardedStore, index: CardIndex, tenant: str) -> Iterator[SessionKey]:
    """Sessions of a tenant with messages that are not carded yet.

    One that another machine owns, and has carded further than it is known here, is left to that machine.
    """
    marks = {row.session: row.carded for row in index.sessions(tenant)}
    for session in store.journal.sessions(tenant):
        key = SessionKey(tenant, session)
        last, carded = last_ordinal(store.journal, key), marks.get(session, 0)
        if last != carded and not (last < carded and store.journal.drained(key).epoch < 0):
            yield key


@dataclass(slots=True)
class PendingSession:
    """One session on its way into the index: opened once, then followed as its log grows."""

    session: Session
    log: Log
    line: tuple[SessionKey, ...]
    """Its log and those it shares, the nearest first."""
    first: int
    """Ordinal of its own first message: 1, but for a fork."""
    carded: int
    standing: PhasePosition
    generation: int = 0
    """Of the line: it changes when what was already written is replaced."""
    more: bool = False
    """There may be more in the log than was read."""
    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def open(
        cls, store: CardedStore, index: CardIndex, key: SessionKey, *, anew: bool = False
    ) -> PendingSession | None:
        """From the index's mark on, or (`anew`) from the beginning; None for a session that has no log.

        Where the cards below the mark are of other messages than the log has now, it begins anew as well.
        """
        length = store.journal.length(key)
        if length == 0:
            return None
        line = line_of(store.journal, key)
        generation = _generation(store.journal, line)
        session = store.at(key.tenant, key.session, length)
        origin = fork_point(store.journal.read(key, 0, 1))
        first = origin.ordinal + 1 if origin is not None else 1
        carded = 0 if anew else index.carded(*key)
        log = Log(store.journal, key, session.address_key, session.repair)
        backlog = cls(session, log, line, first, max(carded, first - 1), PhasePosition(), generation)
        if not backlog._stand(index, carded):
            backlog.carded = first - 1
            backlog._stand(index, 0)
        return backlog

    def _stand(self, index: CardIndex, carded: int) -> bool:
        """Find where the session stands after the last carded message; False where the cards are of another log."""
        start = PhasePosition()
        below = 0
        if carded >= self.first:
            refs = [f"§{n}" for n in range(max(self.first, carded - _STANDING_CARDS + 1), carded + 1)]
            cards = index.of_session(*self.session.key, refs=refs)
            if carded > len(self.session) or not all(self._is_of(card) for card in cards):
                return False
            if cards:
                start, below = PhasePosition(cards[-1].phase_name, cards[-1].turn_number or 0), cards[-1].ordinal
        for ordinal in range(below + 1, self.carded + 1):
            entry = self._entry(ordinal)
            start = start.after(entry) if entry is not None else start
        self.standing = start
        return True

    def _is_of(self, card: ContextCard) -> bool:
        entry = self._entry(card.ordinal)
        return entry is None or entry.event.address == card.address

    def refresh(self) -> bool:
        """Read some of what was appended since, where nothing is left to card; False where the log was replaced, and
        this is to be opened again."""
        if _generation(self.log.journal, self.line) != self.generation:
            return False
        self.more = len(self) > 0
        if self.more:
            return True
        start = self.session.state.position
        rows = self.log.read(start, start + READ_RECORDS, whole=False)
        if any(isinstance(row, DamagedRecord) for row in rows):  # what it was is told by all that comes after it
            self.session.refresh()
            rows = []
        fold(self.session.state, rows, self.session.replica)
        self.more = len(rows) == READ_RECORDS
        return self.carded <= len(self.session)

    def __len__(self) -> int:
        """Messages left to card."""
        return max(0, len(self.session) - self.carded)

    def next(self, count: int) -> list[LogEntry]:
        """At most `count` messages after those carded, without such as are gone."""
        stop = min(self.carded + count, len(self.session))
        found = (self._entry(ordinal) for ordinal in range(self.carded + 1, stop + 1))
        return [entry for entry in found if entry is not None]

    def _entry(self, ordinal: int) -> LogEntry | None:
        """An original; None where it was erased or cannot be read, so that one bad record never stops the rest."""
        try:
            entry = self._in_window(ordinal) or self.session.entry(ordinal)
            if getattr(entry.event, "erased", False):
                return None
            _ = entry.message
            return entry
        except StoreError as error:
            if not isinstance(error, Damaged | KeyError):
                raise
            if isinstance(error, Damaged):
                self.findings.append(Finding(kind="card_not_made", ref=f"§{ordinal}", text=str(error)))
        except ContextError as error:
            if not isinstance(error, KeyError):
                self.findings.append(Finding(kind="card_not_made", ref=f"§{ordinal}", text=str(error)))
        return None

    def _in_window(self, ordinal: int) -> LogEntry | None:
        """The entry where the session holds it in memory, in logarithmic time; a damaged one is not taken."""
        groups = self.session.state.groups
        at = bisect_right(groups, ordinal, key=lambda group: group.first) - 1
        found = groups[at].entries if at >= 0 else ()
        for entry in found:
            if entry.ordinal == ordinal and not getattr(entry.event, "damaged", False):
                return entry
        return None


def line_of(journal: Journal, key: SessionKey) -> tuple[SessionKey, ...]:
    """A log and those it shares, the nearest first."""
    origin = fork_point(journal.read(key, 0, 1))
    return (key,) if origin is None else (key, *line_of(journal, SessionKey(key.tenant, origin.session)))


def _generation(journal: Journal, line: tuple[SessionKey, ...]) -> int:
    return sum(journal.generation(key) for key in line)


def cards_of(
    index: CardIndex, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
) -> list[ContextCard]:
    """All cards of a session as it is now, in ordinal order: a fork's with those of the part it shares.

    Pins are those of the session now, whenever the card was made. Cards of messages that the log does not have are
    left out.
    """
    wanted = None if refs is None else set(ordinals_of(refs))
    all_cards: list[ContextCard] = []
    key, stop = session.key, len(session)
    while True:
        origin = fork_point(session.journal.read(key, 0, 1))
        first = origin.ordinal + 1 if origin is not None else 1
        part = None if wanted is None else [f"§{n}" for n in sorted(wanted) if first <= n <= stop]
        if part is None or part:
            cards = index.of_session(*key, phase=phase, refs=part)
            if cards and not first <= cards[0].ordinal <= cards[-1].ordinal <= stop:
                cards = [card for card in cards if first <= card.ordinal <= stop]
            all_cards[:0] = cards
        if origin is None:
            pins = {f"§{ordinal}": pin for ordinal, pin in session.state.pins.items()}
            return [pinned(card, pins.get(card.ref)) for card in all_cards]
        key, stop = SessionKey(key.tenant, origin.session), min(stop, origin.ordinal)


BATCH_MESSAGES = 100


class RebuildResult(NamedTuple):
    """What was done."""

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

    Of all sessions, a damaged one is left with a finding. Raises `InputError` for a session that does not exist and for
    embeddings that the index cannot hold; `StoreError`.
    """
    done: list[RebuildResult] = []
    for name in store.journal.sessions(tenant) if session is None else [session]:
        on_session(name)
        try:
            backlog = PendingSession.open(store, index, SessionKey(tenant, name), anew=True)
        except Damaged as error:
            if session is not None:
                raise
            done.append(RebuildResult(0, 0, 0, (Finding(kind="cards_failed", text=f"session {name!r}: {error}"),)))
            continue
        if backlog is not None:
            done.append(_rebuilt(index, maker, backlog))
        elif session is not None:
            raise InputError(f"{store.uri}: no session {session!r} of tenant {tenant!r}; nothing was rebuilt")
    findings = tuple(finding for result in done for finding in result.findings)
    return RebuildResult(
        sum(result.sessions for result in done),
        sum(result.messages for result in done),
        sum(result.cards for result in done),
        findings,
    )


def _rebuilt(index: CardIndex, maker: CardMaker, backlog: PendingSession) -> RebuildResult:
    key, before, cards = backlog.session.key, backlog.carded, 0
    findings: list[Finding] = []
    while len(backlog):
        upto = min(backlog.carded + BATCH_MESSAGES, len(backlog.session))
        batch = maker.make(key, backlog.next(BATCH_MESSAGES), backlog.standing, backlog.session.state.pins)
        at_end = upto == len(backlog.session)
        cards += index.put(batch.cards, (CardProgress(key.tenant, key.session, upto),) if at_end else ())
        backlog.carded, backlog.standing = upto, batch.standing
        findings += batch.findings
    return RebuildResult(1, backlog.carded - before, cards, (*findings, *backlog.findings))
