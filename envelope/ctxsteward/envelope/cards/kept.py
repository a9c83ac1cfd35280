"""The cards of a store, kept up beside the conversation: what `Store.cards` gives.

    with open_store("file:.ctxsteward") as store:
        cards = store.cards()                    # sqlite:.ctxsteward/cards.sqlite; returns at once
        session.append(…)                        # hints, and never waits
        cards.of(session, phase="research")      # what is carded by now

An index, a worker that follows the journal into it, an eraser among the store's. It ends with the store. Nothing is
lost with the process: what is not carded then is found from the journal the next time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from ctxsteward.schemas import Finding
from ctxsteward.schemas.cards import ContextCard

from .. import forking
from ..session import Session
from ..store import CLOSE_SECONDS, Store
from ..stores.port import SessionKey
from .backlog import cards_of
from .erasing import CardEraser
from .making import CardMaker, card_maker
from .opening import open_cards
from .port import CardIndex
from .worker import CardWorker


class KeptCards:
    """Made by `Store.cards`."""

    def __init__(
        self, store: Store, index: CardIndex | str | None, maker: CardMaker | None, tenants: Sequence[str] | None
    ) -> None:
        maker = maker or card_maker()
        if index is None or isinstance(index, str):
            uri = index or store.cards_uri
            self.index, self._opened = open_cards(uri), True
            store.cards_uri = uri
            self._eraser = CardEraser(store, self.index, uri)
        else:
            self.index, self._opened = index, False
            self._eraser = CardEraser(store, index)
        self.closed = False
        self._store, self._closing = store, forking.lock()
        store.erasers.append(self._eraser)
        self._worker = CardWorker(store, self.index, maker, tenants=tenants)
        self._worker.start()

    @property
    def findings(self) -> deque[Finding]:
        """What went wrong while cards were made, newest last."""
        return self._worker.findings

    def of(
        self, session: Session, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """The cards of a session so far, as `cards_of` reads them."""
        return cards_of(self.index, session, phase=phase, refs=refs)

    def hint(self, key: SessionKey) -> None:
        """A session has grown."""
        self._worker.hint(key)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything that was appended has its card; whether that was so in time."""
        return self._worker.flush(timeout_seconds)

    def close(self, flush_seconds: float = CLOSE_SECONDS) -> bool:
        """Give what is not carded yet some time, and end the threads; whether all was done."""
        with self._closing:
            if self.closed:
                return True
            self.closed = True
            done = self._worker.flush(flush_seconds)
            ended = self._worker.stop()
            self._store.erasers.remove(self._eraser)
            if self._opened:
                self.index.close()
            return done and ended
