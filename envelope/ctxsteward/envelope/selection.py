"""Selection: which originals are recalled for a user turn.

A `Selector` ranks; `select` fits its ranking to the room and makes the event that records it. What the question
names by number comes before any ranking (`named`) and has all the room. What is ranked fills at most a fifth of what
the window leaves out (`budgets.RECALLED_FRACTION`): it is billed anew each user turn, so recalling most of a short
history costs more than never having compacted it. Measured with `evals cost`, cache-priced, to sending everything:
without this limit 0.99 at 900 dynamic tokens, 1.08 at 2,000 and 1.00 at 4,000, with it 0.96, 0.98 and 0.96. Evidence
shown in conversations of 370-690 turns (`evals recall`) stays at budgets up to 2,000 tokens and falls by 0.2 points at
4,000; with a sixth, by 0.6.

Chosen once a user turn, recorded in the log, unchanged through the turn's tool loop. This module holds the port and
what comes of a ranking; `fitting` fills the room; rankers live in `ranking`. Published form: `selection_log`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from ctxsteward.schemas import Finding, Message

from .budgets import LEAST_RECALL_TOKENS, RECALLED_FRACTION
from .counting import Counter
from .events import Selected
from .fitting import CHOSEN, NAMED, NAMED_EXCERPT, NO_ROOM, REPLACES, Fitting
from .groups import Entry
from .named import named
from .state import State

if TYPE_CHECKING:
    from .session import Session


class Scored(NamedTuple):
    """An original's place in a ranking."""

    ordinal: int
    score: float
    """Comparable within one ranking; higher is better."""
    signals: Mapping[str, float] = MappingProxyType({})
    """What the score is made of, by name."""


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
    entry: Callable[[int], Entry]
    """An original by ordinal, with what stands beside it."""

    def message(self, ordinal: int) -> Message:
        """An original by ordinal."""
        return self.entry(ordinal).message


Selector = Callable[[SelectionRequest], Sequence[Scored]]
"""Originals worth recalling, best first; a `Ranking` where there is more to say of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Sequence[Scored]):
    """Originals worth recalling, best first, and what the ranking says of itself.

    A selector that can fall back to another returns one: the strategy that really ranked is logged, findings are shown.
    """

    scored: tuple[Scored, ...]
    strategy: str
    """The one that made this order."""
    reasoning: str | None = None
    """Why, in a model's words; None where none was asked."""
    findings: tuple[Finding, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Scored: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Scored]: ...
    def __getitem__(self, index: int | slice) -> Scored | Sequence[Scored]:
        return self.scored[index]

    def __len__(self) -> int:
        return len(self.scored)


def ranking_by(selector: Selector, request: SelectionRequest) -> Ranking:
    """What the selector ranks, with its own word on it where it has one."""
    ranked = selector(request)
    if isinstance(ranked, Ranking):
        return ranked
    return Ranking(
        scored=tuple(islice(ranked, MAX_READ)), strategy=getattr(selector, "__name__", type(selector).__name__)
    )


MAX_CANDIDATES = 400
"""Of a ranking; what stands further down is neither tried nor logged."""
MAX_READ = 10_000
"""Of a ranking; picks that may not be shown are skipped up to here."""
LOGGED_CANDIDATES = 10
"""Candidates that were passed over are logged up to this many; every chosen one is."""


class Known(NamedTuple):
    """What is known of a session's messages before the current user turn."""

    tokens: int
    """Of all of them."""
    replaced_by: Callable[[int], tuple[int, ...]] = lambda ordinal: ()
    """The messages that say the newest of what this one says; () where nothing of it was replaced."""
    least_tokens: Callable[[int], int] = lambda ordinal: 0
    """What a message takes at least where it is recalled, told without reading it."""


class Selection(NamedTuple):
    """What came of asking a selector."""

    event: Selected
    findings: tuple[Finding, ...]


