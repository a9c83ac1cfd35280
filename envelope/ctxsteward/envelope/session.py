"""A session: an append-only log of one conversation, and every original in it by reference.

Appending is acknowledged when the journal has the record. Two processes may append to one session: the journal orders
them, and whoever comes second reads what the other wrote and goes on from there. Threads of one process may share a
session: one call runs at a time. Nothing in a session ever changes: editing, regenerating or aborting is a fork.

What cannot be read any more never stops a session: a damaged compaction is made again from the originals, a damaged
original is never served (`resolve` raises `Damaged`, an envelope shows a stand-in), and findings say so.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ctxsteward.schemas import (
    Conflict,
    Damaged,
    Erased,
    Finding,
    InputError,
    InvalidReference,
    Message,
    Ref,
    ReferenceNotFound,
    ToolResultPart,
    Wire,
)
from ctxsteward.schemas.message import encode_wire, take_wire

from . import telemetry
from .counting import Counter
from .damage import Hole, claimed, fill
from .events import (
    PLAIN,
    Appended,
    Compacted,
    Event,
    Head,
    NoteSet,
    Opened,
    Origin,
    PinSet,
    PinStrength,
)
from .facts.shown import shown_in
from .fence import NONCE_DIGITS
from .fold import fold
from .groups import Entry, place
from .incoming import NewMessage, check_meta, checked_name
from .log import Log, Repair, Spoiled
from .profile import Profile
from .state import State
from .stores.draft import DraftJournal
from .stores.port import Forgotten, Journal, SessionKey
from .withdrawn_heads import standing

if TYPE_CHECKING:
    from .facts.lookup import FactLookup
    from .keyring import Keys, SealKey

MAX_ORDINAL_DIGITS = 12
_TRIES = 1000
"""Writers that keep losing a position for this often are told so."""

BATCH_MESSAGES = 1000
"""`extend` writes this many messages in one journal append."""

DAMAGE = frozenset(
    ("original_damaged", "compaction_regenerated", "record_damaged", "record_skipped", "record_restored")
)
"""Kinds of findings about what the journal no longer holds as it was."""

_BARE = NewMessage(message=None)
"""What stands beside a message that comes alone."""


class _Taken(NamedTuple):
    wire: str
    message: Message
    tokens: dict[str, int]
    new: NewMessage


class Session:
    """One log. Made by `Store.session`."""

    def __init__(
        self,
        journal: Journal,
        key: SessionKey,
        counter: Callable[[], Counter],
        draw_nonce: Callable[[], str],
        keys: Keys,
        repair: Repair | None = None,
        fact_lookup: FactLookup | None = None,
    ) -> None:
        self.journal = journal
        self.key = key
        self.lock = threading.RLock()
        """One call at a time: threads of one process may share a session."""
        self.findings: list[Finding] = []
        """What was noticed while opening."""
        self.address_key = keys.address_key(key.tenant)
        self.cache: dict[object, object] = {}
        """Fragments of this session's bullets, notes, head: results of pure functions, never state."""
        self.fact_lookup = fact_lookup
        """Where facts about its user and project come from; None: there are none."""
        self._keys = keys
        self._counter = counter
        self._counted: Counter | None = None
        self._draw_nonce = draw_nonce
        self._log = Log(journal, key, self.address_key, repair)
        self._generation = 0
        self._below: tuple[tuple[SessionKey, int], ...] = ()
        """Logs this one was forked from, and their generations when they were read."""
        self._behind = False
        """A write came too late: there is more in the log than was read."""
        self._forgotten: dict[str, Forgotten] = {}
        self.missing: set[int] = set()
        """Ordinals whose originals could not be read, as far as they were asked for."""
        self._parent: Origin | None = None
        self._parents: Session | None = None
        self.state = State(key.session)

    @property
    def generation(self) -> int:
        """Grows when what was already written is replaced, here or in a log this one was forked from."""
        return self._generation + sum(generation for _, generation in self._below)

    @property
    def repair(self) -> Repair | None:
        """Asked for a record that is damaged or missing: the object store may hold it."""
        return self._log.repair

    @repair.setter
    def repair(self, repair: Repair | None) -> None:
        self._log.repair = repair

    @property
    def id(self) -> str:
        return self.key.session

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def seal_key(self) -> SealKey:
        """What envelopes of this tenant are sealed with now."""
        return self._keys.seal_key(self.tenant)

    def __len__(self) -> int:
        """Messages so far."""
        return self.state.ordinal

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
    ) -> Entry:
        """Add a message (OpenAI or Anthropic wire dict, SDK object, `Message`); the same `id` twice is the same entry.

        Raises `InvalidMessage`, `InputTooLarge`, `Conflict`.
        """
        new = _BARE
        if not (id is phase is pin is ts is principal is origin is None):
            new = NewMessage(message=None, id=id, phase=phase, pin=pin, ts=ts, principal=principal, origin=origin)
            check_meta(new)
        wire, decoded = take_wire(message)
        tokens = self._count(decoded)
        with self.lock:
            for _ in range(_TRIES):
                if id is not None and (known := self._by_id(id)) is not None:
                    self._notice_reuse(known, wire)
                    return known
                entry = self._entry(decoded, wire, tokens, new)
                try:
                    self._write((entry.event,))
                except Conflict:
                    self.refresh()
                    continue
                self.state.add(entry)
                return entry
        raise Conflict(self.id, self.state.position)

    def extend(self, messages: Iterable[object]) -> list[Entry]:
        """Add many messages (wire dicts, or `NewMessage` where they carry more), in batches of one journal write each.

        An invalid one raises, and nothing of its batch is written. Ids work as in `append`.
        """
        added: list[Entry] = []
        batch: list[_Taken] = []
        for item in messages:
            if isinstance(item, NewMessage):
                check_meta(item)
                new, item = item, item.message
            else:
                new = _BARE
            wire, message = take_wire(item)
            batch.append(_Taken(wire, message, self._count(message), new))
            if len(batch) >= BATCH_MESSAGES:
                added += self._append_batch(batch)
                batch = []
        return added + self._append_batch(batch) if batch else added

    def _notice_reuse(self, known: Entry, wire: str) -> None:
        if known.event.wire != wire and not known.event.damaged and not known.event.erased:
            text = f"id {known.event.id!r} was appended again with another content; the first one stays"
            self.findings.append(Finding(kind="id_reused", ref=known.ref, text=text))

    def note(self, name: str, text: str) -> None:
        """Set a named note (plan, subtask, snapshot, scratchpad …); the latest wins, an empty text removes it."""
        if not name or not name.replace("-", "").replace("_", "").isalnum() or len(name) > 64:
            raise InputError(f"note name {name[:70]!r} is not usable; take letters, digits, - and _, at most 64")
        if not isinstance(text, str):
            raise InputError(f"note {name!r} is {type(text).__name__}; a note is text")
        encode_wire({"role": "user", "content": text})
        self.record(NoteSet(name=name, text=text))

    def pin(self, ref: str, strength: PinStrength | None = "keep", *, name: str | None = None) -> None:
        """Keep a message verbatim (or give it up again with `strength=None`)."""
        check_meta(NewMessage(message=None, pin=strength, id=name))
        ordinal = Ref.parse(ref).ordinal
        self.shown(ordinal, ref)
        self.record(PinSet(ordinal=ordinal, strength=strength, name=name))

    def repin(self, profile: Profile) -> None:
        """Move this session to another version of its profile."""
        with self.lock:
            head = self.state.head
            self.record(self._standing(replace(head, profile=profile.model_dump(mode="json"))))

    def record(self, event: Event) -> None:
        """Append one event that needs nothing of the log's newest state; retried behind other writers."""
        with self.lock:
            for _ in range(_TRIES):
                try:
                    self.commit(event)
                    return
                except Conflict:
                    self.refresh()
        raise Conflict(self.id, self.state.position)

    def commit(self, event: Event) -> None:
        """Append one event that was decided on exactly this state; `Conflict` if the log has moved on."""
        with self.lock:
            self._write((event,))
            self.state.apply(event)

    def _write(self, events: Sequence[Event]) -> None:
        """Append events at the state's position, each with its code."""
        try:
            self._log.append(self.state.position, events, self._generation)
        except Conflict:
            self._behind = True
            raise

    def fork(self, at: int | str | None = None, *, id: str | None = None) -> Session:
        """A new session that shares this log up to message `at` (default: all of it) and counts on from there."""
        root = self.id.partition("-fork-")[0]
        name = checked_name("session", f"{root[:160]}-fork-{self._draw_nonce()}" if id is None else id)
        with self.lock:
            for _ in range(_TRIES):
                child = self._sibling(name)
                child._prepare()
                self.refresh()
                opened = Opened(nonce=self.state.nonce, parent=self._origin(at))
                try:
                    child._write((opened,))
                except Conflict:
                    raise InputError(f"session {name!r} exists already; name the fork otherwise") from None
                if self.journal.generation(self.key) == self._generation and not self._below_changed():
                    child.load()
                    return child
                self.journal.truncate(child.key, 0)  # what it shares was replaced meanwhile: share what is there now
        raise Conflict(self.id, self.state.position)

    def _origin(self, at: int | str | None) -> Origin:
        """Where a fork at this message begins."""
        if at is None:
            return Origin(self.id, self.state.position, self.state.ordinal)
        ordinal = Ref.parse(str(at)).ordinal
        self.shown(ordinal, f"§{ordinal}")
        owner = self._owner(ordinal)
        position = owner.journal.position(owner.key, ordinal)
        if position is None:
            raise Damaged(f"session {owner.id!r}: §{ordinal} is missing from the journal; fork at another message")
        return Origin(owner.id, position + 1, ordinal)

    def _sibling(self, id: str) -> Session:
        """Another session of this store and tenant, not read yet."""
        key = SessionKey(self.tenant, id)
        return Session(self.journal, key, self._counter, self._draw_nonce, self._keys, self.repair, self.fact_lookup)

    def draft(self) -> Session:
        """This session in memory only: what is appended to it is gone with it, and nobody else sees it."""
        with self.lock:
            other = self._scratch()
            other.lock = threading.RLock()
            other.journal = DraftJournal(self.journal, self.key, self.state.position)
            other._log = Log(other.journal, self.key, self.address_key, self.repair)
            other.cache = dict(self.cache)
            other.findings = list(self.findings)
        return other

    # -- reading ------------------------------------------------------------------------------------------------

    def resolve(self, ref: str | int | Ref) -> Message:
        """The original a reference names (``§128``, ``128``, ``§128.2``, ``tool:3``), checked against its address.

        Raises `InvalidReference`, `ReferenceNotFound` (a KeyError), `Erased` (another), `Damaged`.
        """
        if isinstance(ref, str) and ref.strip().startswith("tool:"):
            number = ref.strip()[5:]
            if not (number.isascii() and number.isdecimal() and len(number) <= MAX_ORDINAL_DIGITS):
                raise InvalidReference(ref)
            return self.tool_output(int(number))
        parsed = ref if isinstance(ref, Ref) else Ref.parse(str(ref))
        with self.lock:
            message = self._there(self._original(parsed.ordinal, str(ref)), str(ref))
        return self._result(message, parsed.part, str(ref)) if parsed.part else message

    def tool_output(self, number: int) -> Message:
        """The n-th tool output of the session (1-based), whole, as a message of role ``tool``."""
        ref = f"tool:{number}"
        with self.lock:
            if not 0 < number <= self.state.outputs:
                raise ReferenceNotFound(ref, self.id, f"it holds {self.state.outputs} tool outputs")
            for owner in self._line():
                record = owner.journal.by_output(owner.key, number)
                if record is None or (owner is not self and record.ordinal > self._limit(owner)):
                    continue
                entry = self._original(record.ordinal, ref)
                part = number - (entry.event.outputs - len(entry.message.tool_results))
                if part > 0:  # else the number belongs to the parent's part of the log
                    return self._result(self._there(entry, ref), part, ref)
        raise Damaged(f"session {self.id!r}: the record of {ref} is damaged or missing and cannot be restored")

    def _there(self, entry: Entry, ref: str) -> Message:
        """What a message says; `Erased` where it was forgotten."""
        event = entry.event
        if event.erased:
            owner = self._owner(event.ordinal)
            gone = {found.principal: found for found in self.journal.forgotten(self.tenant, owner.id)}
            found = gone.get(event.principal) or Forgotten(owner.id, event.principal, "unknown", "unknown", "unknown")
            raise Erased(f"{ref} of session {self.id!r}", who=found.who, when=found.when, why=found.why)
        return entry.message

    def entry(self, ref: str | int | Ref) -> Entry:
        """The log entry of a message; an erased one says nothing any more. Raises `Damaged`."""
        ordinal = ref.ordinal if isinstance(ref, Ref) else Ref.parse(str(ref)).ordinal
        with self.lock:
            return self._original(ordinal, f"§{ordinal}")

    def shown(self, ordinal: int, ref: str = "") -> Entry:
        """The log entry of a message as an envelope may show it: a stand-in where the original is damaged."""
        with self.lock:
            found = self._found(ordinal, ref or f"§{ordinal}")
            return found if isinstance(found, Entry) else fill(State(self.id), found, None, ())

    def entries(self, start: int = 1, stop: int | None = None) -> list[Entry]:
        """Originals from ordinal `start` up to and including `stop`; costs what it returns. Raises `Damaged`."""
        with self.lock:
            last = self.state.ordinal if stop is None else min(stop, self.state.ordinal)
            return [self._original(ordinal, f"§{ordinal}") for ordinal in range(max(1, start), last + 1)]

    def reports(self) -> list[Compacted]:
        """All compactions of this log that can be read, oldest first (a fork's parent's included, up to the fork)."""
        with self.lock:
            found = [event for owner, upto in self._stretches() for event in owner._own_reports(upto)]
        return found[::-1]

    def shown_records(self) -> frozenset[str]:
        """Ids of the records this session was shown: in its profiles, and as facts; costs a reading of its log."""
        with self.lock:
            parts = [shown_in(owner._log.read(0, upto)) for owner, upto in self._stretches()]
        return frozenset().union(*parts)

    def _stretches(self) -> Iterator[tuple[Session, int | None]]:
        """This log and those it was forked from, each with the position where its part ends."""
        owner: Session | None = self
        upto = None
        while owner is not None:
            yield owner, upto
            upto = owner._parent.position if owner._parent is not None else None
            owner = owner.parent()

    def _own_reports(self, upto: int | None) -> Iterator[Compacted]:
        """Newest first."""
        position = self.journal.checkpoint(self.key, before=upto)
        while position:
            event = self._log.at(position)
            if isinstance(event, Compacted):
                yield event
            position = self.journal.checkpoint(self.key, before=position)

    # -- opening and catching up --------------------------------------------------------------------------------

    def open(self, head: Head) -> None:
        """Open the log, or create it with this head. Raises `Erased` for a session that was forgotten."""
        with self.lock:
            for _ in range(_TRIES):
                if self.journal.length(self.key) == 0:
                    self._prepare()
                    head = self._standing(head)
                    with suppress(Conflict):  # another process created it just now: read what it wrote
                        self._write((Opened(nonce=self._draw_nonce()), head))
                self.load()
                if self.state.position:
                    break
            self._reconcile(head)

    def _prepare(self) -> None:
        """Before a log is created: it may have been there, and its name may be burned."""
        self._read_forgotten()
        self._generation = self.journal.generation(self.key)

    def _standing(self, head: Head) -> Head:
        """A head that is about to be written, without what was withdrawn since somebody read its profile."""
        if head.profile is None:
            return head
        profile, findings = standing(self.fact_lookup, self.tenant, head.profile)
        self.findings += [finding for finding in findings if finding not in self.findings]
        return replace(head, profile=profile)

    def _reconcile(self, head: Head) -> None:
        pinned = self.state.head
        if head.profile is not None and pinned.profile is not None and head.profile != pinned.profile:
            text = "the session keeps the profile version it is pinned to; `session.repin(profile)` moves it"
            self.findings.append(Finding(kind="profile_pinned", text=text))
        profile = pinned.profile if pinned.profile is not None else self._standing(head).profile
        wanted = Head(
            profile=profile, system=head.system or pinned.system, tools=head.tools or pinned.tools,
            project=head.project or pinned.project,
        )  # fmt: skip
        if wanted != pinned:
            self.record(wanted)

    def load(self, upto: int | None = None) -> None:
        """Read the state from the journal, from the newest compaction on (or as it was at position `upto`).

        Raises `Damaged` where neither the log nor a compaction says any more what its head or its parent was.
        """
        with self.lock:
            before = self.state, self._parent, self._parents, self._below, self.findings
            try:
                self._load(upto)
            except BaseException as error:
                if not isinstance(error, Erased):
                    self.state, self._parent, self._parents, self._below, self.findings = before
                self._generation = -1  # nothing is written, and everything read again, before this has succeeded
                raise

    def _load(self, upto: int | None) -> None:
        self._generation = self.journal.generation(self.key)
        self.state = State(self.id)
        self._parent = self._parents = None
        self._below, self._behind = (), False
        self.findings = [finding for finding in self.findings if finding.kind not in DAMAGE]
        self.missing.clear()
        self.cache.clear()
        self._log.restored.clear()
        self._read_forgotten()
        start = self._restore(upto)
        rows = self._log.read(start, upto)
        if start == 0 and rows and isinstance(rows[0], Spoiled):  # `_restore` has found out that there is no parent
            self.state.position = 1
            self.passed_over(replace(rows[0], kind="opened"))
            rows = rows[1:]
        fold(self.state, rows, self)
        if not self.state.heads and any(finding.kind == "record_damaged" for finding in self.findings):
            raise Damaged(f"session {self.id!r}: its head is damaged; restore the journal from a backup")
        if self._log.restored:
            positions = ", ".join(map(str, sorted(self._log.restored)))
            text = f"records at {positions} cannot be read here; the object store had them"
            self._miss("restored", "record_restored", text)

    def _restore(self, upto: int | None) -> int:
        """Start from the newest compaction that can be read, or from the parent; the position to read on from."""
        before = upto
        while start := self.journal.checkpoint(self.key, before=before):
            event = self._log.at(start)
            if isinstance(event, Compacted):
                self._link(self._read_origin())
                head, head_at = self._head_at(event)
                self.state.restore(event, start, head, lambda n: self._found(n, f"§{n}"))
                self.state.head_at = head_at
                return start + 1
            before = start
        if upto != 0 and self.journal.length(self.key):
            origin = self._read_origin()
            self._link(origin)
            if origin is not None:
                parent = self._sibling(origin.session)
                parent.load(upto=origin.position)
                self.findings += [found for found in parent.findings if found.kind in DAMAGE]
                self.state = parent.state
                self.state.session, self.state.position = self.id, 1
                return 1
        return 0

    def original(self, ordinal: int) -> Appended | None:
        """A message by its ordinal, wherever it stands."""
        found = self._log.message(ordinal)
        return found if isinstance(found, Appended) else None

    def stood_in(self, ordinal: int) -> None:
        """An original cannot be read: count it once."""
        if ordinal not in self.missing:
            self.missing.add(ordinal)
            telemetry.cache_miss("original")

    def passed_over(self, row: Spoiled) -> None:
        """Say what a record that cannot be read was, and what is done about it."""
        what = f"the {row.kind or 'missing'} record at position {row.position} cannot be read"
        if row.kind == "compaction":
            self._miss("compaction", "compaction_regenerated", f"{what}; the next build compacts from the originals")
        elif row.kind == "message" and row.record is None:
            self._miss("record", "record_skipped", f"the message at position {row.position} stands out of order")
        elif row.kind in ("selection", "refused"):
            self._miss("record", "record_skipped", f"{what}; it is decided again")
        elif row.kind == "opened":
            self.state.nonce = self._spare_nonce()
            self._miss("record", "record_damaged", f"{what}; fences go by another nonce", row.kind)
        else:
            self._miss("record", "record_damaged", f"{what}; what was in force before it stays", row.kind or None)

    def _miss(self, reason: telemetry.Reason, kind: str, text: str, field: str | None = None) -> None:
        finding = Finding(kind=kind, field=field, text=text)
        if finding not in self.findings:
            self.findings.append(finding)
            telemetry.cache_miss(reason)

    def refresh(self) -> None:
        """Read what other writers have appended since."""
        with self.lock:
            if self.journal.generation(self.key) != self._generation or (self._below and self._below_changed()):
                self.load()  # what was written has been replaced
                return
            rows = self._log.read(self.state.position, whole=self._behind)
            self._behind = False
            if rows:
                fold(self.state, rows, self)

    def _below_changed(self) -> bool:
        return any(self.journal.generation(key) != generation for key, generation in self._below)

    def _read_forgotten(self) -> None:
        """Who of this session was forgotten; raises `Erased` where it is the session itself."""
        forgotten = self.journal.forgotten(self.tenant, self.id)
        self._forgotten = {found.principal: found for found in forgotten if found.principal is not None}
        for found in forgotten:
            if found.principal is None:
                raise Erased(f"session {self.id!r}", who=found.who, when=found.when, why=found.why)

    def parent(self) -> Session | None:
        """The session this one was forked from, as it is now; None for an original."""
        if self._parent is None:
            return None
        if self._parents is None:
            self._parents = self._sibling(self._parent.session)
            self._parents._parent = self._parents._read_origin()
        return self._parents

    def origins(self) -> tuple[Origin, ...]:
        """Where the logs end that this one shares: its parent's first; none for an original."""
        with self.lock:
            return tuple(owner._parent for owner, _ in self._stretches() if owner._parent is not None)

    def _line(self) -> Iterator[Session]:
        """This session, its parent, and so on."""
        for owner, _ in self._stretches():
            yield owner

    def _link(self, origin: Origin | None) -> None:
        """Take note of the parent, and of the generations of the logs below before they are read."""
        self._parent = origin
        if origin is not None:
            below = [owner.key for owner in self._line()][1:]
            self._below = tuple((key, self.journal.generation(key)) for key in below)

    def _read_origin(self) -> Origin | None:
        """Where this log was forked from; `Damaged` where that cannot be told any more."""
        opened = self._log.at(0)
        if isinstance(opened, Opened):
            return opened.parent
        if isinstance(self._log.message(1), Appended):  # only the first message of all has this ordinal
            return None
        raise Damaged(
            f"session {self.id!r}: its first record is damaged, and so is where it begins; "
            "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
        )

    def _spare_nonce(self) -> str:
        """A nonce in place of a lost one: the same for every reader, and nobody else's to guess."""
        drawn = hmac.digest(self.address_key, b"nonce\x00" + self.id.encode(), "sha256")
        return f"{int.from_bytes(drawn) % 10**NONCE_DIGITS:0{NONCE_DIGITS}d}"

    def _head_at(self, event: Compacted) -> tuple[Head, tuple[str, int] | None]:
        """The head in force at a compaction, or where it is damaged the one before it."""
        where = event.checkpoint["head_at"]
        if where is None:
            return Head(), None
        session, position = where
        owner = self if session == self.id else self._sibling(session)
        head = owner._log.at(position)
        if isinstance(head, Head):
            return head, (session, position)
        before = self._sibling(session)
        before.load(upto=position)
        if not before.state.heads:
            raise Damaged(f"session {self.id!r}: its head is damaged; restore the journal from a backup")
        text = f"the head record at position {position} cannot be read; what was in force before it stays"
        self._miss("record", "record_damaged", text, "head")
        return before.state.head, before.state.head_at

    # -- inside -------------------------------------------------------------------------------------------------

    def _entry(self, message: Message, wire: str, tokens: dict[str, int], new: NewMessage) -> Entry:
        state = self.state
        if new.principal is not None and (gone := self._forgotten.get(new.principal)) is not None:
            what = f"principal {new.principal!r} of session {self.id!r}"
            raise Erased(what, who=gone.who, when=gone.when, why=gone.why)
        ordinal = state.ordinal + 1
        placement = place(state, message, ordinal)
        results = len(message.tool_results) if placement is not PLAIN else 0
        event = Appended(
            ordinal=ordinal,
            wire=wire,
            placement=placement,
            tokens=tokens,
            outputs=state.outputs + results if results else 0,
            address=self._log.address(new.principal, wire),
            id=new.id,
            phase=new.phase,
            pin=new.pin,
            ts=new.ts,
            principal=new.principal,
            origin=new.origin,
        )
        return Entry(event, message)

    def _append_batch(self, batch: Sequence[_Taken]) -> list[Entry]:
        with self.lock:
            for _ in range(_TRIES):
                scratch, fresh, entries = self._tried(batch)
                try:
                    self._write([entry.event for entry in fresh])
                except Conflict:
                    self.refresh()
                    continue
                self.state = scratch.state
                return entries
        raise Conflict(self.id, self.state.position)

    def _tried(self, batch: Sequence[_Taken]) -> tuple[Session, list[Entry], list[Entry]]:
        """A batch on a copy of the state: the copy, what is new, and the entry of every message."""
        scratch = self._scratch()
        entries: list[Entry] = []
        fresh: list[Entry] = []
        known: dict[str, Entry] = {}
        for wire, message, tokens, new in batch:
            entry = (known.get(new.id) or self._by_id(new.id)) if new.id is not None else None
            if entry is not None:
                self._notice_reuse(entry, wire)
            if entry is None:
                entry = scratch._entry(message, wire, tokens, new)
                scratch.state.add(entry)
                fresh.append(entry)
                if new.id is not None:
                    known[new.id] = entry
            entries.append(entry)
        return scratch, fresh, entries

    def _scratch(self) -> Session:
        """This session with a state of its own to try a batch on."""
        other = Session.__new__(Session)
        other.__dict__.update(self.__dict__)
        other.state = self.state.copy()
        return other

    def _count(self, message: Message) -> dict[str, int]:
        counter = self.counter
        return {counter.name: counter.message(message)}

    @property
    def counter(self) -> Counter:
        """What counts are stored with each message."""
        if self._counted is None:
            self._counted = self._counter()
        return self._counted

    def _by_id(self, id: str) -> Entry | None:
        for owner in self._line():
            record = owner.journal.by_id(owner.key, id)
            if record is not None and (owner is self or record.ordinal <= self._limit(owner)):
                try:
                    return self.shown(record.ordinal)
                except ReferenceNotFound:
                    what = f"session {self.id!r}: the record of id {id!r} is damaged and names no message"
                    raise Damaged(f"{what}; `ctxsteward store fsck --repair` restores what can be") from None
        return None

    def _original(self, ordinal: int, ref: str) -> Entry:
        """A message as it was appended; raises `ReferenceNotFound`, `Damaged`."""
        found = self._found(ordinal, ref)
        if isinstance(found, Hole):
            raise Damaged(
                f"session {self.id!r}: {ref} is damaged or missing and is not served; "
                "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
            )
        return found

    def _found(self, ordinal: int, ref: str) -> Entry | Hole:
        for group in reversed(self.state.groups):
            if group.first <= ordinal <= group.last:
                for entry in group.entries:
                    if entry.ordinal == ordinal and not entry.event.damaged:
                        return entry
            elif group.last < ordinal:
                break
        found = self._owner(ordinal)._log.message(ordinal)
        if isinstance(found, Appended):
            return Entry(found)
        if not 0 < ordinal <= self.state.ordinal:
            last = f"it holds §1 to §{self.state.ordinal}" if self.state.ordinal else "it is empty"
            raise ReferenceNotFound(ref, self.id, last)
        self.stood_in(ordinal)
        record = found.record if found is not None else None
        return Hole(ordinal=ordinal, said=claimed(record.wire if record else None))

    def _owner(self, ordinal: int) -> Session:
        """Whose part of the log a message lies in."""
        for owner in self._line():
            if owner._parent is None or ordinal > owner._parent.ordinal:
                return owner
        return self

    def _limit(self, owner: Session) -> int:
        """Highest ordinal of `owner`'s log that this fork shares."""
        limit = self.state.ordinal
        for session in self._line():
            if session is owner or session._parent is None:
                break
            limit = min(limit, session._parent.ordinal)
        return limit

    def _result(self, message: Message, part: int, ref: str) -> Message:
        results = message.tool_results
        if not 1 <= part <= len(results):
            raise ReferenceNotFound(ref, self.id, f"that message holds {len(results)} tool results")
        return message if message.role == "tool" else _as_tool_message(results[part - 1])


def _as_tool_message(result: ToolResultPart) -> Message:
    wire: Wire = {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
    return Message(role="tool", dialect="openai", parts=(result,), wire=wire)
