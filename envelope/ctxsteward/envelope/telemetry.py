"""What the request path tells OpenTelemetry. The API is imported when something is first told, never before.

    context.cache_miss   counter; attribute `reason`: original | compaction | record | restored | envelope | manifest

A *miss* is a stored envelope, summary or record that is missing, unreadable or stale and had to be regenerated, fetched
elsewhere or done without. Without an SDK installed and set up, telling costs a microsecond and goes nowhere. No session
or tenant is ever an attribute.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter

METER = "ctxsteward"
CACHE_MISS = "context.cache_miss"


def cache_miss(reason: str) -> None:
    """Count a stored thing that could not be used."""
    _cache_misses().add(1, {"reason": reason})


@cache
def _cache_misses() -> Counter:
    from opentelemetry.metrics import get_meter

    text = "Stored envelopes, summaries and records that were missing, unreadable or stale."
    return get_meter(METER).create_counter(CACHE_MISS, unit="1", description=text)
