"""Who runs the batches of a night: this process's threads, or whoever else a shell brings.

A runner is given what it may do to one batch and the batches, and yields what became of each, in their order. A batch
that raises is a `BatchFailed` and sinks nothing else; its transcripts stay due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from .batches import Batch, BatchFailed, BatchResult

Harvest = Callable[[Batch], BatchResult]
"""Reads the transcripts of a batch, keeps what they hold, and says what became of it. Repeating it does no harm."""

Run = Callable[[Iterable[Batch]], Iterator[BatchResult | BatchFailed]]
"""A runner that has been told what to do."""


def in_threads(harvest: Harvest, workers: int, close: Callable[[], object] = lambda: None) -> Run:
    """Run batches in a pool of threads, then `close`; at most twice as many are under way as there are threads."""

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailed]:
        try:
            with ThreadPoolExecutor(workers, thread_name_prefix="ctxsteward batch") as pool:
                under_way: deque[tuple[Batch, Future[BatchResult]]] = deque()
                for batch in batches:
                    under_way.append((batch, pool.submit(harvest, batch)))
                    if len(under_way) >= 2 * workers:
                        yield _ended(*under_way.popleft())
                while under_way:
                    yield _ended(*under_way.popleft())
        finally:
            close()

    return run


def _ended(batch: Batch, future: Future[BatchResult]) -> BatchResult | BatchFailed:
    error = future.exception()
    return BatchFailed(batch, type(error).__name__) if error is not None else future.result()
