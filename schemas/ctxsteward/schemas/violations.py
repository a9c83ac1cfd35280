"""Counts, for each published schema, how many documents were refused in this process; telemetry reports them.

Apart from `publish`, because that loads every model, and who counts or reads the counts needs none of them.
`publish.validate` counts by itself. Code that reads a value with the schema's own model, and so never calls `validate`,
wraps the reading in `counted`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counting = threading.Lock()
_violations: Counter[str] = Counter()


def count(name: str) -> None:
    """Count one refused document of this schema."""
    with _counting:
        _violations[name] += 1


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Count what is refused inside: an `InputError`, or pydantic's `ValidationError`; both are `ValueError`s."""
    try:
        yield
    except ValueError:
        count(name)
        raise


def violations() -> dict[str, int]:
    """How many values of each schema were refused in this process."""
    with _counting:
        return dict(_violations)
