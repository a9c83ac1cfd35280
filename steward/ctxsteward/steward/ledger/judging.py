"""Judging all drafts of an index: each by itself, rivals together, and what a wider record covers left out.

Only drafts that can contest each other are held in memory at once; all others pass one by one, in order of their ids
(`each`), or are only counted, which the tables do by themselves (`outcome`): a night looks closely at what is
contested, reviewed or for many, and at nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from ctxsteward.envelope.slices import canonical
from ctxsteward.schemas.recommendation import RecommendationKind, Review, Status

from ..admission.contest import Standing, settled
from ..admission.gates import Verdict, by_support, judged, last_confirmed
from ..admission.policy import AdmissionPolicy
from ..reconcile.claims import Width
from ..reconcile.components import Union
from ..reconcile.draft import Draft
from ..reconcile.support import Backing
from .database import Database
from .form import draft_of

_BACKING = ("strict", "scored", "said", "recovered", "from_tool")
_PLAIN = "plain = 1 AND component NOT IN (SELECT component FROM temp.apart)"


class Found(NamedTuple):
    """A record to be."""

    component: str
    draft: Draft
    standing: Standing
    tokens: int


class Outcome(NamedTuple):
    """What a judgement comes to."""

    statuses: Mapping[Status, int]
    """How many records have which."""
    digest: str
    """Of all that they say: equal for equal records."""


class Judging:
    """One judgement; the index must be refreshed."""

    def __init__(
        self, database: Database, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]
    ) -> None:
        self._db, self._policy, self._now_seconds = database, policy, now_seconds
        self._reviews = self._by_component(reviews)
        self._contested = self._settle(self._clusters())
        self._wide: dict[str, Standing] = {}
        self._covered = frozenset(self._covered_by_wider())

    def each(self) -> Iterator[Found]:
        """Every record, by id."""
        query = "SELECT id, component, body, hidden, tokens FROM drafts WHERE id > ?1 AND malformed IS NULL ORDER BY id"
        for _, component, body, hidden, tokens in self._db.each(query):
            if component not in self._covered and not (hidden and component not in self._reviews):
                draft = draft_of(body)
                yield Found(component, draft, self.standing(component, draft), tokens)

    def for_many(self) -> Iterator[Found]:
        """As `each`, of what is active and reaches more than its author."""
        active = [component for component, standing in self._wide.items() if standing.verdict.status == "active"]
        rows = self._db.among("SELECT id, component, body, tokens FROM drafts WHERE component IN (…)", active)
        for _, component, body, tokens in sorted(rows):
            yield Found(component, draft_of(body), self._wide[component], tokens)

    def outcome(self, total: int) -> Outcome:
        """Count all records, and digest what they say; `total` is that of all drafts."""
        apart = self._apart()
        statuses: Counter[Status] = Counter(standing.verdict.status for standing in apart.values())
        hashed = hashlib.sha256(canonical([[component, repr(apart[component])] for component in sorted(apart)]))
        total += int.from_bytes(hashed.digest(), "big")
        with self._db.writing():
            self._db.run("CREATE TEMP TABLE IF NOT EXISTS apart (component TEXT PRIMARY KEY) WITHOUT ROWID")
            self._db.run("DELETE FROM temp.apart")
            self._db.many("INSERT INTO temp.apart VALUES (?)", [(one,) for one in {*apart, *self._covered}])
            for kind, width in self._db.rows(f"SELECT DISTINCT kind, width FROM drafts WHERE {_PLAIN}"):
                since = last_confirmed(kind, width, self._policy, self._now_seconds)
                total += self._count(statuses, kind, width, since)
        return Outcome(dict(sorted(statuses.items())), f"{total % (1 << 256):064x}")

    def _apart(self) -> dict[str, Standing]:
        """Standings of what cannot be judged by its support alone, by component."""
        found = dict(self._wide)
        contested = self._db.among("SELECT component, id FROM drafts WHERE id IN (…)", sorted(self._contested))
        found |= {component: self._contested[id_] for component, id_ in contested}
        alone = sorted(self._reviews.keys() - found.keys())
        rows = self._db.among(
            "SELECT component, body FROM drafts WHERE id IS NOT NULL AND malformed IS NULL AND component IN (…)", alone
        )
        found |= {component: self.standing(component, draft_of(body)) for component, body in rows}
        return {component: standing for component, standing in found.items() if component not in self._covered}

    def _count(self, statuses: Counter[Status], kind: RecommendationKind, width: Width, since: float) -> int:
        """Add the statuses of plain records of one kind and width; a number for those that have expired."""
        of_kind = f"kind = ? AND width = ? AND {_PLAIN}"
        rows = self._db.rows(
            f"SELECT {', '.join(_BACKING)}, coalesce(last < ?, 0) AS faded, count(*) FROM drafts WHERE {of_kind} "
            f"GROUP BY {', '.join(_BACKING)}, faded", since, kind, width,
        )  # fmt: skip
        for *counts, faded, number in rows:
            backing = Backing(events=0, sessions=0, principals=0, **dict(zip(_BACKING, counts, strict=True)))
            statuses["expired" if faded else by_support(kind, width, backing, self._policy).status] += number
        if since == -inf:
            return 0
        gone = self._db.rows(f"SELECT digest FROM drafts WHERE last < ? AND {of_kind}", since, kind, width)
        return sum(3 * int.from_bytes(digest, "big") for (digest,) in gone)

    def standing(self, component: str, draft: Draft) -> Standing:
        """How one draft stands."""
        return self._contested.get(draft.id) or Standing(verdict=self._judged(component, draft))

    def review(self, component: str) -> Review | None:
        """What people said of it, under any of its ids."""
        return self._reviews.get(component)

    def _judged(self, component: str, draft: Draft) -> Verdict:
        return judged(draft, self._policy, self._now_seconds, self._reviews.get(component))

    def _by_component(self, reviews: Mapping[str, Review]) -> dict[str, Review]:
        """A rejection under one of a record's ids outweighs an approval under another."""
        found: dict[str, Review] = {}
        for claim, component in self._db.among("SELECT id, component FROM claims WHERE id IN (…)", sorted(reviews)):
            if component not in found or reviews[claim].state == "rejected":
                found[component] = reviews[claim]
        return found

    def _clusters(self) -> list[list[str]]:
        """Components that may contest each other."""
        rivals = self._db.rows(
            "SELECT rivals, component FROM drafts WHERE rivals IN (SELECT rivals FROM drafts WHERE rivals <> '' "
            "GROUP BY rivals HAVING count(*) > 1) ORDER BY component"
        )
        pairs = self._db.rows(
            "SELECT DISTINCT a.component, b.component FROM opposed o JOIN claims a ON a.id = o.one "
            "JOIN claims b ON b.id = o.other WHERE a.component < b.component"
        )
        self._opposed: dict[str, set[str]] = defaultdict(set)
        union = Union()
        first: dict[str, str] = {}
        for group, component in rivals:
            union.join(first.setdefault(group, component), component)
        for one, other in pairs:
            self._opposed[one].add(other)
            self._opposed[other].add(one)
            union.join(one, other)
        clusters: dict[str, list[str]] = defaultdict(list)
        for component in sorted(union.members):
            clusters[union.find(component)].append(component)
        return list(clusters.values())

    def _settle(self, clusters: Sequence[Sequence[str]]) -> dict[str, Standing]:
        found: dict[str, Standing] = {}
        for cluster in clusters:
            drafts = {
                component: draft_of(body)
                for component, body, hidden in self._db.among(
                    "SELECT component, body, hidden FROM drafts "
                    "WHERE id IS NOT NULL AND malformed IS NULL AND component IN (…)", cluster
                )
                if not hidden or component in self._reviews
            }  # fmt: skip
            ids = {component: draft.id for component, draft in drafts.items()}
            opposed = {ids[one]: {ids[o] for o in self._opposed.get(one, ()) if o in ids} for one in ids}
            verdicts = {draft.id: self._judged(component, draft) for component, draft in drafts.items()}
            found |= settled(list(drafts.values()), verdicts, opposed)
        return found

    def _covered_by_wider(self) -> Iterator[str]:
        """Components in their authors' own scopes that say nothing beside an active wider one."""
        rows = self._db.rows(
            "SELECT component, body, hidden FROM drafts "
            "WHERE wide AND id IS NOT NULL AND malformed IS NULL ORDER BY component"
        )
        for component, body, hidden in rows:
            if hidden and component not in self._reviews:
                continue
            wide = draft_of(body)
            self._wide[component] = standing = self.standing(component, wide)
            if standing.verdict.status == "active":
                yield from self._said_by(wide)

    def _said_by(self, wide: Draft) -> Iterator[str]:
        """Components in their authors' own scopes that say nothing beside this one."""
        behind = set(wide.observations)
        own = self._db.among(
            "SELECT DISTINCT d.component, d.body FROM said s JOIN claims c ON c.id = s.claim "
            "JOIN drafts d ON d.component = c.component "
            "WHERE NOT d.wide AND d.id IS NOT NULL AND s.seen IN (…)",
            sorted(behind),
        )
        yield from (label for label, text in own if behind.issuperset(draft_of(text).observations))
