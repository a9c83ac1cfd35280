"""`mode: auto` of a phase: anchors are always shown, followed by the highest-ranked messages that fit.

Anchors: the input, the outputs of `from_phases`, callouts (pinned messages), errors (if the configuration asks for
them), and, if the phase itself ran before, its newest `window` steps. A selected message comes with its whole tool
group, in the order of the past, under the label of its phase. `max_tokens` limits both; if the anchors alone exceed it,
nothing is selected, and a finding says so. `from` limits the candidate phases.

The selector is the caller's own, or that of the configured strategy (`Strategies`):

    heuristic   words, weighed with recency and callouts; needs nothing
    semantic    embeddings over `similarity_threshold`; needs an embedder, by default that of the extra `dense`
    llm         a model reads a menu and picks; needs one of `models`, by default the first
    hybrid      words and embeddings fused, then the model if there is one

Its query is the phase's rendered instructions. A ranking of `heuristic` is weighed with recency and callouts
(`weighed`); other rankings stay unchanged. A strategy whose embedder or model is missing or fails is no error: the
words rank instead, and the ranking's finding is shown and logged. Keep one `Strategies` for many phases, because it
keeps indexes, vectors and weights.

Source: the auto-context design.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, get_args
from zlib import crc32

from ctxsteward.schemas import ChatModel, InputError, Message
from ctxsteward.schemas.cascade import Anchors, AutoContext, Selection, Strategy
from ctxsteward.schemas.documents import SelectionCandidate, SelectionLog

from ..history.tool_groups import LogEntry
from ..recall.heuristic import Heuristic, Weights
from ..recall.selection import (
    FELL_BACK,
    LOGGED_CANDIDATES,
    MAX_CANDIDATES,
    MAX_READ,
    Ranking,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    described,
    fell_back,
    ranking_by,
)
from ..recall.strategies import Ask, Hybrid, ModelSelector, Multilingual, Semantic, Summarize
from .config import (
    anchors as anchors_of,
    before,
    excluded,
    inter_phase,
    phases_named,
    selection as selection_of,
    sources_of,
)
from .context import ContextBuilder
from .past import PastMessage

if TYPE_CHECKING:
    from ..cards import CardSummarizer
    from ..recall.selection import Embedder


class Strategies:
    """The parts from which configured strategies are made; thread-safe if its parts are."""

    def __init__(
        self,
        *,
        embedder: Embedder | None = None,
        models: Mapping[str, Ask | ChatModel] | None = None,
        cards: CardSummarizer | str = "extractive",
    ) -> None:
        """`models`: by their name in `selector_model`. `cards`: the summarizer of the lines in a model's menu, as
        `cards.cards_of` takes it; a configuration may switch them off, and lines are then beginnings."""
        # the configuration weighs recency and callouts
        self.heuristic: Heuristic = Heuristic(Weights(recency=0, callout=0), every_turn=True)
        self._embedder, self._models, self._cards = embedder, dict(models or {}), cards
        self._semantic: Semantic | None = None

    def selector(self, selection: Selection, past: Mapping[int, PastMessage], switches: AutoContext) -> Selector:
        """Make the selector of these settings; `past` has the messages by their ordinals."""
        summarize: Summarize | None = None
        if switches.cards:
            summarize = lambda request, entries: _read_summaries(self._cards, past, entries)  # noqa: E731
        match selection.strategy:
            case "semantic":
                return self._nearest(selection)
            case "llm":
                model = self._model(selection.selector_model, switches)
                return ModelSelector(model, prefilter=self._words_then_newest, summarize=summarize)
            case "hybrid":
                is_wanted = selection.selector_model is not None or self._models
                chooser = self._model(selection.selector_model, switches) if is_wanted else None
                return Hybrid(self.heuristic, self._nearest(None), chooser, summarize=summarize)
            case _:
                return self.heuristic

    def _nearest(self, selection: Selection | None) -> Selector:
        """Rank by embeddings above the selection's similarity; without the extra, rank words with a finding.

        A configuration names its strategy wherever it is read, so a missing extra costs it this ranking only.
        """
        try:
            if self._semantic is None:
                self._semantic = Semantic(self._embedder or _multilingual(), fallback=self.heuristic)
        except ImportError as error:
            reason = described(error)
            return lambda request: fell_back("semantic", ranking_by(self.heuristic, request), reason)
        if selection is None:
            return self._semantic
        similarity = selection.similarity_threshold
        if "similarity_threshold" not in selection.model_fields_set:  # an embedder may know its own scale
            similarity = float(getattr(self._semantic.embedder, "near", similarity))
        return self._semantic.with_similarity(similarity)

    def _model(self, name: str | None, switches: AutoContext) -> Ask | ChatModel:
        """Return the model of this name; for a missing one, a model that raises the reason when it is called."""
        if not switches.llm_selection:
            return _refusing("llm_selection is switched off")
        name = next(iter(self._models), None) if name is None else name
        if name is None or name not in self._models:
            wanted = "no model" if name is None else f"no model {name!r}"
            given = ", ".join(self._models) or "none"
            return _refusing(f"{wanted} was given; pass Strategies(models={{NAME: …}}), given: {given}")
        return self._models[name]

    def _words_then_newest(self, request: SelectionRequest) -> Ranking:
        """Rank by words, then all others newest first, so that a task without common words still has a menu."""
        ranked = list(self.heuristic(request))
        known = {scored.ordinal for scored in ranked} | request.visible
        rest = [ScoredOriginal(number, 0.0) for number in range(request.last, 0, -1) if number not in known]
        return Ranking(scored=(*ranked, *rest), strategy=self.heuristic.__name__)


def _read_summaries(
    maker: CardSummarizer | str, past: Mapping[int, PastMessage], entries: Sequence[LogEntry]
) -> Mapping[int, str]:
    """Return the summaries of past messages' cards, by number."""
    from ..cards import cards_of

    summaries: dict[int, str] = {}
    asked = [past[entry.ordinal] for entry in entries]
    for session in {message.session.id: message.session for message in asked}.values():
        own = {f"§{message.ordinal}": message for message in asked if message.session is session}
        for card in cards_of(session, maker, refs=list(own)).cards:
            summaries[own[card.ref].number] = card.summary
    return summaries


