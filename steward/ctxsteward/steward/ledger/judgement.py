"""Judging the drafts of an index: each by itself, rivals together, and what a wider record covers left out.

Records are bound together by a slot that holds one value and by claims that say the opposite. How a record stands
depends only on its *cluster*, all that it is bound to directly or through others (`admission.settle_contests`), so a
cluster is weighed as a whole (`ContestIndex`). `DraftJudge` judges all drafts, or one; what a night needs of all of
them is kept up to date instead (`status`). Only drafts that can contest each other, and those for many, are held in
memory at once; the others pass one by one, by id.

The index must be refreshed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ctxsteward.schemas import Review

from ..admission import AdmissionPolicy, RecordStanding, admission_verdict, settle_contests
from ..reconcile import DisjointSets, Draft
from .database import LedgerDatabase, drafts_of

PAGE = 400
"""Drafts read at once."""


def by_component(database: LedgerDatabase, reviews: Mapping[str, Review]) -> dict[str, Review]:
    """Reviews by the component they are of; a rejection under one id outweighs an approval under another."""
    found: dict[str, Review] = {}
    for claim, component in database.among("SELECT id, component FROM claims WHERE id IN (…)", sorted(reviews)):
        if component not in found or reviews[claim].state == "rejected":
            found[component] = reviews[claim]
    return found


class ContestIndex:
    """Weighs clusters, under one policy, at one time, with what people said."""

    def __init__(
        self,
        database: LedgerDatabase,
        policy: AdmissionPolicy,
        now_seconds: float | None,
        reviews: Mapping[str, Review],
    ) -> None:
        """`reviews` are by component."""
        self._db, self._policy, self._now_seconds, self._reviews = database, policy, now_seconds, reviews

    def settled(self, among: Collection[str] | None = None) -> dict[str, RecordStanding]:
        """By component, how all stand that are in a cluster with any of these components; None: with any at all."""
        rivals, pairs = self._all_bound() if among is None else self._bound_to(among)
        opposed: dict[str, set[str]] = defaultdict(set)
        union = DisjointSets()
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
        found: dict[str, RecordStanding] = {}
        for cluster in clusters.values():
            if len(cluster) > 1:
                found |= self._weighed(cluster, opposed)
        return found

    def _weighed(self, cluster: Sequence[str], opposed: Mapping[str, Collection[str]]) -> dict[str, RecordStanding]:
        rows = self._db.among(
            "SELECT component, hidden FROM drafts WHERE id IS NOT NULL AND malformed IS NULL "
            "AND component IN (…)", cluster
        )  # fmt: skip
        shown = [name for name, hidden in rows if not hidden or name in self._reviews]
        drafts = drafts_of(self._db, shown)
        ids = {component: draft.id for component, draft in drafts.items()}
        against = {ids[one]: {ids[o] for o in opposed.get(one, ()) if o in ids} for one in ids}
        verdicts = {
            draft.id: admission_verdict(draft, self._policy, self._now_seconds, self._reviews.get(component))
            for component, draft in drafts.items()
        }
        standing = settle_contests(list(drafts.values()), verdicts, against)
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


class JudgedDraft(NamedTuple):
    """A record to be."""

    component: str
    draft: Draft
    standing: RecordStanding
    tokens: int


class DraftJudge:
    """One judgement; the index must be refreshed."""

    def __init__(
        self,
        database: LedgerDatabase,
        policy: AdmissionPolicy,
        now_seconds: float | None,
        reviews: Mapping[str, Review],
        one: str | None = None,
    ) -> None:
        """`one`: the component that alone is asked about."""
        self._db, self._policy, self._now_seconds, self._one = database, policy, now_seconds, one
        self._reviews = by_component(database, reviews)
        beside = None if one is None else [row[0] for row in database.among(BESIDE, (one,))]
        self._contested = ContestIndex(database, policy, now_seconds, self._reviews).settled(beside)
        self._covered = frozenset(self._covered_by_wider(beside))

    def each(self) -> Iterator[JudgedDraft]:
        """Every record, by id."""
        shown = (row for row in self._rows() if row[1] not in self._covered and self._is_shown(row[1], row[2]))
        while page := list(islice(shown, PAGE)):
            drafts = drafts_of(self._db, [component for _, component, _, _ in page])
            for _, component, _, tokens in page:
                draft = drafts[component]
                yield JudgedDraft(component, draft, self._standing(component, draft), tokens)

    def _is_shown(self, component: str, hidden: int) -> bool:
        return not hidden or component in self._reviews

    def review(self, component: str) -> Review | None:
        """What people said of it, under any of its ids."""
        return self._reviews.get(component)

    def _rows(self) -> Iterator[tuple[str, str, int, int]]:
        query = "SELECT id, component, hidden, tokens FROM drafts WHERE id > ?1 AND malformed IS NULL"
        if self._one is None:
            return self._db.each(f"{query} ORDER BY id")
        return iter(self._db.rows(f"{query} AND component = ?2", "", self._one))

    def _standing(self, component: str, draft: Draft) -> RecordStanding:
        contested = self._contested.get(component)
        if contested is not None:
            return contested
        return RecordStanding(
            verdict=admission_verdict(draft, self._policy, self._now_seconds, self._reviews.get(component))
        )

    def _covered_by_wider(self, beside: list[str] | None) -> Iterator[str]:
        """Components in their authors' own scopes that say nothing beside an active wider one."""
        query = "SELECT component, hidden FROM drafts WHERE wide AND id IS NOT NULL AND malformed IS NULL"
        rows = self._db.rows(query) if beside is None else self._db.among(f"{query} AND component IN (…)", beside)
        shown = [component for component, hidden in rows if self._is_shown(component, hidden)]
        active = [
            component
            for start in range(0, len(shown), PAGE)
            for component, draft in drafts_of(self._db, shown[start : start + PAGE]).items()
            if self._standing(component, draft).verdict.status == "active"
        ]
        yield from (row[0] for row in self._db.among(f"{COVERED} AND w.component IN (…)", active))
