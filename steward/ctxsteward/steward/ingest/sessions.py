"""The store's own sessions as transcripts: those that are over, read from their logs.

A session is over when its last message is `settled_seconds` old at the time of the night, or when `describe` says so.
A session whose messages have no time counts as over, and as changed just now: it is read every night and harvested
anew only where it grew. Its version is the number of its records and their generation, so that it tells of every
change. Its messages' times are their own; where none tells one, the time at which the object store got its first part.

A session belongs to the governed profile that it was under last: one of another profile is another agent's, and what
was said to that is no evidence here. A session under none, or under a profile of no version, is everybody's.

What is handed on is one JSON document, ``{"session", "is_anothers", "profile_version", "shown", "turns", "meta",
"entries": [[ordinal, wire, ts, principal, origin], …]}``. A fork hands on its own part alone. Messages that were
forgotten, or are damaged, are left out. `shown` are ids of the meta records in every profile that the session was
under, and of the facts that its turns were shown, of a fork's parents too; `turns` says of facts from which user
message on.

Raises `Erased` for a session that was forgotten, `InputTooLarge`, `StoreError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from ctxsteward.envelope import Store
from ctxsteward.schemas import Erased, InputTooLarge, Outcome, instant
from ctxsteward.store import (
    JournalRecord,
    Log,
    MessageAppended,
    OutcomeTold,
    RecallSelected,
    SessionHead,
    SessionKey,
    session_folder,
)

from .items import LoadedItem, SourceItem
from .transcripts import SessionMeta

SETTLED_SECONDS = 6 * 3600.0
READ_AHEAD_RECORDS = 32
OWN_ORIGIN = "steward"
"""A session whose first message has this `origin` is the steward's own."""
ENTRIES_ORIGIN = "entries"
"""Or this one: what a framework keeps for itself (`EntryLog`); what was said in it is in another session."""

Describe = Callable[[str], SessionMeta | None]
"""What the application knows of a session beside its log; None: nothing."""


def _nothing(session: str) -> SessionMeta | None:
    return None


