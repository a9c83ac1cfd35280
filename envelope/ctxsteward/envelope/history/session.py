"""A session: an append-only log of one conversation, and every original in it by reference.

A message is acknowledged when the journal has its record. Several processes may append to one session: the journal
orders them, and the later writer reads the earlier one's records and continues behind them. Threads of one process may
share a session: one call runs at a time. Written messages never change: editing, regenerating or aborting makes a fork.

Unreadable records never stop a session: a damaged compaction is made again from the originals, a damaged original is
never served (`resolve` raises `Damaged`, an envelope shows a stand-in), and findings report it. Text that any process
of this journal has erased is not served, even by a session that had read it before.

Applications use `Session`. The work is done by `log_view` (has the state, reads and writes it), `originals` (resolves
references), `session_head` (opens a log) and `follow` (takes a framework's whole history).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from ctxsteward.schemas import CompressionReport, Erased, Finding, InputError, Message, Ref
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import take_wire
from ctxsteward.store import Journal, process_forks as forking
from ctxsteward.store.crypto.keyring import AddressKey, Keys, SealKey, subject_address
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
"""Whose earlier sessions a user turn searches: those of the message's principal."""
BATCH_MESSAGES = 1000
"""Most messages that `extend` writes in one journal append."""


def check_memory(memory: object) -> None:
    """Raise `InputError` unless this is a `MemoryScope` or None."""
    if memory not in ("principal", None):
        raise InputError(f"memory is {memory!r:.40}; pass 'principal', or None")


_BARE = NewMessage(message=None)
"""Metadata of a message that comes without any."""


class PersonMemory(Protocol):
    """Port to the words of people in a store's earlier sessions (`recall.earlier_sessions`)."""

    def choose(
        self, session: Session, state: State, room_tokens: int, counter: Counter
    ) -> tuple[tuple[EarlierLine, ...], int, list[Finding]]:
        """Return the lines for this user turn, the tokens that they take, and findings."""

    def open(self, tenant: str, lines: Sequence[EarlierLine], rows: dict[EarlierLine, str | None]) -> None:
        """Put the row of each line into `rows`, or None for a line that was erased since."""


