"""Listings, page by page, of a tenant's sessions and of a session's messages, losses and originals.

A row of the index costs a few reads of the journal, however long its session is. Rows contain raw text of sessions;
templates escape it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from ctxsteward.envelope import Session, Store, past_calls
from ctxsteward.envelope.building.past_calls import PastCall
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.schemas import CompressionReport, ContextError, InputError, Loss, Ref, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.schemas.message import decode_wire
from ctxsteward.store.journal.events import MessageAppended, WindowCompacted
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.profiles.text import META_REF

from .frame import MESSAGES

SESSIONS, LOSSES = 50, 200
"""Number of sessions, and of losses, on one page."""
TITLE_CHARS = 120
_LOOK_BACK = 16
ORIGINAL_CHARS, AROUND_CHARS = 600, 200
"""Most characters shown of an original without marks, and on each side of a mark."""
_EDGES = " \n\t.…\"'-"
_QUOTE_CHARS = 12
"""Characters of the shortest part that is searched: a shorter one could match by chance."""


T = TypeVar("T")


def pages_of(count: int, size: int) -> int:
    """Return the number of pages for so many rows, at least 1."""
    return max(1, -(-count // size))


class Piece(FrozenModel):
    """A part of a text, marked or not."""

    text: str
    marked: bool = False


class Original(FrozenModel):
    """The original that a reference names, with the cited words marked."""

    ref: str
    ordinal: int
    """Ordinal of the message; 0 for a record of meta."""
    role: str
    pieces: tuple[Piece, ...]
    """Its text; of a long one, only parts."""
    missing: str = ""
    """Reason why it cannot be shown; empty if it can."""


class RowsPage(NamedTuple, Generic[T]):
    """One page of a listing."""

    rows: tuple[T, ...]
    page: int
    pages: int
    total: int
    """Number of rows on all pages."""

    @classmethod
    def of(cls, rows: Sequence[T], page: int, size: int) -> RowsPage[T]:
        """Return this page of the rows, or the last page if there are fewer."""
        pages = pages_of(len(rows), size)
        page = min(page, pages)
        return cls(tuple(rows[(page - 1) * size : page * size]), page, pages, len(rows))


class SessionRow(NamedTuple):
    """A session in the index."""

    id: str
    messages: int | None = None
    """None if this machine does not hold its log."""
    compactions: int | None = None
    title: str = ""
    """Beginning of its first message; empty if that cannot be read."""
    is_damaged: bool = False
    """Whether its log cannot be read here; such a session does not hide the others."""


def session_ids(store: Store, tenant: str, only: Sequence[str] | None = None) -> list[str]:
    """Return the ids of the tenant's sessions, or `only` these, sorted."""
    return sorted(store.sessions(tenant=tenant) if only is None else only)


def sessions_page(
    store: Store, tenant: str, *, query: str = "", page: int = 1, only: Sequence[str] | None = None
) -> RowsPage[SessionRow]:
    """Return the sessions whose id contains every word of the query, by id; `only` limits them to these ids."""
    ids = session_ids(store, tenant, only)
    words = query.lower().split()
    listed = RowsPage.of([id for id in ids if all(word in id.lower() for word in words)], page, SESSIONS)
    return RowsPage(tuple(_session_row(store, SessionKey(tenant, id)) for id in listed.rows), *listed[1:])


def _session_row(store: Store, key: SessionKey) -> SessionRow:
    try:
        journal = store.journal
        length = journal.length(key)
        if not length:
            return SessionRow(key.session)
        log = Log(journal, key, store.keys.address_key(key.tenant))
        newest = journal.checkpoint(key)
        compacted = log.at(newest) if newest else None
        count = compacted.checkpoint["compactions"] if isinstance(compacted, WindowCompacted) else 0
        first, title = log.message(1), ""
        if isinstance(first, MessageAppended) and not first.erased:
            title = " ".join(text_of(decode_wire(first.wire)).split())[:TITLE_CHARS]
        return SessionRow(key.session, _newest_ordinal(store, key, length), count, title)
    except Damaged:
        return SessionRow(key.session, is_damaged=True)


def _newest_ordinal(store: Store, key: SessionKey, length: int) -> int:
    """Return the ordinal of the newest message; reads backwards, since it is seldom far from the end."""
    stop, step = length, _LOOK_BACK
    while stop > 0:
        start = max(0, stop - step)
        ordinals = [record.ordinal for record in store.journal.read(key, start, stop) if record.ordinal]
        if ordinals:
            return ordinals[-1]
        stop, step = start, step * 4
    return 0


