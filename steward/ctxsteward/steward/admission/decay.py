"""Decay: what a record is worth when nobody has confirmed it for a while.

Times are Unix seconds; a record that was never dated does not fade, nor does anything where the present is not told.
"""

from __future__ import annotations

from math import inf, log2

DAY_SECONDS = 86_400.0


def worth(last_seconds: float, now_seconds: float | None, half_life_days: float | None) -> float:
    """1 when confirmed just now, halved once each half-life.

    >>> worth(0, 30 * DAY_SECONDS, 30), worth(0, None, 30), worth(0, 1e9, None)
    (0.5, 1.0, 1.0)
    """
    if now_seconds is None or half_life_days is None or last_seconds == -inf:
        return 1.0
    age_days = max(0.0, now_seconds - last_seconds) / DAY_SECONDS
    return float(0.5 ** (age_days / half_life_days))


def faded_before(now_seconds: float | None, half_life_days: float | None, expire_below: float) -> float:
    """What was last confirmed before this moment is worth less than `expire_below`; -inf: nothing is.

    >>> faded_before(100 * DAY_SECONDS, 30, 0.25) / DAY_SECONDS
    40.0
    """
    if now_seconds is None or half_life_days is None or expire_below == 0:
        return -inf
    return now_seconds - half_life_days * log2(1 / expire_below) * DAY_SECONDS