def select(
    selector: Selector,
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
    histories: Callable[[SelectionRequest], Known] | None = None,
    cap_tokens: int | None = None,
) -> Selection | None:
    """Ask the selector once for this user turn; None where everything is in the window already.

    `histories` says which messages later ones replace: none of these comes back alone. Of a tool result longer than
    `cap_tokens` the window shows an excerpt. What the question names is in the envelope whole, or as an excerpt with
    its reference and a finding.

    Raises what the selector raises, and `ValueError` for a ranking that is none.
    """
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
    known = histories(request) if histories else Known(sum(original(n).tokens(counter) for n in range(1, last + 1)))
    left_out_tokens = _left_out_tokens(state, request, known, counter)
    share = min(request.budget_tokens, max(LEAST_RECALL_TOKENS, int(left_out_tokens * RECALLED_FRACTION)))
    ranking = ranking_by(selector, replace(request, budget_tokens=share))
    ranked = list(islice(_usable(ranking, request), MAX_CANDIDATES))
    asked_for = _named(ranked, request)
    ordinals = [candidate.ordinal for candidate in asked_for]
    ranked = [candidate for candidate in ranked if candidate.ordinal not in ordinals]
    fitting = Fitting(original, state, counter, visible, known.replaced_by, known.least_tokens)
    verdicts = fitting.fill(ordinals, room_tokens)
    too_long = [ordinal for ordinal in ordinals if verdicts.get(ordinal, "").endswith(NO_ROOM)]
    fitting.excerpt((ordinal for ordinal in too_long if ordinal not in cut), room_tokens)
    excerpts = fitting.excerpts | dict.fromkeys(cut.intersection(too_long), 0)
    verdicts |= fitting.fill((candidate.ordinal for candidate in ranked), share)
    kept = frozenset(fitting.kept)
    came_along = kept.difference(ordinals, (candidate.ordinal for candidate in ranked))
    along = [Scored(ordinal, 0.0, {"replaces": 1.0}) for ordinal in sorted(came_along)]
    log = {
        "selection_type": "recall",
        "strategy": ranking.strategy,
        "full_history_size": state.ordinal,
        "context_size": len(kept),
        "masked_count": len(state.masked),
        "anchor_refs": [],
        "selected_refs": [f"§{ordinal}" for ordinal in sorted(kept)],
        "tokens_saved": known.tokens - sum(original(n).tokens(counter) for n in kept),
        "candidates": list(_logged([*asked_for, *ranked, *along], kept, verdicts, fitting.excerpts)),
        "reasoning": ranking.reasoning,
        "facts": [],
    }
    event = Selected(
        turn=state.last_user, refs=tuple(sorted(kept)), log=log, superseded=fitting.superseded, excerpts=excerpts
    )
    return Selection(event, ranking.findings)


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
    )


def verbatim(state: State) -> frozenset[int]:
    """Ordinals that the window shows word for word: not the results of a masked group."""
    shown: set[int] = set()
    for group in state.groups:
        if group.first in state.masked:
            shown.update(entry.ordinal for entry in group.entries if not entry.message.tool_results)
        else:
            shown.update(group.ordinals)
    return frozenset(shown)


def _left_out_tokens(state: State, request: SelectionRequest, known: Known, counter: Counter) -> int:
    """Tokens of the originals that the window does not show."""
    shown = (entry for group in state.groups for entry in group.entries if entry.ordinal in request.visible)
    return max(0, known.tokens - sum(entry.tokens(counter) for entry in shown if entry.ordinal <= request.last))


def _cut(
    state: State, query: Message, original: Callable[[int], Entry], counter: Counter, cap_tokens: int | None
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


def _named(ranked: Sequence[Scored], request: SelectionRequest) -> list[Scored]:
    """What the question names by number and the window does not show."""
    score = ranked[0].score if ranked else 1.0
    names = named(request.query.text, request.last, request.entry)
    return [Scored(ordinal, score, {"named": 1.0}) for ordinal in names if ordinal not in request.visible]


def _usable(ranked: Iterable[Scored], request: SelectionRequest) -> Iterator[Scored]:
    """Candidates once each that may be shown and are not shown already."""
    seen: set[int] = set()
    for candidate in islice(ranked, MAX_READ):
        ordinal = candidate.ordinal
        if not math.isfinite(candidate.score):
            raise ValueError(f"the score of §{ordinal} is {candidate.score}; scores are finite numbers")
        if 0 < ordinal <= request.last and ordinal not in request.visible and ordinal not in seen:
            seen.add(ordinal)
            yield candidate


def _logged(
    ranked: Sequence[Scored], kept: frozenset[int], verdicts: Mapping[int, str], excerpts: Mapping[int, int]
) -> Iterator[dict[str, Any]]:
    """Candidates in the published form, best first: all that were chosen, and the best of the others."""
    others = LOGGED_CANDIDATES
    for candidate in ranked:
        chosen = candidate.ordinal in kept
        others -= not chosen
        if chosen or others >= 0:
            yield {
                "ref": f"§{candidate.ordinal}",
                "score": round(candidate.score, 4),
                "signals": {name: round(value, 4) for name, value in candidate.signals.items()},
                "in": chosen,
                "why": _why(candidate, excerpts) if chosen else verdicts[candidate.ordinal],
            }


def _why(chosen: Scored, excerpts: Mapping[int, int]) -> str:
    if chosen.ordinal in excerpts and "named" in chosen.signals:
        return NAMED_EXCERPT
    return REPLACES if "replaces" in chosen.signals else NAMED if "named" in chosen.signals else CHOSEN
