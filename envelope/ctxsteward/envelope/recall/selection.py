"""Selection: which originals are recalled for a user turn.

A `Selector` ranks; `select` fits its ranking to the room and makes the event that records it. What the question
names by number comes before any ranking (`named`) and has all the room. What is ranked fills at most a fifth of what
the window leaves out (`budgets.RECALLED_FRACTION`): it is billed anew each user turn, so recalling most of a short
history costs more than never having compacted it. Measured with `benchmarks.cost`, cache-priced, to sending everything:
without this limit 0.99 at 900 dynamic tokens, 1.08 at 2,000 and 1.00 at 4,000, with it 0.96, 0.98 and 0.96. Evidence
shown in conversations of 370-690 turns (`evals recall`) stays at budgets up to 2,000 tokens and falls by 0.2 points at
4,000; with a sixth, by 0.6.

Chosen once a user turn, recorded in the log, unchanged through the turn's tool loop. This module holds the port and
what comes of a ranking; `room` fills the room; rankers are `heuristic`, `dense`, `llm` and `strategies`. Published
form: `selection_log`. Where a strategy cannot rank, another one does, and the `Ranking` says so (`fell_back`).

`SessionCache` is what a selector keeps of sessions between turns: of a bounded number, and only while it is what the
log says; losing it costs time only. A `SessionReading` is read back from the session's file where a process begins
anew; the file names the newest message that was read, by its address, and a reading looks to its own rules.
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
    """BM25's weight of a term that `held` of so many texts hold, never negative."""
    # numpy's logarithm differs in the last digit between processors, and rankings must not
    return math.log(1 + (texts - held + 0.5) / (held + 0.5))


class ScoredOriginal(NamedTuple):
    """An original's place in a ranking."""

    ordinal: int
    score: float
    """Comparable within one ranking; higher is better."""
    signals: Mapping[str, float] = MappingProxyType({})
    """What the score is made of, by name."""
    passage: int = 0
    """The passage of it that is meant, from 1 (`language.passage_spans`); 0: all of it."""

    @property
    def ref(self) -> Ref:
        """The message, or the passage of it."""
        return Ref(self.ordinal, self.passage)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRequest:
    """What a selector may look at."""

    tenant: str
    session: str
    generation: int
    """Changes when originals were replaced; what was kept about the session is void then."""
    query: Message
    """The current user message."""
    last: int
    """Highest ordinal it may pick."""
    visible: frozenset[int]
    """Ordinals already in the window verbatim: picks of these are skipped."""
    pinned: frozenset[int]
    """Ordinals that somebody pinned."""
    budget_tokens: int
    entry: Callable[[int], LogEntry]
    """An original by ordinal, with what stands beside it."""
    derived: DerivedFile | None = None
    """Where what was read of the session is kept between processes; None: nowhere."""

    def message(self, ordinal: int) -> Message:
        """An original by ordinal."""
        return self.entry(ordinal).message


Selector = Callable[[SelectionRequest], Sequence[ScoredOriginal]]
"""Originals worth recalling, best first; a `Ranking` where there is more to say of them."""


class Embedder(Protocol):
    """Turns texts into vectors, one each, in order."""

    @property
    def name(self) -> str:
        """Of the model; written beside each vector."""

    @property
    def dimensions(self) -> int: ...

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Sequence[ScoredOriginal]):
    """Originals worth recalling, best first, and what the ranking says of itself.

    A selector that can fall back to another returns one: the strategy that really ranked is logged, findings are shown.
    """

    scored: tuple[ScoredOriginal, ...]
    strategy: str
    """The one that made this order."""
    reasoning: str | None = None
    """Why, in a model's words; None where none was asked."""
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
    """What the selector ranks, with its own word on it where it has one."""
    ranked = selector(request)
    if isinstance(ranked, Ranking):
        return ranked
    return Ranking(scored=tuple(islice(ranked, MAX_READ)), strategy=_name_of(selector))


def _name_of(selector: Selector) -> str:
    """A function's own name, or that of the class."""
    return str(getattr(selector, "__name__", type(selector).__name__))


MAX_CANDIDATES = 400
"""Of a ranking; what stands further down is neither tried nor logged."""
MAX_READ = 10_000
"""Of a ranking; picks that may not be shown are skipped up to here."""
LOGGED_CANDIDATES = 10
"""Candidates that were passed over are logged up to this many; every chosen one is."""


Recall = tuple[RecallSelected, tuple[Finding, ...]]
"""What was chosen for a user turn, and what is to be said of it."""


def select(
    selector: Selector,
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
    histories: Callable[[SelectionRequest], VisibleMessages] | None = None,
    cap_tokens: int | None = None,
) -> Recall | None:
    """Ask the selector once for this user turn; None where everything is in the window already.

    `histories` says which messages later ones replace: none of these comes back alone. Of a tool result longer than
    `cap_tokens` the window shows an excerpt. What the question names is in the envelope whole, or as an excerpt with
    its reference and a finding.

    Raises `SelectorFailed` for what the selector raises, and for an invalid ranking. Anything else is a fault of
    ours.
    """
    from ctxsteward.schemas.publish import validate_quickly

    visible = verbatim(state)
    last = state.last_user - 1
    if last < 1:
        return None
    original = lru_cache(maxsize=2 * MAX_CANDIDATES)(session.shown)  # each is looked at several times below
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
    with _work_of(selector):  # signals, strategy and reasoning are its own
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
    if kept:  # laid out already
        session.cache[context_key(counter)] = event, None, fitting.fragment
    return event, ranking.findings


class SelectorFailed(Exception):
    """The selector raised or returned no valid ranking; the text says which selector and why."""


