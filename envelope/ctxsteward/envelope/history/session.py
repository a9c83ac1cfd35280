"""A session: an append-only log of one conversation, and every original in it by reference.

Appending is acknowledged when the journal has the record. Two processes may append to one session: the journal orders
them, and whoever comes second reads what the other wrote and goes on from there. Threads of one process may share a
session: one call runs at a time. Nothing in a session ever changes: editing, regenerating or aborting is a fork.

What cannot be read any more never stops a session: a damaged compaction is made again from the originals, a damaged
original is never served (`resolve` raises `Damaged`, an envelope shows a stand-in), and findings say so. What was
erased, by whichever process of this journal, is not served by a session that had read it before.

`Session` is what applications hold; the work is done by `log_view` (holds the state, reads and writes it), `originals`
(resolves references), `session_head` (opens a log) and `follow` (takes a framework's whole history).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from ctxsteward.schemas import CompressionReport, Erased, Finding, InputError, Message, Ref
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import take_wire
from ctxsteward.store import Journal, process_forks as forking
from ctxsteward.store.crypto.keyring import AddressKey, Keys, SealKey
from ctxsteward.store.derived_files import DerivedFile, DerivedPlace
from ctxsteward.store.facts.fact_store import FactLookup
from ctxsteward.store.journal.draft import DraftJournal
from ctxsteward.store.journal.events import (
    EarlierLine,
    Event,
    ForkPoint,
    NoteSet,
    OutcomeTold,
    PinSet,
    PinStrength,
    SessionOpened,
    WindowCompacted,
)
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.names import checked_name
from ctxsteward.store.profiles.text import Profile as Profile

from ..tokens.tokenizer import Counter
from .follow import Follower, ForgottenWriter
from .log_view import TRIES, SessionLogView
from .originals import MetaReduced, Originals
from .session_head import repin
from .state import State
from .tool_groups import LogEntry, NewMessage, ParsedMessage, check_meta, check_note, checked_outcome

MemoryScope = Literal["principal"]
"""Whose earlier sessions a user turn is searched in: those of the principal of its message."""
BATCH_MESSAGES = 1000
"""`extend` writes this many messages in one journal append."""


def check_memory(memory: object) -> None:
    """Raise `InputError` unless this is a `MemoryScope` or None."""
    if memory not in ("principal", None):
        raise InputError(f"memory is {memory!r:.40}; pass 'principal', or None")


_BARE = NewMessage(message=None)
"""What stands beside a message that comes alone."""


class PersonMemory(Protocol):
    """What people said in the sessions of a store (`recall.earlier_sessions`)."""

    def choose(
        self, session: Session, state: State, room_tokens: int, counter: Counter
    ) -> tuple[tuple[EarlierLine, ...], int, list[Finding]]:
        """The lines for this user turn, the tokens that they take, and findings."""

    def open(self, tenant: str, lines: Sequence[EarlierLine], rows: dict[EarlierLine, str | None]) -> None:
        """Put the row of each line into `rows`, None for one that was erased since."""


class Session:
    """One log. Made by `Store.session`."""

    def __init__(
        self,
        log: Log,
        counter: Callable[[], Counter],
        draw_nonce: Callable[[], str],
        keys: Keys,
        fact_lookup: FactLookup | None = None,
        derived: DerivedPlace | None = None,
        claim: Callable[[SessionKey], list[Finding]] | None = None,
        now: Callable[[], str] | None = None,
        earlier_sessions: Callable[[], PersonMemory] | None = None,
        memory: MemoryScope | None = None,
    ) -> None:
        """`derived`: the journal's folder, or rows, where what is derived from sessions is kept; None: nowhere. `claim`
        makes this machine the owner of a fork, and reads in what the object store has of it. `earlier_sessions`
        searches what a person said in others."""
        self._claim = claim
        self.memory: MemoryScope | None = memory
        """Whose earlier sessions a user turn is searched in, as far as the builder does not say so; None: nobody's."""
        self.earlier_sessions = earlier_sessions
        self.now = now
        """The store's clock (ISO 8601), for the time of reports, or None without a clock."""
        self.key: SessionKey = log.key
        self._derived = derived
        self.lock: threading.RLock = threading.RLock()
        """One call at a time: threads of one process may share a session."""
        forking.renew_in_child(self)
        self.fact_lookup = fact_lookup
        """Where withdrawn records and facts of past envelopes are looked up; None: nowhere."""
        self._keys = keys
        self._counter = counter
        self._counted: Counter | None = None
        self._draw_nonce = draw_nonce
        self._follower: Follower | None = None
        self.origin_of_past: ForkPoint | None = None
        """Where this session as it was earlier (`past`) ends; None: this is no such one."""
        self.sent_again: int = 0
        """Ordinal of the message that was appended last, where it was there already; 0: it was new."""
        self._read_by(SessionLogView(log))

    def forked(self) -> None:
        """In a child: what a thread of the parent was in the midst of is read anew."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock = threading.RLock()
            self.replica.distrust()

    def _read_by(self, replica: SessionLogView) -> None:
        self.replica = replica
        """What was read of the log, and what reads on."""
        self._originals = Originals(replica)

    @property
    def id(self) -> str:
        return self.key.session

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def state(self) -> State:
        """The window, as far as the log was read."""
        return self.replica.state

    @property
    def findings(self) -> list[Finding]:
        """What was noticed while opening and reading."""
        return self.replica.noticed.findings

    @property
    def missing(self) -> set[int]:
        """Ordinals whose originals could not be read, as far as they were asked for."""
        return self.replica.noticed.missing

    @property
    def cache(self) -> dict[object, object]:
        """Fragments of this session's bullets, notes, head: results of pure functions, never state."""
        return self.replica.fragments

    @property
    def generation(self) -> int:
        """Grows when what was already written is replaced, here or in a log this one was forked from."""
        return self.replica.generation

    @property
    def journal(self) -> Journal:
        return self.replica.log.journal

    @property
    def address_key(self) -> AddressKey:
        return self.replica.log.address_key

    @property
    def seal_key(self) -> SealKey:
        """What envelopes of this tenant are sealed with now."""
        return self._keys.seal_key(self.tenant)

    @property
    def counter(self) -> Counter:
        """What counts are stored with each message."""
        if self._counted is None:
            self._counted = self._counter()
        return self._counted

    def __len__(self) -> int:
        """Messages so far."""
        return self.state.ordinal

    def __repr__(self) -> str:
        tenant = "" if self.tenant == "default" else f" of {self.tenant}"
        return f"<Session {self.id}{tenant}: messages {len(self):,}, compactions {self.state.compactions}>"

    # -- writing ------------------------------------------------------------------------------------------------

    def append(
        self,
        message: object,
        *,
        id: str | None = None,
        phase: str | None = None,
        pin: PinStrength | None = None,
        ts: str | None = None,
        principal: str | None = None,
        origin: str | None = None,
    ) -> LogEntry:
        """Add a message (OpenAI, Anthropic or Gemini dict, SDK object, `Message`); the same `id` twice is one entry.

        An item of OpenAI's responses is a message, too; the items of one reply are one tool group.

        `LogEntry.is_new` says whether this call wrote it.

        Raises `InvalidMessage`, `InputTooLarge`, `Conflict`.
        """
        if not (id is phase is pin is ts is principal is origin is None):
            message = NewMessage(
                message=message, id=id, phase=phase, pin=pin, ts=ts, principal=principal, origin=origin
            )
        taken = self._take(message)
        with self.lock:
            self.branch()
            return self._noted(self.replica.retried(lambda: self.replica.append(taken)))

    def extend(self, messages: Iterable[object]) -> list[LogEntry]:
        """Add many messages (wire dicts, or `NewMessage` where they carry more), in batches of one journal write each.

        An invalid one raises, and nothing of its batch is written. Ids work as in `append`.
        """
        added: list[LogEntry] = []
        batch: list[ParsedMessage] = []
        for item in messages:
            batch.append(self._take(item))
            if len(batch) >= BATCH_MESSAGES:
                added += self._append_batch(batch)
                batch = []
        return added + self._append_batch(batch) if batch else added

    def follow(
        self, messages: Iterable[object], *, principal: str | None = None, forgotten: ForgottenWriter = "raise"
    ) -> Session:
        """The session that stands where this whole history does, as frameworks hand it over at every call.

        What is new is appended (`principal`: who its user messages are by), what is known is no event. A history that
        goes another way is kept in a fork, with a finding; one that ends earlier gives the session as it was then, to
        build on. Call it on the same session each time, also with the answer behind the history. See `follow`.

        A principal that was forgotten here writes no more: `forgotten="draft"` gives a session in memory with what the
        history says beyond the log, to build on once, in place of `Erased`.

        Raises `InvalidMessage`, `InputTooLarge`, `Conflict`, `Erased`.
        """
        with self.lock:
            return self.follower.follow(messages, principal=principal, forgotten=forgotten)

    @property
    def follower(self) -> Follower:
        """What `follow` remembers of this process's histories."""
        self._follower = self._follower or Follower(self)
        return self._follower

    def extend_at(self, ordinal: int, messages: Sequence[NewMessage]) -> list[LogEntry]:
        """`extend`, only where the log still ends with this message; else `Conflict`."""
        batch = [self._take(message) for message in messages]
        with self.lock:
            self.branch()
            if len(self) != ordinal:
                raise Conflict(self.id, self.state.position)
            self.sent_again = 0
            return self.replica.extend(batch)

    def _take(self, message: object) -> ParsedMessage:
        new = message if isinstance(message, NewMessage) else _BARE
        if new is not _BARE:
            check_meta(new)
        wire, decoded = take_wire(message if new is _BARE else new.message)
        counter = self._counted or self.counter
        return ParsedMessage(wire, decoded, {counter.name: counter.message(decoded)}, new)

    def _append_batch(self, batch: list[ParsedMessage]) -> list[LogEntry]:
        with self.lock:
            self.branch()
            entries = self.replica.retried(lambda: self.replica.extend(batch))
            for entry in entries[-1:]:
                self._noted(entry)
            return entries

    def _noted(self, entry: LogEntry) -> LogEntry:
        self.sent_again = 0 if entry.is_new else entry.ordinal
        return entry

    def note(self, name: str, text: str) -> None:
        """Set a named note (plan, subtask, snapshot, scratchpad …); the latest wins, an empty text removes it."""
        check_note(name, text)
        self.record(NoteSet(name=name, text=text))

    def outcome(
        self,
        *,
        succeeded: bool | None = None,
        reward: float | None = None,
        thumbs: Literal["up", "down"] | None = None,
        resolved: bool | None = None,
        escalated: bool | None = None,
    ) -> None:
        """Say how the session ended, as far as it is known; what is said later counts. Envelopes do not depend on it.

        The nightly steward learns from it. Raises `InputError` for what is no outcome, or says nothing.
        """
        given = {"succeeded": succeeded, "reward": reward, "thumbs": thumbs, "resolved": resolved}
        self.record(OutcomeTold(outcome=checked_outcome(given | {"escalated": escalated})))

    def pin(self, ref: str, strength: PinStrength | None = "keep", *, name: str | None = None) -> None:
        """Keep a message verbatim (or give it up again with `strength=None`)."""
        check_meta(NewMessage(message=None, pin=strength, id=name))
        ordinal = Ref.parse(ref).ordinal
        self.shown(ordinal, ref)
        self.record(PinSet(ordinal=ordinal, strength=strength, name=name))

    def record(self, event: Event) -> None:
        """Append one event that needs nothing of the log's newest state; retried behind other writers."""
        with self.lock:
            self.branch()
            self.replica.retried(lambda: self.commit(event))

    def commit(self, event: Event) -> None:
        """Append one event that was decided on exactly this state; `Conflict` if the log has moved on."""
        with self.lock:
            self.branch()
            self.replica.commit(event)

    # -- opening and catching up --------------------------------------------------------------------------------

    def repin(self, profile: Profile) -> None:
        """Move this session to another version of its profile."""
        with self.lock:
            repin(self.replica, profile, self.fact_lookup)

    def refresh(self) -> None:
        """Read what other writers have appended since."""
        with self.lock:
            (self.replica.refresh if self.origin_of_past is None else self.replica.reread)()

    def reread(self) -> None:
        """Read again what an erasure, in whichever process, has replaced since. Call it before reading `state`; what
        resolves a reference does so itself."""
        with self.lock:
            self.replica.reread()

    # -- forks and drafts ---------------------------------------------------------------------------------------

    def fork(self, at: int | str | None = None, *, id: str | None = None) -> Session:
        """A new session that shares this log up to message `at` (default: all of it) and counts on from there."""
        root = self.id.partition("-fork-")[0]
        name = checked_name("session", f"{root[:160]}-fork-{self._draw_nonce()}" if id is None else id)
        with self.lock:
            for _ in range(TRIES):
                child = self._sibling(name)
                child.replica.prepare()
                self.refresh()
                opened = SessionOpened(nonce=self.state.nonce, parent=self._originals.origin(at))
                try:
                    child.replica.write((opened,))
                except Conflict:
                    raise InputError(f"session {name!r} exists already; name the fork otherwise") from None
                if not self.replica.is_replaced():
                    child.replica.load()
                    return child
                self.journal.truncate(child.key, 0)  # what it shares was replaced meanwhile: share what is there now
        raise Conflict(self.id, self.state.position)

    def fork_before(self, ordinal: int, number: int, *, make: bool = True) -> Session | Literal[False] | None:
        """The n-th fork before message `ordinal`, with all that was decided until then; made where it is not there, or
        None. False where it is one of another log, or was forgotten."""
        name = f"{self.id.partition('-fork-')[0][:160]}-fork-{ordinal - 1}-{number}"
        with self.lock:
            child, origin = self._sibling(checked_name("session", name)), self._originals.origin_before(ordinal)
            findings = self._claim(child.key) if self._claim is not None else []
            try:
                if not self.journal.length(child.key):
                    child.replica.prepare()
                    if not make:
                        return None
                    with suppress(Conflict):  # somebody else made it just now
                        child.replica.write((SessionOpened(nonce=self.state.nonce, parent=origin),))
                child.replica.load()
            except Erased:
                return False
            child.findings.extend(findings)
            return child if child.origins()[:1] == (origin,) else False

    def past(self, ordinal: int) -> Session:
        """This session as it was when message `ordinal` was its newest, with what was decided until the next one.

        Nothing is written to the log for it; what is written to it makes it a fork.
        """
        with self.lock:
            origin = self._originals.origin_before(ordinal + 1)
            past = self._sibling(origin.session)
            past.replica.load(origin.position)
            past.origin_of_past, past._follower = origin, self._follower
            return past

    def branch(self) -> None:
        """Before a write: what was a past session becomes a fork of it in which nothing is said yet."""
        if (past := self.origin_of_past) is None:
            return
        for number in range(1, TRIES):
            child = self.fork_before(past.ordinal + 1, number)
            if child and len(child) == past.ordinal:
                self.key, self.origin_of_past = child.key, None
                child.replica.noticed.add(self.findings)
                self._read_by(child.replica)
                return
        raise Conflict(self.id, self.state.position)

    def parent(self) -> Session | None:
        """The session this one was forked from, not read yet; None for an original."""
        with self.lock:
            above = self.replica.ancestry.above
        if above is None:
            return None
        parent = self._sibling(above.log.key.session)
        parent.replica.ancestry = above
        return parent

    def _sibling(self, id: str) -> Session:
        """Another session of this store and tenant, not read yet."""
        log = self.replica.log.sibling(id)
        more = self.fact_lookup, self._derived, self._claim, self.now, self.earlier_sessions, self.memory
        return Session(log, self._counter, self._draw_nonce, self._keys, *more)

    def origins(self) -> tuple[ForkPoint, ...]:
        """Where the logs end that this one shares: its parent's first; none for an original."""
        with self.lock:
            return tuple(log.origin for log in self.replica.ancestry.line() if log.origin is not None)

    def derived_file(self) -> DerivedFile | None:
        """Where what is derived from it is kept between processes; None: nowhere, or it is a draft."""
        if self._derived is None or isinstance(self.journal, DraftJournal):
            return None
        return DerivedFile(self._derived, self.key, self.address_key, self._is_current)

    def _is_current(self) -> bool:
        """Whether the log still is what was read of it, as far as that goes."""
        return not self.replica.is_replaced() and self.journal.length(self.key) >= self.state.position

    def draft(self) -> Session:
        """This session in memory only: what is appended to it is gone with it, and nobody else sees it."""
        with self.lock:
            self.replica.reread()
            other = Session.__new__(Session)
            other.__dict__.update(self.__dict__, lock=threading.RLock(), origin_of_past=None, _follower=None)
            forking.renew_in_child(other)
            journal = DraftJournal(self.journal, self.key, self.state.position)
            other._read_by(self.replica.over(Log(journal, self.key, self.address_key, self.replica.log.repair)))
        return other

    # -- reading ------------------------------------------------------------------------------------------------

    def resolve(self, ref: str | int | Ref) -> Message:
        """The original a reference names (``§128``, ``128``, ``§128.2``, ``tool:3``), checked against its address.

        ``meta:ID`` is a record of meta as the profile in force has it, its sources behind it; the first digits of ID
        do, as a prompt shows them, and ``meta:`` may be left out.

        Raises `InvalidReference`, `ReferenceNotFound` (a KeyError), `Erased` (another), `Damaged`.
        """
        with self.lock:
            self.replica.reread()
            return self._originals.resolve(ref)

    def tool_output(self, number: int) -> Message:
        """The n-th tool output of the session (1-based), whole, as a message of role ``tool``."""
        with self.lock:
            self.replica.reread()
            return self._originals.tool_output(number)

    def entry(self, ref: str | int | Ref) -> LogEntry:
        """The log entry of a message; an erased one says nothing any more. Raises `Damaged`."""
        ordinal = ref.ordinal if isinstance(ref, Ref) else Ref.parse(str(ref)).ordinal
        with self.lock:
            self.replica.reread()
            return self._originals.entry(ordinal, f"§{ordinal}")

    def shown(self, ordinal: int, ref: str = "") -> LogEntry:
        """The log entry of a message as an envelope may show it: a stand-in where the original is damaged."""
        with self.lock:
            return self.replica.shown(ordinal, ref or f"§{ordinal}")

    def entries(self, start: int = 1, stop: int | None = None) -> list[LogEntry]:
        """Originals from ordinal `start` up to and including `stop`; costs what it returns. Raises `Damaged`."""
        with self.lock:
            self.replica.reread()
            last = self.state.ordinal if stop is None else min(stop, self.state.ordinal)
            return [self._originals.entry(ordinal, f"§{ordinal}") for ordinal in range(max(1, start), last + 1)]

    def reports(self) -> list[WindowCompacted | MetaReduced]:
        """Everything that was made smaller, each with its `report`: all compactions of this log that can be read,
        oldest first (a fork's parent's included, up to the fork); behind them what meta was left without.

        Costs a reading of the session's manifests. Raises `Damaged`.
        """
        with self.lock:
            return [*self.compactions(), *map(MetaReduced, self._originals.meta_reports())]

    def compactions(self) -> list[WindowCompacted]:
        """The compactions of dynamic alone, as `reports` has them."""
        with self.lock:
            self.replica.reread()
            return self._originals.compactions()

    def meta_reports(self) -> list[CompressionReport]:
        """What meta was left without in this session's own envelopes, oldest first; costs a reading of its manifests.

        Raises `Damaged`.
        """
        with self.lock:
            return self._originals.meta_reports()

    def shown_records(self) -> frozenset[str]:
        """Ids of the records this session was shown: in its profiles, and as facts; costs a reading of its log."""
        with self.lock:
            return self._originals.shown_records()
