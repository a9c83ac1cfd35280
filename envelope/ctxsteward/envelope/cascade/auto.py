"""`mode: auto`: anchors are always shown, the rest is what a selector ranks highest and what fits.

Anchors: the input, the outputs of `from_phases`, callouts (pinned messages), errors (where asked for), and, where the
phase itself ran before, its newest `window` steps. Selected messages come with their whole tool group, in the order of
the past, under the label of their phase. `max_tokens` covers both; anchors alone over it leave no room, and a finding
says so. The lower of `max_tokens` and the caller's budget counts.

`from` limits the candidate phases. The selector gets the phase's rendered instructions as its query. For the strategy
`heuristic` its ranking is weighed with recency and callouts (`weighed`); for the others it stands. A missing or failing
selector is replaced by `newest_first`, with a finding. Source: the auto-context design.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, get_args
from zlib import crc32

from ctxsteward.schemas import Finding, Message
from ctxsteward.schemas.cascade import Anchors, AutoContext, Selection, Strategy
from ctxsteward.schemas.documents import SelectionCandidate

from ..counting import FRAME_TOKENS
from ..groups import Entry
from ..selection import LOGGED_CANDIDATES, MAX_CANDIDATES, Scored, SelectionRequest, Selector
from .building import Building
from .config import anchors as anchors_of
from .config import auto_enabled, before, excluded, phases_of, taken_from
from .config import selection as selection_of
from .past import PastMessage

STRATEGIES: frozenset[str] = frozenset(get_args(Strategy))
HEURISTIC = "heuristic"
"""Its ranking is one signal of three; what other strategies rank stands."""
_ERROR = re.compile(r"error|exception|failed", re.IGNORECASE)
_Group = tuple[PastMessage, ...]


class Chosen(NamedTuple):
    """How a selection went."""

    strategy: str
    anchors: tuple[int, ...]
    candidates: tuple[SelectionCandidate, ...]


def newest_first(request: SelectionRequest) -> Sequence[Scored]:
    """A selector that knows nothing of the query: the newer, the better."""
    last = max(1, request.last)
    return [Scored(number, number / last, {"recency": number / last}) for number in range(request.last, 0, -1)]


def select_automatically(
    building: Building, selector: Selector | None, budget_tokens: int | None, defaults: AutoContext | None
) -> Chosen:
    """Add anchors and selection to a context."""
    cascade, phase = building.cascade, building.phase
    assert phase.context is not None
    anchors, selection = anchors_of(cascade, phase, defaults), selection_of(cascade, phase, defaults)
    if "input" in anchors.include and phase.context.include_input and building.input:
        building.add_input()
    if not auto_enabled(cascade, defaults):
        building.note("auto_context_disabled", "inter_phase is switched off: nothing is selected")
        return Chosen("none", (), ())
    if "output" in anchors.include:
        _add_outputs(building, anchors)
    fixed = _anchored_groups(building, anchors)
    by_number = {message.number: group for group in building.past.groups for message in group}
    limit = selection.max_tokens if budget_tokens is None else min(selection.max_tokens, budget_tokens)
    fitting = _Fitting(building, limit)
    for group in fixed:
        fitting.take(group)
    anchored = building.shown | {message.number for group in fixed for message in group}
    ranked: list[Scored] = []
    strategy: str = selection.strategy
    if fitting.used > limit:
        text = f"the anchors have {fitting.used} tokens, the limit is {limit}; nothing is selected beside them"
        building.note("anchors_over_budget", text, "context.selection.max_tokens")
    else:
        candidates = _candidates(building, anchored)
        strategy, ranked = _ranked(building, selector, selection, candidates, anchored, limit - fitting.used)
        _fit(ranked, by_number, fitting, selection.max_messages, anchored)
    taken = [message for message in building.past.messages if message.number in fitting.taken]
    for name in dict.fromkeys(message.phase for message in taken):
        assert name is not None
        building.add_replay(name, tuple(message for message in taken if message.phase == name))
    return Chosen(strategy, tuple(sorted(anchored)), _logged(ranked, fitting.taken, anchored))


def _add_outputs(building: Building, anchors: Anchors) -> None:
    cascade, phase, ran = building.cascade, building.phase, building.past.ran
    for index, ref in enumerate(anchors.from_phases):
        names = [name for name in phases_of(cascade, phase, (ref,), ran) if name in before(cascade, phase)]
        field = f"context.anchors.from_phases[{index}]"
        for name in names:
            if name in ran:
                building.add_output(name, "user", field)
        if not any(name in ran for name in names):
            building.note("source_not_run", f"{ref!r} stands for no phase that has run; it anchors nothing", field)


def _anchored_groups(building: Building, anchors: Anchors) -> list[_Group]:
    """Callouts, errors and the phase's own newest steps, as whole groups in order."""
    cascade, phase, past = building.cascade, building.phase, building.past
    earlier = frozenset(before(cascade, phase)) - excluded(cascade, phase, past.ran)
    own = [group for group in past.groups if group[0].phase == phase.name]
    steps = [at for at, group in enumerate(own) if group[0].message.role == "assistant"]
    window = own[steps[-anchors.window] :] if anchors.window and len(steps) >= anchors.window else own
    newest = {message.number for group in window for message in group} if anchors.window else set()
    found = []
    for group in past.groups:
        is_callout = "callouts" in anchors.include and any(message.is_pinned for message in group)
        is_error = "errors" in anchors.include and any(_mentions_error(message.message) for message in group)
        wanted = group[0].phase in earlier and building.retains(group[0]) and (is_callout or is_error)
        if (wanted or group[0].number in newest) and not all(message.number in building.shown for message in group):
            found.append(group)
    return found