@contextmanager
def _work_of(selector: Selector) -> Iterator[None]:
    """What fails inside is the selector's."""
    try:
        yield
    except Exception as error:  # a selector is the caller's code: it may raise anything
        raise SelectorFailed(f"the selector {_name_of(selector)} failed: {described(error)}") from error


def recalled_share(left_out_tokens: int) -> int:
    """Tokens that what is ranked may take, where the window leaves out so many.

    >>> recalled_share(1_000), recalled_share(4_000), recalled_share(100_000)
    (200, 500, 24038)
    """
    part = RECALLED_FRACTION * left_out_tokens / (left_out_tokens + RECALLED_HALF_TOKENS)
    return max(LEAST_RECALL_TOKENS, int(left_out_tokens * part))


def log_of(
    ranking: Ranking, state: State, ordinals: Sequence[int], tokens_saved: int, candidates: list[Any]
) -> dict[str, Any]:
    """The selection log of a turn, in the form of the published schema `selection_log`."""
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
    """The request of one session; a selector can reach nothing of another."""
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
    """Ordinals that the window shows word for word: not the results of a masked group, not a shortened text."""
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
    """Tokens of the originals that the window does not show."""
    shown = (entry for group in state.groups for entry in group.entries if entry.ordinal in request.visible)
    return max(0, known.tokens - sum(entry.tokens(counter) for entry in shown if entry.ordinal <= request.last))


def _cut(
    state: State, query: Message, original: Callable[[int], LogEntry], counter: Counter, cap_tokens: int | None
) -> frozenset[int]:
    """What the question names and a window shows as an excerpt."""
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
    """Ordinals that the question of this user turn names."""
    return named(session.shown(state.last_user).message.text, state.last_user - 1, session.shown)


def _named(best: ScoredOriginal | None, request: SelectionRequest) -> dict[Ref, ScoredOriginal]:
    """What the question names by number and the window does not show, ranked beside the best."""
    score = best.score if best is not None else 1.0
    names = named(request.query.text, request.last, request.entry)
    return {
        Ref(ordinal): ScoredOriginal(ordinal, score, {"named": 1.0})
        for ordinal in names
        if ordinal not in request.visible
    }


def _usable(ranked: Iterable[ScoredOriginal], request: SelectionRequest) -> Iterator[tuple[Ref, ScoredOriginal]]:
    """Candidates once each that may be shown and are not shown already."""
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
    """Candidates in the published form, best first: all that were chosen, and the best of the others."""
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
                # a passage without a verdict was held by its whole message, and went with it when that did not fit
                "why": _why(candidate, room.excerpts) if chosen else verdicts.get(pick, NO_ROOM),
            }


def _why(chosen: ScoredOriginal, excerpts: Mapping[int, int]) -> str:
    if chosen.ordinal in excerpts and "named" in chosen.signals:
        return NAMED_EXCERPT
    return REPLACES if "replaces" in chosen.signals else NAMED if "named" in chosen.signals else CHOSEN


FELL_BACK = "selection_fell_back"
"""Kind of the finding: another strategy than the one asked for ranked."""
MAX_REASON_CHARS = 300
_DID = " did: "


def fell_back(strategy: str, stand_in: Ranking, reason: str) -> Ranking:
    """The stand-in's ranking, with a finding that says whose place it takes and why.

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
    """Why another strategy ranked, as `fell_back` was told."""
    return finding.text.partition(_DID)[2]


def described(error: Exception) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class SessionReading(Protocol):
    """What was read of one session, message by message."""

    def add(self, entry: LogEntry) -> None:
        """Take the next message."""

    def state(self) -> list[Any] | None:
        """All of it as lists, numbers, texts and arrays of numbers; None: it cannot be kept."""

    def resume(self, state: list[Any]) -> bool:
        """Take up a state; False where other rules have made it."""


T = TypeVar("T")


class CachedSession(Generic[T]):
    """One session's; hold `lock` while using it."""

    __slots__ = ("generation", "lock", "made", "newest", "saved")

    def __init__(self) -> None:
        self.lock: Lock = forking.lock()
        self.generation: int = 0
        self.made: T | None = None
        """Made from the originals up to `newest`."""
        self.newest: LogEntry | None = None
        self.saved: int = 0
        """Ordinal up to which it stands in the session's file."""

    def holds(self, request: SelectionRequest) -> bool:
        """Whether what it was made from is still what this session begins with."""
        newest = self.newest
        return newest is None or (
            self.generation == request.generation
            and newest.ordinal <= request.last
            and request.entry(newest.ordinal).event.address == newest.event.address  # a draft's turn is not the log's
        )


LEAST_UNSAVED = 16
"""Messages that are worth a writing at least; of a long session a sixteenth of it."""

R = TypeVar("R", bound=SessionReading)


def caught_up(kept: CachedSession[R], request: SelectionRequest, part: str, make: Callable[[], R]) -> R:
    """What was read of exactly the originals up to `request.last`; made anew where it knows others or later ones.

    `part` of the session's file is where a new process goes on.
    """
    made, newest = (kept.made, kept.newest) if kept.holds(request) else (None, None)
    kept.made, kept.newest, kept.generation = None, None, request.generation  # in case an original fails
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
    """From the session's file, as far as that goes; else with nothing read."""
    with suppress(ValueError, TypeError, LookupError, AttributeError, EOFError):  # another version's form
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
    """Safe with threads; the session used longest ago leaves."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max(1, max_sessions)
        self._lock = forking.lock()
        self._kept: OrderedDict[tuple[str, str], CachedSession[T]] = OrderedDict()

    def of(self, request: SelectionRequest) -> CachedSession[T]:
        """What is kept of the request's session; empty at first."""
        key = (request.tenant, request.session)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = CachedSession()
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_sessions:
                self._kept.popitem(last=False)
            return kept
