"""Which records a session was shown: those of the profiles it was under, and the facts of its turns.

A session lends no support to a record that it was shown: what it repeats it may have from there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events import Head, Selected


def shown_in(rows: Iterable[object]) -> frozenset[str]:
    """Ids of the records in these rows of a log."""
    found: set[str] = set()
    for row in rows:
        if isinstance(row, Head) and row.profile is not None:
            found.update(record["id"] for record in row.profile.get("meta", ()))
        elif isinstance(row, Selected):
            found.update(fact.id for fact in row.facts)
    return frozenset(found)
