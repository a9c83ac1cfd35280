"""An index of single sayings: what somebody said, or is known to hold, each a line with a time of its own.

The ranking is that of recall (`index`), over sayings instead of messages: neighbours in time, the words of the day, the
speaker whom the question names. A saying is indexed under the question it answers, too, which is never shown. Whoever
picks facts for a request ranks them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..selection import Scored
from .heuristic import MAX_QUERY_CHARS, date_words
from .index import MAX_RANKED, Turn, TurnIndex
from .weights import Weights
from .words import terms

MAX_NAME_CHARS = 48


class Saying(Protocol):
    """A line as the index sees it."""

    @property
    def text(self) -> str:
        """One line, the speaker's name before it where there is one."""

    @property
    def ts(self) -> str | None:
        """ISO 8601."""

    @property
    def answers(self) -> str | None:
        """The question it answers."""


class SayingIndex:
    """Sayings in order of time, indexed once for many questions."""

    def __init__(self, sayings: Sequence[Saying]) -> None:
        self._index = TurnIndex()
        for place, saying in enumerate(sayings):
            self._index.add(place, _turn(saying, place))

    def rank(self, query: str, weights: Weights, *, limit: int = MAX_RANKED) -> list[Scored]:
        """The best of them for a question, best first; `ordinal` is the place in the sequence, from 0."""
        if len(query) > MAX_QUERY_CHARS:
            query = f"{query[: MAX_QUERY_CHARS // 2]}\n{query[-MAX_QUERY_CHARS // 2 :]}"
        return self._index.rank(terms(query), query, weights, limit=limit)


def speaker_of(text: str) -> str | None:
    """The name before a text.

    >>> speaker_of("Ann Lee: I moved."), speaker_of("it is 9:30")
    ('Ann Lee', None)
    """
    name, colon, _ = text[:MAX_NAME_CHARS].partition(": ")
    return name if colon and name[:1].isupper() and name.replace(" ", "").isalpha() else None


def said(text: str) -> str:
    """A text without the speaker's name."""
    name = speaker_of(text)
    return text.removeprefix(f"{name}: ") if name else text


def _turn(saying: Saying, place: int) -> Turn:
    """An undated one stands alone: whatever is beside it was said at another time."""
    speaker, answers, ts = speaker_of(saying.text), saying.answers, saying.ts
    return Turn(
        terms=terms(said(saying.text)) + (terms(answers) if answers else []),
        is_question=saying.text.endswith(("?", "？")),
        speaker=speaker.lower() if speaker else None,
        sitting=ts[:10] if ts else f"undated {place}",
        date_terms=terms(date_words(ts)) if ts else (),
    )