def _refusing(reason: str) -> Ask:
    def ask(prompt: str) -> str:
        raise InputError(reason)

    return ask


_multilingual = cache(Multilingual)
"""The extra's embedder. Its weights are loaded once, at first use."""


STRATEGIES: frozenset[str] = frozenset(get_args(Strategy))
HEURISTIC = "heuristic"
"""Strategy whose ranking is one signal of three; rankings of other strategies are final."""
TAKEN, NO_ROOM, TOO_MANY = "ranked, and it fits", "no room", "over max_messages"
"""Reasons why a candidate is in or out."""
_ERROR = re.compile(r"error|exception|failed", re.IGNORECASE)
_Group = tuple[PastMessage, ...]


def select_automatically(building: ContextBuilder, strategies: Strategies, selector: Selector | None) -> SelectionLog:
    """Add anchors and selection to a context, and return the log; a `selector` replaces the configured strategy."""
    cascade, phase, past = building.cascade, building.phase, building.past
    assert phase.context is not None
    anchors, selection = anchors_of(cascade, phase), selection_of(cascade, phase)
    if "input" in anchors.include and phase.context.include_input and building.input:
        building.add_input()
    if not inter_phase(cascade).enabled:
        building.note("auto_context_disabled", "inter_phase is switched off: nothing is selected")
        return building.selection_log("none")
    if "output" in anchors.include:
        _add_outputs(building, anchors)
    fixed = _anchored_groups(building, anchors)
    room = _ContextRoom(building, selection.max_tokens)
    for group in fixed:
        room.take(group)
    anchored = building.shown | {message.number for group in fixed for message in group}
    ranking = Ranking(scored=(), strategy=selection.strategy)
    if room.left < 0:
        text = f"the anchors have {room.used} tokens, the limit is {room.limit}; nothing is selected beside them"
        building.note("anchors_over_budget", text, "context.selection.max_tokens")
    elif candidates := _candidates(building, anchored):
        sessions = {id(message.session): message.session for message in past.messages}
        with ExitStack() as held:
            # Every thread locks the sessions in one order; a selector locks its own state after them, as in a build.
            for session in sorted(sessions.values(), key=lambda session: (session.id, id(session))):
                held.enter_context(session.lock)
            if selector is None:
                allowed = {message.number: message for message in candidates}
                selector = strategies.selector(selection, allowed, cascade.auto_context or AutoContext())
            ranking = _ranked(building, selector, strategies.heuristic, selection, candidates, room.left)
    for scored in ranking:
        group = room.groups[scored.ordinal]
        if scored.ordinal in room.taken:
            continue
        if len(room.taken - anchored) + len(group) > selection.max_messages:
            room.verdicts[scored.ordinal] = TOO_MANY
        elif room.cost(group) <= room.left:
            room.take(group)
    selected = [message for message in past.messages if message.number in room.taken]
    for name in dict.fromkeys(message.phase for message in selected):
        assert name is not None
        building.add_replay(name, tuple(message for message in selected if message.phase == name))
    return building.selection_log(ranking.strategy, anchored, tuple(_logged(ranking, room)), ranking.reasoning)


