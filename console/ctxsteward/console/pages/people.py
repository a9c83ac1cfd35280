"""A person's page: the sessions in which a principal spoke, and the records of profiles that rest on their words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ctxsteward.envelope import Store
from ctxsteward.schemas import ContextError, ReferenceNotFound
from ctxsteward.store.journal.log import body_of
from ctxsteward.store.journal.port import SessionKey

from .profiles import profile_rows
from .sessions import session_ids

MOST_SESSIONS = 500
"""Number of sessions that are read for one page: the first ones by id."""


class SpokenSession(NamedTuple):
    """A session in which the person spoke, and has not been forgotten."""

    id: str
    ordinals: tuple[int, ...]
    """Of the person's messages."""
    newest: str
    """Time of the newest message that has one; else empty."""


class CitedRecord(NamedTuple):
    """A record of a profile's newest version that cites the person."""

    profile: str
    id: str
    text: str
    sources: tuple[tuple[str, int], ...]
    """The person's messages among its sources: session and ordinal."""


class Person(NamedTuple):
    """What a store holds of a principal."""

    name: str
    sessions: tuple[SpokenSession, ...]
    records: tuple[CitedRecord, ...]
    unread: int
    """Number of sessions that were not read, because there are more than `MOST_SESSIONS` or a log is damaged."""

    @property
    def messages(self) -> int:
        return sum(len(session.ordinals) for session in self.sessions)


def person_of(store: Store, tenant: str, name: str, only: Sequence[str] | None = None) -> Person:
    """Read a person's sessions and records; `only` limits them to these sessions.

    Raises `ReferenceNotFound` for a name under which nobody has spoken in the sessions that were read.
    """
    ids = session_ids(store, tenant, only)
    sessions, unread = [], max(0, len(ids) - MOST_SESSIONS)
    for id in ids[:MOST_SESSIONS]:
        try:
            spoken = _spoken(store, SessionKey(tenant, id), name)
        except ContextError:
            unread += 1
            continue
        if spoken.ordinals:
            sessions.append(spoken)
    if not sessions:
        raise ReferenceNotFound(f"principal {name!r:.80}", "", "nobody of this name has spoken in the sessions shown")
    said = {session.id: frozenset(session.ordinals) for session in sessions}
    return Person(name, tuple(sessions), tuple(_records(store, tenant, said)), unread)


def _spoken(store: Store, key: SessionKey, name: str) -> SpokenSession:
    ordinals, newest = [], ""
    for row in store.journal.read(key, 0):
        body = body_of(row) if row.kind == "message" and '"principal"' in row.body else None
        if body is not None and body.get("principal") == name and not body.get("erased"):
            ordinals.append(row.ordinal)
            newest = body.get("ts") or newest
    return SpokenSession(key.session, tuple(ordinals), newest)


def _records(store: Store, tenant: str, said: Mapping[str, frozenset[int]]) -> Iterator[CitedRecord]:
    for profile, _ in profile_rows(store, tenant):
        for record in store.profiles(profile, tenant=tenant).newest().profile.meta:
            places = (source.rpartition("§") for source in record.sources)
            cited = ((unquote(session), int(place.partition(".")[0] or 0)) for session, _, place in places)
            own = tuple((session, ordinal) for session, ordinal in cited if ordinal in said.get(session, ()))
            if own:
                yield CitedRecord(profile, record.id, record.text, own)
