"""Context cards: one line, some keywords and perhaps an embedding for each message of a session.

    index = open_cards("sqlite:.ctxsteward/cards.sqlite")
    with CardWorker(store, index, CardMaker(now=clock)) as worker:
        store.journal = hinted(store.journal, worker.hint)      # appends hint, and never wait
        …
    cards_of(index, session, phase="research")                  # what a selector looks through

Cards are derived: no original is in them but texts too short to summarize, they are made again by `rebuild`, and go
with their session (`eraser`). One session's cards are never another's; a fork reads its parent's up to where it began.
"""

from .backlog import cards_of
from .erasing import eraser
from .hinting import hinted
from .making import CardMaker
from .migration import Difference, Migrated, migrate
from .opening import open_cards
from .port import CardedSession, CardIndex, CardSummarizer, Done, Embedder
from .rebuilding import Rebuilt, rebuild
from .summaries import Bulleted, leading_sentences
from .worker import CardWorker

__all__ = [
    "Bulleted",
    "CardIndex",
    "CardMaker",
    "CardSummarizer",
    "CardWorker",
    "CardedSession",
    "Difference",
    "Done",
    "Embedder",
    "Migrated",
    "Rebuilt",
    "cards_of",
    "eraser",
    "hinted",
    "leading_sentences",
    "migrate",
    "open_cards",
    "rebuild",
]