def _add_outputs(building: ContextBuilder, anchors: Anchors) -> None:
    cascade, phase, ran = building.cascade, building.phase, building.past.ran
    for index, ref in enumerate(anchors.from_phases):
        earlier = before(cascade, phase)
        names = [name for name in phases_named(cascade, phase, ref, ran) if name in earlier and name in ran]
        field = f"context.anchors.from_phases[{index}]"
        for name in names:
            building.add_output(name, "user", field)
        if not names:
            building.note("source_not_run", f"{ref!r} stands for no phase that has run; it anchors nothing", field)


def _anchored_groups(building: ContextBuilder, anchors: Anchors) -> list[_Group]:
    """Return callouts, errors and the phase's own newest steps, as whole groups in order."""
    cascade, phase, past = building.cascade, building.phase, building.past
    earlier = frozenset(before(cascade, phase)) - excluded(cascade, phase, past.ran)
    own = [group for group in past.groups if group[0].phase == phase.name]
    steps = [at for at, group in enumerate(own) if group[0].message.role == "assistant"]
    window = own[steps[-anchors.window] :] if anchors.window and len(steps) >= anchors.window else own
    newest = {message.number for group in window for message in group} if anchors.window else set()
    anchored = []
    for group in past.groups:
        is_callout = "callouts" in anchors.include and any(message.is_pinned for message in group)
        is_error = "errors" in anchors.include and any(mentions_error(message.message) for message in group)
        wanted = group[0].phase in earlier and building.retains(group[0]) and (is_callout or is_error)
        if (wanted or group[0].number in newest) and not all(message.number in building.shown for message in group):
            anchored.append(group)
    return anchored


def mentions_error(message: Message) -> bool:
    """Return whether a message reports an error, by its words or by a tool's error flag."""
    if any(result.is_error or _ERROR.search(result.text) for result in message.tool_results):
        return True
    return _ERROR.search(message.text) is not None


def _candidates(building: ContextBuilder, anchored: set[int]) -> list[PastMessage]:
    cascade, phase, past = building.cascade, building.phase, building.past
    assert phase.context is not None
    names = frozenset(before(cascade, phase)) - excluded(cascade, phase, past.ran)
    if phase.context.from_:
        names &= {
            name
            for field, source in sources_of(phase)
            for name in phases_named(cascade, phase, source.phase, past.ran)
            if name in past.ran and building.applies(field, source, name)
        }
    return [m for m in past.messages if m.phase in names and m.number not in anchored and building.retains(m)]


def _ranked(
    building: ContextBuilder,
    selector: Selector,
    stand_in: Heuristic,
    selection: Selection,
    candidates: Sequence[PastMessage],
    budget_tokens: int,
) -> Ranking:
    """Return the candidates as ranked by the selector, or by the stand-in if it failed."""
    field = "context.selection.strategy"
    request = _request(building, candidates, budget_tokens)
    allowed = {message.number for message in candidates}
    try:
        ranking = _checked(ranking_by(selector, request), allowed)
        already_noted = any(finding.kind == FELL_BACK for finding in ranking.findings)
    except Exception as error:  # a selector is the caller's code and may raise anything; the phase goes on
        if isinstance(selector, Heuristic):
            raise  # another one of our own kind would fail the same way
        text = f"the selector failed, {HEURISTIC!r} ranked: {type(error).__name__}: {error}"
        building.note("selection_failed", text, field)
        ranking, already_noted = _checked(ranking_by(stand_in, request), allowed), True
    for finding in ranking.findings:
        building.note(finding.kind, finding.text, field)
    if ranking.strategy in STRATEGIES and ranking.strategy != selection.strategy and not already_noted:
        text = f"strategy {selection.strategy!r} is configured; {ranking.strategy!r} ranked"
        building.note("strategy_replaced", text, field)
    # a callable without a known name ranks in place of the configured strategy
    own = ranking.strategy if ranking.strategy in STRATEGIES else selection.strategy
    return replace(ranking, scored=weighed(ranking, candidates, selection)) if own == HEURISTIC else ranking


