"""A session: an append-only log of one conversation, and every original in it by reference.

Appending is acknowledged when the journal has the record. Two processes may append to one session: the journal orders
them, and whoever comes second reads what the other wrote and goes on from there. Nothing in a session ever changes:
editing, regenerating or aborting is a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ctxsteward.schemas import (
    Conflict,
    ContextError,
    Damaged,
    Finding,
    InputError,
    InvalidReference,
    Message,
    Ref,
    ReferenceNotFound,
    ToolResultPart,
    Wire,
)
from ctxsteward.schemas.message import decode_wire, encode_wire, take_wire

from .counting import Counter
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
    from_record,
    to_record,
)
from .groups import Entry, place
from .incoming import NewMessage, check_meta, checked_name
from .keys import AddressKey, address_of, subject_of
from .profile import Profile
from .state import State
from .stores.draft import DraftJournal
from .stores.port import Journal, Record, SessionKey

MAX_ORDINAL_DIGITS = 12
_TRIES = 1000
"""Writers that keep losing a position for this often are told so."""

BATCH_MESSAGES = 1000
"""`extend` writes this many messages in one journal append."""


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
    ) -> None:
        self.journal = journal
        self.key = key
        self.findings: list[Finding] = []
        """What was noticed while opening."""
        self._counter = counter
        self._counted: Counter | None = None
        self._draw_nonce = draw_nonce
        self.address_key: AddressKey = journal.address_key(key.tenant)
        self.cache: dict[object, object] = {}
        """Fragments of this session's bullets, notes, head: results of pure functions, never state."""
        self._parent: Origin | None = None
        self.state = State(key.session)

    @property
    def id(self) -> str:
        return self.key.session

    @property
    def tenant(self) -> str:
        return self.key.tenant

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
        new = NewMessage(message=message, id=id, phase=phase, pin=pin, ts=ts, principal=principal, origin=origin)
        check_meta(new)
        wire, decoded = take_wire(message)
        tokens = self._count(decoded)
        for _ in range(_TRIES):
            if id is not None and (known := self._by_id(id)) is not None:
                self._notice_reuse(known, wire)
                return known
            entry = self._entry(decoded, wire, tokens, new)
            try:
                self.journal.append(self.key, self.state.position, (to_record(entry.event),))
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
        if known.event.wire != wire:
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
        self._original(ordinal, ref)
        self.record(PinSet(ordinal=ordinal, strength=strength, name=name))

    def repin(self, profile: Profile) -> None:
        """Move this session to another version of its profile."""
        head = self.state.head
        self.record(Head(profile=profile.model_dump(mode="json"), system=head.system, tools=head.tools))

    def record(self, event: Event) -> None:
        """Append one event that needs nothing of the log's newest state; retried behind other writers."""
        for _ in range(_TRIES):
            try:
                self.commit(event)
                return
            except Conflict:
                self.refresh()
        raise Conflict(self.id, self.state.position)

    def commit(self, event: Event) -> None:
        """Append one event that was decided on exactly this state; `Conflict` if the log has moved on."""
        self.journal.append(self.key, self.state.position, (to_record(event),))
        self.state.apply(event)

    def fork(self, at: int | str | None = None, *, id: str | None = None) -> Session:
        """A new session that shares this log up to message `at` (default: all of it) and counts on from there."""
        root = self.id.partition("-fork-")[0]
        name = checked_name("session", f"{root[:160]}-fork-{self._draw_nonce()}" if id is None else id)
        owner, ordinal, position = self, self.state.ordinal, self.state.position
        if at is not None:
            ordinal = Ref.parse(str(at)).ordinal
            self._original(ordinal, f"§{ordinal}")
            owner, _ = self._owner(ordinal)
            found = self.journal.position(owner.key, ordinal)
            assert found is not None
            position = found + 1
        child = self._sibling(name)
        opened = Opened(nonce=self.state.nonce, parent=Origin(owner.id, position, ordinal))
        try:
            self.journal.append(child.key, 0, (to_record(opened),))
        except Conflict:
            raise InputError(f"session {name!r} exists already; name the fork otherwise") from None
        child.load()
        return child

    def _sibling(self, id: str) -> Session:
        """Another session of this store and tenant, not read yet."""
        return Session(self.journal, SessionKey(self.tenant, id), self._counter, self._draw_nonce)

    def draft(self) -> Session:
        """This session in memory only: what is appended to it is gone with it, and nobody else sees it."""
        other = self._scratch()
        other.journal = DraftJournal(self.journal, self.key, self.state.position)
        other.cache = dict(self.cache)
        other.findings = list(self.findings)
        return other

    # -- reading ------------------------------------------------------------------------------------------------

    def resolve(self, ref: str | int | Ref) -> Message:
        """The original a reference names (``§128``, ``128``, ``§128.2``, ``tool:3``), checked against its address.

        Raises `InvalidReference`, `ReferenceNotFound` (a KeyError), `Damaged`.
        """
        if isinstance(ref, str) and ref.strip().startswith("tool:"):
            number = ref.strip()[5:]
            if not (number.isascii() and number.isdecimal() and len(number) <= MAX_ORDINAL_DIGITS):
                raise InvalidReference(ref)
            return self.tool_output(int(number))
        parsed = ref if isinstance(ref, Ref) else Ref.parse(str(ref))
        message = self._original(parsed.ordinal, str(ref)).message
        return self._result(message, parsed.part, str(ref)) if parsed.part else message

    def tool_output(self, number: int) -> Message:
        """The n-th tool output of the session (1-based), whole, as a message of role ``tool``."""
        owner: Session | None = self
        record = None
        while owner is not None and record is None:
            limit = None if owner is self else self._limit(owner)
            record = owner.journal.by_output(owner.key, number) if 0 < number <= self.state.outputs else None
            if record is not None and limit is not None and record.ordinal > limit:
                record = None
            found, owner = owner, owner.parent()
            if record is not None and number <= record.outputs - _results_in(record) and owner is not None:
                record = None  # the number belongs to the parent's part of the log
        if record is None:
            raise ReferenceNotFound(f"tool:{number}", self.id, f"it holds {self.state.outputs} tool outputs")
        message = found._checked(record).message
        part = number - (record.outputs - _results_in(record))
        return self._result(message, part, f"tool:{number}")

    def entry(self, ref: str | int | Ref) -> Entry:
        """The log entry of a message."""
        ordinal = ref.ordinal if isinstance(ref, Ref) else Ref.parse(str(ref)).ordinal
        return self._original(ordinal, f"§{ordinal}")

    def entries(self, start: int = 1, stop: int | None = None) -> list[Entry]:
        """Originals from ordinal `start` up to and including `stop`; costs what it returns."""
        last = self.state.ordinal if stop is None else min(stop, self.state.ordinal)
        return [self._original(ordinal, f"§{ordinal}") for ordinal in range(max(1, start), last + 1)]

    def reports(self) -> list[Compacted]:
        """All compactions of this log, oldest first (a fork's parent's included, up to the fork)."""
        return self._reports(None)

    def _reports(self, upto: int | None) -> list[Compacted]:
        found: list[Compacted] = []
        position = self.journal.checkpoint(self.key, before=upto)
        while position:
            event = from_record(self.journal.read(self.key, position, position + 1)[0])
            assert isinstance(event, Compacted)
            found.append(event)
            position = self.journal.checkpoint(self.key, before=position)
        parent = self.parent()
        before = parent._reports(self._parent.position) if parent is not None and self._parent is not None else []
        return [*before, *reversed(found)]

    # -- opening and catching up --------------------------------------------------------------------------------

    def open(self, head: Head) -> None:
        """Open the log, or create it with this head."""
        if self.journal.length(self.key) == 0:
            events: tuple[Event, ...] = (Opened(nonce=self._draw_nonce()), head)
            with suppress(Conflict):  # another process created it just now: read what it wrote
                self.journal.append(self.key, 0, [to_record(event) for event in events])
        self.load()
        self._reconcile(head)

    def _reconcile(self, head: Head) -> None:
        pinned = self.state.head
        if head.profile is not None and pinned.profile is not None and head.profile != pinned.profile:
            text = "the session keeps the profile version it is pinned to; `session.repin(profile)` moves it"
            self.findings.append(Finding(kind="profile_pinned", text=text))
        profile = pinned.profile if pinned.profile is not None else head.profile
        wanted = Head(profile=profile, system=head.system or pinned.system, tools=head.tools or pinned.tools)
        if wanted != pinned:
            self.record(wanted)

    def load(self, upto: int | None = None) -> None:
        """Read the state from the journal, from the newest compaction on (or as it was at position `upto`)."""
        self.state = state = State(self.id)
        start = self.journal.checkpoint(self.key, before=upto)
        if start:
            records = self.journal.read(self.key, start, upto)
            event = from_record(records[0])
            assert isinstance(event, Compacted)
            self._parent = self._read_origin()
            state.restore(event, start, self._head_at(event), lambda n: self._original(n, f"§{n}"))
            records = records[1:]
        else:
            records = self.journal.read(self.key, 0, upto)
            opened = from_record(records[0]) if records else None
            if isinstance(opened, Opened) and opened.parent is not None:
                self._inherit(opened.parent)
                state = self.state
                state.position = 1
                records = records[1:]
        for record in records:
            state.apply(self._verified(record))

    def refresh(self) -> None:
        """Read what other writers have appended since."""
        for record in self.journal.read(self.key, self.state.position):
            self.state.apply(self._verified(record))

    def parent(self) -> Session | None:
        """The session this one was forked from, as it is now; None for an original."""
        if self._parent is None:
            return None
        parent = self._sibling(self._parent.session)
        parent._parent = parent._read_origin()
        return parent

    def _inherit(self, origin: Origin) -> None:
        self._parent = origin
        parent = self._sibling(origin.session)
        parent.load(upto=origin.position)
        self.state = parent.state
        self.state.session = self.id

    def _read_origin(self) -> Origin | None:
        first = self.journal.read(self.key, 0, 1)
        opened = from_record(first[0]) if first else None
        return opened.parent if isinstance(opened, Opened) else None

    def _head_at(self, event: Compacted) -> Head:
        where = event.checkpoint["head_at"]
        if where is None:
            return Head()
        record = self.journal.read(SessionKey(self.tenant, where[0]), where[1], where[1] + 1)
        head = from_record(record[0]) if record else None
        if not isinstance(head, Head):
            raise Damaged(f"session {self.id!r}: the head at {where} is gone; restore the journal from a backup")
        return head

    # -- inside -------------------------------------------------------------------------------------------------

    def _entry(self, message: Message, wire: str, tokens: dict[str, int], new: NewMessage) -> Entry:
        state = self.state
        ordinal = state.ordinal + 1
        placement = place(state, message, ordinal)
        results = len(message.tool_results) if placement is not PLAIN else 0
        event = Appended(
            ordinal=ordinal,
            wire=wire,
            placement=placement,
            tokens=tokens,
            outputs=state.outputs + results if results else 0,
            address=self._address(new.principal, wire),
            id=new.id,
            phase=new.phase,
            pin=new.pin,
            ts=new.ts,
            principal=new.principal,
            origin=new.origin,
        )
        return Entry(event, message)

    def _append_batch(self, batch: Sequence[_Taken]) -> list[Entry]:
        for _ in range(_TRIES):
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
            try:
                self.journal.append(self.key, self.state.position, [to_record(entry.event) for entry in fresh])
            except Conflict:
                self.refresh()
                continue
            self.state = scratch.state
            return entries
        raise Conflict(self.id, self.state.position)

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

    def _address(self, principal: str | None, wire: str) -> str:
        return address_of(self.address_key, subject_of(self.id, principal), "message", wire.encode())

    def _by_id(self, id: str) -> Entry | None:
        record = self.journal.by_id(self.key, id)
        owner = self.parent()
        while record is None and owner is not None:
            record = owner.journal.by_id(owner.key, id)
            if record is not None and record.ordinal > self._limit(owner):
                record = None
            owner = owner.parent()
        if record is None:
            return None
        return self._original(record.ordinal, f"§{record.ordinal}")

    def _original(self, ordinal: int, ref: str) -> Entry:
        for group in reversed(self.state.groups):
            if group.first <= ordinal <= group.last:
                for entry in group.entries:
                    if entry.ordinal == ordinal:
                        return entry
            elif group.last < ordinal:
                break
        owner, record = self._owner(ordinal)
        if record is None:
            last = f"it holds §1 to §{self.state.ordinal}" if self.state.ordinal else "it is empty"
            raise ReferenceNotFound(ref, self.id, last)
        return owner._checked(record)

    def _owner(self, ordinal: int) -> tuple[Session, Record | None]:
        owner: Session | None = self
        while owner is not None:
            here = owner
            if here._parent is None or ordinal > here._parent.ordinal:
                return here, here.journal.message(here.key, ordinal)
            owner = here.parent()
        return self, None

    def _limit(self, owner: Session) -> int:
        """Highest ordinal of `owner`'s log that this fork shares."""
        link, limit = self._parent, self.state.ordinal
        while link is not None:
            limit = min(limit, link.ordinal)
            if link.session == owner.id:
                return limit
            below = self._sibling(link.session)
            link = below._read_origin()
        return limit

    def _checked(self, record: Record) -> Entry:
        event = self._verified(record)
        assert isinstance(event, Appended)
        return Entry(event)

    def _verified(self, record: Record) -> Event:
        """The event of a record; `Damaged` where a message is not what its address says."""
        event = from_record(record)
        if isinstance(event, Appended) and self._address(event.principal, event.wire) != event.address:
            raise Damaged(
                f"session {self.id!r}: the record of §{event.ordinal} is not what its address says; "
                "restore the journal from a backup"
            )
        return event

    def _result(self, message: Message, part: int, ref: str) -> Message:
        results = message.tool_results
        if not 1 <= part <= len(results):
            raise ReferenceNotFound(ref, self.id, f"that message holds {len(results)} tool results")
        return message if message.role == "tool" else _as_tool_message(results[part - 1])


def _as_tool_message(result: ToolResultPart) -> Message:
    wire: Wire = {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
    return Message(role="tool", dialect="openai", parts=(result,), wire=wire)


def _results_in(record: Record) -> int:
    try:
        return len(decode_wire(record.wire or "{}").tool_results)
    except ContextError:
        return 0
