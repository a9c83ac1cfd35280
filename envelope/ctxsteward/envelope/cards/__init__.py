"""Context cards: one line, some keywords and perhaps an embedding for each message of a session.

    store = open_store("file:.ctxsteward")          # or cards="postgresql://…", or cards="sqlite:PATH"
    cards = store.cards()                           # from now on beside every append, which never waits
    cards.of(session, phase="research")             # what a selector looks through

Cards are derived: no original is in them but texts too short to summarize, they are made again by `rebuild`, and go
with their session or its principal (`erasing`). One session's cards are never another's; a fork reads its parent's up
to where it began.
"""

from .backlog import cards_of
from .erasing import CardEraser
from .kept import KeptCards
from .making import CardMaker, card_maker
from .migration import Difference, Migrated, migrate
from .opening import open_cards
from .port import CardedSession, CardIndex, CardSummarizer, Done, Embedder
from .rebuilding import Rebuilt, rebuild
from .summaries import Bulleted, leading_sentences
from .worker import CardWorker

__all__ = [
    "Bulleted",
    "CardEraser",
    "CardIndex",
    "CardMaker",
    "CardSummarizer",
    "CardWorker",
    "CardedSession",
    "Difference",
    "Done",
    "Embedder",
    "KeptCards",
    "Migrated",
    "Rebuilt",
    "card_maker",
    "cards_of",
    "leading_sentences",
    "migrate",
    "open_cards",
    "rebuild",
]