def weighed(
    ranked: Iterable[ScoredOriginal], candidates: Sequence[PastMessage], selection: Selection
) -> tuple[ScoredOriginal, ...]:
    """Rank candidates by the configured weights of three signals, each scaled by rank: best 1, worst above 0.

    The keyword signal ranks messages that the selector scored above 0; others have 0. A pin is the callout signal.
    """
    found_by_words = [scored.ordinal for scored in ranked if scored.score > 0]
    keyword = {ordinal: 1 - at / len(found_by_words) for at, ordinal in enumerate(found_by_words)}
    recency = {message.number: (at + 1) / len(candidates) for at, message in enumerate(candidates)}
    rescored = []
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
        rescored.append(ScoredOriginal(message.number, score, signals))
    return tuple(sorted(rescored, key=lambda scored: (-scored.score, -scored.ordinal))[:MAX_CANDIDATES])


def _checked(ranking: Ranking, allowed: Collection[int]) -> Ranking:
    """Return each candidate once; raise `ValueError` for a score or signal that is not finite."""
    kept: dict[int, ScoredOriginal] = {}
    for scored in islice((scored for scored in ranking if scored.ordinal in allowed), MAX_READ):
        figures = (scored.score, *scored.signals.values()) if len(kept) < MAX_CANDIDATES else ()
        if not all(map(math.isfinite, figures)):
            raise ValueError(f"§{scored.ordinal} has a score or signal that is not finite")
        if figures:
            kept.setdefault(scored.ordinal, scored)
    return replace(ranking, scored=tuple(kept.values()))


def _request(building: ContextBuilder, candidates: Sequence[PastMessage], budget_tokens: int) -> SelectionRequest:
    past = building.past
    allowed = {message.number for message in candidates}
    by_number = {message.number: message for message in past.messages}
    query = building.instructions() or building.phase.name
    sessions = {message.session.id: message.session for message in past.messages}
    # A selector caches by session and generation, so another past needs another generation.
    shape = crc32(repr([message.origin for message in past.messages]).encode())

    def entry(number: int) -> LogEntry:
        original = by_number[number].entry
        return LogEntry(replace(original.event, ordinal=number), original.message)

    return SelectionRequest(
        tenant=next(iter(sessions.values())).tenant,
        session="+".join(sessions),
        generation=shape,
        query=Message.from_wire({"role": "user", "content": query}),
        last=max(message.number for message in candidates),
        visible=frozenset(by_number.keys() - allowed),  # no line of a phase that is no source may reach a model
        pinned=frozenset(message.number for message in candidates if message.is_pinned),
        budget_tokens=max(0, budget_tokens),
        entry=entry,
    )


class _ContextRoom:
    """Counts the tokens of a context while groups are added to it."""

    def __init__(self, building: ContextBuilder, limit_tokens: int) -> None:
        self._building, self.limit = building, limit_tokens
        self.groups = {message.number: group for group in building.past.groups for message in group}
        """The group of each past message."""
        self.used = sum(message.tokens for message in building.messages)
        self.taken: set[int] = set()
        self.verdicts: dict[int, str] = {}
        """Reasons other than lack of room for which candidates were passed over."""
        self._labelled: set[str | None] = set()

    @property
    def left(self) -> int:
        """Tokens of room; below 0 if the anchors alone exceed the limit."""
        return self.limit - self.used

    def cost(self, group: _Group) -> int:
        """Return the tokens of the group, and of its phase's label if it is the first of its phase."""
        counter, shown = self._building.counter, self._building.shown
        tokens = sum(message.tokens(counter) for message in group if message.number not in shown)
        if group[0].phase not in self._labelled:
            tokens += counter.framed(f"[Conversation from {group[0].phase}]:")
        return tokens

    def take(self, group: _Group) -> None:
        self.used += self.cost(group)
        self._labelled.add(group[0].phase)
        self.taken.update(message.number for message in group)


def _logged(ranked: Sequence[ScoredOriginal], room: _ContextRoom) -> Iterator[SelectionCandidate]:
    """Yield all selected candidates, then the best of the others."""
    passed = [scored for scored in ranked if scored.ordinal not in room.taken]
    for scored in [*(s for s in ranked if s.ordinal in room.taken), *passed[:LOGGED_CANDIDATES]]:
        is_in = scored.ordinal in room.taken
        yield SelectionCandidate(
            ref=f"§{scored.ordinal}",
            score=round(scored.score, 4),
            signals={name: round(value, 4) for name, value in scored.signals.items()},
            in_=is_in,
            why=TAKEN if is_in else room.verdicts.get(scored.ordinal, NO_ROOM),
        )
