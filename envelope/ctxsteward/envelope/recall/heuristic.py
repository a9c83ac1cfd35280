"""The default selector `Heuristic` ranks originals by words and by the shape of a conversation, without a model.

`session_index` makes the ranking (context-indexed BM25). This module adds new messages to one index a session. The
index is a cache: if lost, it is made again from the originals.

`SupersessionIndex` is kept in the same way. It has the statements of a session that later ones replaced, so that recall
shows no old value without the new one. Each message is read once. The reader (`ReplacementReader`) is installed under
the entry-point group ``ctxsteward.replacing``. A query costs its results and not the session's age.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from ctxsteward.language.passages import passage_spans
from ctxsteward.language.words import rules_digest, terms
from ctxsteward.schemas import Ref, TextPart
from ctxsteward.schemas.summary import ReplacementReader, ResumableReader, SourceMessage
from ctxsteward.store.deadline import uncut

from ..history.tool_groups import LogEntry, text_of
from ..layout.rows import recalled_text
from ..tokens.tokenizer import DEFAULT_TOKENIZER, MESSAGE_TOKENS, Counter, load_tokenizer
from .room import RecalledRows, VisibleMessages
from .selection import Ranking, SelectionRequest, SessionCache, caught_up

if TYPE_CHECKING:
    from .session_index import IndexedUnit, SessionIndex

MAX_SESSIONS = 64
"""Most indexes kept; the least recently used is dropped."""
MAX_QUERY_CHARS = 8_000
"""Most characters of a query; a longer one is cut to both ends, as a request comes before or after pasted text."""
SPARE_ROOMS = 3
"""Candidates are ranked for this many rooms, because some are too long or already shown."""
PASSAGES_FRACTION, PASSAGES_FROM_TOKENS = 0.35, 1_000
"""Share, of the room above this many tokens, for passages of long replies: a small room is for the user's words."""
ASKED_FRACTION = 0.7
"""Their share of the whole room if the turn asks about the assistant's words or actions."""
ROW_TOKENS, BYTES_A_TOKEN = 10, 4
"""Estimate of a row's size: tokens of its reference and role, and bytes a token of its text."""
EVERYDAY_RANKS, EVERYDAY_RANKS_ELSEWHERE = (1_000, 30_000), (30_000, 150_000)
"""A tokenizer's vocabulary is ordered by frequency. A word up to the first rank tells nothing about a topic, one from
the second rank on as much as any; scripts other than Latin come late in the order."""
SILENT = "nothing earlier in the session answers to this turn"
ASKS = re.compile(r"？|\?(?![\w/&=%.])")
"""A question mark that is not inside an address."""
QUOTES = re.compile(r"“[^“”]{4,}”|\"[^\"]{4,}\"|「[^「」]{2,}」|『[^『』]{2,}』|«[^«»]{4,}»")
"""A quotation; a turn with one refers to its source, whatever the words."""
_PERSONAL = re.compile(
    r"\b(?:my|mine|ours?|(?-i:us)|we)\b|\b(?:I|you)\s+(?:\w+ed|said|told|wrote|gave)\b|\bdid\s+(?:I|you)\b"
    r"|我的|我们|咱们|[我你](?:之前|刚才|上次)?说过",
    re.IGNORECASE,
)
"""A question with a match refers to the conversation, however common its words are."""
QUOTED_TIMES = 3
"""How many times more a quoted word counts."""
_MONTHS = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

MAX_WEIGHT = 100.0


