"""`memory:`: a card index as dictionaries. Everything the others promise but durability; also the double for tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ctxsteward.schemas.cards import ContextCard

from .. import forking
from ..stores.port import SessionKey
from .port import EVERYTHING, CardedSession, Done, EmbeddingSpace, newest, ordinals_of, space_of


class MemoryCards:
    """A `CardIndex` for one process."""

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._cards: dict[SessionKey, dict[int, ContextCard]] = {}
        self._marks: dict[SessionKey, int] = {}
        self._erased: dict[SessionKey, set[int]] = {}
        self._space: EmbeddingSpace | None = None

    def put(self, cards: Sequence[ContextCard], done: Sequence[Done] = ()) -> int:
        with self._lock:
            self._space = space_of(cards, self._space)
            standing = sum(self._put(card) for card in newest(cards))
            for mark in done:
                self._marks[SessionKey(mark.tenant, mark.session)] = mark.ordinal
            return standing

    def _put(self, card: ContextCard) -> bool:
        key, ordinal = SessionKey(card.tenant, card.session), card.ordinal
        if not self._erased.get(key, set()).isdisjoint((ordinal, EVERYTHING)):
            return False
        held = self._cards.setdefault(key, {})
        known = held.get(ordinal)
        if known is None or card.generated_at >= known.generated_at:
            held[ordinal] = card
        return True

    def of_session(
        self, tenant: str, session: str, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        wanted = None if refs is None else ordinals_of(refs)
        with self._lock:
            held = self._cards.get(SessionKey(tenant, session), {})
            ordinals = sorted(held) if wanted is None else wanted
            cards = [held[ordinal] for ordinal in ordinals if ordinal in held]
        return [card for card in cards if phase is None or card.phase_name == phase]

    def carded(self, tenant: str, session: str) -> int:
        return self._marks.get(SessionKey(tenant, session), 0)

    def sessions(self, tenant: str | None = None) -> list[CardedSession]:
        with self._lock:
            known = {*(key for key, cards in self._cards.items() if cards), *self._marks, *self._erased}
            return [
                CardedSession(
                    *key,
                    len(self._cards.get(key, ())),
                    self._marks.get(key, 0),
                    tuple(sorted(self._erased.get(key, ()))),
                )
                for key in sorted(known)
                if tenant in (None, key.tenant)
            ]

    def erase(
        self,
        tenant: str,
        session: str,
        ordinals: Collection[int] | None = None,
        *,
        scrub: bool = True,
        burn: bool = True,
    ) -> int:
        key = SessionKey(tenant, session)
        with self._lock:
            held, marks = self._cards.get(key, {}), self._erased.setdefault(key, set())
            gone = [ordinal for ordinal in (held if ordinals is None else ordinals) if ordinal in held]
            for ordinal in set(gone):
                del held[ordinal]
            if burn and ordinals is None:
                marks.clear()
            if burn and EVERYTHING not in marks:
                marks.update((EVERYTHING,) if ordinals is None else ordinals)
            if not marks:
                del self._erased[key]
            return len(set(gone))

    def close(self) -> None:
        """Nothing to release."""
