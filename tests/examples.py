"""How many examples a property test tries: a fifth on every run, all of them where time is no matter."""

from __future__ import annotations

import os

SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"


def examples(count: int) -> int:
    """For `settings(max_examples=...)`: `count` under CTXSTEWARD_SOAK=1, else a fifth, but not under ten.

    >>> examples(300) in {60, 300}
    True
    """
    return count if SOAK else max(10, count // 5)