class Weights(BaseModel):
    """Weights of the signals; 0 turns one off."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    wide: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of a unit together with two units on each side."""
    asked: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """BM25 of a unit together with the question it answers."""
    sitting: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the unit's whole sitting (the talk of one day), date included."""
    date: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the sitting's date alone."""
    speaker: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """Added if the question names exactly the unit's speaker."""
    passage: float = Field(default=0.2, ge=0, le=1)
    """Weight of a long message's best passage, by its words and those of the message that it answers."""
    novel: float = Field(default=0.25, ge=0, le=1)
    """Part of its score that is added to a unit in which a third of the words are new to the session."""
    everyday: float = Field(default=0.4, ge=0, le=1)
    """Weight of an everyday word of the question; a rare one counts 1."""
    recency: float = Field(default=0.0, ge=0, le=MAX_WEIGHT)
    """Newest unit 1, oldest 0, by units and not by the clock."""
    callout: float = Field(default=0.3, ge=0, le=MAX_WEIGHT)
    """Added to pinned messages."""


class Heuristic:
    """A `Selector`; one instance may serve many sessions and threads."""

    __name__ = "heuristic"

    def __init__(
        self, weights: Weights | None = None, *, every_turn: bool = False, max_sessions: int = MAX_SESSIONS
    ) -> None:
        """Make a selector; with `every_turn` it also ranks for turns that need no memory, for an explicit search."""
        self.weights: Weights = weights or Weights()
        self._every_turn = every_turn
        self._indexes: SessionCache[IndexedSession] = SessionCache(max_sessions)

    def __call__(self, request: SelectionRequest) -> Ranking:
        text = ends_of(request.query.text)
        quoted = " ".join(QUOTES.findall(text))
        kept = self._indexes.of(request)
        with kept.lock:
            index = caught_up(kept, request, "index", IndexedSession).index
            rarity, need = rarity_of(text), 1.0
            if not (self._every_turn or quoted or is_personal_question(text)):
                need = index.need(rarity, asks=ASKS.search(text) is not None)
            if not need:
                return Ranking(scored=(), strategy=self.__name__, reasoning=SILENT)
            scored = index.rank(
                terms(text) + QUOTED_TIMES * terms(quoted),
                text,
                self.weights,
                rarity=rarity,
                pinned=request.pinned,
                skip=request.visible,
                room_tokens=(room := int(request.budget_tokens * need)),
                rooms=1 if need < 1 else SPARE_ROOMS,
                passages_tokens=_passages_tokens(text, room),
            )
        return Ranking(scored=tuple(scored), strategy=self.__name__)


def is_personal_question(text: str) -> bool:
    """Return whether a text asks about its writer's own things, or about an action of one of the two speakers.

    >>> is_personal_question("What is my name?"), is_personal_question("What is the capital of Chad?")
    (True, False)
    """
    return ASKS.search(text) is not None and _PERSONAL.search(text) is not None


def _passages_tokens(text: str, room_tokens: int) -> int:
    """Return how much of a turn's room passages of long replies may take."""
    if any("you" in match[0].lower() or "你" in match[0] for match in _PERSONAL.finditer(text)):
        return int(room_tokens * ASKED_FRACTION)
    return int(max(0, room_tokens - PASSAGES_FROM_TOKENS) * PASSAGES_FRACTION)


def rarity_of(text: str) -> dict[str, float]:
    """Return how rare a text's words are in everyday language, by index term: 0 everyday, 1 rare.

    >>> rarity = rarity_of("When did we discuss the Zanzibar itinerary?")
    >>> rarity["zanzibar"], rarity["discuss"] < rarity["itinerari"]
    (1.0, True)
    """
    rarity: dict[str, float] = {}
    for word in dict.fromkeys(re.findall(r"\w+", text.lower())):
        for term, rare in _rarity_of_word(word):
            rarity.setdefault(term, rare)
    return rarity


@lru_cache(maxsize=1_024)
def _rarity_of_word(word: str) -> list[tuple[str, float]]:
    encode = load_tokenizer(DEFAULT_TOKENIZER).encode
    is_word = word.isascii()
    rarity = []
    for term in terms(word):
        tokens = encode(f" {word}" if is_word else term)
        low, high = EVERYDAY_RANKS if is_word else EVERYDAY_RANKS_ELSEWHERE
        rank = tokens[0] if len(tokens) == 1 else high
        rarity.append((term, min(1.0, math.log(max(rank, low) / low) / math.log(high / low))))
    return rarity


