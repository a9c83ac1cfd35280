"""Ranking: which originals of a session say most about a question.

`Heuristic` needs no model and no download. `Semantic` compares embeddings, `Hybrid` fuses both, `ByModel` asks a model;
each of them stands aside for another ranking where it fails, and says so in the `Ranking` it returns. Importing this
loads neither numpy nor weights.
"""

from ..selection import Ranking
from .dense import Semantic
from .embedders import E5, Multilingual, QueryEmbedder
from .heuristic import Heuristic
from .hybrid import Fusion, Hybrid
from .llm import ByModel
from .weights import Weights

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
]
