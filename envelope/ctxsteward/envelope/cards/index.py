"""Which index a URI names: ``sqlite:PATH``, ``postgresql://…``, ``memory:``.

Moving cards from one index to another: in batches, resumable, counts verified.

Cards, marks and erasures go over, session by session, erasures first; nothing is taken from the source. A session is
skipped where the target already agrees, so a migration that was cut off goes on where it was. Cards of messages that
were erased in either index do not arrive. Run it while nothing writes to the source: the closing count finds it out
if something did.

Raises `InputError` for embeddings that the target cannot hold, `StoreError`.

`memory:`: a card index as dictionaries. Everything the others promise but durability; also the double for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.store import process_forks as forking
from ctxsteward.store.journal.port import SessionKey

from .port import EVERYTHING, CardedSession, CardIndex, CardProgress, EmbeddingSpace, newest, ordinals_of, space_of

FORMS = "sqlite:PATH, postgresql://USER@HOST/DATABASE or memory:"


def open_cards(uri: str, *, must_exist: bool = False) -> CardIndex:
    """Open an index; it is made if missing, unless it `must_exist`. Raises `InputError`, `StoreError`."""
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest:
        return MemoryCards()
    if scheme == "sqlite" and rest:
        from .sqlite import SqliteCards

        if must_exist and not Path(rest).is_file():
            raise InputError(f"{uri}: no such file; `ctxsteward cards rebuild` makes it, or name another")
        return SqliteCards(rest)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        try:
            from .postgres import PostgresCards
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("psycopg"):
                raise
            raise InputError("cards in PostgreSQL need psycopg: pip install 'ctxsteward[postgres]'") from error
        return PostgresCards(uri)
    raise InputError(f"cards {_shown(uri)!r} name no index; write {FORMS}")


def _shown(uri: str) -> str:
    """As much of it as can hold no password."""
    return uri.partition("//")[0][:60]


BATCH_CARDS = 500


class CountMismatch(NamedTuple):
    """A session whose counts do not agree after the migration."""

    tenant: str
    session: str
    source_cards: int
    target_cards: int


class MigrationResult(NamedTuple):
    """What was done, and what does not agree."""

    sessions: int
    skipped: int
    """Sessions of these that agreed already."""
    cards: int
    """Written in this run."""
    differences: tuple[CountMismatch, ...]


def migrate(
    source: CardIndex,
    target: CardIndex,
    *,
    batch_cards: int = BATCH_CARDS,
    on_session: Callable[[str], None] = lambda name: None,
) -> MigrationResult:
    """Copy everything of `source` into `target`, which may hold some of it, or other sessions, already."""
    held = {row[:2]: row for row in target.sessions()}
    rows = source.sessions()
    skipped = cards = 0
    for row in rows:
        on_session(row.session)
        _erase(target, row, held.get(row[:2]))
        standing = source.of_session(row.tenant, row.session)
        if _agrees(row, standing, target, held.get(row[:2])):
            skipped += 1
            continue
        left = iter(standing)
        while batch := list(islice(left, batch_cards)):
            cards += target.put(batch)
        target.put((), (CardProgress(row.tenant, row.session, row.carded),))
    return MigrationResult(len(rows), skipped, cards, tuple(differences(source.sessions(), target.sessions())))


def differences(source: Iterable[CardedSession], target: Iterable[CardedSession]) -> list[CountMismatch]:
    """Sessions of the source whose cards or marks the target does not have in the same number."""
    held = {row[:2]: row for row in target}
    found = []
    for row in source:
        other = held.get(row[:2])
        if other is None or (row.cards, row.carded) != (other.cards, other.carded):
            found.append(CountMismatch(row.tenant, row.session, row.cards, other.cards if other is not None else 0))
    return found


def _erase(target: CardIndex, row: CardedSession, held: CardedSession | None) -> None:
    missing = set(row.erased) - set(held.erased if held is not None else ())
    if missing:
        target.erase(row.tenant, row.session, None if EVERYTHING in missing else missing, scrub=held is not None)


def _agrees(row: CardedSession, cards: list[ContextCard], target: CardIndex, held: CardedSession | None) -> bool:
    """Whether the target has these cards already, or newer ones of the same messages."""
    if held is None or (held.cards, held.carded) != (row.cards, row.carded):
        return False
    times = {card.ordinal: card.generated_at for card in target.of_session(row.tenant, row.session)}
    return all(card.ordinal in times and times[card.ordinal] >= card.generated_at for card in cards)


class MemoryCards:
    """A `CardIndex` for one process."""

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._cards: dict[SessionKey, dict[int, ContextCard]] = {}
        self._marks: dict[SessionKey, int] = {}
        self._erased: dict[SessionKey, set[int]] = {}
        self._space: EmbeddingSpace | None = None

    def put(self, cards: Sequence[ContextCard], done: Sequence[CardProgress] = ()) -> int:
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
