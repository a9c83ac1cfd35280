"""What an erasure reads of a tenant's logs: which sessions are forks, what a principal has in each, what is damaged.

A fork shares its parent's log up to a position and an ordinal, so a message in that part is a message of both. Reads
first records, or whole logs where a principal is looked for. Raises `StoreError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ctxsteward.schemas import ContextError, Damaged

from ..crypto import AddressKey
from ..journal import (
    CheckedJournal,
    ForgottenSubject,
    ForkPoint,
    Journal,
    JournalRecord,
    SessionKey,
    SessionOpened,
    check,
    from_record,
)
from .redacted_log import PrincipalShare, share_of, standing_notes


def readable_notes(journal: Journal, tenant: str) -> tuple[list[ForgottenSubject], dict[str, Damaged]]:
    """Who was forgotten; sessions whose notes are not what was written are left out, and named."""
    try:
        return journal.forgotten(tenant), {}
    except Damaged:
        notes: list[ForgottenSubject] = []
        spoiled: dict[str, Damaged] = {}
    for session in journal.sessions(tenant):
        try:
            notes += journal.forgotten(tenant, session)
        except Damaged as error:
            spoiled[session] = error
    return notes, spoiled


class Lineage:
    """The forks among a tenant's sessions, as they are now; sessions that were forgotten are left out."""

    def __init__(self, journal: Journal, tenant: str, *, forgotten: bool = False) -> None:
        self._journal, self._tenant = journal, tenant
        notes, spoiled = readable_notes(journal, tenant)
        self.spoiled: dict[str, Damaged] = spoiled
        """Sessions whose notes of who was forgotten are not what was written, and what is wrong with them."""
        gone = {note.session for note in notes if note.principal is None and not forgotten}
        self.sessions: list[str] = [session for session in journal.sessions(tenant) if session not in gone]
        self.unreadable: list[str] = []
        """Sessions whose first record cannot be read: whether they are forks is not known."""
        self.origins: dict[str, ForkPoint] = {}
        for session in self.sessions:
            origin = self._origin(session)
            if origin is not None:
                self.origins[session] = origin

    def forks_of(self, parents: Iterable[str]) -> list[str]:
        """Direct forks."""
        wanted = set(parents)
        return [session for session, origin in self.origins.items() if origin.session in wanted]

    def line(self, session: str) -> list[str]:
        """The session and those it was forked from, oldest first."""
        line = [session]
        while line[-1] in self.origins and self.origins[line[-1]].session not in line:
            line.append(self.origins[line[-1]].session)
        return line[::-1]

    def shares(
        self, principal: str, only: str | None, sessions: Sequence[str] | None = None
    ) -> dict[str, PrincipalShare]:
        """What a principal has in each of these sessions (default: all), parents before their forks.

        With `only`, what was appended there, and what forks of it share.
        """
        chosen = self.sessions if sessions is None else sessions
        by_session: dict[str, PrincipalShare] = {}
        for session in sorted(chosen, key=lambda name: (len(self.line(name)), name)):
            share = self._share(session, principal, by_session)
            if share.inherited or (share.own and only in (None, session)):
                by_session[session] = share
        return by_session

    def _share(self, session: str, principal: str, found: dict[str, PrincipalShare]) -> PrincipalShare:
        rows = self._journal.read(SessionKey(self._tenant, session), 0)
        origin = self.origins.get(session)
        above = found.get(origin.session) if origin is not None else None
        if origin is None or above is None:
            return share_of(rows, principal)
        inherited = frozenset(ordinal for ordinal in above.ordinals if ordinal <= origin.ordinal)
        parent = self._journal.read(SessionKey(self._tenant, origin.session), 0, origin.position)
        return share_of(rows, principal, inherited, standing_notes(parent, above, min(above.since, origin.position)))

    def _origin(self, session: str) -> ForkPoint | None:
        first = self._journal.read(SessionKey(self._tenant, session), 0, 1)
        try:
            opened = from_record(first[0]) if first else None
        except (ContextError, ValueError, KeyError, TypeError):
            self.unreadable.append(session)
            return None
        return opened.parent if isinstance(opened, SessionOpened) else None


def line_above(session: str, parents: Mapping[str, str]) -> list[str]:
    """What a session was forked from, nearest first."""
    line = [session]
    while (parent := parents.get(line[-1])) is not None and parent not in line:
        line.append(parent)
    return line[1:]


def whole_log(journal: Journal, key: SessionKey) -> list[JournalRecord]:
    """All records of a log, each at its place; raises `Damaged` where that is not so."""
    length = journal.length(key)
    rows = journal.read(key, 0)
    if not length <= len(rows) <= journal.length(key):
        raise Damaged(f"session {key.session!r}: its log has {len(rows)} records, and {length} were written")
    return rows


def damage_of(journal: Journal, key: SessionKey, address_key: AddressKey) -> str:
    """What is wrong with the messages of a log; empty: nothing."""
    try:
        rows = whole_log(journal, key)
    except Damaged as error:
        return str(error)
    altered = 0
    for position, record in enumerate(rows):
        if record.kind == "message" and '"erased"' not in record.body:
            try:
                check(address_key, key.session, position, record)
            except Damaged:
                altered += 1
    return f"{altered} messages are not what was written" if altered else ""


def sessions_without_row(journal: Journal, tenant: str) -> set[str]:
    """Sessions that have records here and no row that would name them."""
    altered = journal.altered(tenant) if isinstance(journal, CheckedJournal) else ()
    return {session for session, row in altered if row == "log"}.difference(journal.sessions(tenant))
