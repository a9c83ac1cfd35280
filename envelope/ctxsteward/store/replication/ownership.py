"""Ownership of sessions: take a session over, copy its chain into the journal, and move a loser's turns into a fork.

The drained part of a session's log is the same on every machine. The owner writes its segments under its epoch. Another
machine becomes the owner by committing a *takeover* under the next epoch at the chain's next number. A writer that
finds its number taken has lost the session: in one transaction of its journal it adopts the new records, keeps the
common ones, and moves its own undrained turns into a fork. So every turn is in the session or in exactly one fork.

`DrainMark.epoch` of a session in a journal means:

    n > 0    this journal owns the session under epoch n
    0        it has not claimed the session yet; its first segment does, if no other journal has written since
    -n       another journal owns the session under epoch n

Nothing here depends on a clock or a lock: commits are compare-and-swap on the chain's number, and `Journal.adopt`
raises `Conflict` if the log has changed.

A fork's name has session, the epoch of the writer that lost it, and position: ``s-42-fork-e1-17`` (and the beginning of
the journal's id if that writer never owned the session). It shares the session's log up to that position, continues its
ordinals, and has the moved turns unchanged: same ordinals, ids, texts, times. Its messages have new addresses, because
an address depends on the subject; a compaction keeps the address of its published report. Manifests of envelopes that
were built on these turns, and logs that were forked off them, move with it. Raises `StoreError`.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Literal

from ctxsteward.schemas import ContextError, StoreUnavailable
from ctxsteward.schemas.errors import Conflict, VersionTaken

from .. import process_forks as forking
from ..crypto.hash_chain import Chain
from ..crypto.keyring import AddressKey, Keys, subject_of
from ..crypto.vault import Vault
from ..journal.events import ForkPoint, SessionOpened, encoded_body, fork_point, from_record, to_record
from ..journal.log import addressed, coded, coded_manifest, forks_above, principals_of
from ..journal.port import (
    Adoption,
    DrainMark,
    ForgottenSubject,
    Journal,
    JournalRecord,
    MovedTail,
    SessionKey,
)
from ..names import session_folder
from ..objects.port import ObjectStore, Patience
from .segment_log import SEGMENT_BYTES, SEGMENT_RECORDS, NewSegments, Rewrite, SessionLog, Takeover, session_id, span_of

MARK = "-fork-e"
MAX_STEM_CHARS = 150
_MOVED = re.compile(rf"(.+){MARK}\d+-\d+(?:-[0-9a-f]{{8}})?(?:-\d+)?")


def fork_key(journal: Journal, key: SessionKey, position: int, epoch: int) -> SessionKey:
    """Return a free name for the fork at `position`; `epoch` is the journal's own, or at most 0 if it owned nothing."""
    stem = f"{_stem(key.session)}{MARK}{abs(epoch)}-{position}"
    if epoch <= 0:
        stem += f"-{journal.id[:8]}"
    name, count = stem, 1
    while journal.length(SessionKey(key.tenant, name)):
        count += 1
        name = f"{stem}-{count}"
    return SessionKey(key.tenant, name)


def moved_from(session: str) -> str | None:
    """Return the session whose turns moved into this fork, by the fork's name, or None for another name.

    >>> moved_from("s-42-fork-e0-0-1f0ac2b4"), moved_from("s-42-fork-e1-17"), moved_from("s-42")
    ('s-42', 's-42', None)
    """
    found = _MOVED.fullmatch(session)
    return found[1] if found else None


def forks_of(journal: Journal, key: SessionKey) -> list[str]:
    """Return the forks of this session that this journal has made of moved turns."""
    beginning = _stem(key.session) + MARK
    return [name for name in journal.sessions(key.tenant) if name.startswith(beginning)]


