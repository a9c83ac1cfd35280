"""Which facts a user turn is shown: ranked for its message, fitted into recall's room, each once.

The ranker is that of recall (`ranking.sayings`). A fact takes part that scores at least `LEAST_FRACTION` of the best,
or that stands whatever is asked; best first, whatever still fits. Facts take `Budgets.facts_fraction` of recall's room
at most, fence and label counted; what they leave is for recalled messages (`deciding`). What the head's records, the
window or a recalled message say already is passed over. What was chosen, and why not the others, is in the selection's
log by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxsteward.schemas import Finding

from ..counting import Counter
from ..events import FactRef, Selected
from ..fitting import CHOSEN, LEAST_TOKENS, MISSES, NO_ROOM
from ..layout import context_text, recalled_rows
from ..ranking.weights import Weights
from ..selection import LOGGED_CANDIDATES, Scored, verbatim
from .fact import Fact, fact_line, in_order
from .known import Candidate, Offers, offers_to, shared_logs

if TYPE_CHECKING:
    from ..groups import Entry
    from ..session import Session
    from ..state import State

LEAST_FRACTION = 0.3
"""Of the best score: what scores less shares a day or a neighbour with an answer, and says nothing itself."""
STANDING_SCORE = 0.5
"""Added to the score of a fact that stands whatever is asked."""
IN_HEAD = "the head says it"
IN_WINDOW = "the window says it"
_NONE: Mapping[str, float] = MappingProxyType({})
OFF_TOPIC = "it says too little of the question"


class _Row(NamedTuple):
    candidate: Candidate
    score: float
    signals: Mapping[str, float]
    why: str
    """Why it was passed over; empty: it was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Facts that fit, and what became of the others."""

    rows: tuple[_Row, ...] = ()
    """Best first."""
    tokens: int = 0
    """Of their lines and label; the fence is counted with the messages that they share it with."""
    findings: tuple[Finding, ...] = ()

    def taken(self) -> list[_Row]:
        return [row for row in self.rows if not row.why]


def offer(
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
    weights: Weights | None = None,
) -> Offered:
    """Rank what is known for this user turn and fit it into the room for facts; decides nothing about messages."""
    known, findings = offers_to(session, state)
    if known is None:
        return Offered(findings=tuple(findings))
    ranked = _ranked(known, session.shown(state.last_user).message.text, weights or Weights())
    said = _Said(session, state)
    fit = _Fit(state, counter, room_tokens)
    rows = [row._replace(why=row.why or said.where(row.candidate.held.fact) or fit.take(row)) for row in ranked]
    return Offered(rows=tuple(rows), tokens=fit.tokens, findings=tuple(findings))


def with_facts(
    offered: Offered, picked: Selected | None, session: Session, state: State, room_tokens: int, counter: Counter
) -> Selected | None:
    """The selection with the facts that no recalled message says already; None where there is neither."""
    if not offered.rows:
        return picked
    event = picked or Selected(turn=state.last_user, refs=(), log={})
    said = _Recalled(session, event)
    rows = [row if row.why else row._replace(why=said.where(row.candidate.held.fact)) for row in offered.rows]
    while (kept := [row for row in rows if not row.why]) and event.refs:
        if _tokens(state, counter, kept, event, session.shown) <= room_tokens:
            break
        rows[rows.index(kept[-1])] = kept[-1]._replace(why=NO_ROOM)
    if not kept and picked is None:
        return None
    log = {**(event.log or _log(session, state)), "facts": list(_logged(rows))}
    return replace(event, facts=tuple(map(_ref, _by_time(kept))), log=log)


# -- ranking -------------------------------------------------------------------------------------------------------


def _ranked(known: Offers, query: str, weights: Weights) -> list[_Row]:
    """Best first; ties go to the more valuable."""
    found = {known.facts[scored.ordinal].id: scored for scored in known.index.rank(query, weights)}
    best = max((scored.score for scored in found.values()), default=0.0)
    rows = [_row(candidate, found.get(candidate.held.fact.id), best) for candidate in known.candidates]
    return sorted(rows, key=lambda row: -row.score)


def _row(candidate: Candidate, scored: Scored | None, best: float) -> _Row:
    score, signals = (0.0, _NONE) if scored is None else (scored.score, scored.signals)
    if candidate.held.fact.standing:
        return _Row(candidate, score + STANDING_SCORE, {**signals, "standing": STANDING_SCORE}, "")
    says = score > 0 and score >= LEAST_FRACTION * best
    return _Row(candidate, score, signals, "" if says else OFF_TOPIC)


# -- what is said already ------------------------------------------------------------------------------------------


class _Said:
    """What head and window say."""

    def __init__(self, session: Session, state: State) -> None:
        records = (state.head.profile or {}).get("meta", ())
        self._ids = {record["id"] for record in records}
        self._texts = {_words(record["text"]) for record in records}
        self._shared, self._shown = shared_logs(session), verbatim(state)

    def where(self, fact: Fact) -> str:
        """Where a fact is said already; empty: nowhere."""
        if fact.id in self._ids or _words(fact.text) in self._texts:
            return IN_HEAD
        own = _own_ordinals(fact, self._shared)
        return IN_WINDOW if not self._shown.isdisjoint(own) else ""


class _Recalled:
    """What recalled messages say."""

    def __init__(self, session: Session, event: Selected) -> None:
        self._shared, self._refs = shared_logs(session), frozenset(event.refs)
        self._texts = {_words(session.shown(ordinal).message.text): ordinal for ordinal in event.refs}

    def where(self, fact: Fact) -> str:
        own = _own_ordinals(fact, self._shared) & self._refs
        said = min(own, default=0) or self._texts.get(_words(fact.text), 0)
        return f"§{said} is recalled" if said else ""


def _own_ordinals(fact: Fact, shared: Mapping[str, float]) -> set[int]:
    """Messages of this session's log, what it shares with others included, that a fact rests on."""
    return {source.ordinal for source in fact.sources if source.ordinal <= shared.get(source.session, 0)}


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


