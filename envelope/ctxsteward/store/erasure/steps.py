"""The steps of one erasure (`ErasureRun`), in an order in which a repeat finishes what a crash has left undone.

`forget` and `apply_tombstones` run the steps.

To forget a session, write its tombstone and its note in the journal, do the same for its forks until there are no more,
then write tombstones for every subject in these sessions. Drop the rows last, forks before parents.

To forget a principal, write the tombstones. Redact the messages, forks before parents, because only the parent's
messages tell which addresses in a fork are outdated. Write the note. Redact the log once more: that changes its
generation, so writers that have not seen the note read the log again. At the end destroy the keys of derived records,
and drain the redacted records again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ctxsteward.schemas import Erased, Finding, InputError, StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from ..backend import Backend
from ..crypto.keyring import subject_of
from ..crypto.vault import Tombstone, derived_subject
from ..facts.fact import Audience
from ..facts.fact_store import forget_audience, has_shelf, withdraw_facts, withdrawn_heads
from ..journal.erasures import (
    Deletion,
    DerivedRecords,
    Eraser,
    Erasure,
    ErasureRequest,
    ReachedSessions,
    RemoteSessions,
    note_erasure,
)
from ..journal.log import principals_of
from ..journal.port import ForgottenSubject, SessionKey
from ..replication.ownership import redacted_mark
from ..replication.segment_log import unreached
from .receipt import (
    WITHDRAWN,
    counted,
    heads_of,
    held_of_principal,
    held_of_session,
    name_of,
    places_of,
    remains_of,
)
from .redacted_log import (
    Lineage,
    PrincipalShare,
    damage_of,
    line_above,
    moved_addresses,
    readable_notes,
    redacted_manifests,
    redacted_rows,
    sessions_without_row,
    whole_log,
)

T = TypeVar("T")

_DERIVED = "the key of the messages is destroyed; the key of records derived from them there is not"
_WHOSE = "it may be a fork of a forgotten session, with records derived from forgotten messages"
_PASSES = 100  # a session with writers that never pause is redacted this often


class ErasureRun:
    """Forgets sessions and principals one after the other; `finish` ends the erasure and returns its report."""

    def __init__(
        self,
        store: Backend,
        tenant: str,
        request: ErasureRequest,
        elsewhere: RemoteSessions | None,
        derived: Sequence[DerivedRecords],
    ) -> None:
        self._derived = derived
        self._store, self._tenant, self._request, self._elsewhere = store, tenant, request, elsewhere
        self._journal, self._vault = store.journal, store.vault(tenant)
        self._address_key = store.keys.address_key(tenant)
        self._sessions: dict[str, None] = {}
        """Sessions erased whole, or in their messages of the principal; includes forks."""
        self._forks: dict[str, None] = {}
        """Erased sessions that were included because they are forks."""
        self._deletions: list[Deletion] = []
        self._marks: list[str] = []
        """Marks to set in the journal at the end, so that `apply_tombstones` skips these subjects."""
        self._audiences: dict[Audience, None] = {}
        """Audiences whose facts are to be erased."""
        self._to_delete: list[str] = []
        """Sessions whose rows are to be deleted, descendants first."""
        self._findings: list[Finding] = []
        self._tombstones: dict[str, Tombstone] = {}
        """Stored tombstones by subject address; one may be from an earlier erasure."""
        self._left: Counter[str] = Counter()
        """Number of things that should be gone and are not, by the names in `Tombstone.held`."""
        self._counts: Counter[str] = Counter()
        """Number of deleted or redacted records, by the fields of `Erasure`: messages, derived, manifests."""
        self._harvested: dict[str, set[str]] | None = None
        """Result of `_harvested_subjects`; None before its first call."""
        self.damaged: dict[str, Damaged] = {}
        """Sessions with damaged logs. Their messages are not redacted until the log is repaired."""
        self._undrained: dict[str, tuple[Sequence[int], Erased]] = {}
        """Positions to drain again, by session, with the error that prevents it."""
        self._parents: dict[str, str] = {}
        """Parents of forks that only the object store has."""

    def _key(self, session: str) -> SessionKey:
        return SessionKey(self._tenant, session)

    @property
    def erased_subjects(self) -> frozenset[str]:
        """Addresses of the subjects whose keys this run has destroyed, or found destroyed."""
        return frozenset(self._tombstones)

    def resume_request(self, name: str) -> None:
        """Continue under the author, time and reason in this subject's tombstone."""
        tombstone = self._vault.tombstone(name)
        assert tombstone is not None
        self._request = ErasureRequest(tombstone.who, tombstone.when, tombstone.why)

    def claim_forks(self, session: str | None, principal: str | None) -> None:
        """Copy forks that only the object store has into this journal, before records that they share are deleted.

        Otherwise the erasure would miss them: a fork of a session in which the principal has spoken may contain the
        principal's messages although no key of the principal belongs to the fork. A fork that cannot be read leaves a
        finding.
        """
        if self._elsewhere is None:
            return
        local_sessions = {*self._journal.sessions(self._tenant), *sessions_without_row(self._journal, self._tenant)}
        stored = self._elsewhere.sessions(self._tenant)
        self._findings += stored.findings
        known = {*local_sessions, *stored.names}
        for name in sorted(known.difference(local_sessions)):
            parent = self._as_read(name, self._elsewhere.parent)
            if parent is not None:
                self._parents[name] = parent
        parents = self._lineage(forgotten=True).parents | self._parents
        for name in self._parents:
            line = line_above(name, parents)
            if any(self._concerns(above, session, principal) for above in line):
                self._as_read(name, self._elsewhere.claim)
            elif line[-1] not in known and self._vault.tombstone(self._vault.subject_address(line[-1])) is None:
                text = f"session {line[-1]!r}, which it was forked from, cannot be read; {_WHOSE}"
                self._findings.append(unreached(name, text))

    def _as_read(self, session: str, read: Callable[[SessionKey], T]) -> T | None:
        try:
            return read(self._key(session))
        except Erased:
            return None  # the session, or the one it was forked from, was forgotten meanwhile
        except (Damaged, ObjectMissing, UnsupportedVersion) as error:
            self._findings.append(unreached(session, f"{error}; {_WHOSE}"))
            return None

    def _see(self, mark: str, session: str) -> None:
        """Note that this subject was redacted in the session."""
        self._journal.see(mark, 1)

    def _concerns(self, session: str, only: str | None, principal: str | None) -> bool:
        """Return whether the erasure of `principal` in `only`, or of the whole session `only`, includes `session`."""
        if principal is None:
            return session == only
        name = self._vault.subject_address(subject_of(session, principal))
        return only in (None, session) and self._is_known(name)

    # -- sessions -----------------------------------------------------------------------------------------------

    def forget_session(self, root: str) -> None:
        """Destroy the keys of the session and of all its forks; `finish` deletes their rows."""
        self._check_known(root)
        family: dict[str, None] = {}
        waiting = [root]
        while waiting:  # the next round finds a fork made meanwhile; a session with a note cannot be forked any more
            for session in waiting:
                self._erase(subject_of(session, None), held_of_session(self._journal, self._key(session)))
                self._journal.see(self._kinship(root, session), 1)
                self._note(session, None)
                family[session] = None
            stored = [session for session, parent in self._parents.items() if parent in family]
            forks = (*self._noted_with(root), *self._lineage(forgotten=True).forks_of(family), *stored)
            waiting = [name for name in dict.fromkeys(forks) if name not in family]
        for session in family:
            self._erase_inside(session)
            self._deletions.append(Deletion(tenant=self._tenant, session=session, principal=None, ordinals=None))
        self._audiences |= dict.fromkeys(Audience("session", session) for session in family)
        self._sessions |= family
        self._forks |= dict.fromkeys(name for name in family if name != root)
        self._to_delete += reversed(family)

    def _check_known(self, session: str) -> None:
        """Raise `InputError` if journal, object store and harvest know nothing of this session."""
        key = self._key(session)
        if self._journal.length(key) or self._journal.forgotten(self._tenant, session):
            return
        drained = self._elsewhere is not None and self._elsewhere.subjects(key)
        if drained and (drained.names or drained.findings):
            return
        if session in self._harvested_subjects():
            return
        if self._vault.tombstone(self._vault.subject_address(session)) is None:
            raise InputError(f"there is no session {session!r} of tenant {self._tenant!r} here; nothing was forgotten")

    def _noted_with(self, root: str) -> list[str]:
        """Return sessions that were forgotten as forks of `root`. A repeat finds them even without their rows."""
        notes, _ = readable_notes(self._journal, self._tenant)
        noted = [note.session for note in notes if note.principal is None]
        return [session for session in noted if self._journal.seen(self._kinship(root, session))]

    def _kinship(self, root: str, session: str) -> str:
        names = map(self._vault.subject_address, (root, session))
        return f"forks/{self._tenant}/{'/'.join(names)}"

    def _erase_inside(self, session: str) -> None:
        """Destroy the key of every subject of an erased session, so that no subject gets a new one."""
        key = self._key(session)
        for principal in sorted(principals_of(self._journal.read(key, 0))):
            self._erase(subject_of(session, principal))
        generation = 0
        while self._is_known(name := self._vault.subject_address(derived_subject(session, generation))):
            self._erase_address(name)
            generation += 1
        elsewhere = self._elsewhere.subjects(key) if self._elsewhere is not None else ReachedSessions(())
        self._findings += elsewhere.findings
        for name in (*elsewhere.names, *sorted(self._harvested_subjects().get(session, ()))):
            self._erase_address(name)

    def _harvested_subjects(self) -> dict[str, set[str]]:
        """Return the subjects of harvested records by session. Some of the sessions are in no journal."""
        if self._harvested is None:
            self._harvested = {}
            for records in self._derived:
                subjects, findings = records.subjects()
                self._findings += findings
                for session, names in subjects.items():
                    self._harvested.setdefault(session, set()).update(names)
        return self._harvested

    def _is_known(self, name: str) -> bool:
        """Return whether a subject has a key, or had one."""
        return self._has_key(name) or self._vault.tombstone(name) is not None

    def _has_key(self, name: str) -> bool:
        try:
            self._vault.known_key(name)
        except (Erased, ObjectMissing):
            return False
        return True

    def _drop_rows(self, session: str) -> None:
        key, rows = self._key(session), self._journal.read(self._key(session), 0)
        messages = sum(record.kind == "message" for record in rows)
        self._counts["messages"] += messages
        self._counts["derived"] += len(rows) - messages
        self._counts["manifests"] += len(self._journal.manifests(key))
        if rows:
            self._journal.truncate(key, 0)  # first, so that a build which began before cannot store its manifest
            if self._journal.read(key, 0, 1):
                text = "its records stay in the journal, because its row is missing; run store fsck --repair, repeat"
                self._findings.append(Finding(kind="unreadable_session", field=session, text=text))
        self._journal.drop_manifests(key)

    # -- principals ---------------------------------------------------------------------------------------------

    def forget_principal(self, principal: str, only: str | None) -> None:
        """Redact the principal's messages in every session, or only in `only`, and in all forks that share them."""
        claimed = self._claim(principal, only)
        lineage = self._lineage()
        shares = lineage.shares(principal, only)
        if shares and self._elsewhere is not None:
            # Read records that other machines have drained meanwhile. Otherwise their keys are destroyed, and no
            # redacted records are drained in their place.
            for session in shares:
                self._as_read(session, self._elsewhere.claim)
            claimed = True
            lineage = self._lineage()
            shares = lineage.shares(principal, only)
        claimed = self._erase_in_damaged(principal, only, lineage, shares) or claimed
        is_harvested = self._forget_harvested(principal, only, shares)
        if only is None:
            self._audiences[Audience("user", principal)] = None
            if not shares and has_shelf(self._store, self._tenant, Audience("user", principal)):
                return  # there are facts about the principal, but no messages
        if not shares and (is_harvested or claimed):
            return
        if not shares:
            where = f"session {only!r}" if only else f"tenant {self._tenant!r}"
            unread = f" that could be read ({self._findings[0].field} could not)" if self._findings else ""
            raise InputError(f"principal {principal!r} has said nothing in {where}{unread}; nothing was forgotten")
        forks_first = list(reversed(shares))
        for session in shares:
            self._erase(subject_of(session, principal), self._held_of(lineage, session, shares))
        for session in forks_first:
            self.if_sound(session, lambda name: self._redact(lineage, name, principal, only, force=False))
        for session in shares:
            self.if_sound(session, lambda name: self._note(name, principal))
        for session in forks_first:
            self.if_sound(session, lambda name: self._redact(lineage, name, principal, only, force=True))
            mark = redacted_mark(self._tenant, self._vault.subject_address(subject_of(session, principal)))
            self.if_sound(session, partial(self._see, mark))
        for session in forks_first:
            self.if_sound(session, self._erase_derived)
        settled = lineage.shares(principal, only, list(shares))
        for session, share in settled.items():
            self._settle(session, principal, share)
            self._left += counted(self._held_of(lineage, session, settled))

    def _held_of(self, lineage: Lineage, session: str, shares: dict[str, PrincipalShare]) -> dict[str, Any]:
        """Return the counts for the tombstone of the principal, whose shares these are, in this session."""
        moved = self._moved({name: shares[name] for name in lineage.line(session) if name in shares})
        return held_of_principal(self._journal, self._key(session), self._address_key, shares[session], moved)

    def if_sound(self, session: str, step: Callable[[str], None]) -> None:
        """Run a step for a session with an undamaged log. Damage leaves a finding, and the erasure continues."""
        if session not in self.damaged:
            try:
                step(session)
            except Damaged as error:
                self.damaged[session] = error
                self._findings.append(unreached(session, f"{error}; then repeat the erasure"))

    def _erase_in_damaged(self, principal: str, only: str | None, lineage: Lineage, shares: Collection[str]) -> bool:
        """Destroy the principal's keys in sessions with missing or damaged messages, whose authors are not known.

        Each such session leaves a finding. A key is destroyed only if the principal has one there. Return whether a key
        was destroyed.
        """
        is_erased = False
        for session in (*lineage.sessions, *sorted(sessions_without_row(self._journal, self._tenant))):
            if only in (None, session) and (damage := damage_of(self._journal, self._key(session), self._address_key)):
                text = f"{damage}: their authors are not known; run store fsck --repair, and repeat the erasure"
                self._findings.append(Finding(kind="unreadable_message", field=session, text=text))
                name = self._vault.subject_address(subject_of(session, principal))
                if session not in shares and self._is_known(name):
                    self._erase_address(name)
                    self._sessions[session] = None
                    is_erased = True
        return is_erased

    def _forget_harvested(self, principal: str, only: str | None, shares: Collection[str]) -> bool:
        """Erase the principal in harvested sessions without a log here; return whether one is or was there."""
        any_erased = False
        for session, names in self._harvested_subjects().items():
            name = self._vault.subject_address(subject_of(session, principal))
            if session not in shares and only in (None, session) and name in names:
                self._erase_address(name)
                self._note(session, principal)
                deletion = Deletion(tenant=self._tenant, session=session, principal=principal, ordinals=frozenset())
                self._deletions.append(deletion)
                self._sessions[session] = None
                any_erased = True
        if any_erased or shares:
            return any_erased
        notes, _ = readable_notes(self._journal, self._tenant)
        return any(note.principal == principal and only in (None, note.session) for note in notes)

    def _claim(self, principal: str, only: str | None) -> bool:
        """Copy sessions that only the object store has into this journal, to redact their derived records here.

        If a session cannot be read, destroy the principal's key in it and add a finding. Return whether that happened.
        """
        if self._elsewhere is None:
            return False
        local_sessions = {*self._journal.sessions(self._tenant), *sessions_without_row(self._journal, self._tenant)}
        stored = self._elsewhere.sessions(self._tenant) if only is None else ReachedSessions((only,))
        self._findings += stored.findings
        harvested = () if only is not None else self._harvested_subjects()
        named = [name for name in harvested if name not in stored.names]
        is_erased = False
        for session in (*stored.names, *named):
            key, name = self._key(session), self._vault.subject_address(subject_of(session, principal))
            if (
                session in local_sessions
                or not self._has_key(name)
                or (session in named and not self._elsewhere.holds(key))
            ):
                continue
            try:
                self._elsewhere.claim(key)
            except (Damaged, ObjectMissing, UnsupportedVersion) as error:
                self._findings.append(unreached(session, f"{error}; {_DERIVED}"))
                self._erase_address(name)
                self._note(session, principal)
                self._sessions[session] = None
                is_erased = True
        return is_erased

    def _redact(self, lineage: Lineage, session: str, principal: str, only: str | None, *, force: bool) -> None:
        """Redact the log until nothing is left to redact; with `force`, change its generation at least once."""
        key, line = self._key(session), lineage.line(session)
        for _ in range(_PASSES):
            shares = lineage.shares(principal, only, line)
            rows = whole_log(self._journal, key)
            changed = redacted_rows(self._address_key, session, rows, shares[session], self._moved(shares))
            before = self._journal.manifests(key)
            after = redacted_manifests(self._address_key, before, shares[session])
            if before != after:
                self._journal.drop_manifests(key, after)
                self._counts["manifests"] += sum(was != now for was, now in zip(before, after, strict=True))
            if not changed and not force:
                return
            self._journal.rewrite(key, changed or {0: rows[0]})
            messages = sum(record.kind == "message" for record in changed.values())
            self._counts["messages"] += messages
            self._counts["derived"] += len(changed) - messages
            force = False
        raise StoreError(f"session {session!r} grew during {_PASSES} redactions; stop its writers, and repeat")

    def _moved(self, shares: dict[str, PrincipalShare]) -> dict[str, str]:
        """Return the new addresses of redacted messages by their old ones."""
        moved: dict[str, str] = {}
        for session, share in shares.items():
            rows = self._journal.read(self._key(session), 0)
            moved |= moved_addresses(self._address_key, session, rows, share)
        return moved

    def _erase_derived(self, session: str) -> None:
        """Destroy the keys of the session's derived records, and drain the redacted records under the next key.

        Each forgotten principal ends one generation of derived keys, whichever machine has forgotten the principal.
        """
        key = self._key(session)
        noted = {note.principal for note in self._journal.forgotten(self._tenant, session)} - {None}
        others = principals_of(self._journal.read(key, 0)) - noted
        addresses = (self._vault.subject_address(subject_of(session, principal)) for principal in others)
        ended = len(noted) + sum(self._vault.tombstone(address) is not None for address in addresses)
        for generation in range(ended):
            self._erase(derived_subject(session, generation))
        # Read again: records that were appended meanwhile may have been drained under a key that is destroyed now.
        rows = enumerate(self._journal.read(key, 0))
        replaced = [at for at, row in rows if row.kind != "message" or '"erased"' in row.body]
        self._drain_again(session, replaced)

    def mend(self, session: str) -> None:
        """Drain records again that lost their key to an erasure on another machine, which had not read them."""
        elsewhere = self._elsewhere
        if elsewhere is not None:
            with suppress(Erased):  # the whole session was forgotten
                self.if_sound(session, lambda name: elsewhere.mend(self._key(name)))

    def _drain_again(self, session: str, positions: Sequence[int]) -> None:
        """Drain these records now, or in `finish` if another forgotten principal is not redacted here yet."""
        if self._elsewhere is not None:
            try:
                self._elsewhere.rewritten(self._key(session), positions)
                self._undrained.pop(session, None)
            except Erased as error:
                self._undrained[session] = (positions, error)

    def _settle(self, session: str, principal: str, share: PrincipalShare) -> None:
        """Note the principal's erasure in this session for the report, the erasers and the journal's marks."""
        self._deletions.append(
            Deletion(tenant=self._tenant, session=session, principal=principal, ordinals=share.ordinals)
        )
        name = self._vault.subject_address(subject_of(session, principal))
        if session not in self.damaged:
            self._marks.append(f"erased/{self._tenant}/{name}")
        self._sessions[session] = None
        if not share.own:
            self._forks[session] = None
        if share.unreadable:
            text = f"{len(share.unreadable)} damaged messages name no principal; run store fsck, or forget the session"
            self._findings.append(Finding(kind="unreadable_message", field=session, text=text))

    # -- both ---------------------------------------------------------------------------------------------------

    def finish(self, erasers: Sequence[Eraser]) -> Erasure:
        """Call the erasers, drop the rows of forgotten sessions, scrub the journal, and return the report.

        Raises `StoreError` if an eraser failed.
        """
        request = self._request
        withdrawn = 0

        def forget_facts() -> int:
            """Erase facts about forgotten audiences and facts that cite forgotten messages; return their number."""
            why = request._asdict()
            about = sum(forget_audience(self._store, self._tenant, audience, **why) for audience in self._audiences)
            return about + (withdraw_facts(self._store, self._tenant, **why) if self._sessions else 0)

        if self._sessions or self._audiences or self._tombstones:
            note_erasure(self._journal, self._tenant)
        if self._sessions:
            withdrawn += self._as_far(lambda: sum(records.withdraw(request) for records in self._derived))
        withdrawn += self._as_far(forget_facts)
        places: Counter[str] = Counter()
        if self._sessions:
            self._as_far(lambda: self._follow_withdrawn(places))
        if self._sessions or self._audiences or self._tombstones:
            # A second time: a process that has read since the first note may have cached the withdrawn records.
            note_erasure(self._journal, self._tenant)
        elsewhere, failures = Counter[str](), []
        for eraser in erasers if self._sessions else ():
            name = name_of(eraser)
            try:
                elsewhere[name] += eraser(tuple(self._deletions))
                self._left[name] += eraser(tuple(self._deletions))
            except Exception as error:  # an eraser is other people's code; erase the journal even if it fails
                failures.append(f"{name}: {error}")
        for session in self._to_delete:
            self._drop_rows(session)
            self._left += counted(held_of_session(self._journal, self._key(session)))
        self._journal.scrub()
        for session, (positions, _) in list(self._undrained.items()):
            self._drain_again(session, positions)
        for session, (_, refusal) in self._undrained.items():
            # records of a session that was forgotten as a whole need no draining
            if self._vault.tombstone(self._vault.subject_address(session)) is None:
                self._findings.append(unreached(session, f"{refusal}; repeat the erasure"))
        if failures:
            raise StoreError(f"not everything is forgotten: {'; '.join(failures)}; mend that and repeat")
        for mark in self._marks:
            self._journal.see(mark, 1)
        for stone in self._tombstones.values():
            places += counted(stone.held)
            self._left["keys"] += self._vault.holds_key(stone.subject)
        places[WITHDRAWN] = max(places[WITHDRAWN], withdrawn)  # tombstones do not count facts, only this run does
        return Erasure(
            tenant=self._tenant,
            who=request.who,
            when=request.when,
            why=request.why,
            sessions=tuple(self._sessions),
            forks=tuple(self._forks),
            subjects=len(self._tombstones),
            messages=self._counts["messages"],
            derived=self._counts["derived"],
            manifests=self._counts["manifests"],
            recommendations=withdrawn,
            elsewhere=elsewhere.total(),
            findings=tuple(dict.fromkeys(self._findings)),
            places=places_of(places + elsewhere, self._left),
            heads=heads_of(self._store, self._tenant, self._sessions),
            remains=remains_of(self._store, self._tenant, self._sessions, request.when, self._tombstones.values()),
        )

    def _follow_withdrawn(self, places: Counter[str]) -> int:
        """Remove withdrawn records from the heads of sessions.

        Add to `places` the records withdrawn for this erasure, by this run or an earlier one; count their keys that
        still exist. Return 0, because `finish` counts these records itself.
        """
        keys = frozenset[str]().union(*(records.withdrawn_keys() for records in self._derived))
        self._redact_heads(keys)
        reasons = {(stone.who, stone.when, stone.why) for stone in self._tombstones.values()} | {tuple(self._request)}
        for key in keys:
            stone = self._vault.tombstone(key)
            if stone is not None and (stone.who, stone.when, stone.why) in reasons:
                places[WITHDRAWN] += 1
                self._left[WITHDRAWN] += self._vault.holds_key(key)
        return 0

    def _as_far(self, step: Callable[[], int]) -> int:
        """Run a step and return its count; governed state that cannot be read ends it with a finding and 0."""
        try:
            return step()
        except (Damaged, ObjectMissing, UnsupportedVersion) as error:
            text = f"recommendations and facts are not all withdrawn: {error}"
            self._findings.append(Finding(kind="withdrawal_unfinished", field="meta", text=text))
            return 0

    def _redact_heads(self, keys: Collection[str]) -> None:
        """Redact the heads of all sessions, if records were withdrawn since the last time."""
        mark = f"heads/{self._tenant}"
        if len(keys) <= self._journal.seen(mark):
            return
        for session in self._journal.sessions(self._tenant):
            self.if_sound(session, lambda name: self._redact_head(name, keys))
        if not self.damaged:
            self._journal.see(mark, len(keys))

    def _redact_head(self, session: str, keys: Collection[str]) -> None:
        key = self._key(session)
        records = whole_log(self._journal, key)
        changed = withdrawn_heads(
            self._address_key, session, records, lambda subject: self._vault.subject_address(subject) in keys
        )
        if changed:
            self._journal.rewrite(key, changed)
            self._counts["derived"] += len(changed)
            self._drain_again(session, sorted(changed))

    def _erase(self, subject: str, held: Mapping[str, Any] | None = None) -> None:
        self._erase_address(self._vault.subject_address(subject), held)

    def _erase_address(self, name: str, held: Mapping[str, Any] | None = None) -> None:
        there = {**(held or {}), "keys": int(self._vault.holds_key(name))}
        self._tombstones[name] = self._vault.destroy_key_at(name, **self._request._asdict(), held=there)

    def _note(self, session: str, principal: str | None) -> None:
        """Note the erasure in the journal, with author, time and reason of the first erasure of this subject."""
        tombstone = self._vault.tombstone(self._vault.subject_address(subject_of(session, principal)))
        assert tombstone is not None
        self._journal.forget(
            self._tenant, ForgottenSubject(session, principal, tombstone.who, tombstone.when, tombstone.why)
        )

    def _lineage(self, *, forgotten: bool = False) -> Lineage:
        found = Lineage(self._journal, self._tenant, forgotten=forgotten)
        for session, error in found.spoiled.items():
            self._findings.append(unreached(session, error))
        for session in found.unreadable:
            text = "its first record cannot be read, so it may be a fork; run store fsck"
            self._findings.append(Finding(kind="unreadable_session", field=session, text=text))
        return found
