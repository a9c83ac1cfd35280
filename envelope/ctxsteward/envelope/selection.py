"""Selection: which originals are recalled for a user turn.

A `Selector` ranks or picks; `select` fits its picks to the room and makes the event that records them. Chosen once a
user turn, recorded in the log, unchanged through the turn's tool loop. This module holds the port and the fitting;
rankers live elsewhere. Published form: `selection_log`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import Message

from .counting import Counter
from .events import Selected
from .layout import context_fragment, recalled_line
from .state import State

if TYPE_CHECKING:
    from .session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRequest:
    """What a selector may look at."""

    query: Message
    """The current user message."""
    last: int
    """Highest ordinal it may pick."""
    visible: frozenset[int]
    """Ordinals already in the window verbatim: picks of these are skipped."""
    budget_tokens: int
    message: Callable[[int], Message]
    """An original by ordinal."""


Selector = Callable[[SelectionRequest], Sequence[int]]
"""Ordinals worth recalling, best first."""


MAX_CANDIDATES = 200
"""Of a ranking; what stands further down is neither read nor logged."""
_MISSES = 20
"""A selection is full when so many in a row did not fit."""


def _fitted(ranked: Sequence[int], session: Session, state: State, room_tokens: int, counter: Counter) -> list[int]:
    """The best of a ranking that fit, measured as they will be shown."""

    def shown(ordinals: Sequence[int]) -> int:
        chosen = Selected(turn=state.last_user, refs=tuple(ordinals), log={})
        return context_fragment(chosen, state.nonce, counter, session.shown).tokens

    kept: list[int] = []
    used, misses = shown(()), 0
    for ordinal in ranked:
        if misses >= _MISSES:
            break
        entry = session.shown(ordinal)
        if entry.event.damaged or entry.event.erased:
            continue
        cost = counter.text(recalled_line(entry) + "\n")
        if used + cost > room_tokens:
            misses += 1
            continue
        kept.append(ordinal)
        used, misses = used + cost, 0
    while kept and shown(kept) > room_tokens:
        kept.pop()
    return kept


def select(selector: Selector, session: Session, state: State, room_tokens: int, counter: Counter) -> Selected | None:
    """Ask the selector once for this user turn; None where there is nothing to choose from or no room."""
    if state.last_user < 2:
        return None
    visible = frozenset(ordinal for group in state.groups for ordinal in group.ordinals)
    request = SelectionRequest(
        query=session.shown(state.last_user).message,
        last=state.last_user - 1,
        visible=visible,
        budget_tokens=max(0, room_tokens),
        message=lambda ordinal: session.shown(ordinal).message,
    )
    fresh = (n for n in dict.fromkeys(selector(request)) if 0 < n <= request.last and n not in visible)
    ranked = list(islice(fresh, MAX_CANDIDATES))
    kept = _fitted(ranked, session, state, room_tokens, counter)
    log: dict[str, Any] = {
        "selection_type": "recall",
        "strategy": getattr(selector, "__name__", type(selector).__name__),
        "full_history_size": state.ordinal,
        "context_size": len(kept),
        "masked_count": len(state.masked),
        "anchor_refs": [],
        "selected_refs": [f"§{ordinal}" for ordinal in sorted(kept)],
        "tokens_saved": 0,
        "candidates": [
            {"ref": f"§{n}", "score": 1 / rank, "signals": {}, "in": n in kept, "why": "" if n in kept else "no room"}
            for rank, n in enumerate(ranked, 1)
        ],
    }  # fmt: skip
    return Selected(turn=state.last_user, refs=tuple(sorted(kept)), log=log)