class StoreSource:
    """A `TranscriptSource` of one tenant's sessions."""

    uri = "store"

    def __init__(
        self,
        store: Store,
        tenant: str = "default",
        *,
        profile: str | None = None,
        now_seconds: float,
        settled_seconds: float = SETTLED_SECONDS,
        describe: Describe = _nothing,
    ) -> None:
        """`profile`: a session that was under another one is marked as another agent's; None: none is."""
        self.store, self.tenant, self.profile = store, tenant, profile
        self._now_seconds, self._settled_seconds = now_seconds, settled_seconds
        self._describe = describe

    def items(self) -> Iterator[SourceItem]:
        for session in sorted(self.store.sessions(tenant=self.tenant)):
            key = SessionKey(self.tenant, session)
            length = self.store.journal.length(key)
            if not length and self.store.write_behind is not None:
                try:
                    self.store.at(self.tenant, session)  # brings it here
                except Erased:
                    continue
                length = self.store.journal.length(key)
            last_seconds = self._last_seconds(key, length)
            modified_seconds = self._now_seconds if last_seconds is None else last_seconds
            meta = self._describe(session)
            is_over = meta is not None and meta.status != "open" and "status" in meta.model_fields_set
            if is_over or last_seconds is None or last_seconds <= self._now_seconds - self._settled_seconds:
                version = f"{length}@{self.store.journal.generation(key)}"
                if meta is not None:
                    version += "." + meta.model_dump_json(exclude_unset=True)
                yield SourceItem(session, modified_seconds, length, version)

    def read(self, name: str, version: str, *, cap_bytes: int) -> LoadedItem:
        meta = self._describe(name)
        session = self.store.at(self.tenant, name)
        log = Log(session.journal, session.key, session.address_key, session.repair)
        entries: list[list[object]] = []
        heads: list[SessionHead] = []
        turns: dict[str, int] = {}
        outcome: Outcome | None = None
        size_bytes = position = 0
        length = session.journal.length(session.key)
        while position < length:
            for row in log.read(position, min(length, position + READ_AHEAD_RECORDS)):
                if isinstance(row, SessionHead):
                    heads.append(row)
                elif isinstance(row, RecallSelected):
                    for fact in row.facts:
                        turns.setdefault(fact.id, row.turn)
                elif isinstance(row, OutcomeTold):
                    outcome = row.outcome if outcome is None else outcome.then(row.outcome)
                elif isinstance(row, MessageAppended) and not row.erased:
                    size_bytes += len(row.wire.encode())
                    entries.append([row.ordinal, json.loads(row.wire), row.ts, row.principal, row.origin])
            if size_bytes > cap_bytes:
                raise InputTooLarge(f"session {name!r}", size_bytes, cap_bytes)
            position += READ_AHEAD_RECORDS
        if not heads and session.state.head.profile is not None:  # a fork that was never moved to another version
            heads.append(session.state.head)
        before = session.shown_records() if session.parent() is not None else frozenset[str]()
        shown = _profiles(self.profile, heads, turns, before)
        document = {**shown, "session": name, "meta": _told(meta, entries, outcome), "entries": entries}
        data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        written = None if any(_is_time(ts) for _, _, ts, *_ in entries) else self._written_seconds(name)
        return LoadedItem(
            source="store", name=name, data=data, layout="log", shown=tuple(shown["shown"]), written_seconds=written
        )

    def close(self) -> None:
        """The store is not the source's own."""

    def _written_seconds(self, session: str) -> float | None:
        """When the first part of a session reached the object store, which stays the same however it grows.

        None where none has: a journal keeps no times.
        """
        if self.store.write_behind is None:
            return None
        folder = session_folder(self.tenant, self.store.vault(self.tenant).subject_address(session))
        return next((info.modified_seconds for info in self.store.objects.list(f"{folder}/")), None)

    def _last_seconds(self, key: SessionKey, length: int) -> float | None:
        """Time of the newest message; None where it has none."""
        stop = length
        while stop > 0:
            start = max(0, stop - READ_AHEAD_RECORDS)
            for record in reversed(self.store.journal.read(key, start, stop)):
                if record.kind == "message":
                    return _seconds(record)
            stop = start
        return None


def _profiles(
    wanted: str | None, heads: list[SessionHead], turns: dict[str, int], before: frozenset[str]
) -> dict[str, Any]:
    """Fields of the document: whose session it is, its profile version, records shown, and since which turn."""
    profiles = [head.profile for head in heads if head.profile is not None]
    always = before | {record["id"] for profile in profiles for record in profile.get("meta", ())}
    newest = profiles[-1] if profiles else {}
    return {
        "is_anothers": wanted is not None and newest.get("version") is not None and newest.get("name") != wanted,
        "profile_version": newest.get("version"),
        "shown": sorted({*always, *turns}),
        "turns": {id: turn for id, turn in sorted(turns.items()) if id not in always},
    }


def _told(meta: SessionMeta | None, entries: list[list[object]], outcome: Outcome | None) -> dict[str, Any]:
    fields = {} if meta is None else meta.model_dump(mode="json", exclude_unset=True)
    if outcome is not None:
        fields.setdefault("outcome", outcome.model_dump(exclude_none=True))
    if entries and entries[0][4] in (OWN_ORIGIN, ENTRIES_ORIGIN):
        fields["origin"] = OWN_ORIGIN
    return fields


def _is_time(ts: object) -> bool:
    return isinstance(ts, str) and instant(ts) != -inf


def _seconds(record: JournalRecord) -> float | None:
    """The time in the record of a message; UTC where it names no zone, None where it has none."""
    ts = json.loads(record.body).get("ts")
    return instant(ts) if _is_time(ts) else None
