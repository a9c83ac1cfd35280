"""Select the originals that are recalled for a user turn.

A `Selector` ranks; `select` fits its ranking to the room and makes the event that records it. Messages that the
question names by number come before any ranking (`named`) and may use all the room. Ranked messages fill at most a
fifth of the tokens that the window leaves out (`budgets.RECALLED_FRACTION`). They are billed anew each user turn, so
recalling most of a short history costs more than never compacting it. Measured with `evals.cost`, cache-priced,
relative to sending everything: 0.99 at 900 dynamic tokens, 1.08 at 2,000 and 1.00 at 4,000 without this limit; 0.96,
0.98 and 0.96 with it. Evidence shown in conversations of 370-690 turns (`evals recall`) is the same at budgets up to
2,000 tokens and falls by 0.2 points at 4,000; with a sixth, by 0.6.

The selection is made once a user turn, recorded in the log, and kept through the turn's tool loop. This module has the
port and uses the ranking; `room` fills the room; rankers are `heuristic`, `dense` and `strategies`. Published form:
`selection_log`. If a strategy cannot rank, another one does, and the `Ranking` reports it (`fell_back`).

`SessionCache` has a selector's data about a bounded number of sessions between turns, as long as it agrees with the
log; losing it costs only time. A new process reads a `SessionReading` back from the session's file. The file names the
newest message read, by its address, and each reading checks that its own rules are unchanged.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, overload

from ctxsteward.schemas import Finding, Message, Ref
from ctxsteward.store import process_forks as forking
from ctxsteward.store.derived_files import DerivedFile
from ctxsteward.store.journal.events import RecallSelected

from ..history.state import State
from ..history.tool_groups import LogEntry
from ..layout.fragments import context_key
from ..tokens.budgets import LEAST_RECALL_TOKENS, RECALLED_FRACTION, RECALLED_HALF_TOKENS
from ..tokens.tokenizer import Counter
from .room import CHOSEN, NAMED, NAMED_EXCERPT, NO_ROOM, REPLACES, RecalledRows, RecallRoom, VisibleMessages, named

if TYPE_CHECKING:
    from ..history.session import Session


def inverse_frequency(held: int, texts: int) -> float:
    """Return BM25's weight of a term that `held` of `texts` texts contain; it is never negative."""
    # numpy's logarithm differs in the last digit between processors, and rankings must not
    return math.log(1 + (texts - held + 0.5) / (held + 0.5))


class ScoredOriginal(NamedTuple):
    """An original with its score in a ranking."""

    ordinal: int
    score: float
    """Score, comparable within one ranking; higher is better."""
    signals: Mapping[str, float] = MappingProxyType({})
    """Parts of the score, by name."""
    passage: int = 0
    """Number of the relevant passage, from 1 (`language.passage_spans`); 0 for the whole message."""

    @property
    def ref(self) -> Ref:
        """Reference of the message or passage."""
        return Ref(self.ordinal, self.passage)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRequest:
    """A request to a selector, with all that it may read."""

    tenant: str
    session: str
    generation: int
    """Number that changes when originals are replaced; data kept about the session is void then."""
    query: Message
    """The current user message."""
    last: int
    """Highest ordinal that may be selected."""
    visible: frozenset[int]
    """Ordinals that the window already shows verbatim; they are skipped."""
    pinned: frozenset[int]
    """Ordinals of pinned messages."""
    budget_tokens: int
    entry: Callable[[int], LogEntry]
    """Return an original by ordinal, with its metadata."""
    derived: DerivedFile | None = None
    """File for data about the session that outlives the process, or None for none."""

    def message(self, ordinal: int) -> Message:
        """Return an original by ordinal."""
        return self.entry(ordinal).message


Selector = Callable[[SelectionRequest], Sequence[ScoredOriginal]]
"""Port: return originals worth recalling, best first; return a `Ranking` to add strategy, reasoning and findings."""


