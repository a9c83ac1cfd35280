"""The order of a run: shuffled, so that no test comes to rest on what another leaves behind.

The seed of the drawn cases (`tests/examples.py`) draws the order as well, so one setting repeats a run that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def shuffled(items: Iterable[Item], file_of: Callable[[Item], str], seed: str) -> list[Item]:
    """Files in a drawn order, and the tests of each file in a drawn order.

    Each file has a draw of its own, so a file that is run alone with the same seed has the same order.

    >>> tests = ["a::1", "a::2", "a::3", "b::1", "b::2"]
    >>> order = shuffled(tests, lambda test: test[0], "17")
    >>> sorted(order) == tests
    True
    >>> alone = shuffled(tests[:3], lambda test: test[0], "17")
    >>> [test for test in order if test in alone] == alone
    True
    """
    by_file: dict[str, list[Item]] = {}
    for item in items:
        by_file.setdefault(file_of(item), []).append(item)
    files = sorted(by_file, key=lambda file: Random(f"{seed} {file}").random())
    for file in files:
        Random(f"{seed} in {file}").shuffle(by_file[file])
    return [item for file in files for item in by_file[file]]
