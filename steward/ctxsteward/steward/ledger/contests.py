"""Contests in an index: which records may contest each other, and how those stand that do.

Records are bound together by a slot that holds one value and by claims that say the opposite; a *cluster* is all that
is bound, directly or by way of others. How a record stands depends on its cluster alone (`admission.contest`), so a
cluster is weighed as a whole and the others are left as they are. Only clusters that are asked for are held in memory.

The index must be refreshed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ctxsteward.schemas.recommendation import Review

from ..admission.contest import Standing, settled
from ..admission.gates import judged
from ..admission.policy import AdmissionPolicy
from ..reconcile.components import Union
from .database import Database
from .form import draft_of


def by_component(database: Database, reviews: Mapping[str, Review]) -> dict[str, Review]:
    """Reviews by the component they are of; a rejection under one id outweighs an approval under another."""
    found: dict[str, Review] = {}
    for claim, component in database.among("SELECT id, component FROM claims WHERE id IN (…)", sorted(reviews)):
        if component not in found or reviews[claim].state == "rejected":
            found[component] = reviews[claim]
    return found


class Contests:
    """Weighs clusters, under one policy, at one time, with what people said."""

    def __init__(
        self, database: Database, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]
    ) -> None:
        """`reviews` are by component."""
        self._db, self._policy, self._now_seconds, self._reviews = database, policy, now_seconds, reviews

    def settled(self, among: Collection[str] | None = None) -> dict[str, Standing]:
        """By component, how all stand that are in a cluster with any of these components; None: with any at all."""
        rivals, pairs = self._all_bound() if among is None else self._bound_to(among)
        opposed: dict[str, set[str]] = defaultdict(set)
        union = Union()
        first: dict[str, str] = {}
        for group, component in rivals:
            union.join(first.setdefault(group, component), component)
        for one, other in pairs:
            opposed[one].add(other)
            opposed[other].add(one)
            union.join(one, other)
        clusters: dict[str, list[str]] = defaultdict(list)
        for component in sorted(union.members):
            clusters[union.find(component)].append(component)
        found: dict[str, Standing] = {}
        for cluster in clusters.values():
            if len(cluster) > 1:
                found |= self._weighed(cluster, opposed)
        return found

    def _weighed(self, cluster: Sequence[str], opposed: Mapping[str, Collection[str]]) -> dict[str, Standing]:
        rows = self._db.among(
            "SELECT component, body, hidden FROM drafts WHERE id IS NOT NULL AND malformed IS NULL "
            "AND component IN (…)", cluster
        )  # fmt: skip
        drafts = {name: draft_of(body) for name, body, hidden in rows if not hidden or name in self._reviews}
        ids = {component: draft.id for component, draft in drafts.items()}
        against = {ids[one]: {ids[o] for o in opposed.get(one, ()) if o in ids} for one in ids}
        verdicts = {
            draft.id: judged(draft, self._policy, self._now_seconds, self._reviews.get(component))
            for component, draft in drafts.items()
        }
        standing = settled(list(drafts.values()), verdicts, against)
        return {component: standing[id_] for component, id_ in ids.items()}

    def _all_bound(self) -> tuple[list[Any], list[Any]]:
        """Components by slot, and pairs that are opposed."""
        rivals = self._db.rows(
            "SELECT rivals, component FROM drafts WHERE rivals <> '' AND rivals IN (SELECT rivals FROM drafts "
            "WHERE rivals <> '' GROUP BY rivals HAVING count(*) > 1) ORDER BY component"
        )
        pairs = self._db.rows(
            "SELECT DISTINCT a.component, b.component FROM opposed o JOIN claims a ON a.id = o.one "
            "JOIN claims b ON b.id = o.other WHERE a.component < b.component"
        )
        return rivals, pairs

    def _bound_to(self, among: Collection[str]) -> tuple[list[Any], list[Any]]:
        """The same, of the clusters of these components alone."""
        rivals: list[Any] = []
        pairs: list[Any] = []
        known, edge = set(among), sorted(among)
        while edge:
            groups = list(self._mates(edge))
            against = self._db.among(
                "SELECT DISTINCT a.component, b.component FROM claims a JOIN opposed o ON o.one = a.id "
                "JOIN claims b ON b.id = o.other WHERE a.component <> b.component AND a.component IN (…)", edge
            )  # fmt: skip
            rivals += groups
            pairs += against
            edge = sorted({component for _, component in (*groups, *against)} - known)
            known.update(edge)
        return rivals, pairs

    def _mates(self, components: Sequence[str]) -> Iterator[tuple[str, str]]:
        rows = self._db.among("SELECT rivals FROM drafts WHERE rivals <> '' AND component IN (…)", components)
        groups = sorted({row[0] for row in rows})
        yield from self._db.among("SELECT rivals, component FROM drafts WHERE rivals <> '' AND rivals IN (…)", groups)