class Embedder(Protocol):
    """Port: turn texts into vectors, one each, in order."""

    @property
    def name(self) -> str:
        """Name of the model, stored with each vector."""

    @property
    def dimensions(self) -> int: ...

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Sequence[ScoredOriginal]):
    """Originals worth recalling, best first, and how they were ranked.

    A selector that can fall back to another returns one: the strategy that really ranked is logged, findings are shown.
    """

    scored: tuple[ScoredOriginal, ...]
    strategy: str
    """Name of the strategy that made this order."""
    reasoning: str | None = None
    """A model's reasons, or None if no model ranked."""
    findings: tuple[Finding, ...] = ()

    @overload
    def __getitem__(self, index: int) -> ScoredOriginal: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ScoredOriginal]: ...
    def __getitem__(self, index: int | slice) -> ScoredOriginal | Sequence[ScoredOriginal]:
        return self.scored[index]

    def __len__(self) -> int:
        return len(self.scored)


def ranking_by(selector: Selector, request: SelectionRequest) -> Ranking:
    """Return the selector's ranking, with its own strategy and findings if it gives them."""
    ranked = selector(request)
    if isinstance(ranked, Ranking):
        return ranked
    return Ranking(scored=tuple(islice(ranked, MAX_READ)), strategy=_name_of(selector))


def _name_of(selector: Selector) -> str:
    """Return a function's own name, or the name of the class."""
    return str(getattr(selector, "__name__", type(selector).__name__))


MAX_CANDIDATES = 400
"""Most candidates of a ranking that are tried or logged."""
MAX_READ = 10_000
"""Most entries read of a ranking, including those that may not be shown."""
LOGGED_CANDIDATES = 10
"""Most rejected candidates in the log; every chosen one is logged."""


Recall = tuple[RecallSelected, tuple[Finding, ...]]
"""The selection for a user turn, and findings about it."""


def select(
    selector: Selector,
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
    histories: Callable[[SelectionRequest], VisibleMessages] | None = None,
    cap_tokens: int | None = None,
) -> Recall | None:
    """Call the selector once for this user turn; return None if the window shows everything.

    `histories` gives the replaced messages: none of them is recalled without its replacement. The window shows a tool
    result longer than `cap_tokens` as an excerpt. Messages that the question names are in the envelope whole, or as an
    excerpt with a reference and a finding.

    Raises `SelectorFailed` for the selector's exceptions and for an invalid ranking. Any other exception is a fault of
    this package.
    """
    from ctxsteward.schemas.publish import validate_quickly

    visible = verbatim(state)
    last = state.last_user - 1
    if last < 1:
        return None
    original = lru_cache(maxsize=2 * MAX_CANDIDATES)(session.shown)  # each is read several times below
    query = original(state.last_user).message
    cut = visible & _cut(state, query, original, counter, cap_tokens)
    visible -= cut
    if all(ordinal in visible for ordinal in range(1, last + 1)):
        return None
    request = replace(
        request_for(session, query, last=last, visible=visible, budget_tokens=max(0, room_tokens)), entry=original
    )
    known = (
        histories(request)
        if histories
        else VisibleMessages(sum(original(n).tokens(counter) for n in range(1, last + 1)), RecalledRows())
    )
    left_out_tokens = _left_out_tokens(state, request, known, counter)
    share = min(request.budget_tokens, recalled_share(left_out_tokens))
    with _work_of(selector):
        ranking = ranking_by(selector, replace(request, budget_tokens=share))
        ranked = dict(islice(_usable(ranking, request), MAX_CANDIDATES))
    asked_for = _named(next(iter(ranked.values()), None), request)
    named_refs = [*asked_for]
    ranked = {pick: candidate for pick, candidate in ranked.items() if Ref(pick.ordinal) not in asked_for}
    fitting = RecallRoom(original, state, counter, visible, known)
    verdicts = fitting.fill(named_refs, room_tokens)
    too_long = [pick.ordinal for pick in named_refs if verdicts.get(pick, "").endswith(NO_ROOM)]
    fitting.excerpt((ordinal for ordinal in too_long if ordinal not in cut), room_tokens)
    excerpts = fitting.excerpts | dict.fromkeys(cut.intersection(too_long), 0)
    verdicts |= fitting.fill(ranked, share)
    kept = sorted(fitting.kept)
    came_along = fitting.shown.difference(asked_for, ranked)
    along = {ref: ScoredOriginal(ref.ordinal, 0.0, {"replaces": 1.0}, ref.part) for ref in sorted(came_along)}
    taken_tokens = known.message_tokens or (lambda ordinal: original(ordinal).tokens(counter))
    tokens_saved = known.tokens - sum(taken_tokens(ordinal) for ordinal in kept if ordinal not in fitting.passages)
    with _work_of(selector):  # signals, strategy and reasoning come from the selector
        candidates = list(_logged(chain(asked_for.items(), ranked.items(), along.items()), fitting, verdicts))
        log = log_of(ranking, state, kept, tokens_saved, candidates)
        validate_quickly("selection_log", log)
    passages = {ordinal: tuple(shown) for ordinal, shown in sorted(fitting.passages.items())}
    event = RecallSelected(
        turn=state.last_user,
        refs=tuple(kept),
        log=log,
        superseded=fitting.superseded,
        excerpts=excerpts,
        passages=passages,
    )
    if kept:  # the room has laid the fragment out already
        session.cache[context_key(counter)] = event, None, fitting.fragment
    return event, ranking.findings


