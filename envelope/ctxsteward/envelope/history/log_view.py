"""A session's state in this process (`SessionLogView`), read from its log, kept up to date and appended to.

Reading begins at the newest readable compaction, else with the parent's state, else at the start. A write names the
position and generation it was decided on. The second of two writers gets `Conflict`, reads on and tries again
(`retried`). Unreadable records never stop a reading: see `fold` for stand-ins and findings.

A fork shares its parent's log up to a position and an ordinal, and counts on from there (`Ancestry`). Parents are read
on demand; their first record says where they begin in turn.

Raises `Erased` for a forgotten session, `Damaged` if neither the log nor a compaction names the session's head or
parent any more.
"""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ctxsteward.schemas import Erased, Finding, ReferenceNotFound, StoreUnavailable
from ctxsteward.schemas.errors import Conflict, Damaged
from ctxsteward.store.journal.events import (
    NONCE_DIGITS,
    PLAIN,
    Event,
    ForkPoint,
    MessageAppended,
    SessionHead,
    SessionOpened,
    WindowCompacted,
)
from ctxsteward.store.journal.log import DamagedRecord, Log, coded_manifest
from ctxsteward.store.journal.port import ForgottenSubject, SessionKey

from .fold import ReadFindings, fold
from .rewrite_attempts import MAX_FINDINGS, rewrite_findings
from .state import State
from .tool_groups import LogEntry, MissingMessage, ParsedMessage, claimed, fill, goes_on, place


class Ancestry:
    """One log and the logs above it; a fork's parent is above the fork."""

    def __init__(self, log: Log, origin: ForkPoint | None = None) -> None:
        self.log: Log = log
        self.origin: ForkPoint | None = origin
        self._above: Ancestry | None = None
        self._generations: tuple[tuple[SessionKey, int], ...] = ()
        """Generations of the logs above, noted before those logs were read."""

    @classmethod
    def found(cls, log: Log) -> Ancestry:
        """Read the ancestry from the log's first record, and note the generations of the logs above first."""
        ancestry = cls(log, origin_of(log))
        keys = [above.log.key for above in ancestry.line()][1:]
        ancestry._generations = tuple((key, log.journal.generation(key)) for key in keys)
        return ancestry

    def under(self, log: Log) -> Ancestry:
        """Return the same logs above another log of this session."""
        other = Ancestry(log, self.origin)
        other._above, other._generations = self._above, self._generations
        return other

    @property
    def above(self) -> Ancestry | None:
        """The ancestry of the parent, or None for a session that is no fork."""
        if self._above is None and self.origin is not None:
            log = self.log.sibling(self.origin.session)
            self._above = Ancestry(log, origin_of(log))
        return self._above

    # -- going up -----------------------------------------------------------------------------------------------

    def line(self) -> Iterator[Ancestry]:
        """Yield this ancestry, its parent's, and so on."""
        ancestry: Ancestry | None = self
        while ancestry is not None:
            yield ancestry
            ancestry = ancestry.above

    def stretches(self) -> Iterator[tuple[Log, int | None]]:
        """Yield each log with the position at which its part ends, or None for all of it."""
        stop = None
        for ancestry in self.line():
            yield ancestry.log, stop
            stop = ancestry.origin.position if ancestry.origin is not None else None

    def shares(self, last: int) -> Iterator[tuple[Log, int | None]]:
        """Yield each log with the highest ordinal that is shared of it, at most `last`; None for its own log."""
        limit = None
        for ancestry in self.line():
            yield ancestry.log, limit
            if ancestry.origin is not None:
                limit = min(last if limit is None else limit, ancestry.origin.ordinal)

    def owner(self, ordinal: int) -> Log:
        """Return the log that has the message with this ordinal."""
        for ancestry in self.line():
            if ancestry.origin is None or ordinal > ancestry.origin.ordinal:
                return ancestry.log
        return self.log

    # -- replaced records ---------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Sum of the generations of all logs above, as noted before they were read."""
        return sum(generation for _, generation in self._generations)

    def is_replaced(self) -> bool:
        """Return whether records of a log above have been replaced since they were read."""
        journal = self.log.journal
        return any(journal.generation(key) != generation for key, generation in self._generations)


def origin_of(log: Log) -> ForkPoint | None:
    """Return the point that this log was forked at, or None; raise `Damaged` if that is unreadable, `StoreUnavailable`
    if the log is not on this machine."""
    opened = log.at(0)
    if isinstance(opened, SessionOpened):
        return opened.parent
    if isinstance(log.message(1), MessageAppended):  # only the first message of all has this ordinal
        return None
    if log.repair is not None and not log.journal.length(log.key):  # the object store has it, and does not answer
        raise StoreUnavailable(
            f"session {log.key.session!r} is not on this machine, and the object store gives no record of it; try again"
        )
    raise Damaged(
        f"session {log.key.session!r}: its first record is damaged, and so is where it begins; "
        "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
    )