class LogMessage(NamedTuple):
    """A message of the log, as a page shows it."""

    ordinal: int
    role: str
    ts: str
    principal: str
    tokens: int
    pieces: tuple[Piece, ...]
    """Its text, with the spans that losses name marked; a long text is cut."""
    chars: int
    """Characters of the whole text."""
    is_cut: bool
    losses: int
    """Number of its spans that losses of compactions name."""
    missing: str = ""
    """Reason why it cannot be shown: it was erased, or is damaged."""


class LossRow(NamedTuple):
    """A loss, and the report of its compaction."""

    loss: Loss
    report: CompressionReport
    call: int
    """Number of the call that made the compaction; 0 if no call of this session did."""


CUT_CHARS = 4000
"""Most characters of a message that the log shows; the message's own page shows all of it."""


class SessionSource:
    """Data for the pages of one session; each part is read at its first use."""

    def __init__(self, store: Store, tenant: str, id: str) -> None:
        self._store, self._tenant, self.id = store, tenant, id

    @cached_property
    def session(self) -> Session:
        """The session; raises `ReferenceNotFound` if it does not exist, `Erased` if it was forgotten."""
        forgotten = any(note.principal is None for note in self._store.journal.forgotten(self._tenant, self.id))
        if not forgotten and not self._store.exists(self.id, tenant=self._tenant):
            raise ReferenceNotFound(f"session {self.id!r:.80}", "", f"tenant {self._tenant!r} has no such session")
        return self._store.at(self._tenant, self.id)

    @cached_property
    def calls(self) -> tuple[PastCall, ...]:
        """The session's calls, oldest first."""
        return past_calls(self._store, self.session.id, tenant=self._tenant)

    @cached_property
    def spans(self) -> dict[int, list[tuple[int, int]]]:
        """Spans of the session's messages that losses name."""
        return loss_spans(self.session)


Spans = Mapping[int, Sequence[tuple[int, int]]]
"""Spans (start, stop) in the texts of messages, by ordinal."""


def messages_page(session: Session, spans: Spans, *, page: int = 1, size: int = MESSAGES) -> RowsPage[LogMessage]:
    """Return a page of the log with these spans marked; an unreadable message gives its reason."""
    listed = RowsPage.of(range(1, len(session) + 1), page, size)
    messages = tuple(log_message(session, ordinal, spans.get(ordinal, ())) for ordinal in listed.rows)
    return RowsPage(messages, *listed[1:])


def whole_message(session: Session, ordinal: int, spans: Spans) -> LogMessage:
    """Return one message of the log with all of its text; raise `InputError` for an unknown ordinal."""
    if not 0 < ordinal <= len(session):
        raise InputError(f"session {session.id!r}: no message §{ordinal}; it holds §1 to §{len(session)}")
    return log_message(session, ordinal, spans.get(ordinal, ()), whole=True)


def log_message(
    session: Session, ordinal: int, spans: Sequence[tuple[int, int]] = (), *, whole: bool = False
) -> LogMessage:
    """Return a message with these spans marked, cut to `CUT_CHARS` unless `whole`."""
    missing = ""
    entry = session.shown(ordinal)
    try:
        session.resolve(f"§{ordinal}")
    except ContextError as error:
        missing = str(error)
    event, text = entry.event, "" if missing else text_of(entry.message)
    is_cut = not whole and len(text) > CUT_CHARS
    shown = text[:CUT_CHARS] if is_cut else text
    marks = [(start, min(stop, len(shown))) for start, stop in merged(spans) if start < len(shown)]
    return LogMessage(
        ordinal=ordinal,
        role=entry.message.role,
        ts=event.ts or "",
        principal=event.principal or "",
        tokens=next(iter(event.tokens.values()), 0),
        pieces=pieces_of(shown, marks, whole=True),
        chars=len(text),
        is_cut=is_cut,
        losses=len(spans),
        missing=missing,
    )


