"""The cards' part in an erasure: `CardEraser` deletes the cards of a session or principal that was forgotten.

An erasure calls it with what is gone, as an `Eraser` of `ctxsteward.store`. The one of the index that a store keeps up
is among `Store.erasers`. An index that lies where the store has its cards, but that is not open in this process, is
opened for the erasure (`lazy_card_eraser`), so that a command or a process without cards forgets as much as one with
them.

What was forgotten while an index was not at hand is erased when it is next kept up (`settle`); the journal's notes say
what that is. *Strays* are deleted with the rest: cards of messages that the log does not hold any more, because a
writer that had lost the session had appended them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ctxsteward.schemas import ContextError
from ctxsteward.store import Deletion, MessageAppended, SessionKey, from_record

from .index import open_cards
from .port import EVERYTHING, CardedStore, CardIndex, CardProgress


class CardEraser:
    """Deletes the cards of what is gone; the files are scrubbed once, at the end."""

    def __init__(self, store: CardedStore, index: CardIndex | None, uri: str = "") -> None:
        """`index`: None: the one at `uri` is opened when something is to be erased from it."""
        self._journal, self._index = store.journal, index
        self.uri = uri
        """Where the index is; empty where that has no name."""

    @contextmanager
    def _at_hand(self) -> Iterator[CardIndex]:
        if self._index is not None:
            yield self._index
            return
        with closing(open_cards(self.uri)) as index:
            yield index

    def __call__(self, gone: Sequence[Deletion]) -> int:
        count, last = 0, len(gone) - 1
        with self._at_hand() as index:
            for one in gone:
                if one.ordinals is not None:
                    count += self._erase_strays(index, SessionKey(one.tenant, one.session))
            for at, one in enumerate(gone):
                count += index.erase(one.tenant, one.session, one.ordinals, scrub=at == last)
        return count

    def sessions(self, tenant: str) -> list[str]:
        """Sessions that are not erased whole."""
        with self._at_hand() as index:
            return [row.session for row in index.sessions(tenant) if EVERYTHING not in row.erased]

    def settle(self, key: SessionKey) -> int:
        """Erase what the journal notes as forgotten of this session, should the index not have been told."""
        notes = self._journal.forgotten(*key)
        with self._at_hand() as index:
            if not notes or not index.of_session(*key):
                return 0
            if any(note.principal is None for note in notes):
                return index.erase(*key)
            return self._erase_strays(index, key, scrub=True)

    def settle_all(self, tenant: str) -> int:
        """The same for every session of a tenant."""
        sessions = {note.session for note in self._journal.forgotten(tenant)}
        return sum(self.settle(SessionKey(tenant, session)) for session in sorted(sessions))

    def _erase_strays(self, index: CardIndex, key: SessionKey, *, scrub: bool = False) -> int:
        """Delete cards that are not of the log's messages; those of erased messages for good.

        A log that another machine owns may be further there: then what is behind its end here is not judged.
        """
        cards = index.of_session(*key)  # before the log, which may grow meanwhile
        if self._journal.length(key) == 0:
            return 0
        known = dict(self._messages(key))
        last = max(known, default=0) if self._journal.drained(key).epoch < 0 else None
        burnt: list[int] = []
        strays: list[int] = []
        for card in cards:
            event = known.get(card.ordinal)
            if (last is not None and card.ordinal > last) or (event is not None and event.address == card.address):
                continue
            (burnt if event is not None and event.erased else strays).append(card.ordinal)
        if strays:
            # made again, if there
            index.put((), [CardProgress(*key, min(min(strays) - 1, index.carded(*key)))])
        count = index.erase(*key, strays, scrub=scrub and not burnt, burn=False) if strays else 0
        return count + (index.erase(*key, burnt, scrub=scrub) if burnt else 0)

    def _messages(self, key: SessionKey) -> Iterator[tuple[int, MessageAppended]]:
        """Messages of the log by ordinal, without such as cannot be read."""
        for record in self._journal.read(key, 0):
            try:
                event = from_record(record) if record.kind == "message" else None
            except ContextError:
                continue
            if isinstance(event, MessageAppended):
                yield event.ordinal, event


def lazy_card_eraser(store: CardedStore) -> list[CardEraser]:
    """Erasers of the indexes that the store has and that no eraser of it is for."""
    told = {eraser.uri for eraser in store.erasers if isinstance(eraser, CardEraser)}
    return [CardEraser(store, None, uri) for uri in store.card_uris() if uri not in told and _is_there(uri)]


def _is_there(uri: str) -> bool:
    """Whether an index at this URI can hold cards: one in memory is elsewhere, and a missing file holds none."""
    scheme, _, rest = uri.partition(":")
    return scheme != "memory" and (scheme != "sqlite" or Path(rest).is_file())