def ends_of(query: str) -> str:
    """Return the query, cut to its beginning and end if it is long."""
    if len(query) <= MAX_QUERY_CHARS:
        return query
    return f"{query[: MAX_QUERY_CHARS // 2]}\n{query[-MAX_QUERY_CHARS // 2 :]}"


USER_WHOLE_CHARS = 4_000
"""A user's message up to this length is indexed and shown whole, because users mean more of their words than long
replies do. On ten chats of long replies this shows 2 points more at 4,000 tokens."""
LATELY = 4
"""Number of messages before a long one whose words find its passages, but no units near those."""


class IndexedSession:
    """Index of one session, and the terms of its newest messages."""

    def __init__(self) -> None:
        with uncut():  # only ranking needs numpy, which cannot be imported again after an interrupted import
            from .session_index import SessionIndex

        self.index: SessionIndex = SessionIndex()
        self._lately: deque[frozenset[str]] = deque(maxlen=LATELY)
        """Terms of the newest messages."""

    def add(self, entry: LogEntry) -> None:
        """Add the next message, whole or by its passages."""
        units = units_of(entry)
        said = frozenset(term for unit in units for term in unit.terms)
        if len(units) > 1:
            given = frozenset().union(*self._lately)
            units = [
                unit._replace(
                    terms=[term for term in unit.terms if term not in given],
                    repeated=[term for term in unit.terms if term in given],
                )
                for unit in units
            ]
        for unit in units:
            self.index.add(entry.ordinal, unit)
        self._lately.append(said)

    def state(self) -> list[Any]:
        """Return the index, the newest terms, and a digest of the rules that made them."""
        return [_rules(), self.index.state(), [[*said] for said in self._lately]]

    def resume(self, state: list[Any]) -> bool:
        """Restore a state; return False if other rules made it."""
        rules, index, lately = state
        if rules != _rules():
            return False
        self.index.resume(index)
        self._lately.extend(map(frozenset, lately))
        return True


def _rules() -> str:
    return rules_digest("ctxsteward.language", __package__)


def units_of(entry: LogEntry) -> list[IndexedUnit]:
    """Return a message's units for the index: its text, calls and tool results; those of a long message by passage."""
    from .session_index import IndexedUnit

    message, event = entry.message, entry.event
    text = recalled_text(message)
    spans = passage_spans(text)
    is_of_user = message.role == "user" and not message.tool_results
    in_parts = len(spans) > 1 and not (is_of_user and len(text) <= USER_WHOLE_CHARS)
    whole = IndexedUnit(
        terms=() if in_parts else terms(text_of(message)),
        size_tokens=_size_tokens(text),
        asks=ASKS.search(message.text) is not None,
        speaker=_speaker(entry),
        sitting=event.ts[:10] if event.ts else None,
        date_terms=terms(date_words(event.ts)) if event.ts else (),
    )
    if not in_parts:
        return [whole]
    return [
        whole._replace(
            terms=terms(part := text[start:stop]),
            size_tokens=_size_tokens(part),
            asks=ASKS.search(part) is not None,
            passage=number,
        )
        for number, (start, stop) in enumerate(spans, 1)
    ]


def _size_tokens(text: str) -> int:
    return ROW_TOKENS + len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN


def _speaker(entry: LogEntry) -> str | None:
    """Return the speaker in lower case: the message's `name`, else the name before its text, else the principal."""
    message = entry.message
    name, (head, colon, _) = message.wire.get("name"), message.text[:MAX_NAME_CHARS].partition(":")
    if message.role == "tool" or not isinstance(name, str) or not name.strip():
        name = head if colon and _is_name(head) else entry.event.principal
    return name.strip().lower() if name else None