class SelectorFailed(Exception):
    """The selector raised or returned no valid ranking; the text says which selector and why."""


@contextmanager
def _work_of(selector: Selector) -> Iterator[None]:
    """Raise `SelectorFailed` for any exception inside."""
    try:
        yield
    except Exception as error:  # a selector is the caller's code: it may raise anything
        raise SelectorFailed(f"the selector {_name_of(selector)} failed: {described(error)}") from error


def recalled_share(left_out_tokens: int) -> int:
    """Return the most tokens that ranked messages may take if the window leaves out `left_out_tokens`.

    >>> recalled_share(1_000), recalled_share(4_000), recalled_share(100_000)
    (200, 500, 24038)
    """
    part = RECALLED_FRACTION * left_out_tokens / (left_out_tokens + RECALLED_HALF_TOKENS)
    return max(LEAST_RECALL_TOKENS, int(left_out_tokens * part))


def log_of(
    ranking: Ranking, state: State, ordinals: Sequence[int], tokens_saved: int, candidates: list[Any]
) -> dict[str, Any]:
    """Return the selection log of a turn in the form of the published schema `selection_log`."""
    return {
        "selection_type": "recall",
        "strategy": ranking.strategy,
        "full_history_size": state.ordinal,
        "context_size": len(ordinals),
        "masked_count": len(state.masked),
        "anchor_refs": [],
        "selected_refs": [f"§{ordinal}" for ordinal in ordinals],
        "tokens_saved": tokens_saved,
        "candidates": candidates,
        "reasoning": ranking.reasoning,
        "facts": [],
    }


def request_for(
    session: Session, query: Message, *, last: int, visible: frozenset[int], budget_tokens: int
) -> SelectionRequest:
    """Return a request that can read nothing but this session."""
    return SelectionRequest(
        tenant=session.tenant,
        session=session.id,
        generation=session.generation,
        query=query,
        last=last,
        visible=visible,
        pinned=frozenset(session.state.pins),
        budget_tokens=budget_tokens,
        entry=session.shown,
        derived=session.derived_file(),
    )


def verbatim(state: State) -> frozenset[int]:
    """Return the ordinals that the window shows word for word: no results of a masked group, no shortened text."""
    shown: set[int] = set()
    for group in state.groups:
        if group.first in state.masked:
            shown.update(entry.ordinal for entry in group.entries if not entry.message.tool_results)
        else:
            shown.update(group.ordinals)
        if group.first in state.shortened:
            shown.discard(group.first)
    return frozenset(shown)


def _left_out_tokens(state: State, request: SelectionRequest, known: VisibleMessages, counter: Counter) -> int:
    """Return the tokens of the originals that the window does not show."""
    shown = (entry for group in state.groups for entry in group.entries if entry.ordinal in request.visible)
    return max(0, known.tokens - sum(entry.tokens(counter) for entry in shown if entry.ordinal <= request.last))


