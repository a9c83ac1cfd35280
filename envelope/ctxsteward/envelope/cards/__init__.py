"""Context cards: one line, some keywords and perhaps an embedding for each message of a session.

    store = open_store("file:.ctxsteward")          # or cards="postgresql://…", or cards="sqlite:PATH"
    cards = store.cards()                           # from now on beside every append, which never waits
    cards.of(session, phase="research")             # what a selector looks through

Cards are derived: no original is in them but texts too short to summarize, they are made again by `rebuild`, and go
with their session or its principal (`CardEraser`). One session's cards are never another's; a fork reads its parent's
up to where it began.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
