"""`EntryLog`: a framework's own records, kept unchanged. No model sees them.

    log = EntryLog(store, "chat-1/history")
    log.append([message.to_dict()], ids=[None], principal="ann")
    log.read()                                            # all of them, oldest first

An entry is a JSON object, logged as text: any depth, half surrogates and unknown fields come back deep-equal.
The entries are messages of a separate session, ``ID~entries``. So they are as durable as a conversation, and are
drained, moved to other machines, and forgotten by session and by principal. The steward skips them (`ENTRIES_ORIGIN`).
Raises the errors of `Session.extend`; `read` also `Damaged`, `Erased`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ctxsteward.store.journal.port import SessionKey

from ..history.session import Session
from ..history.tool_groups import NewMessage
from ..store import Store
from ..tokens.tokenizer import Counter

ENTRIES_SUFFIX = "~entries"
ENTRIES_ORIGIN = "entries"
"""Origin of the messages of such a session, by which the steward recognises that nobody said them."""
MAX_OPEN = 1000
T = TypeVar("T")


class NoTokens:
    """A tokenizer for text that no model sees: every text has 0 tokens."""

    name = "none"

    def count(self, text: str) -> int:
        return 0


class EntryLog:
    """A framework's own records: JSON objects in order, deep-equal when read.

    They are kept in a separate session, ``ID~entries``, which no model sees, and which is forgotten, drained and moved
    like any other. The same id twice is the same entry. Calls block for a journal write; threads may share a log.
    """

    def __init__(self, store: Store, id: str, *, tenant: str = "default") -> None:
        self.id: str = id + ENTRIES_SUFFIX
        self._store, self._tenant = store, tenant
        self._session: Session | None = None

    def append(
        self,
        entries: Sequence[Mapping[str, Any]],
        *,
        ids: Sequence[str | None] | None = None,
        kind: str = "entry",
        ts: str | None = None,
        principal: str | None = None,
    ) -> None:
        """Append entries with one id each; `ts` is their time of arrival, `principal` the person they belong to."""
        if entries:
            session = self._opened()
            session.extend(
                NewMessage(
                    message={"role": "assistant", "content": [{"type": kind, "json": json.dumps(entry)}]},
                    id=id,
                    ts=ts,
                    principal=principal,
                    origin=ENTRIES_ORIGIN,
                )
                for entry, id in zip(entries, ids or [None] * len(entries), strict=True)
            )

    def read(self, kind: str = "entry") -> list[Any] | None:
        """Return all entries of a kind, oldest first, without forgotten ones; None if nothing was ever appended.

        Raises `Damaged`, `Erased`.
        """
        if self._session is None and not self._store.exists(self.id, tenant=self._tenant):
            return None
        session = self._session or self._store.at(self._tenant, self.id)
        session.refresh()
        kept = [entry.message.wire["content"][0] for entry in session.entries() if not entry.event.erased]
        return [json.loads(block["json"]) for block in kept if block["type"] == kind]

    def last_ts(self) -> str | None:
        """Return the time of the newest entry; None if there is no entry, or it has no time."""
        key = SessionKey(self._tenant, self.id)
        if not self._store.journal.length(key) and self._store.exists(self.id, tenant=self._tenant):
            self._store.at(self._tenant, self.id)  # fetches the session to this machine
        length = self._store.journal.length(key)
        for record in self._store.journal.read(key, max(0, length - 1), length):
            ts = json.loads(record.body).get("ts")
            return ts if isinstance(ts, str) else None
        return None

    def find(self, id: str) -> Any | None:
        """Return the entry with this id, or None."""
        entry = self._opened().replica.by_id(id)
        return None if entry is None or entry.event.erased else json.loads(entry.message.wire["content"][0]["json"])

    def _opened(self) -> Session:
        if self._session is None:
            self._session = self._store.session(self.id, tenant=self._tenant, counter=Counter(NoTokens()))
        return self._session


def kept_open(cache: OrderedDict[str, T], name: str, make: Callable[[], T]) -> T:
    """Return the value under this name from the `MAX_OPEN` most recently used ones; else make it."""
    value = cache.pop(name, None)
    value = cache[name] = make() if value is None else value
    if len(cache) > MAX_OPEN:
        cache.popitem(last=False)
    return value


__all__ = ["ENTRIES_ORIGIN", "ENTRIES_SUFFIX", "EntryLog", "kept_open"]