def moved_tail(
    journal: Journal, address_key: AddressKey, key: SessionKey, position: int, tail: Sequence[JournalRecord], epoch: int
) -> MovedTail:
    """Return the `MovedTail` that makes a fork of the records from `position` on."""
    fork = fork_key(journal, key, position, epoch)
    shift = 1 - position if position else 0
    first = journal.read(key, 0, 1)
    opened = from_record(first[0]) if first else None
    records = []
    if position and isinstance(opened, SessionOpened):
        before = (
            record.ordinal
            for stop in range(position, 0, -256)
            for record in reversed(journal.read(key, max(0, stop - 256), stop))
            if record.ordinal
        )
        parent = opened.parent
        origin = ForkPoint(key.session, position, next(before, parent.ordinal if parent is not None else 0))
        records.append(coded(address_key, fork.session, 0, to_record(SessionOpened(nonce=opened.nonce, parent=origin))))
    addresses: dict[str, str] = {}  # the messages that a compaction replaces come before it
    for place, record in enumerate(tail, position + shift):
        moved = addressed(address_key, fork.session, record, addresses)
        if record.kind == "compaction":
            body = json.loads(moved.body)
            where = body["checkpoint"]["head_at"]
            if where is not None and where[0] == key.session and where[1] >= position:
                body["checkpoint"]["head_at"] = [fork.session, where[1] + shift]
                moved = moved._replace(body=encoded_body(body))
        records.append(coded(address_key, fork.session, place, moved))
    manifests = {}
    for manifest in journal.manifests(key):
        fields = json.loads(manifest.body)
        if fields["position"] > position:
            fields.setdefault("sent_as", [fields["session"], fields["position"]])  # its address and its seal name these
            fields |= {"session": fork.session, "position": fields["position"] + shift}
            fields.pop("mac", None)
            manifests[manifest.address] = coded_manifest(address_key, manifest.address, encoded_body(fields)[1:-1])
    return MovedTail(fork, tuple(records), manifests, partial(_renamed, address_key, key, position, fork))


def _renamed(
    address_key: AddressKey, key: SessionKey, position: int, fork: SessionKey, session: str, first: JournalRecord
) -> JournalRecord | None:
    """Return a session's first record with `fork` as parent if it was forked off this log after `position`."""
    try:
        parent, opened = fork_point([first]), json.loads(first.body)
    except (ContextError, ValueError, KeyError, TypeError):  # it is damaged
        return None
    if parent is None or parent.session != key.session or parent.position <= position:
        return None
    shift = 1 - position if position else 0
    origin = ForkPoint(fork.session, parent.position + shift, parent.ordinal)
    return coded(address_key, session, 0, to_record(SessionOpened(nonce=opened["nonce"], parent=origin)))


def _stem(session: str) -> str:
    if len(session) <= MAX_STEM_CHARS:
        return session
    return f"{session[: MAX_STEM_CHARS - 13]}~{hashlib.sha256(session.encode()).hexdigest()[:12]}"


Claim = Literal["always", "if_unchanged", "never"]
"""When to become the owner: always; only if no segment or takeover has followed our drain mark; never."""

_TRIES = 100


