"""Strategy `hybrid`, which fuses two rankings, and the strategies that a builder takes by name.

`Hybrid` asks a lexical selector (`heuristic`) and a dense one (`dense`), fuses the two lists by rank and, where a model
was given, lets that choose from the fused list (`llm`):

    score = Σ weight · (offset + 1) / (offset + rank), over the lists that hold the original, / Σ weight

Ranks and not scores are fused, so the weights hold for embedders with other ranges of cosines. A dense list that could
not be made counts for nothing: the lexical ranking stands, and a finding says so. Importing this module loads neither
numpy nor an embedder's weights.

Source: G. Cormack, C. Clarke, S. Büttcher, Reciprocal Rank Fusion (2009); `docs/selection.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from ctxsteward.schemas import InputError

from .dense import E5, Multilingual, QueryEmbedder, Semantic
from .heuristic import Heuristic
from .llm import Ask, ModelSelector, Summarize
from .selection import (
    FELL_BACK,
    MAX_CANDIDATES,
    Ranking,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    described,
    fell_back,
    ranking_by,
    reason_of,
)


class Fusion(BaseModel):
    """How lists are fused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    lexical: float = Field(default=1.0, ge=0)
    dense: float = Field(default=0.7, ge=0)
    offset: float = Field(default=20.0, gt=0)
    """The greater, the less the first ranks stand out."""


class Hybrid:
    """A `Selector`; one instance may serve many sessions and threads."""

    __name__ = "hybrid"

    def __init__(
        self,
        lexical: Selector,
        dense: Selector,
        model: Ask | None = None,
        *,
        summarize: Summarize | None = None,
        fusion: Fusion | None = None,
    ) -> None:
        self.lexical, self.dense, self.fusion = lexical, dense, fusion or Fusion()
        self._by_model = ModelSelector(model, prefilter=self._fused, summarize=summarize) if model is not None else None

    def __call__(self, request: SelectionRequest) -> Ranking:
        if self._by_model is None:
            return self._fused(request)
        chosen = self._by_model(request)
        if chosen.strategy != self._by_model.__name__:
            return chosen
        return Ranking(
            scored=chosen.scored, strategy=self.__name__, reasoning=chosen.reasoning, findings=chosen.findings
        )

    def _fused(self, request: SelectionRequest) -> Ranking:
        words = ranking_by(self.lexical, request)
        try:
            near = ranking_by(self.dense, request)
        except Exception as error:  # the caller's code: whatever it raises, the words have ranked
            return fell_back(self.__name__, words, described(error))
        replaced = [reason_of(finding) for finding in near.findings if finding.kind == FELL_BACK]
        if replaced:
            return fell_back(self.__name__, words, replaced[-1])
        scored = fused(words, near, self.fusion)
        return Ranking(scored=scored, strategy=self.__name__, findings=words.findings + near.findings)


def fused(words: Ranking, near: Ranking, fusion: Fusion) -> tuple[ScoredOriginal, ...]:
    """Two rankings as one, best first; of equals the older message first.

    >>> def ranked(*ordinals): return Ranking(scored=tuple(ScoredOriginal(n, 0.0) for n in ordinals), strategy="any")
    >>> [scored.ordinal for scored in fused(ranked(1, 2, 3), ranked(2, 3), Fusion(dense=1))]
    [2, 3, 1]
    """
    total = fusion.lexical + fusion.dense or 1.0
    signals: dict[tuple[int, int], dict[str, float]] = {}
    """By ordinal and passage: a message found whole, and a passage of it, are two."""
    for name, ranking, weight in (("lexical", words, fusion.lexical), ("dense", near, fusion.dense)):
        share = weight * (fusion.offset + 1) / total
        for rank, scored in enumerate(ranking, start=1):
            signals.setdefault((scored.ordinal, scored.passage), {}).setdefault(name, share / (fusion.offset + rank))
    order = sorted(signals, key=lambda found: (-_score(signals[found]), found))
    return tuple(
        ScoredOriginal(found[0], _score(signals[found]), signals[found], found[1]) for found in order[:MAX_CANDIDATES]
    )


def _score(signals: Mapping[str, float]) -> float:
    return sum(signals.values())


def selector_named(name: str) -> Selector:
    """The strategy of this name, with the model that the package brings: `heuristic`, `semantic`, `hybrid`.

    Raises `InputError` for another: `llm` has to be given a model.
    """
    lexical = Heuristic()
    if name == "heuristic":
        return lexical
    if name in ("semantic", "hybrid"):
        near = Semantic(Multilingual(), fallback=lexical)
        return near if name == "semantic" else Hybrid(lexical, near)
    hint = "ctxsteward.envelope.recall.ModelSelector(ask)" if name == "llm" else "a callable"
    raise InputError(f"no selector is named {name!r:.60}; known: heuristic, semantic, hybrid; or pass {hint}")


__all__ = [
    "E5",
    "Fusion",
    "Heuristic",
    "Hybrid",
    "ModelSelector",
    "Multilingual",
    "QueryEmbedder",
    "Ranking",
    "Semantic",
    "selector_named",
]
