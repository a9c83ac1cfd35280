"""Rankings for the recall eval: the product's own, the newest first, and an oracle as the upper bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from ctxsteward.envelope import Counter, ScoredOriginal, SelectionRequest, Selector, load_tokenizer
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.strategies import Hybrid, Multilingual, Semantic
from ctxsteward.schemas import InputError


def recency(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    """Rank the newest first, like a sliding window."""
    return [ScoredOriginal(ordinal, float(ordinal)) for ordinal in range(request.last, 0, -1)]


class BestThatFits:
    """Oracle that gets the evidence of each question, and takes as many of its messages as fit, the shortest first."""

    def __init__(self) -> None:
        self._evidence: Sequence[int] = ()
        self._counter = Counter(load_tokenizer("o200k_base"))

    def told(self, evidence: Sequence[int]) -> None:
        """Set the ordinals that answer the next question."""
        self._evidence = evidence

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        evidence = [ordinal for ordinal in self._evidence if ordinal <= request.last]
        evidence.sort(key=lambda ordinal: request.entry(ordinal).tokens(self._counter))
        return [ScoredOriginal(ordinal, float(-at)) for at, ordinal in enumerate(evidence)]


@cache
def _embedder() -> Multilingual:
    """Load one embedder for all conversations; raise `InputError` if the extra is not installed."""
    embedder = Multilingual()
    try:
        embedder.load()
    except ImportError as error:
        raise InputError(
            f"semantic and hybrid need the extra `dense`: pip install 'ctxsteward[dense]' ({error})"
        ) from None
    return embedder


RANKINGS: Mapping[str, Callable[[], Selector]] = {
    "heuristic": Heuristic,
    "recency": lambda: recency,
    "oracle": BestThatFits,
    "semantic": lambda: Semantic(_embedder(), fallback=Heuristic()),
    "hybrid": lambda: Hybrid(Heuristic(every_turn=True), Semantic(_embedder(), fallback=Heuristic())),
}
