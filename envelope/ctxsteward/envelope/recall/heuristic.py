"""The default selector: context-indexed BM25 and what a conversation knows of itself; no model, no download.

`Heuristic` keeps an index a session between turns and feeds it with what was appended since; a new one is made from the
originals. It is a cache: losing it costs time only.

`UtteranceIndex` ranks single sayings instead of messages, each a line with a time of its own, in the same way
(`lexical_index`): neighbours in time, the words of the day, the speaker whom the question names. A saying is indexed
under the question it answers, too, which is never shown. `facts` ranks a session's facts with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from ctxsteward.language.terms import terms

from ..compaction.losses import text_of
from ..history.tool_groups import LogEntry
from .lexical_index import MAX_RANKED, IndexedTurn, TurnIndex
from .selection import CachedSession, ScoredOriginal, SelectionRequest, SessionCache, Weights

MAX_SESSIONS = 64
"""Indexes kept; the one used longest ago leaves."""
MAX_QUERY_CHARS = 8_000
"""Of a query; of a longer one the beginning and the end: what is asked stands before or after what was pasted."""
CANDIDATE_TOKENS = 16
"""A candidate is ranked for each so many tokens there is room for; most messages are longer."""
SPARE_CANDIDATES = 120
_ASKS = re.compile(r"？|\?(?![\w/&=%.])")
"""A question mark, not one inside an address."""
_MONTHS = ("", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip


class Heuristic:
    """A `Selector`; one instance may serve many sessions and threads."""

    __name__ = "heuristic"

    def __init__(self, weights: Weights | None = None, *, max_sessions: int = MAX_SESSIONS) -> None:
        self.weights = weights or Weights()
        self._indexes: SessionCache[TurnIndex] = SessionCache(max_sessions)

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        text = request.query.text
        if len(text) > MAX_QUERY_CHARS:
            text = f"{text[: MAX_QUERY_CHARS // 2]}\n{text[-MAX_QUERY_CHARS // 2 :]}"
        kept = self._indexes.of(request)
        with kept.lock:
            index = _caught_up(kept, request)
            limit = min(MAX_RANKED, SPARE_CANDIDATES + request.budget_tokens // CANDIDATE_TOKENS)
            return index.rank(terms(text), text, self.weights, pinned=request.pinned, skip=request.visible, limit=limit)


def _caught_up(kept: CachedSession[TurnIndex], request: SelectionRequest) -> TurnIndex:
    """The index of exactly the originals up to `request.last`; made anew where it knows others or later ones."""
    index, newest = (kept.made, kept.newest) if kept.holds(request) else (None, None)
    index = TurnIndex() if index is None else index
    kept.made, kept.newest, kept.generation = None, None, request.generation  # in case an original fails
    for ordinal in range(newest.ordinal + 1 if newest else 1, request.last + 1):
        newest = request.entry(ordinal)
        index.add(ordinal, turn_of(newest))
    kept.made, kept.newest = index, newest
    return index


def turn_of(entry: LogEntry) -> IndexedTurn:
    """A message as the index sees it: its text, its calls and tool results."""
    message, event = entry.message, entry.event
    said = message.text
    head, colon, _ = said[:80].partition(":")
    speaker = head if colon and _is_name(head) else event.principal
    return IndexedTurn(
        terms=terms(text_of(message)),
        asks=_ASKS.search(said) is not None,
        is_question=said.rstrip().endswith(("?", "？")),
        speaker=speaker.lower() if speaker else None,
        sitting=event.ts[:10] if event.ts else None,
        date_terms=terms(date_words(event.ts)) if event.ts else (),
    )


def _is_name(text: str) -> bool:
    """One to three capitalized words, as transcripts put a speaker before what was said."""
    words = text.split()
    return 0 < len(words) <= 3 and len(text) <= 40 and all(word[0].isupper() and word.isalpha() for word in words)


def date_words(ts: str) -> str:
    """An ISO date as people say it: ``8 May 2023``."""
    year, _, rest = ts[:10].partition("-")
    month, _, day = rest.partition("-")
    if not (all(part.isascii() and part.isdecimal() for part in (year, month, day)) and 1 <= int(month) <= 12):
        return ts[:10]
    return f"{int(day)} {_MONTHS[int(month)]} {year}"


MAX_NAME_CHARS = 48


class IndexedUtterance(Protocol):
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


class UtteranceIndex:
    """Sayings in order of time, indexed once for many questions."""

    def __init__(self, sayings: Sequence[IndexedUtterance]) -> None:
        self._index = TurnIndex()
        for place, saying in enumerate(sayings):
            self._index.add(place, _turn(saying, place))

    def rank(self, query: str, weights: Weights, *, limit: int = MAX_RANKED) -> list[ScoredOriginal]:
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


def utterance_turn(text: str) -> str:
    """A text without the speaker's name."""
    name = speaker_of(text)
    return text.removeprefix(f"{name}: ") if name else text


def _turn(saying: IndexedUtterance, place: int) -> IndexedTurn:
    """An undated one stands alone: whatever is beside it was said at another time."""
    speaker, answers, ts = speaker_of(saying.text), saying.answers, saying.ts
    return IndexedTurn(
        terms=terms(utterance_turn(saying.text)) + (terms(answers) if answers else []),
        is_question=saying.text.endswith(("?", "？")),
        speaker=speaker.lower() if speaker else None,
        sitting=ts[:10] if ts else f"undated {place}",
        date_terms=terms(date_words(ts)) if ts else (),
    )
