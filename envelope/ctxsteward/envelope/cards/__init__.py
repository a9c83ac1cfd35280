"""Context cards: one line, some keywords and perhaps an embedding for each message of a session.

    store = open_store("file:.ctxsteward")          # or cards="postgresql://…", or cards="sqlite:PATH"
    cards = store.cards()                           # from now on follows every append, without delaying it
    cards.of(session, phase="research")             # the cards that a selector searches

Cards are derived: their only original texts are those too short to summarize, `rebuild` makes them again, and they are
erased with their session or principal. Sessions share no cards; but a fork reads its parent's up to where it began.
"""

from .index import (
    CardedSession as CardedSession,
    CardIndex as CardIndex,
    MemoryCards as MemoryCards,
    open_cards as open_cards,
)
from .maker import CardMaker as CardMaker, card_maker as card_maker, leading_sentences as leading_sentences
from .worker import (
    CardEraser as CardEraser,
    RebuildResult as RebuildResult,
    StoreCards as StoreCards,
    cards_of as cards_of,
    erasers_of_closed_indexes as erasers_of_closed_indexes,
    rebuild as rebuild,
)