# -- fitting -------------------------------------------------------------------------------------------------------


class _Fit:
    """The room for facts, filled best first."""

    def __init__(self, state: State, counter: Counter, room_tokens: int) -> None:
        self._state, self._counter, self._room = state, counter, room_tokens
        self._kept: list[_Row] = []
        self._empty = counter.framed(context_text(state.nonce, (), ()))
        self._used = self._misses = 0

    @property
    def tokens(self) -> int:
        return max(0, self._used - self._empty) if self._kept else 0

    def take(self, row: _Row) -> str:
        """Take one; or why not."""
        left = self._room - self._used
        if self._misses >= MISSES or left < LEAST_TOKENS or not self._fits(row, left):
            self._misses += 1
            return NO_ROOM
        self._misses = 0
        return ""

    def _fits(self, row: _Row, left: int) -> bool:
        line = fact_line(row.candidate.held.fact)
        if self._counter.text(line + "\n") > left:
            return False
        used = _tokens(self._state, self._counter, [*self._kept, row])
        if used > self._room:
            return False
        self._kept.append(row)
        self._used = used
        return True


def _tokens(
    state: State,
    counter: Counter,
    rows: Sequence[_Row],
    event: Selected | None = None,
    original: Callable[[int], Entry] | None = None,
) -> int:
    """What these facts cost as they will be shown, with the messages of the selection."""
    lines = [fact_line(row.candidate.held.fact) for row in _by_time(rows)]
    messages = recalled_rows(event, state, original, counter) if event is not None and original is not None else ()
    return counter.framed(context_text(state.nonce, lines, messages))


def _by_time(rows: Sequence[_Row]) -> list[_Row]:
    places = {fact.id: place for place, fact in enumerate(in_order(row.candidate.held.fact for row in rows))}
    return sorted(rows, key=lambda row: places[row.candidate.held.fact.id])


# -- the log -------------------------------------------------------------------------------------------------------


def _ref(row: _Row) -> FactRef:
    held = row.candidate.held
    return FactRef(held.fact.id, *held.kept)


def _log(session: Session, state: State) -> dict[str, Any]:
    """The log of a selection that recalls no message."""
    return {
        "selection_type": "recall",
        "strategy": "facts",
        "full_history_size": state.ordinal,
        "context_size": 0,
        "masked_count": len(state.masked),
        "anchor_refs": [],
        "selected_refs": [],
        "tokens_saved": 0,
        "candidates": [],
        "reasoning": None,
    }


def _logged(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Facts in the published form, best first: all that were chosen, and the best of the others."""
    logged: list[dict[str, Any]] = []
    others = LOGGED_CANDIDATES
    for row in rows:
        others -= bool(row.why)
        if not row.why or others >= 0:
            logged.append(
                {
                    "id": row.candidate.held.fact.id,
                    "audience": row.candidate.audience.kind,
                    "score": round(row.score, 4),
                    "signals": {name: round(value, 4) for name, value in row.signals.items()},
                    "in": not row.why,
                    "why": row.why or CHOSEN,
                }
            )
    return logged