def _cut(
    state: State, query: Message, original: Callable[[int], LogEntry], counter: Counter, cap_tokens: int | None
) -> frozenset[int]:
    """Return the messages that the question names and the window shows as excerpts."""
    if cap_tokens is None:
        return frozenset()
    entries = map(original, named(query.text, state.last_user - 1, original))
    long = (entry for entry in entries if entry.message.tool_results and entry.tokens(counter) > cap_tokens)
    return frozenset(
        entry.ordinal
        for entry in long
        if any(counter.text(result.text) > cap_tokens for result in entry.message.tool_results)
    )


def named_now(session: Session, state: State) -> list[int]:
    """Return the ordinals that the question of this user turn names."""
    return named(session.shown(state.last_user).message.text, state.last_user - 1, session.shown)


def _named(best: ScoredOriginal | None, request: SelectionRequest) -> dict[Ref, ScoredOriginal]:
    """Return messages that the question names by number and the window does not show, with the score of the best."""
    score = best.score if best is not None else 1.0
    names = named(request.query.text, request.last, request.entry)
    return {
        Ref(ordinal): ScoredOriginal(ordinal, score, {"named": 1.0})
        for ordinal in names
        if ordinal not in request.visible
    }


def _usable(ranked: Iterable[ScoredOriginal], request: SelectionRequest) -> Iterator[tuple[Ref, ScoredOriginal]]:
    """Yield each candidate once that may be shown and is not shown already."""
    seen: set[Ref] = set()
    last, visible = request.last, request.visible
    for candidate in islice(ranked, MAX_READ):
        ordinal, pick = candidate.ordinal, candidate.ref
        if not math.isfinite(candidate.score):
            raise ValueError(f"the score of §{ordinal} is {candidate.score}; scores are finite numbers")
        if 0 < ordinal <= last and ordinal not in visible and pick not in seen:
            seen.add(pick)
            yield pick, candidate


def _logged(
    ranked: Iterable[tuple[Ref, ScoredOriginal]], room: RecallRoom, verdicts: Mapping[Ref, str]
) -> Iterator[dict[str, Any]]:
    """Yield candidates in the published form, best first: all chosen ones, and the best others."""
    others = LOGGED_CANDIDATES
    for pick, candidate in ranked:
        chosen = room.holds(pick)
        others -= not chosen
        if chosen or others >= 0:
            yield {
                "ref": str(pick),
                "score": round(candidate.score, 4),
                "signals": {name: round(value, 4) for name, value in candidate.signals.items()},
                "in": chosen,
                # a passage without a verdict was part of a chosen message, which was dropped later for lack of room
                "why": _why(candidate, room.excerpts) if chosen else verdicts.get(pick, NO_ROOM),
            }


def _why(chosen: ScoredOriginal, excerpts: Mapping[int, int]) -> str:
    if chosen.ordinal in excerpts and "named" in chosen.signals:
        return NAMED_EXCERPT
    return REPLACES if "replaces" in chosen.signals else NAMED if "named" in chosen.signals else CHOSEN


FELL_BACK = "selection_fell_back"
"""Kind of the finding that another strategy than the requested one ranked."""
MAX_REASON_CHARS = 300
_DID = " did: "


def fell_back(strategy: str, stand_in: Ranking, reason: str) -> Ranking:
    """Return the stand-in's ranking, with a finding that names the strategy it replaces and the reason.

    >>> from ctxsteward.envelope.recall.selection import ScoredOriginal
    >>> newest = Ranking(scored=(ScoredOriginal(2, 1.0), ScoredOriginal(1, 0.5)), strategy="newest")
    >>> fell_back("llm", newest, "the model answered in prose").findings[0].text
    "strategy 'llm' could not rank, 'newest' did: the model answered in prose"
    """
    why = " ".join(reason.split())[:MAX_REASON_CHARS]
    text = f"strategy {strategy!r} could not rank, {stand_in.strategy!r}{_DID}{why}"
    finding = Finding(kind=FELL_BACK, field="selector", text=text)
    return Ranking(scored=stand_in.scored, strategy=stand_in.strategy, findings=(*stand_in.findings, finding))