def loss_spans(session: Session) -> dict[int, list[tuple[int, int]]]:
    """Return the spans that losses name, by ordinal of the message."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for event in session.compactions():
        for loss in event.report.losses:
            if loss.span is not None:
                spans.setdefault(ordinal_of(loss.ref), []).append(loss.span)
    return spans


def ordinal_of(ref: str) -> int:
    """Return the ordinal of the message that a reference names; 0 for a record of meta."""
    try:
        return Ref.parse(ref).ordinal
    except ContextError:
        return 0


def loss_rows(session: Session, calls: Sequence[PastCall]) -> list[LossRow]:
    """Return all losses of a session, those of the newest compaction first."""
    made_by = {made.report: call.number for call in calls for made in call.compactions}
    reports = [event.report for event in session.reports()]
    return [LossRow(loss, report, made_by.get(report.id, 0)) for report in reversed(reports) for loss in report.losses]


def loss_kinds(rows: Iterable[LossRow]) -> list[tuple[str, int]]:
    """Return each kind of loss with its number, the most frequent first."""
    return sorted(Counter(row.loss.kind for row in rows).items(), key=lambda kind: (-kind[1], kind[0]))


def losses_page(
    rows: Sequence[LossRow], *, query: str = "", kind: str = "", page: int = 1, size: int = LOSSES
) -> RowsPage[LossRow]:
    """Return a page of losses of this kind that contain every word of the query in kind, reference or text."""
    words = query.lower().split()
    matches = [
        row
        for row in rows
        if (not kind or row.loss.kind == kind)
        and all(word in f"{row.loss.kind} {row.loss.ref} {row.loss.text}".lower() for word in words)
    ]
    return RowsPage.of(matches, page, size)


# -- originals, and what is marked of them ---------------------------------------------------------------------------


def original_of(session: Session, ref: str, quote: str = "") -> Original:
    """Return the original that a reference names, with the words of `quote` marked."""
    ordinal = 0
    try:
        if not ref.startswith(META_REF):
            ordinal = Ref.parse(ref).ordinal
        message = session.resolve(ref)
    except ContextError as error:
        return Original(ref=ref, ordinal=ordinal, role="", pieces=(), missing=str(error))
    text = text_of(message)
    return Original(ref=ref, ordinal=ordinal, role=message.role, pieces=pieces_of(text, quoted(text, quote)))


def quoted(text: str, quote: str) -> list[tuple[int, int]]:
    """Return a quote's spans in a text: of the whole quote, else of its parts between ellipses, else between marks.

    >>> quoted("I said: never book\\na flight before ten, please.", "Never book a flight before ten")
    [(8, 38)]
    """
    words = quote.strip()
    if not words:
        return []
    for parts in ([words], re.split(r"…|\[\.\.\.\]|\n", words), re.split(r"[;:|()。；，,]", words)):
        spans = [span for part in parts if (span := _place_of(text, part)) is not None]
        if spans:
            return merged(spans)
    return []


def _place_of(text: str, part: str) -> tuple[int, int] | None:
    words = part.strip(_EDGES).split()
    is_all = words == text.strip(_EDGES).split()
    if not words or (len("".join(words)) < _QUOTE_CHARS and not is_all):
        return None
    match = re.search(r"\s+".join(map(re.escape, words)) + "[.!?。！？]*", text, re.IGNORECASE)
    return None if match is None else match.span()


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, with overlapping ones merged.

    >>> merged([(5, 9), (0, 2), (8, 12)])
    [(0, 2), (5, 12)]
    """
    result: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(stop, result[-1][1]))
        elif stop > start:
            result.append((start, stop))
    return result


def pieces_of(text: str, marks: Sequence[tuple[int, int]], *, whole: bool = False) -> tuple[Piece, ...]:
    """Return a text with these spans marked; unless `whole`, an ellipsis replaces text far from a mark.

    >>> [piece.text for piece in pieces_of("a" * 300 + "NOW" + "b" * 300, [(300, 303)]) if piece.marked]
    ['NOW']
    """
    if not marks:
        cut = text if whole or len(text) <= ORIGINAL_CHARS else text[:ORIGINAL_CHARS] + " …"
        return (Piece(text=cut),) if cut else ()
    pieces: list[Piece] = []
    at = 0
    for start, stop in marks:
        pieces.append(Piece(text=_between(text[at:start], bool(pieces), True, whole)))
        pieces.append(Piece(text=text[start:stop], marked=True))
        at = stop
    pieces.append(Piece(text=_between(text[at:], True, False, whole)))
    return tuple(piece for piece in pieces if piece.text)


def _between(text: str, after: bool, before: bool, whole: bool) -> str:
    """Shorten a text that is after a mark, before one, or both."""
    room = AROUND_CHARS * (after + before)
    if whole or len(text) <= room + 8:
        return text
    return (text[:AROUND_CHARS] if after else "") + " … " + (text[-AROUND_CHARS:] if before else "")