def _mentions_error(message: Message) -> bool:
    if any(result.is_error or _ERROR.search(result.text) for result in message.tool_results):
        return True
    return _ERROR.search(message.text) is not None


def _candidates(building: Building, anchored: set[int]) -> list[PastMessage]:
    cascade, phase, past = building.cascade, building.phase, building.past
    assert phase.context is not None
    names = frozenset(before(cascade, phase)) - excluded(cascade, phase, past.ran)
    if phase.context.from_:
        taken = [taken for taken in taken_from(cascade, phase, past.ran) if taken.source.phase in past.ran]
        names &= {taken.source.phase for taken in taken if building.applies(taken)}
    return [m for m in past.messages if m.phase in names and m.number not in anchored and building.retains(m)]


def _ranked(
    building: Building,
    selector: Selector | None,
    selection: Selection,
    candidates: Sequence[PastMessage],
    anchored: set[int],
    budget_tokens: int,
) -> tuple[str, list[Scored]]:
    """The strategy that ranked, and the ranking of the candidates."""
    if not candidates:
        return selection.strategy, []
    request = _request(building, candidates, anchored, budget_tokens)
    allowed = {message.number for message in candidates}
    if selector is None:
        text = f"no selector was given for strategy {selection.strategy!r}; the newest messages are taken"
        building.note("selector_missing", text, "context.selection.strategy")
        return newest_first.__name__, _usable(newest_first(request), allowed)
    name = getattr(selector, "__name__", type(selector).__name__)
    try:
        ranked = _usable(selector(request), allowed)
    except Exception as error:  # a selector is the caller's code: whatever it raises, the phase goes on
        text = f"the selector failed, the newest messages are taken: {type(error).__name__}: {error}"
        building.findings.append(Finding(kind="selection_failed", field="context.selection", text=text))
        return newest_first.__name__, _usable(newest_first(request), allowed)
    if name in STRATEGIES and name != selection.strategy:
        text = f"strategy {selection.strategy!r} is configured; {name!r} ranked"
        building.note("strategy_replaced", text, "context.selection.strategy")
    if HEURISTIC in (name, selection.strategy):
        ranked = weighed(ranked, candidates, selection)
    return name, ranked


