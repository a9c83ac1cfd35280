"""What cards need from others: a store of sessions, an index that keeps them, a summarizer, an embedder.

An index is derived data: losing it costs the time to make it again (`rebuild`). How far a session is done
(`CardProgress`) is written in the same step that stores the cards, so a crash between two steps repeats work and never
skips any. An erased message gets no card again, also not from a worker that read its original just before.

An index holds embeddings of one model and one dimension: those of the first card that brought one. Others are refused,
because distances between them mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctxsteward.schemas import ContextCard, InputError, Ref, SourceMessage
from ctxsteward.store import Eraser, Journal

if TYPE_CHECKING:
    from ctxsteward.store import Listener

    from ..history import Session

EVERYTHING = 0
"""Stands among erased ordinals for the whole session."""


class CardProgress(NamedTuple):
    """How far a session is done: every message up to this ordinal has its card, or is to have none."""

    tenant: str
    session: str
    ordinal: int


class CardedSession(NamedTuple):
    """What an index knows of a session."""

    tenant: str
    session: str
    cards: int
    carded: int
    """Highest ordinal done."""
    erased: tuple[int, ...]
    """Ordinals that were erased; `(EVERYTHING,)` for the session as a whole."""


class EmbeddingSpace(NamedTuple):
    """What embeddings of an index have in common."""

    model: str
    dimensions: int


class CardedStore(Protocol):
    """A store whose sessions get cards; the envelope's `Store` is one."""

    uri: str
    cards_uri: str
    """Where its cards are."""
    journal: Journal
    erasers: list[Eraser]
    appended: list[Listener]

    def at(self, tenant: str, id: str, position: int | None = None) -> Session:
        """A session as it was at a log position, for reading only."""

    def card_uris(self) -> tuple[str, ...]:
        """Where there are cards of it, or may be."""


class CardIndex(Protocol):
    """Cards by tenant, session and ordinal; safe with threads. Raises `StoreError` subclasses and `InputError`."""

    def put(self, cards: Sequence[ContextCard], done: Sequence[CardProgress] = ()) -> int:
        """Write all cards and marks, or none; how many of these messages have a card now.

        Of two cards of one message the one generated later stands (of equal times, the one written later). A card of
        an erased message is left out. A mark may go back: then cards are made again. Raises `InputError` for an
        embedding of another model or dimension than the index holds.
        """

    def of_session(
        self, tenant: str, session: str, *, phase: str | None = None, refs: Collection[str] | None = None
    ) -> list[ContextCard]:
        """A session's own cards, in ordinal order; `refs` (``§12``) names those wanted."""

    def carded(self, tenant: str, session: str) -> int:
        """Highest ordinal done, as marked; 0 for a session that was never marked."""

    def sessions(self, tenant: str | None = None) -> list[CardedSession]:
        """Every session that has cards, a mark or an erasure, of one tenant or of all, in order."""

    def erase(
        self,
        tenant: str,
        session: str,
        ordinals: Collection[int] | None = None,
        *,
        scrub: bool = True,
        burn: bool = True,
    ) -> int:
        """Delete the cards of these messages (None: all of the session); how many there were.

        With `burn` their messages get no card again. With `scrub` no byte of any deleted card is left in the index's
        files either, those of earlier erasures included; that costs a rewriting of the index where something was
        deleted, so of many erasures only the last need ask for it. The same twice does no harm.
        """

    def close(self) -> None: ...


CardSummarizer = Callable[[SourceMessage], str]
"""One or two sentences about one message; what is over 300 characters is cut. Its `__name__` is written into each card
(a `name`, where it has one). It may raise: the card then holds the beginning of the text."""


def ordinals_of(refs: Collection[str]) -> list[int]:
    """The ordinals that references name; raises `InvalidReference`."""
    return sorted({Ref.parse(ref).ordinal for ref in refs})


def space_of(cards: Sequence[ContextCard], held: EmbeddingSpace | None) -> EmbeddingSpace | None:
    """The space that these cards and an index that holds `held` share.

    Every index asks before it writes. Raises `InputError` where they share none, and for what is no card by its
    published schema.
    """
    from ctxsteward.schemas import validate

    for card in cards:
        where = f"the card of {card.ref} in session {card.session!r}"
        validate("context_card", card.model_dump(mode="json", warnings=False), where)
        if card.embedding is None or card.embedding_model is None:
            continue
        space = EmbeddingSpace(card.embedding_model, len(card.embedding))
        if held is not None and space != held:
            raise InputError(
                f"{where} has an embedding of {space.model!r} with "
                f"{space.dimensions} dimensions, but this index holds {held.model!r} with {held.dimensions}; "
                "use that model, or rebuild the cards into a new index"
            )
        held = space
    return held


def newest(cards: Sequence[ContextCard]) -> list[ContextCard]:
    """One card a message: of several, the one generated last."""
    found: dict[tuple[str, str, int], ContextCard] = {}
    for card in cards:
        key = (card.tenant, card.session, card.ordinal)
        known = found.get(key)
        if known is None or card.generated_at >= known.generated_at:
            found[key] = card
    return list(found.values())
