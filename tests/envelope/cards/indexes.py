"""Card indexes of every kind, and cards to put into them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.cards import CardIndex, open_cards
from ctxsteward.envelope.cards.index import EVERYTHING, CardedSession, ordinals_of
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.store.journal.port import SessionKey

START = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
KINDS = ("memory", "sqlite", "postgres")

Opener = Callable[[], CardIndex]
"""Opens an index of this test; the same one again where it lasts."""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def clock() -> datetime:
    return START


def card(ordinal: int, session: str = "s", *, tenant: str = "default", **more: Any) -> ContextCard:
    fields: dict[str, Any] = {
        "tenant": tenant,
        "session": session,
        "ref": f"§{ordinal}",
        "address": f"{ordinal:064x}",
        "summary": f"summary {ordinal} 你好 'quoted' \"twice\" %s ?1",
        "keywords": ("summary", f"n{ordinal}", "你好"),
        "estimated_tokens": 10 * ordinal,
        "role": ("user", "assistant", "tool")[ordinal % 3],
        "phase_name": ("research", "write")[ordinal % 2],
        "turn_number": ordinal,
        "generated_at": START,
        "generator_model": "fast-path",
        "message_timestamp": "2026-03-01 09:00",
    }
    return ContextCard.model_validate(fields | more)


@pytest.fixture(params=KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[CardIndex] = []
    if request.param == "memory":
        uri = "memory:"
    elif request.param == "sqlite":
        uri = f"sqlite:{tmp_path / 'cards.sqlite'}"
    else:
        uri = request.getfixturevalue("postgres_dsn")

    def open_one() -> CardIndex:
        if request.param == "memory" and opened:
            return opened[0]
        opened.append(open_cards(uri))
        return opened[-1]

    yield open_one
    for index in opened:
        index.close()


@pytest.fixture
def index(opener: Opener) -> CardIndex:
    return opener()


class ModelCards:
    """An index of dictionaries: what the real ones are compared with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cards: dict[SessionKey, dict[int, ContextCard]] = {}
        self._marks: dict[SessionKey, int] = {}
        self._erased: dict[SessionKey, set[int]] = {}

    def put(self, cards: Sequence[ContextCard], done: Sequence[tuple[str, str, int]] = ()) -> int:
        with self._lock:
            standing = {(card.session, card.ordinal) for card in cards if self._put(card)}
            for tenant, session, ordinal in done:
                self._marks[SessionKey(tenant, session)] = ordinal
            return len(standing)

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