class Session:
    """One conversation's log. `Store.session` opens it."""

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
        """Compose a session. `derived` is the journal's folder, or rows, for data derived from sessions; None keeps
        none. `claim` makes this machine the owner of a fork and reads in the object store's part of it.
        `earlier_sessions` searches a person's words in other sessions."""
        self._claim = claim
        self.memory: MemoryScope | None = memory
        """Whose earlier sessions a user turn searches unless the builder says so itself; None for nobody's."""
        self.earlier_sessions = earlier_sessions
        self.now = now
        """The store's clock (ISO 8601) that dates reports, or None without a clock."""
        self.key: SessionKey = log.key
        self._derived = derived
        self.lock: threading.RLock = threading.RLock()
        """Lock of every call, so that threads of one process may share a session."""
        forking.renew_in_child(self)
        self.fact_lookup = fact_lookup
        """Lookup of withdrawn records and of past envelopes' facts; None for no lookup."""
        self._keys = keys
        self._counter = counter
        self._counted: Counter | None = None
        self._draw_nonce = draw_nonce
        self._follower: Follower | None = None
        self.origin_of_past: ForkPoint | None = None
        """Point at which this session ends if it shows an earlier state (`past`), else None."""
        self.sent_again: int = 0
        """Ordinal of the message appended last if its id was there already; 0 if it was new."""
        self._read_by(SessionLogView(log))

    def forked(self) -> None:
        """Renew the lock in a child process, and read anew if a thread of the parent was in the midst of a call."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock = threading.RLock()
            self.replica.distrust()

    def _read_by(self, replica: SessionLogView) -> None:
        self.replica = replica
        """View of the log as far as it was read."""
        self._originals = Originals(replica)

    @property
    def id(self) -> str:
        return self.key.session

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def state(self) -> State:
        """The window and all else that envelopes depend on, as far as the log was read."""
        return self.replica.state

    @property
    def findings(self) -> list[Finding]:
        """Findings made while opening, reading and writing."""
        return self.replica.noticed.findings

    @property
    def missing(self) -> set[int]:
        """Ordinals of originals that were requested and could not be read."""
        return self.replica.noticed.missing

    @property
    def cache(self) -> dict[object, object]:
        """Fragments of this session's bullets, notes and head: cached results of pure functions, never state."""
        return self.replica.fragments

    @property
    def generation(self) -> int:
        """Number that grows when written records are replaced, here or in a log that this one was forked from."""
        return self.replica.generation

    @property
    def journal(self) -> Journal:
        return self.replica.log.journal

    @property
    def address_key(self) -> AddressKey:
        return self.replica.log.address_key

    @property
    def address(self) -> str:
        """Address of the session, as spans and the object store show it."""
        known = self.cache.get("address")
        if not isinstance(known, str):
            known = self.cache["address"] = subject_address(self.address_key, self.id)
        return known

    @property
    def seal_key(self) -> SealKey:
        """The tenant's current key for sealing envelopes."""
        return self._keys.seal_key(self.tenant)

    @property
    def counter(self) -> Counter:
        """Counter whose token counts are stored with each message."""
        if self._counted is None:
            self._counted = self._counter()
        return self._counted

    def __len__(self) -> int:
        """Return the number of messages."""
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
        """Add a message (OpenAI, Anthropic or Gemini dict, SDK object, `Message`); the same `id` twice gives one entry.

        An item of OpenAI's responses is a message, too; the items of one reply form one tool group.

        `LogEntry.is_new` says whether this call wrote the entry.

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
        """Add many messages (wire dicts, or `NewMessage` to pass metadata), in batches of one journal write each.

        An invalid message raises, and nothing of its batch is written. Ids work as in `append`.
        """
        if isinstance(messages, (str, bytes, Mapping, Message)):
            raise InputError(f"messages is {type(messages).__name__}; pass a list, or append one message: append(…)")
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
        """Return the session that matches a whole history, as frameworks hand it over at every call.

        New messages are appended (`principal`: the author of user messages); known ones write no event. A history that
        diverges is kept in a fork, with a finding. One that ends earlier gives the session as it was then, to build on.
        Call it on the same session each time, also with the answer at the end of the history. See module `follow`.

        A forgotten principal writes no more in this session: `Erased`, or with `forgotten="draft"` a session in memory
        with the history's messages beyond the log, to build on once.

        Raises `InvalidMessage`, `InputTooLarge`, `Conflict`, `Erased`.
        """
        with self.lock:
            return self.follower.follow(messages, principal=principal, forgotten=forgotten)

    @property
    def follower(self) -> Follower:
        """Memory of the histories that this process has followed."""
        self._follower = self._follower or Follower(self)
        return self._follower

    def extend_at(self, ordinal: int, messages: Sequence[NewMessage]) -> list[LogEntry]:
        """Add messages like `extend`, but raise `Conflict` unless the log still ends with this ordinal."""
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
        """Set a named note (plan, subtask, snapshot, scratchpad …); the latest wins, and an empty text removes it."""
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
        """Record how the session ended; later values count. Envelopes do not depend on it.

        The nightly steward learns from it. Raises `InputError` for an invalid outcome, or one without a value.
        """
        given = {"succeeded": succeeded, "reward": reward, "thumbs": thumbs, "resolved": resolved}
        self.record(OutcomeTold(outcome=checked_outcome(given | {"escalated": escalated})))

    def pin(self, ref: str, strength: PinStrength | None = "keep", *, name: str | None = None) -> None:
        """Keep a message verbatim in the window; `strength=None` removes the pin."""
        check_meta(NewMessage(message=None, pin=strength, id=name))
        ordinal = Ref.parse(ref).ordinal
        self.shown(ordinal, ref)
        self.record(PinSet(ordinal=ordinal, strength=strength, name=name))

    def record(self, event: Event) -> None:
        """Append one event that does not depend on the newest state; retry it behind other writers' events."""
        with self.lock:
            self.branch()
            self.replica.retried(lambda: self.commit(event))

    def commit(self, event: Event) -> None:
        """Append one event that was decided on exactly this state; raise `Conflict` if the log has moved on."""
        with self.lock:
            self.branch()
            self.replica.commit(event)

    # -- catching up --------------------------------------------------------------------------------------------

    def repin(self, profile: Profile) -> None:
        """Move this session to another version of its profile."""
        with self.lock:
            repin(self.replica, profile, self.fact_lookup)

    def refresh(self) -> None:
        """Read what other writers have appended since."""
        with self.lock:
            (self.replica.refresh if self.origin_of_past is None else self.replica.reread)()

    def reread(self) -> None:
        """Read again if an erasure, in any process, has replaced records. Call it before reading `state`; methods that
        resolve a reference call it themselves."""
        with self.lock:
            self.replica.reread()

    # -- forks and drafts ---------------------------------------------------------------------------------------

    def fork(self, at: int | str | None = None, *, id: str | None = None) -> Session:
        """Return a new session that shares this log up to message `at` (default: all) and counts on from there."""
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
                self.journal.truncate(child.key, 0)  # its shared records were replaced: share the current ones
        raise Conflict(self.id, self.state.position)

    def fork_before(self, ordinal: int, number: int, *, make: bool = True) -> Session | Literal[False] | None:
        """Return the n-th fork before message `ordinal`, with every decision before it; make it if missing, unless
        `make` is False (then None). Return False if the name belongs to a fork of another log or was forgotten."""
        name = f"{self.id.partition('-fork-')[0][:160]}-fork-{ordinal - 1}-{number}"
        with self.lock:
            child, origin = self._sibling(checked_name("session", name)), self._originals.origin_before(ordinal)
            findings = self._claim(child.key) if self._claim is not None else []
            try:
                if not self.journal.length(child.key):
                    child.replica.prepare()
                    if not make:
                        return None
                    with suppress(Conflict):  # another process made it just now
                        child.replica.write((SessionOpened(nonce=self.state.nonce, parent=origin),))
                child.replica.load()
            except Erased:
                return False
            child.findings.extend(findings)
            return child if child.origins()[:1] == (origin,) else False

    def past(self, ordinal: int) -> Session:
        """Return this session as it was when message `ordinal` was its newest, with all decisions before the next one.

        The call writes nothing to the log. A write to the returned session makes it a fork.
        """
        with self.lock:
            origin = self._originals.origin_before(ordinal + 1)
            past = self._sibling(origin.session)
            past.replica.load(origin.position)
            past.origin_of_past, past._follower = origin, self._follower
            return past

    def branch(self) -> None:
        """Turn a past session, before a write, into a fork of it without messages of its own; leave others alone."""
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
        """Return the session that this one was forked from, not read yet, or None if it is no fork."""
        with self.lock:
            above = self.replica.ancestry.above
        if above is None:
            return None
        parent = self._sibling(above.log.key.session)
        parent.replica.ancestry = above
        return parent

    def _sibling(self, id: str) -> Session:
        """Return another session of this store and tenant, not read yet."""
        log = self.replica.log.sibling(id)
        more = self.fact_lookup, self._derived, self._claim, self.now, self.earlier_sessions, self.memory
        return Session(log, self._counter, self._draw_nonce, self._keys, *more)

    def origins(self) -> tuple[ForkPoint, ...]:
        """Return the points at which the shared logs end, the parent's first; none if it is no fork."""
        with self.lock:
            return tuple(log.origin for log in self.replica.ancestry.line() if log.origin is not None)

    def derived_file(self) -> DerivedFile | None:
        """Return the place of derived data that outlives the process, or None for a draft or without a place."""
        if self._derived is None or isinstance(self.journal, DraftJournal):
            return None
        return DerivedFile(self._derived, self.key, self.address_key, self._is_current)

    def _is_current(self) -> bool:
        """Return whether the log still contains, unchanged, the records that were read."""
        return not self.replica.is_replaced() and self.journal.length(self.key) >= self.state.position

    def draft(self) -> Session:
        """Return a copy in memory: appended messages are lost with it, and no other session sees them."""
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
        """Return the original that a reference names (``§128``, ``128``, ``§128.2``, ``tool:3``); check its address.

        ``meta:ID`` is a meta record of the profile in force, followed by its sources. The first digits of ID suffice,
        as in prompts, and ``meta:`` may be left out.

        Raises `InvalidReference`, `ReferenceNotFound` and `Erased` (both a KeyError), `Damaged`.
        """
        with self.lock:
            self.replica.reread()
            return self._originals.resolve(ref)

    def tool_output(self, number: int) -> Message:
        """Return the n-th tool output of the session (1-based), whole, as a message of role ``tool``."""
        with self.lock:
            self.replica.reread()
            return self._originals.tool_output(number)

    def entry(self, ref: str | int | Ref) -> LogEntry:
        """Return the log entry of a message; an erased one has no words left. Raise `Damaged` if unreadable."""
        ordinal = ref.ordinal if isinstance(ref, Ref) else Ref.parse(str(ref)).ordinal
        with self.lock:
            self.replica.reread()
            return self._originals.entry(ordinal, f"§{ordinal}")

    def shown(self, ordinal: int, ref: str = "") -> LogEntry:
        """Return the log entry of a message as an envelope may show it: a stand-in if the original is damaged."""
        with self.lock:
            return self.replica.shown(ordinal, ref or f"§{ordinal}")

    def entries(self, start: int = 1, stop: int | None = None) -> list[LogEntry]:
        """Return originals from ordinal `start` to `stop` inclusive; costs what it returns. Raise `Damaged`."""
        with self.lock:
            self.replica.reread()
            last = self.state.ordinal if stop is None else min(stop, self.state.ordinal)
            return [self._originals.entry(ordinal, f"§{ordinal}") for ordinal in range(max(1, start), last + 1)]

    def reports(self) -> list[WindowCompacted | MetaReduced]:
        """Return every reduction with its `report`: all readable compactions of this log, oldest first (including those
        of a fork's parent up to the fork), then the records that meta left out.

        Costs a reading of the session's manifests. Raises `Damaged`.
        """
        with self.lock:
            return [*self.compactions(), *map(MetaReduced, self._originals.meta_reports())]

    def compactions(self) -> list[WindowCompacted]:
        """Return the compactions of dynamic alone, as in `reports`."""
        with self.lock:
            self.replica.reread()
            return self._originals.compactions()

    def meta_reports(self) -> list[CompressionReport]:
        """Return reports of what meta left out of this session's own envelopes, oldest first; reads its manifests.

        Raises `Damaged`.
        """
        with self.lock:
            return self._originals.meta_reports()

    def shown_records(self) -> frozenset[str]:
        """Return ids of the records this session was shown, in profiles and as facts; costs a reading of its log."""
        with self.lock:
            return self._originals.shown_records()

    def shown_lines(self, session: str) -> frozenset[int]:
        """Return the ordinals of another session whose lines this one was shown; costs a reading of its log."""
        with self.lock:
            return self._originals.shown_lines(session)
