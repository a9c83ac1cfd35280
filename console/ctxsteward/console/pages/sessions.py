"""What is shown of a tenant's sessions, and of the messages in one: listings, by pages.

View models are frozen values, functions of a store and what is asked; pages show them, and an API can send them as they
are. A row of the index costs a few reads of the journal, whatever the length of its session. Text of sessions stands in
them as it is: who shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ctxsteward.envelope import Store
from ctxsteward.envelope.history import text_of
from ctxsteward.store import Log, MessageAppended, SessionKey, WindowCompacted

from .frame import pages_of

SESSIONS, MESSAGES, LOSSES = 50, 50, 200
"""Rows of a page."""
TITLE_CHARS = 120
_LOOK_BACK = 16


class Piece(BaseModel):
    """A stretch of a text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    marked: bool = False


class SessionRow(BaseModel):
    """A session in the index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    messages: int | None
    """None: this machine does not hold its log."""
    compactions: int | None
    title: str
    """How its first message begins; empty where that cannot be read."""


class SessionsPage(BaseModel):
    """A page of the index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str
    query: str
    page: int
    pages: int
    total: int
    """Sessions that the query finds."""
    rows: tuple[SessionRow, ...]


def sessions_page(
    store: Store, tenant: str, *, query: str = "", page: int = 1, only: Sequence[str] | None = None
) -> SessionsPage:
    """The sessions whose id has the query in it, in the order of their ids; `only`: of these."""
    ids = store.sessions(tenant=tenant) if only is None else sorted(only)
    words = query.lower().split()
    found = [id for id in ids if all(word in id.lower() for word in words)]
    pages = pages_of(len(found), SESSIONS)
    page = min(page, pages)
    rows = found[(page - 1) * SESSIONS : page * SESSIONS]
    return SessionsPage(
        tenant=tenant, query=query, page=page, pages=pages, total=len(found),
        rows=tuple(_session_row(store, SessionKey(tenant, id)) for id in rows),
    )  # fmt: skip


def _session_row(store: Store, key: SessionKey) -> SessionRow:
    journal = store.journal
    length = journal.length(key)
    if not length:
        return SessionRow(id=key.session, messages=None, compactions=None, title="")
    log = Log(journal, key, store.keys.address_key(key.tenant))
    newest = journal.checkpoint(key)
    compacted = log.at(newest) if newest else None
    count = compacted.checkpoint["compactions"] if isinstance(compacted, WindowCompacted) else 0
    first = log.message(1)
    title = ""
    if isinstance(first, MessageAppended) and not first.erased:
        title = _title(first)
    return SessionRow(id=key.session, messages=_ordinal(store, key, length), compactions=count, title=title)


def _title(first: MessageAppended) -> str:
    from ctxsteward.schemas import decode_wire

    return " ".join(text_of(decode_wire(first.wire)).split())[:TITLE_CHARS]


def _ordinal(store: Store, key: SessionKey, length: int) -> int:
    """Of the newest message, which is seldom far from the end."""
    stop, step = length, _LOOK_BACK
    while stop > 0:
        start = max(0, stop - step)
        ordinals = [record.ordinal for record in store.journal.read(key, start, stop) if record.ordinal]
        if ordinals:
            return ordinals[-1]
        stop, step = start, step * 4
    return 0
