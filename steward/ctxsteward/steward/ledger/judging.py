"""Judging the drafts of an index: each by itself, rivals together, and what a wider record covers left out.

All of them, or one; what a night needs to know of all is kept up to date instead (`standings`). Only drafts that can
contest each other, and those for many, are held in memory at once; the others pass one by one, by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ctxsteward.schemas.recommendation import Review

from ..admission.contest import Standing
from ..admission.gates import judged
from ..admission.policy import AdmissionPolicy
from ..reconcile.draft import Draft
from .contests import Contests, by_component
from .database import Database
from .form import draft_of

BESIDE = (
    "SELECT DISTINCT k.component FROM claims c JOIN said s ON s.claim = c.id JOIN said t ON t.seen = s.seen "
    "JOIN claims k ON k.id = t.claim WHERE c.component IN (…)"
)
"""Components that are made of an observation of these, themselves among them."""

SUPPORTED = (
    "NOT EXISTS (SELECT 1 FROM claims c CROSS JOIN said a ON a.claim = c.id AND NOT a.idle "
    "WHERE c.component = o.component AND NOT EXISTS (SELECT 1 FROM said b CROSS JOIN claims e ON e.id = b.claim "
    "WHERE b.seen = a.seen AND NOT b.idle AND e.component = w.component))"
)
"""That whatever supports a claim's component (o) supports another's (w)."""
COVERED = (
    "SELECT DISTINCT o.component, w.component FROM claims w CROSS JOIN said t ON t.claim = w.id AND NOT t.idle "
    "CROSS JOIN said s ON s.seen = t.seen CROSS JOIN claims o ON o.id = s.claim AND o.component <> w.component "
    "CROSS JOIN drafts d ON d.component = o.component AND NOT d.wide AND d.id IS NOT NULL "
    f"WHERE {SUPPORTED}"
)
"""Components in their authors' own scopes, and wider ones (w) that all of their support supports."""


class Found(NamedTuple):
    """A record to be."""

    component: str
    draft: Draft
    standing: Standing
    tokens: int


class Judging:
    """One judgement; the index must be refreshed."""

    def __init__(
        self,
        database: Database,
        policy: AdmissionPolicy,
        now_seconds: float | None,
        reviews: Mapping[str, Review],
        one: str | None = None,
    ) -> None:
        """`one`: the component that alone is asked about."""
        self._db, self._policy, self._now_seconds, self._one = database, policy, now_seconds, one
        self._reviews = by_component(database, reviews)
        beside = None if one is None else [row[0] for row in database.among(BESIDE, (one,))]
        self._contested = Contests(database, policy, now_seconds, self._reviews).settled(beside)
        self._covered = frozenset(self._covered_by_wider(beside))

    def each(self) -> Iterator[Found]:
        """Every record, by id."""
        for _, component, hidden, tokens, body in self._rows():
            if component not in self._covered and not (hidden and component not in self._reviews):
                draft = draft_of(body)
                yield Found(component, draft, self._standing(component, draft), tokens)

    def review(self, component: str) -> Review | None:
        """What people said of it, under any of its ids."""
        return self._reviews.get(component)

    def _rows(self) -> Iterator[tuple[str, str, int, int, str]]:
        query = "SELECT id, component, hidden, tokens, body FROM drafts WHERE id > ?1 AND malformed IS NULL"
        if self._one is None:
            return self._db.each(f"{query} ORDER BY id")
        return iter(self._db.rows(f"{query} AND component = ?2", "", self._one))

    def _standing(self, component: str, draft: Draft) -> Standing:
        contested = self._contested.get(component)
        if contested is not None:
            return contested
        return Standing(verdict=judged(draft, self._policy, self._now_seconds, self._reviews.get(component)))

    def _covered_by_wider(self, beside: list[str] | None) -> Iterator[str]:
        """Components in their authors' own scopes that say nothing beside an active wider one."""
        query = "SELECT component, body, hidden FROM drafts WHERE wide AND id IS NOT NULL AND malformed IS NULL"
        rows = self._db.rows(query) if beside is None else self._db.among(f"{query} AND component IN (…)", beside)
        active = [
            component
            for component, body, hidden in rows
            if (not hidden or component in self._reviews)
            and self._standing(component, draft_of(body)).verdict.status == "active"
        ]
        yield from (row[0] for row in self._db.among(f"{COVERED} AND w.component IN (…)", active))