def _is_name(text: str) -> bool:
    """Return whether a text is one to three capitalized words, like the speaker before a line of a transcript."""
    words = text.split()
    return 0 < len(words) <= 3 and len(text) <= 40 and all(word[0].isupper() and word.isalpha() for word in words)


def date_words(ts: str) -> str:
    """Return an ISO date as people say it: ``8 May 2023``."""
    year, _, rest = ts[:10].partition("-")
    month, _, day = rest.partition("-")
    if not (all(part.isascii() and part.isdecimal() for part in (year, month, day)) and 1 <= int(month) <= 12):
        return ts[:10]
    return f"{int(day)} {_MONTHS[int(month)]} {year}"


MAX_NAME_CHARS = 48


# -- replaced statements -----------------------------------------------------------------------------------------


class SessionSupersession:
    """Replaced statements of one session, up to the message before the current user turn."""

    __slots__ = ("_counter", "_replacing", "_tokens", "rows", "tokens")

    def __init__(self, replacing: ReplacementReader, counter: Counter) -> None:
        self._replacing, self._counter = replacing, counter
        self._tokens = array("i", (0,))
        """By ordinal, tokens of a message; negative unless it is one plain text."""
        self.rows: RecalledRows = RecalledRows()
        self.tokens: int = 0
        """Tokens of all originals read so far."""

    def add(self, entry: LogEntry) -> None:
        """Read the next message."""
        self._replacing.read(SourceMessage(ref=entry.ref, message=entry.message))
        tokens = entry.tokens(self._counter)
        message = entry.message
        is_text = len(message.wire) == 2 and len(message.parts) == 1 and isinstance(message.parts[0], TextPart)
        self._tokens.append(tokens if is_text else -tokens)
        self.tokens += tokens
        self.rows.keep(entry, self._counter, self.least_tokens(entry.ordinal))

    def state(self) -> list[Any] | None:
        """Return the replaced statements and the tokens, or None if the reader cannot give its state."""
        if not isinstance(self._replacing, ResumableReader):
            return None
        return [self._counter.name, self._tokens, self._replacing.state()]

    def resume(self, state: list[Any]) -> bool:
        """Restore a state; return False if another counter or other rules made it."""
        counted, tokens, read = state
        if counted != self._counter.name or not isinstance(self._replacing, ResumableReader):
            return False
        if not self._replacing.resume(read):
            return False
        self._tokens = tokens
        self.tokens = sum(map(abs, tokens))
        return True

    def replaced_by(self, ref: Ref) -> tuple[Ref, ...]:
        """Return the messages with the newest replacements of this one's statements; () if none was replaced."""
        return tuple(map(Ref.parse, self._replacing.replaced_by(str(ref))))

    def least_tokens(self, ordinal: int) -> int:
        """Return the least tokens of a message that is shown again, without reading it."""
        return max(0, self._tokens[ordinal] - MESSAGE_TOKENS)

    def message_tokens(self, ordinal: int) -> int:
        """Return the tokens of a message that is sent."""
        return abs(self._tokens[ordinal])


class SupersessionIndex:
    """Replaced statements of many sessions; safe with threads."""

    def __init__(self, replacing: Callable[[], ReplacementReader], counter: Counter, max_sessions: int = 64) -> None:
        self._replacing, self._counter = replacing, counter
        self._sessions: SessionCache[SessionSupersession] = SessionCache(max_sessions)

    def __call__(self, request: SelectionRequest) -> VisibleMessages:
        """Return the facts that recall needs about all messages up to the request's last."""
        kept = self._sessions.of(request)
        with kept.lock:
            part = f"replaced-{self._counter.name}"
            history = caught_up(kept, request, part, lambda: SessionSupersession(self._replacing(), self._counter))

        def replaced_by(ref: Ref) -> tuple[Ref, ...]:
            with kept.lock:
                return history.replaced_by(ref)

        return VisibleMessages(history.tokens, history.rows, replaced_by, history.least_tokens, history.message_tokens)