def weighed(ranked: Sequence[Scored], candidates: Sequence[PastMessage], selection: Selection) -> list[Scored]:
    """Candidates by the configured weights of three signals, each scaled by rank: best 1, worst above 0.

    What the selector scored is the keyword signal (0 where it left a message out), a pin the callout's.
    """
    keyword = {scored.ordinal: 1 - at / len(ranked) for at, scored in enumerate(ranked)}
    recency = {message.number: (at + 1) / len(candidates) for at, message in enumerate(candidates)}
    found = []
    for message in candidates:
        signals = {
            "recency": recency[message.number],
            "keyword": keyword.get(message.number, 0.0),
            "callout": float(message.is_pinned),
        }
        score = (
            selection.recency_weight * signals["recency"]
            + selection.keyword_weight * signals["keyword"]
            + selection.callout_weight * signals["callout"]
        )
        found.append(Scored(message.number, score, signals))
    return sorted(found, key=lambda scored: (-scored.score, -scored.ordinal))[:MAX_CANDIDATES]


def _usable(ranked: Iterable[Scored], allowed: set[int]) -> list[Scored]:
    seen: set[int] = set()
    found = (scored for scored in ranked if scored.ordinal in allowed and scored.ordinal not in seen)
    kept: list[Scored] = []
    for scored in islice(found, MAX_CANDIDATES):
        seen.add(scored.ordinal)
        kept.append(scored)
    return kept


def _request(
    building: Building, candidates: Sequence[PastMessage], anchored: set[int], budget_tokens: int
) -> SelectionRequest:
    past = building.past
    by_number = {message.number: message for message in past.messages}
    query = building.instructions().text or building.phase.name
    sessions = {message.session.id: message.session for message in past.messages}
    # What a selector keeps about a session, it keeps by generation: another past is another one.
    shape = crc32(repr([message.origin for message in past.messages]).encode())

    def entry(number: int) -> Entry:
        found = by_number[number].entry
        return Entry(replace(found.event, ordinal=number), found.message)

    return SelectionRequest(
        tenant=next(iter(sessions.values())).tenant,
        session="+".join(sessions),
        generation=shape,
        query=Message.from_wire({"role": "user", "content": query}),
        last=max(message.number for message in candidates),
        visible=frozenset(anchored),
        pinned=frozenset(message.number for message in candidates if message.is_pinned),
        budget_tokens=max(0, budget_tokens),
        entry=entry,
    )


class _Fitting:
    """Counts what a context costs while groups are added to it."""

    def __init__(self, building: Building, limit_tokens: int) -> None:
        self._building, self._limit = building, limit_tokens
        self.used = sum(message.tokens for message in building.messages)
        self.taken: set[int] = set()
        self._labelled: set[str | None] = set()

    def cost(self, group: _Group) -> int:
        """Tokens of the group, and of its phase's label where it is the first of it."""
        counter, shown = self._building.counter, self._building.shown
        tokens = sum(message.tokens(counter) for message in group if message.number not in shown)
        if group[0].phase not in self._labelled:
            tokens += counter.text(f"[Conversation from {group[0].phase}]:") + FRAME_TOKENS
        return tokens

    def fits(self, group: _Group) -> bool:
        return self.used + self.cost(group) <= self._limit

    def take(self, group: _Group) -> None:
        self.used += self.cost(group)
        self._labelled.add(group[0].phase)
        self.taken.update(message.number for message in group)


def _fit(
    ranked: Sequence[Scored], by_number: dict[int, _Group], fitting: _Fitting, max_messages: int, anchored: set[int]
) -> None:
    for scored in ranked:
        group = by_number[scored.ordinal]
        chosen = len(fitting.taken - anchored)
        if scored.ordinal in fitting.taken or chosen + len(group) > max_messages or not fitting.fits(group):
            continue
        fitting.take(group)


def _logged(ranked: Sequence[Scored], taken: set[int], anchored: set[int]) -> tuple[SelectionCandidate, ...]:
    chosen = [scored for scored in ranked if scored.ordinal in taken]
    passed = [scored for scored in ranked if scored.ordinal not in taken]
    return tuple(
        SelectionCandidate.model_validate(
            {
                "ref": f"§{scored.ordinal}",
                "score": round(scored.score, 4),
                "signals": {name: round(value, 4) for name, value in scored.signals.items()},
                "in": scored.ordinal in taken,
                "why": "ranked, and it fits" if scored.ordinal in taken else "no room",
            }
        )
        for scored in [*chosen, *passed[:LOGGED_CANDIDATES]]
    )
