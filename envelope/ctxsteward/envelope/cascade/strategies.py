"""Strategies by name: the selectors that `selection.strategy` of a configuration stands for.

    heuristic   words, weighed with recency and callouts; needs nothing
    semantic    embeddings over `similarity_threshold`; needs an embedder, by default that of the extra `dense`
    llm         a model reads a menu and picks; needs one of `models`, by default the first
    hybrid      words and embeddings fused, then the model where there is one

What is missing or fails is no error: the words rank instead, and the ranking says so in a finding. Keep one
`Strategies` for many phases: it keeps indexes, vectors and weights. Source: the auto-context design (strategies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import AutoContext, Selection

from ..groups import Entry
from ..ranking import ByModel, Heuristic, Hybrid, Multilingual, Semantic, Weights
from ..ranking.llm import Ask, Summarize
from ..selection import Ranking, Scored, SelectionRequest, Selector
from .past import PastMessage

if TYPE_CHECKING:
    from ..cards.port import CardIndex, Embedder


class Strategies:
    """What configured strategies are made of; safe with threads if its parts are."""

    def __init__(
        self,
        *,
        embedder: Embedder | None = None,
        models: Mapping[str, Ask] | None = None,
        cards: CardIndex | None = None,
    ) -> None:
        """`models`: by the name that `selector_model` says. `cards`: whose summaries the menu of a model shows."""
        self.heuristic = Heuristic(Weights(recency=0, callout=0))  # both are weighed by the configuration
        self._embedder, self._models, self._cards = embedder, dict(models or {}), cards
        self._semantic: Semantic | None = None

    def selector(
        self, selection: Selection, past: Mapping[int, PastMessage], switches: AutoContext | None = None
    ) -> Selector:
        """The selector of these settings; `past` holds the messages that its ordinals number."""
        allowed = switches or AutoContext()
        summarize = self._summaries(past) if allowed.cards else None
        match selection.strategy:
            case "semantic":
                return self._near().with_similarity(selection.similarity_threshold)
            case "llm":
                model = self._model(selection.selector_model, allowed)
                return ByModel(model, prefilter=self._words_then_newest, summarize=summarize)
            case "hybrid":
                wanted = selection.selector_model is not None or self._models
                chooser = self._model(selection.selector_model, allowed) if wanted else None
                return Hybrid(self.heuristic, self._near(), chooser, summarize=summarize)
            case _:
                return self.heuristic

    def _near(self) -> Semantic:
        if self._semantic is None:
            self._semantic = Semantic(self._embedder or _multilingual(), fallback=self.heuristic)
        return self._semantic

    def _model(self, name: str | None, allowed: AutoContext) -> Ask:
        """The model of this name; in place of one that is missing, one that says so when it is asked."""
        if not allowed.llm_selection:
            return _refusing("llm_selection is switched off")
        known = list(self._models)
        if name is None and known:
            return self._models[known[0]]
        if name is None or name not in self._models:
            wanted = "no model" if name is None else f"no model {name!r}"
            given = ", ".join(known) or "none"
            return _refusing(f"{wanted} was given; pass Strategies(models={{NAME: …}}), given: {given}")
        return self._models[name]

    def _words_then_newest(self, request: SelectionRequest) -> Ranking:
        """What the words rank, then all else: a task that shares no word with the past still has a menu."""
        ranked = list(self.heuristic(request))
        known = {scored.ordinal for scored in ranked} | request.visible
        rest = [Scored(number, 0.0) for number in range(request.last, 0, -1) if number not in known]
        return Ranking(scored=(*ranked, *rest), strategy=self.heuristic.__name__)

    def _summaries(self, past: Mapping[int, PastMessage]) -> Summarize | None:
        index = self._cards
        return None if index is None else lambda request, entries: _read_summaries(index, past, entries)


def _read_summaries(index: CardIndex, past: Mapping[int, PastMessage], entries: Sequence[Entry]) -> Mapping[int, str]:
    """Summaries of the cards of past messages, by number; those of replaced originals are left out."""
    from ..cards.backlog import cards_of

    found: dict[int, str] = {}
    asked = [past[entry.ordinal] for entry in entries]
    for session in {message.session.id: message.session for message in asked}.values():
        own = {f"§{message.ordinal}": message for message in asked if message.session is session}
        for card in cards_of(index, session, refs=list(own)):
            if card.address == own[card.ref].entry.event.address:
                found[own[card.ref].number] = card.summary
    return found


def _refusing(reason: str) -> Ask:
    def ask(prompt: str) -> str:
        raise InputError(reason)

    return ask


@cache
def _multilingual() -> Multilingual:
    """The extra's embedder; its weights are loaded at its first use, and once."""
    return Multilingual()
