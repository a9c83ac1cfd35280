"""Context cards: one line, some keywords and perhaps an embedding for each message of a session.

    store = open_store("file:.ctxsteward")          # or cards="postgresql://…", or cards="sqlite:PATH"
    cards = store.cards()                           # from now on beside every append, which never waits
    cards.of(session, phase="research")             # what a selector looks through

Cards are derived: no original is in them but texts too short to summarize, they are made again by `rebuild`, and go
with their session or its principal (`erasing`). One session's cards are never another's; a fork reads its parent's up
to where it began.
"""

from ..recall.selection import Embedder
from .backlog import RebuildResult, cards_of, rebuild
from .erasure import CardEraser
from .index import CountMismatch, MigrationResult, migrate, open_cards
from .maker import BulletSummarizer, CardMaker, card_maker, leading_sentences
from .port import CardedSession, CardIndex, CardProgress, CardSummarizer
from .worker import CardWorker, StoreCards

__all__ = [
    "BulletSummarizer",
    "CardEraser",
    "CardIndex",
    "CardMaker",
    "CardProgress",
    "CardSummarizer",
    "CardWorker",
    "CardedSession",
    "CountMismatch",
    "Embedder",
    "MigrationResult",
    "RebuildResult",
    "StoreCards",
    "card_maker",
    "cards_of",
    "leading_sentences",
    "migrate",
    "open_cards",
    "rebuild",
]