TRIES = 1000
"""Attempts of a write that may lose to other writers before it raises `Conflict`."""

T = TypeVar("T")


class SessionLogView:
    """One log as far as it was read. It implements `fold.DamageWitness`."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.id: str = log.key.session
        self.ancestry: Ancestry = Ancestry(log)
        self.state: State = State(self.id)
        self.noticed: ReadFindings = ReadFindings()
        self.forgotten: dict[str, ForgottenSubject] = {}
        """Forgotten principals of this session, by name."""
        self.fragments: dict[object, object] = {}
        """The builder's fragments of bullets, notes and head: cached results of pure functions, never state."""
        self._generation = 0
        self._is_behind = False
        """Whether a write lost its position, so that the log has more than was read."""
        self._upto: int | None = None
        """Position at which the reading was to end, or None for the end of the log."""

    def over(self, log: Log) -> SessionLogView:
        """Return a copy with its own state and findings that continues with another log of this session."""
        other = SessionLogView.__new__(SessionLogView)
        other.__dict__.update(self.__dict__)
        other.log, other.ancestry = log, self.ancestry.under(log)
        other.state, other.noticed, other.fragments = self.state.copy(), self.noticed.copy(), dict(self.fragments)
        return other

    @property
    def generation(self) -> int:
        """Number that grows when written records are replaced, here or in a log that this one was forked from."""
        return self._generation + self.ancestry.generation

    # -- reading ------------------------------------------------------------------------------------------------

    def load(self, upto: int | None = None, last: int | None = None) -> None:
        """Read the state from the newest compaction on, or as of position `upto`; after an error it is as before.

        With `last`, the ordinal at that position, a record before it that is not in the log counts as damaged.
        """
        before = self.state, self.ancestry, self.noticed.findings
        self._upto = upto
        try:
            try:
                self._load(upto, last)
            except Damaged:
                if not self.is_replaced():
                    raise
                self._load(upto, last)  # what was missing was erased while it was read
        except BaseException as error:
            if not isinstance(error, Erased):
                self.state, self.ancestry, self.noticed.findings = before
            self.distrust()
            raise

    def _load(self, upto: int | None, last: int | None) -> None:
        self._generation = self.log.journal.generation(self.log.key)
        self.state, self.ancestry = State(self.id), Ancestry(self.log)
        self._is_behind = False
        self.noticed.forget_damage()
        self.fragments.clear()
        self.log.restored.clear()
        self.read_forgotten()
        start = self._start(upto)
        rows = self.log.read(start, upto)
        if upto is not None and last is not None:
            rows += map(self.log.at, range(start + len(rows), upto))
        if start == 0 and rows and isinstance(rows[0], DamagedRecord):  # `_start` established that it has no parent
            self.state.position = 1
            self.passed_over(replace(rows[0], kind="opened"))
            rows = rows[1:]
        fold(self.state, rows, self, last)
        for above in list(self.ancestry.line())[1:]:
            for gone in self.log.journal.forgotten(self.log.key.tenant, above.log.key.session):
                if gone.principal is not None:  # a principal forgotten in the shared part
                    self.forgotten.setdefault(gone.principal, gone)
        if not self.state.heads and any(finding.kind == "record_damaged" for finding in self.noticed.findings):
            raise self._headless()
        if self.log.restored:
            self.noticed.restored(self.log.restored)

    def _start(self, upto: int | None) -> int:
        """Start from the newest readable compaction or the parent's state; return the position to read on from."""
        for position, event in self.log.compactions(upto):
            self.ancestry = Ancestry.found(self.log)
            head, head_at = self._head_at(event)
            self.state.restore(event, position, head, lambda n: self.found(n, f"§{n}"))
            self.state.head_at = head_at
            return position + 1
        if upto == 0 or not self.log.journal.length(self.log.key):
            return 0
        self.ancestry = Ancestry.found(self.log)
        origin = self.ancestry.origin
        if origin is None:
            return 0
        parent = SessionLogView(self.log.sibling(origin.session))
        # A fork that shares less here than it did would continue with ordinals that messages of it have already.
        parent.load(origin.position, origin.ordinal)
        if parent.state.ordinal > origin.ordinal:
            raise Damaged(
                f"session {self.id!r} was forked off {origin.session!r} at §{origin.ordinal}, and other records stand "
                "there now; restore the journal from a backup"
            )
        self.noticed.findings += parent.noticed.damage()
        self.state = parent.state
        self.state.session, self.state.position = self.id, 1
        return 1

    def _head_at(self, event: WindowCompacted) -> tuple[SessionHead, tuple[str, int] | None]:
        """Return the head in force at a compaction, or if it is damaged the one before it; and where its record is."""
        where = event.checkpoint["head_at"]
        if where is None:
            return SessionHead(), None
        session, position = where
        owner = self.log if session == self.id else self.log.sibling(session)
        head = owner.at(position)
        if isinstance(head, SessionHead):
            return head, (session, position)
        before = SessionLogView(self.log.sibling(session))
        before.load(upto=position)
        if not before.state.heads:
            raise self._headless()
        self.noticed.head_damaged(position)
        return before.state.head, before.state.head_at

    def _headless(self) -> Damaged:
        return Damaged(f"session {self.id!r}: its head is damaged; restore the journal from a backup")

    def reread(self) -> None:
        """Read again if records were replaced since, so that no process serves erased text from memory. Raise `Erased`
        if the session itself was erased."""
        if self.is_replaced():
            self.load(self._upto)

    def refresh(self) -> None:
        """Read records that other writers have appended since."""
        self._upto = None
        if self.is_replaced():
            self.load()
            return
        rows = self.log.read(self.state.position, whole=self._is_behind)
        self._is_behind = False
        if rows:
            fold(self.state, rows, self)

    def advance(self, upto: int) -> None:
        """Read on to a later position; the state equals that of `load(upto)`, but only new records are read."""
        self._upto = upto
        if self.is_replaced():
            self.load(upto)
        elif rows := self.log.read(self.state.position, upto):
            fold(self.state, rows, self)

    def distrust(self) -> None:
        """Refuse writes, and read everything again, until a `refresh` succeeds."""
        self._generation = -1

    def is_replaced(self) -> bool:
        """Return whether records have been replaced since they were read, here or in a log this one was forked from."""
        return self.log.journal.generation(self.log.key) != self._generation or self.ancestry.is_replaced()

    def read_forgotten(self) -> None:
        """Read which principals of this session were forgotten; raise `Erased` if the session itself was."""
        forgotten = self.log.journal.forgotten(self.log.key.tenant, self.id)
        self.forgotten = {subject.principal: subject for subject in forgotten if subject.principal is not None}
        for subject in forgotten:
            if subject.principal is None:
                raise Erased(f"session {self.id!r}", who=subject.who, when=subject.when, why=subject.why)

    # -- writing ------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Prepare the creation of a log; raise `Erased` if a forgotten session had this name."""
        self.read_forgotten()
        self._generation = self.log.journal.generation(self.log.key)

    def write(self, events: Sequence[Event]) -> None:
        """Append events at the state's position, each with its code; raise `Conflict` if the log has moved on."""
        try:
            self.log.append(self.state.position, events, self._generation)
        except Conflict:
            self._is_behind = True
            raise

    def commit(self, event: Event) -> None:
        """Append one event that was decided on exactly this state, and apply it."""
        self.write((event,))
        self.state.apply(event, lambda ordinal: self.found(ordinal, f"§{ordinal}"))

    def put_manifest(self, address: str, fields: str) -> None:
        """Store a manifest of the state that was read; raise `Conflict` if records of the log were replaced since."""
        body, generation = coded_manifest(self.log.address_key, address, fields), self._generation
        self.log.journal.put_manifest(self.log.key, address, body, generation=generation)

    def retried(self, attempt: Callable[[], T]) -> T:
        """Return the attempt's result; on `Conflict` read what other writers appended and try again."""
        for _ in range(TRIES):
            try:
                return attempt()
            except Conflict:
                self.refresh()
        raise Conflict(self.id, self.state.position)

    def append(self, taken: ParsedMessage) -> LogEntry:
        """Give a message its ordinal and its place in the history, and write it; for a known `id`, return its entry.

        Call it through `retried`, which puts the message behind those that other writers appended first. Raises
        `Erased` for a forgotten principal.
        """
        if taken.new.id is not None and (known := self._known(taken)) is not None:
            return known
        entry = self._entry(self.state, taken)
        self.write((entry.event,))
        self.state.add(entry)
        self._notice((entry,))
        return entry

    def extend(self, batch: Sequence[ParsedMessage]) -> list[LogEntry]:
        """Append messages in one write: all of them or none."""
        state = self.state.copy()  # on a copy, because the write may fail
        entries: list[LogEntry] = []
        fresh: list[MessageAppended] = []
        ids: dict[str, LogEntry] = {}
        for taken in batch:
            entry = self._known(taken, ids)
            if entry is None:
                entry = self._entry(state, taken)
                state.add(entry)
                fresh.append(entry.event)
                if taken.new.id is not None:
                    ids[taken.new.id] = entry
            entries.append(entry)
        self.write(fresh)
        self.state = state
        self._notice([entry for entry in entries if entry.is_new])
        return entries

    def _notice(self, entries: Iterable[LogEntry]) -> None:
        """Add findings about messages that were just written; nothing depends on them."""
        for entry in entries:
            for finding in rewrite_findings(entry.message, entry.ref):
                if sum(known.kind == finding.kind for known in self.noticed.findings) < MAX_FINDINGS:
                    self.noticed.findings.append(finding)

    def _known(self, taken: ParsedMessage, ids: Mapping[str, LogEntry] | None = None) -> LogEntry | None:
        """Return the entry with this message's id, from `ids` or the log; add a finding if its content differs."""
        id = taken.new.id
        if id is None:
            return None
        known = (ids or {}).get(id) or self.by_id(id)
        if known is not None and known.event.wire != taken.wire and not known.event.damaged and not known.event.erased:
            text = f"id {known.event.id!r} was appended again with another content; the first one stays"
            self.noticed.findings.append(Finding(kind="id_reused", ref=known.ref, text=text))
        return None if known is None else LogEntry(known.event, known._message)

    def _entry(self, state: State, taken: ParsedMessage) -> LogEntry:
        """Return the entry of this message at its place behind the state's last message."""
        wire, message, tokens, new = taken
        if new.principal is not None and (gone := self.forgotten.get(new.principal)) is not None:
            what = f"principal {new.principal!r} of session {self.id!r}"
            raise Erased(what, who=gone.who, when=gone.when, why=gone.why)
        ordinal = state.ordinal + 1
        joins = goes_on(state.groups[-1] if state.groups else None, message)
        placement = place(state.open_calls, state.call_ids, message, ordinal, joins=joins)
        results = len(message.tool_results) if placement is not PLAIN else 0
        event = MessageAppended(
            ordinal=ordinal,
            wire=wire,
            placement=placement,
            tokens=tokens,
            outputs=state.outputs + results if results else 0,
            address=self.log.address(new.principal, wire),
            id=new.id,
            phase=new.phase,
            pin=new.pin,
            ts=new.ts,
            principal=new.principal,
            origin=new.origin,
        )
        return LogEntry(event, message, is_new=True)

    # -- one message, and unreadable ones -----------------------------------------------------------------------

    def found(self, ordinal: int, ref: str) -> LogEntry | MissingMessage:
        """Return a message of the window or the log; raise `ReferenceNotFound` if the session has no such ordinal."""
        at = bisect_right(self.state.groups, ordinal, key=lambda group: group.first)
        for entry in self.state.groups[at - 1].entries if at else ():
            if entry.ordinal == ordinal and not entry.event.damaged:
                return entry
        row = self.ancestry.owner(ordinal).message(ordinal)
        if isinstance(row, MessageAppended):
            return LogEntry(row)
        if not 0 < ordinal <= self.state.ordinal:
            last = f"it holds §1 to §{self.state.ordinal}" if self.state.ordinal else "it is empty"
            raise ReferenceNotFound(ref, self.id, last)
        self.stood_in(ordinal)
        record = row.record if row is not None else None
        return MissingMessage(ordinal=ordinal, said=claimed(record.wire if record else None))

    def shown(self, ordinal: int, ref: str) -> LogEntry:
        """Return a message as an envelope may show it: a stand-in if the original is damaged."""
        found = self.found(ordinal, ref)
        return found if isinstance(found, LogEntry) else fill((), frozenset(), found, None, ())

    def by_id(self, id: str) -> LogEntry | None:
        """Return the message that was appended under this id, even by a writer whose records were not read yet."""
        for log, last in self.ancestry.shares(self.state.ordinal):
            record = log.journal.by_id(log.key, id)
            if record is not None and (last is None or record.ordinal <= last):
                try:
                    return self.shown(record.ordinal, f"§{record.ordinal}")
                except ReferenceNotFound:
                    what = f"session {self.id!r}: the record of id {id!r} is damaged and names no message"
                    raise Damaged(f"{what}; `ctxsteward store fsck --repair` restores what can be") from None
        return None

    def original(self, ordinal: int) -> MessageAppended | None:
        """Return the message with this ordinal, wherever it is in the log, or None."""
        found = self.log.message(ordinal)
        return found if isinstance(found, MessageAppended) else None

    def stood_in(self, ordinal: int) -> None:
        """Note that a stand-in replaces the message with this ordinal."""
        self.noticed.stood_in(ordinal)

    def passed_over(self, row: DamagedRecord) -> None:
        """Note that a record other than a message is treated as never made."""
        if row.kind == "opened":
            self.state.nonce = self._spare_nonce()
        self.noticed.passed_over(row)

    def _spare_nonce(self) -> str:
        """Derive a nonce in place of a lost one: equal for every reader, and not to be guessed without the key."""
        drawn = hmac.digest(self.log.address_key, b"nonce\x00" + self.id.encode(), "sha256")
        return f"{int.from_bytes(drawn) % 10**NONCE_DIGITS:0{NONCE_DIGITS}d}"