class Ownership:
    """Adoption and takeover of the sessions of one journal. Safe with threads and several processes."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        keys: Keys,
        vault: Callable[[str], Vault],
        *,
        patience: Patience | None = None,
    ) -> None:
        self._journal, self._objects, self._keys, self._vault = journal, objects, keys, vault
        self._patience = patience
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Drop the locks of the parent's threads."""
        self._lock = threading.Lock()
        self._busy: dict[SessionKey, tuple[threading.RLock, int]] = {}

    def log(self, key: SessionKey) -> SessionLog:
        return SessionLog(self._objects, self._keys, self._vault(key.tenant), key, patience=self._patience)

    def stored_id(self, tenant: str, address: str) -> str | None:
        """Return the id of the session with this address, or None if it was forgotten."""
        vault, folder = self._vault(tenant), session_folder(tenant, address)
        first = Chain(self._objects, folder, self._keys.address_key(tenant), patience=self._patience).read(1)
        return session_id(first.body, vault, folder)

    @contextmanager
    def alone(self, key: SessionKey) -> Iterator[None]:
        """Let only one thread of this process work on a session's chain; saves work, but safety does not need it."""
        with self._lock:
            lock, users = self._busy.get(key, (threading.RLock(), 0))
            self._busy[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._busy.pop(key)
                if users > 1:
                    self._busy[key] = (lock, users - 1)

    def catch_up(self, key: SessionKey, *, claim: Claim, wanted: Callable[[], bool] = lambda: True) -> DrainMark:
        """Copy the chain's new records into the journal, and become the owner as `claim` says.

        This machine's undrained turns move into a fork if they cannot stay.

        Raises `StoreUnavailable` and changes nothing more when `wanted` returns False.
        """
        log = self.log(key)
        with self.alone(key):
            for _ in range(_TRIES):
                drained = self._journal.drained(key)
                incoming = log.behind(drained, self._journal)
                claims = claim == "always" or (claim == "if_unchanged" and incoming.owner is None)
                _check_wanted(wanted)
                try:
                    drained = self._adopt(key, log, drained, incoming, claims)
                    if claims and drained.epoch <= 0 and incoming.head is not None:
                        _check_wanted(wanted)
                        drained = self._take_over(key, log, drained, incoming)
                except (Conflict, VersionTaken):
                    continue
                if incoming.replaced:  # without this rewrite, no other machine could read the chain
                    self.rewrite(key, incoming.replaced)
                    drained = self._journal.drained(key)
                return drained
        raise Conflict(key.session, self._journal.length(key))

    def _adopt(
        self, key: SessionKey, log: SessionLog, before: DrainMark, incoming: NewSegments, claims: bool
    ) -> DrainMark:
        """Put the incoming records after the common ones.

        Our own later records stay if this journal owns or claims the session; else they move into a fork.
        """
        journal, position = self._journal, before.position
        length = journal.length(key)
        local = journal.read(key, position, length)
        pairs = zip(local, incoming.records, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        drained = self._noted(before, incoming)
        ours, theirs = local[shared:], incoming.records[shared:]
        keeps = not theirs and (claims or drained.epoch >= 0)
        self._rewrite(key, incoming)
        if ours and not keeps:
            moved = moved_tail(journal, self._keys.address_key(key.tenant), key, position + shared, ours, before.epoch)
            journal.see(_fenced_name(log), max(1, abs(drained.epoch)))
        else:
            moved = None
        if incoming.links or moved is not None:
            start = length if moved is None else position + shared
            journal.adopt(key, Adoption(start, theirs, length, drained, incoming.manifests, moved))
        return drained

    def _noted(self, before: DrainMark, incoming: NewSegments) -> DrainMark:
        if incoming.head is None or not incoming.links:
            return before
        if incoming.owner is None:
            epoch = before.epoch
        else:
            epoch = incoming.head.epoch if incoming.owner == self._journal.id else -incoming.head.epoch
        return DrainMark(before.position + len(incoming.records), incoming.head.number, epoch)

    def _take_over(self, key: SessionKey, log: SessionLog, drained: DrainMark, incoming: NewSegments) -> DrainMark:
        assert incoming.head is not None
        claim = Takeover(owner=self._journal.id, length=drained.position)
        link = log.commit(incoming.head, claim, epoch=incoming.head.epoch + 1)
        owned = DrainMark(drained.position, link.number, link.epoch)
        self._journal.set_drained(key, owned)
        return owned

    def _rewrite(self, key: SessionKey, incoming: NewSegments) -> None:
        """Replace records that an erasure elsewhere has rewritten, and record the forgotten principals."""
        changed = {
            position: record
            for position, record in incoming.rewritten.items()
            if self._journal.read(key, position, position + 1) != [record]
        }
        if changed:
            self._journal.rewrite(key, changed)
        erased = set()
        for record in (*incoming.rewritten.values(), *incoming.records):
            if record.kind == "message" and '"erased"' in record.body:
                body = json.loads(record.body)
                if body.get("erased") and body.get("principal") is not None:
                    erased.add(str(body["principal"]))
        vault = self._vault(key.tenant)
        for principal in erased:
            tombstone = vault.tombstone(vault.subject_address(subject_of(key.session, principal)))
            if tombstone is not None:
                forgotten = ForgottenSubject(key.session, principal, tombstone.who, tombstone.when, tombstone.why)
                self._journal.forget(key.tenant, forgotten)

    def rewrite(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Commit the journal's records at these positions after an erasure; take the session over for it."""
        due = sorted(set(positions))
        with self.alone(key):
            self.check_redacted(key, self._journal.length(key))
            for _ in range(_TRIES):
                drained = self._journal.drained(key)
                drained_due = [position for position in due if position < drained.position]
                if not drained_due:
                    return
                if drained.epoch <= 0:
                    drained = self.catch_up(key, claim="always")
                try:
                    due = self._commit_rewrite(key, drained, drained_due)
                except VersionTaken:
                    self.catch_up(key, claim="always")
        raise Conflict(key.session, self._journal.length(key))

    def mend(self, key: SessionKey) -> None:
        """Commit records anew whose key another machine's erasure has destroyed in segments of this journal."""
        replaced = self.log(key).behind(DrainMark(), self._journal).replaced
        if replaced:
            self.rewrite(key, replaced)

    def add_manifests(self, key: SessionKey) -> None:
        """Commit manifests of envelopes that were built here from a session that another journal owns."""
        log = self.log(key)
        with self.alone(key):
            drained = self.catch_up(key, claim="never")
            self.check_redacted(key, self._journal.length(key))
            head = log.link(drained.number)
            generation = log.derived_generation()
            waiting = self._journal.manifests(key, waiting=True, limit=SEGMENT_RECORDS)
            manifests = waiting[: span_of((), waiting)[1]]
            if not manifests:  # another process has drained them
                return
            part = Rewrite(owner=self._journal.id, records={}, manifests=tuple(manifests))
            try:
                link = log.commit(head, part, epoch=head.epoch, generation=generation)
            except VersionTaken:
                return  # the next pass tries again
            noted = DrainMark(drained.position, link.number, drained.epoch)
            self._journal.set_drained(key, noted, [manifest.address for manifest in manifests])

    def _commit_rewrite(self, key: SessionKey, drained: DrainMark, due: list[int]) -> list[int]:
        """Commit as many of these records as one link takes; return the remaining positions."""
        replaced: dict[int, JournalRecord] = {}
        log, size = self.log(key), 0
        generation = log.derived_generation()
        for position in due:
            if size >= SEGMENT_BYTES or len(replaced) >= SEGMENT_RECORDS:
                break
            record = self._journal.read(key, position, position + 1)[0]
            replaced[position] = record
            size += len(record.body) + len(record.wire or "")
        part = Rewrite(owner=self._journal.id, records=replaced)
        link = log.commit(log.link(drained.number), part, epoch=drained.epoch, generation=generation)
        self._journal.set_drained(key, DrainMark(drained.position, link.number, drained.epoch))
        return due[len(replaced) :]

    def check_redacted(self, key: SessionKey, stop: int) -> None:
        """Raise `Erased` if records derived from forgotten messages could be drained.

        That is so if the session or an ancestor was forgotten, or if this journal has not redacted the messages of a
        forgotten principal before position `stop`. A note of the erasure is not enough, because it may have come with
        redacted messages from another machine.
        """
        vault, above = self._vault(key.tenant), forks_above(self._journal, key)
        shared = ((SessionKey(key.tenant, origin.session), origin.position) for _, origin in above)
        for log, end in ((key, stop), *shared):
            self.log(log).check_not_erased()
            for principal in sorted(principals_of(self._journal.read(log, 0, end))):
                name = vault.subject_address(subject_of(log.session, principal))
                if not self._journal.seen(redacted_mark(key.tenant, name)):
                    vault.check_not_erased(name, f"principal {principal!r} of session {log.session!r}")

    def was_fenced(self, key: SessionKey) -> bool:
        """Return whether this journal has ever moved turns of this session into a fork."""
        return self._journal.seen(_fenced_name(self.log(key))) > 0


def redacted_mark(tenant: str, subject: str) -> str:
    """Return the name under which a journal notes that its log has no words of this forgotten principal."""
    return f"redacted/{tenant}/{subject}"


def _fenced_name(log: SessionLog) -> str:
    return f"fenced {log.folder}"


def _check_wanted(wanted: Callable[[], bool]) -> None:
    if not wanted():
        raise StoreUnavailable("the object store took too long; it is asked again later")
