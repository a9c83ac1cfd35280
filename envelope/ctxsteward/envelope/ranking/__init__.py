"""Ranking: which originals of a session say most about a question.

`Heuristic` needs no model and no download. `Semantic` compares embeddings, `Hybrid` fuses both, `ByModel` asks a model;
each of them stands aside for another ranking where it fails, and says so in the `Ranking` it returns. Importing this
loads neither numpy nor weights.
"""

from ctxsteward.schemas import InputError

from ..selection import Ranking, Selector
from .dense import Semantic
from .embedders import E5, Multilingual, QueryEmbedder
from .heuristic import Heuristic
from .hybrid import Fusion, Hybrid
from .llm import ByModel
from .weights import Weights


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
    hint = "ranking.ByModel(ask)" if name == "llm" else "a callable"
    raise InputError(f"no selector is named {name!r:.60}; known: heuristic, semantic, hybrid; or pass {hint}")


__all__ = [
    "E5",
    "ByModel",
    "Fusion",
    "Heuristic",
    "Hybrid",
    "Multilingual",
    "QueryEmbedder",
    "Ranking",
    "Semantic",
    "Weights",
    "selector_named",
]