def reason_of(finding: Finding) -> str:
    """Return the reason given to `fell_back`."""
    return finding.text.partition(_DID)[2]


def described(error: Exception) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class SessionReading(Protocol):
    """Port: data derived from one session, message by message."""

    def add(self, entry: LogEntry) -> None:
        """Add the next message."""

    def state(self) -> list[Any] | None:
        """Return all data as lists, numbers, texts and arrays of numbers, or None if it cannot be stored."""

    def resume(self, state: list[Any]) -> bool:
        """Restore a state; return False if other rules made it."""


T = TypeVar("T")


class CachedSession(Generic[T]):
    """Cached data of one session; hold `lock` while using it."""

    __slots__ = ("generation", "lock", "made", "newest", "saved")

    def __init__(self) -> None:
        self.lock: Lock = forking.lock()
        self.generation: int = 0
        self.made: T | None = None
        """The data, made from the originals up to `newest`."""
        self.newest: LogEntry | None = None
        self.saved: int = 0
        """Highest ordinal that the session's file covers."""

    def holds(self, request: SelectionRequest) -> bool:
        """Return whether the session still begins with the originals that the data was made from."""
        newest = self.newest
        return newest is None or (
            self.generation == request.generation
            and newest.ordinal <= request.last
            and request.entry(newest.ordinal).event.address == newest.event.address  # a draft's turn is not the log's
        )


LEAST_UNSAVED = 16
"""Least new messages before the file is written again; in a long session a sixteenth of its messages."""

R = TypeVar("R", bound=SessionReading)


def caught_up(kept: CachedSession[R], request: SelectionRequest, part: str, make: Callable[[], R]) -> R:
    """Return the data of exactly the originals up to `request.last`, made anew if it covers others or later ones.

    A new process continues from `part` of the session's file.
    """
    made, newest = (kept.made, kept.newest) if kept.holds(request) else (None, None)
    kept.made, kept.newest, kept.generation = None, None, request.generation  # in case reading an original fails
    least_unsaved = LEAST_UNSAVED
    if made is None:
        made, newest = _resumed(request, part, make)
        kept.saved, least_unsaved = (newest.ordinal if newest else 0), LEAST_UNSAVED // 2
    is_sound = True
    for ordinal in range(newest.ordinal + 1 if newest else 1, request.last + 1):
        newest = request.entry(ordinal)
        is_sound = is_sound and not newest.event.damaged
        made.add(newest)
    kept.made, kept.newest = made, newest
    if newest is not None and is_sound:
        is_due = newest.ordinal - kept.saved >= max(least_unsaved, newest.ordinal // 16)
        if is_due and _save(request, part, made, newest):
            kept.saved = newest.ordinal
    return made


def _resumed(request: SelectionRequest, part: str, make: Callable[[], R]) -> tuple[R, LogEntry | None]:
    """Return the data in the session's file and the newest message it covers, else empty data."""
    with suppress(ValueError, TypeError, LookupError, AttributeError, EOFError):  # the file may be another version's
        stored = None if request.derived is None else request.derived.read(part)
        if stored is not None:
            generation, ordinal, address, state = stored
            if generation == request.generation and 0 < ordinal <= request.last:
                newest, made = request.entry(ordinal), make()
                if newest.event.address == address and made.resume(state):
                    return made, newest
    return make(), None


def _save(request: SelectionRequest, part: str, made: SessionReading, newest: LogEntry) -> bool:
    if request.derived is None or (state := made.state()) is None:
        return False
    return request.derived.write(part, [request.generation, newest.ordinal, newest.event.address, state])


class SessionCache(Generic[T]):
    """Data of sessions, safe with threads; the least recently used session is dropped."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max(1, max_sessions)
        self._lock = forking.lock()
        self._kept: OrderedDict[tuple[str, str], CachedSession[T]] = OrderedDict()

    def of(self, request: SelectionRequest) -> CachedSession[T]:
        """Return the data of the request's session, empty at first."""
        key = (request.tenant, request.session)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = CachedSession()
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_sessions:
                self._kept.popitem(last=False)
            return kept
