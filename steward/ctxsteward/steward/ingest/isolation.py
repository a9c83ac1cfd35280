"""Running one function on many items, one bad item stopping no other.

Two ways, the same answers: `Workers` in processes of their own, under limits of time and memory; `InProcess` right
here, for tests and small runs, without limits. Both take items lazily and hand on each answer as it comes, so memory
does not grow with the number of items; the order of answers says nothing.

Limits hold for one item. `wall_seconds` is kept by the caller, who kills the worker; `cpu_seconds` and `memory_bytes`
by the kernel (RLIMIT_CPU; RLIMIT_AS, counted on top of what an idle worker has mapped).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Generic, NamedTuple, Protocol, TypeVar

from ctxsteward.schemas import ContextError

from .items import Loaded, Quarantined, Reason

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one item may take."""

    wall_seconds: float = 30.0
    cpu_seconds: float = 30.0
    """The kernel counts whole seconds: it is rounded up."""
    memory_bytes: int = 1 << 30


class Answer(NamedTuple, Generic[Result]):
    """What became of one item."""

    item: Loaded
    result: Result | Quarantined


class Isolation(Protocol[Result]):
    """Runs a function that it was made with."""

    def run(self, items: Iterable[Loaded]) -> Iterator[Answer[Result]]:
        """One answer for each item, in any order."""

    def close(self) -> None: ...


class InProcess(Generic[Result]):
    """`Isolation` by `try` alone: an endless loop stays one."""

    def __init__(self, function: Callable[[Loaded], Result]) -> None:
        self._function = function

    def run(self, items: Iterable[Loaded]) -> Iterator[Answer[Result]]:
        for item in items:
            try:
                yield Answer(item, self._function(item))
            except Exception as error:
                yield Answer(item, quarantined(item, *reason_of(error)))

    def close(self) -> None:
        """Nothing to release."""


def quarantined(item: Loaded, reason: Reason, detail: str) -> Quarantined:
    return Quarantined(source=item.source, name=item.name, reason=reason, detail=detail)


def reason_of(error: Exception) -> tuple[Reason, str]:
    """Why an item failed: the kind of error and where it was raised, never what it says, which may quote a text."""
    if isinstance(error, MemoryError):
        return "memory_limit", "it needs more memory than there is"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    told = f": {' '.join(str(error).split())[:200]}" if isinstance(error, ContextError) else ""
    return "failed", f"{type(error).__name__}{where}{told}"
