"""Which index of cards a URI names, ``sqlite:PATH``, ``postgresql://…`` or ``memory:``; and moving cards between two.

`migrate` copies in batches, resumable, counts verified. Cards, marks and erasures go over, session by session, erasures
first; nothing is taken from the source. A session is skipped where the target already agrees, so a migration that was
cut off goes on where it was. Cards of messages that were erased in either index do not arrive. Run it while nothing
writes to the source: the closing count finds it out if something did.

Raises `InputError` for embeddings that the target cannot hold, `StoreError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import ContextCard, InputError, shown_uri

from .port import EVERYTHING, CardedSession, CardIndex, CardProgress

FORMS = "sqlite:PATH, postgresql://USER@HOST/DATABASE or memory:"


def open_cards(uri: str, *, must_exist: bool = False) -> CardIndex:
    """Open an index; it is made if missing, unless it `must_exist`. Raises `InputError`, `StoreError`."""
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest:
        from .sqlite import MemoryCards

        return MemoryCards()
    if scheme == "sqlite" and rest:
        from .sqlite import SqliteCards

        if must_exist and not Path(rest).is_file():
            raise InputError(f"{shown_uri(uri)}: no such file; `ctxsteward cards rebuild` makes it, or name another")
        return SqliteCards(rest)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        try:
            from .postgres import PostgresCards
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("psycopg"):
                raise
            raise InputError("cards in PostgreSQL need psycopg: pip install 'ctxsteward[postgres]'") from error
        return PostgresCards(uri)
    raise InputError(f"cards {shown_uri(uri)!r} name no index; write {FORMS}")


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
