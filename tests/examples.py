"""How many cases a test tries: a part on every run, another one each time, and all of them where time is no matter.

What is drawn hangs on `SEED`, which a run that fails tells: ``CTXSTEWARD_DRAW=… make test`` draws the same again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
SEED = os.environ.setdefault("CTXSTEWARD_DRAW", secrets.token_hex(4))
"""Of this run, its processes included."""
Case = TypeVar("Case")
Proved = Callable[[str, object], None]
"""pytest's `record_property`: a test notes under ``proved`` what it tried, and `make proof` writes it into a page."""


def examples(count: int) -> int:
    """For `settings(max_examples=...)`: `count` under CTXSTEWARD_SOAK=1, else a tenth, but not under six.

    >>> examples(300) in {30, 300}
    True
    """
    return count if SOAK else max(6, count // 10)


def drawn(
    cases: Sequence[Case], count: int, name: str, *, kind: Callable[[Case], Hashable] | None = None, seed: str = SEED
) -> list[Case]:
    """All cases under CTXSTEWARD_SOAK=1, else so many of them in their order, and one of each kind at least.

    `name` makes draws of a run differ.

    >>> len(drawn(range(100), 5, "a doctest")) in {5, 100}
    True
    >>> {case // 10 for case in drawn(range(100), 5, "a doctest", kind=lambda case: case // 10)} == set(range(10))
    True
    """
    if SOAK:
        return list(cases)
    order = list(range(len(cases)))
    Random(f"{seed} {name}").shuffle(order)
    firsts = {kind(cases[place]): place for place in order}.values() if kind is not None else ()
    others = [place for place in order if place not in set(firsts)]
    chosen = [*firsts, *others[: max(0, count - len(firsts))]]
    return [cases[place] for place in sorted(chosen)]
