"""Judging the drafts of an index, and what their records rest on: spans, runs, people.

Drafts are judged each by itself, then rivals together, and what a wider record covers is left out. Records are bound
together by a slot that holds one value and by claims that say the opposite. How a record stands depends only on its
*cluster*, all that it is bound to directly or through others (`admission.settle_contests`), so a cluster is weighed as
a whole (`ContestIndex`). `DraftJudge` judges all drafts, or one; what a night needs of all of them is kept up to date
instead (`status`). Only drafts that can contest each other, and those for many, are held in memory at once; the others
pass one by one, by id.

`RecordEvidence` says what records rest on: the words of their spans, whether the bytes are still theirs, and who stands
behind them. `basis` counts what people are told of a record before they decide: runs, by what was done in them and how
they ended.

`support` names everybody behind a draft, in addresses of subjects, because forgetting asks about it: a place is gone
with its session and with anybody whose words the observation is made of. A record that a person approved needs one
voice; a fix as many principals as its gate wants recoveries; a record for many as many principals as its gate wants.
Names that look alike are one voice. Of what is for one person alone nothing is told.

The index must be refreshed. Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.recommendation import Evidence, Review
from ctxsteward.store.crypto.keyring import AddressKey, subject_of

from ..admission import AdmissionPolicy, RecordStanding, admission_verdict, settle_contests
from ..artifacts.artifact import CitedText, EvidenceQuote, quotes, verified
from ..artifacts.storage import ArtifactStore
from ..erasure import RecordSupport, SupportPlace, support_of
from ..observations.observation import KINDS
from ..reconcile.claims import DisjointSets, IndexedObservation, voice_of
from ..reconcile.draft import Draft
from .database import LedgerDatabase, drafts_of, observations

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
            "SELECT component, hidden FROM drafts WHERE id IS NOT NULL AND malformed IS NULL AND component IN (…)",
            cluster,
        )
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
                "JOIN claims b ON b.id = o.other WHERE a.component <> b.component AND a.component IN (…)",
                edge,
            )
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

    def each(self) -> Iterator[tuple[str, Draft, RecordStanding, int]]:
        """Every record to be, by id: its component, draft, standing and tokens."""
        shown = (row for row in self._rows() if row[1] not in self._covered and self._is_shown(row[1], row[2]))
        while page := list(islice(shown, PAGE)):
            drafts = drafts_of(self._db, [component for _, component, _, _ in page])
            for _, component, _, tokens in page:
                draft = drafts[component]
                yield component, draft, self._standing(component, draft), tokens

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
        return admission_verdict(draft, self._policy, self._now_seconds, self._reviews.get(component))

    def _covered_by_wider(self, beside: list[str] | None) -> Iterator[str]:
        """Components in their authors' own scopes that say nothing beside an active wider one."""
        query = "SELECT component, hidden FROM drafts WHERE wide AND id IS NOT NULL AND malformed IS NULL"
        rows = self._db.rows(query) if beside is None else self._db.among(f"{query} AND component IN (…)", beside)
        shown = [component for component, hidden in rows if self._is_shown(component, hidden)]
        active = [
            component
            for start in range(0, len(shown), PAGE)
            for component, draft in drafts_of(self._db, shown[start : start + PAGE]).items()
            if self._standing(component, draft).status == "active"
        ]
        yield from (row[0] for row in self._db.among(f"{COVERED} AND w.component IN (…)", active))


Address = Callable[[str], str]
"""Address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[IndexedObservation], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> RecordSupport | None:
    """The voices behind a draft, out of the observations that support it; None where its gate counts no voices."""
    gate = KINDS[draft.kind].gate
    if gate in ("fix", "contrast"):
        met = list(seen)
        worked = [one for one in met if one.observation.strength == "recovered"]
        least, counted = policy.recoveries, worked or (met if approved else [])
    elif gate == "seen":
        least, counted = policy.independent_principals, list(seen)
    elif draft.audience.width != "user":
        least, counted = policy.independent_principals, [one for one in seen if one.is_said]
    else:
        return None
    voices: dict[tuple[str, str], list[SupportPlace]] = defaultdict(list)
    for one in counted:
        who = voice_of(one.observation.principal)
        # runs count by their tasks at these gates, not by who speaks: those of unknown speakers count one by one
        run = one.session if gate in ("contrast", "seen") and not who else ""
        voices[who, run].append(_place(one, address))
    return support_of(voices, 1 if approved else least) if voices else None


def _place(one: IndexedObservation, address: Address) -> SupportPlace:
    session = one.session
    people = {one.observation.principal, *(span.principal for span in one.spans)}
    return tuple(sorted({address(session), *(address(subject_of(session, who)) for who in people)}))


EvidenceKind = Literal["said", "confirmed", "worked", "failed", "from_tool"]
"""What speaks for or against a record: a person's word, an internal tool's answer, runs in which a fix was done that
succeeded or failed, and a tool's text alone."""


class TriedFix(NamedTuple):
    """What was done about one tool error, in how many runs of each end."""

    action: str
    succeeded: int
    failed: int
    untold: int
    """Nobody says how they ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBasis:
    """What stands behind a record, counted over all of its observations."""

    names: tuple[str, ...]
    """All ids that its claims have."""
    kinds: tuple[EvidenceKind, ...]
    transcripts: int
    """Those in which it came up."""
    read: int
    """All that were read."""
    voices: int
    """Independent ones."""
    helped: int
    """Those for whom a fix worked, in runs that succeeded."""
    tried: tuple[TriedFix, ...]
    """Of a tool error, the most often done first; of anything else nothing."""


class RecordEvidence:
    """Asks a `LedgerDatabase` for what stands behind its records, and the store for the words."""

    def __init__(self, database: LedgerDatabase, artifacts: ArtifactStore, key: AddressKey, address: Address) -> None:
        self._db, self._artifacts, self._key, self._address = database, artifacts, key, address

    def why(self, id: str) -> tuple[EvidenceQuote, ...]:
        """The spans a record rests on, with their words; empty for an id that is not known."""
        evidence = self._evidence(id)
        return tuple(quotes(evidence, self._cited(evidence), self._key))

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy) -> RecordSupport | None:
        """Everybody behind a record; None where it is not known or counts no voices."""
        rows = self._db.rows("SELECT component FROM drafts WHERE id = ? AND malformed IS NULL", record.id)
        if not rows:
            return None
        seen = self._db.rows(
            "SELECT s.seen FROM claims c CROSS JOIN said s ON s.claim = c.id AND NOT s.idle WHERE c.component = ?",
            rows[0][0],
        )
        approved = record.review is not None and record.review.state == "approved"
        draft = drafts_of(self._db, rows[0])[rows[0][0]]
        counted = observations(self._db, dict.fromkeys(row[0] for row in seen))
        return support(draft, counted.values(), policy, self._address, approved=approved)

    def basis(self, id: str) -> RecordBasis | None:
        """What stands behind the record of this id; None where it is not known."""
        rows = self._db.rows("SELECT component FROM drafts WHERE id = ? AND malformed IS NULL", id)
        if not rows:
            return None
        component = rows[0][0]
        draft = drafts_of(self._db, (component,))[component]
        names = self._db.rows("SELECT id FROM claims WHERE component = ? ORDER BY id", component)
        read = self._db.rows("SELECT count(DISTINCT session) FROM artifacts WHERE live")[0][0]
        backing = draft.backing
        counts: dict[EvidenceKind, int] = {
            "said": backing.said,
            "confirmed": backing.confirmed,
            "worked": backing.obeyed_succeeded,
            "failed": backing.obeyed_failed,
            "from_tool": backing.from_tool,
        }
        return RecordBasis(
            names=tuple(row[0] for row in names),
            kinds=tuple(kind for kind, count in counts.items() if count),
            transcripts=backing.sessions,
            read=read,
            voices=backing.principals,
            helped=backing.helped,
            tried=self._tried(component) if KINDS[draft.kind].gate == "fix" else (),
        )

    def _tried(self, component: str) -> tuple[TriedFix, ...]:
        """By what was done: in how many runs."""
        rows = self._db.rows(
            "SELECT min(n.id), count(DISTINCT CASE n.strength WHEN 'recovered' THEN n.session END), "
            "count(DISTINCT CASE n.strength WHEN 'failed' THEN n.session END), "
            "count(DISTINCT CASE WHEN n.strength NOT IN ('recovered', 'failed') THEN n.session END) "
            "FROM claims c CROSS JOIN said s ON s.claim = c.id AND NOT s.idle CROSS JOIN seen n ON n.id = s.seen "
            "WHERE c.component = ? GROUP BY n.text",
            component,
        )
        seen = observations(self._db, [row[0] for row in rows])
        tried = (TriedFix(seen[id_].observation.action or "", *counts) for id_, *counts in rows)
        return tuple(sorted(tried, key=lambda one: (-sum(one[1:]), one.action)))

    def recurring(self, since_seconds: float, until_seconds: float) -> list[tuple[str, int]]:
        """Records whose words are a template, and in how many transcripts of a time each came up; the most first."""
        templates = [kind for kind, spec in KINDS.items() if spec.is_template and spec.gate != "contrast"]
        marks = ", ".join("?" * len(templates))
        return self._db.rows(
            "SELECT d.id, count(DISTINCT n.session) AS times FROM seen n CROSS JOIN said s ON s.seen = n.id "
            "CROSS JOIN claims c ON c.id = s.claim CROSS JOIN drafts d ON d.component = c.component "
            "WHERE n.seconds >= ? AND n.seconds < ? AND d.id IS NOT NULL AND d.malformed IS NULL "
            f"AND n.id NOT IN (SELECT seen FROM derived) AND d.kind IN ({marks}) "
            "GROUP BY d.id ORDER BY times DESC, d.id",
            since_seconds,
            until_seconds,
            *templates,
        )

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Those of the evidence whose bytes are not what their addresses say, or are gone."""
        told = zip(evidence, self._cited(evidence), strict=True)
        return tuple(one for one, cited in told if not verified(one, cited, self._key))

    def _evidence(self, id: str) -> tuple[Evidence, ...]:
        rows = self._db.rows("SELECT component FROM claims WHERE id = ?", id)
        drafts = drafts_of(self._db, [row[0] for row in rows])
        return tuple(Evidence(**one) for draft in drafts.values() for one in draft.evidence)

    def _cited(self, evidence: Sequence[Evidence]) -> list[CitedText | None]:
        found: dict[tuple[str, str], dict[str, CitedText]] = {}
        for one in evidence:
            place = (one.source, one.session)
            if place not in found:
                rows = self._db.rows("SELECT address FROM artifacts WHERE live AND source = ? AND session = ?", *place)
                kept = [self._artifacts.find(row[0]) for row in rows]
                found[place] = {cited.ref: cited for artifact in kept if artifact for cited in artifact.cited}
        return [found[one.source, one.session].get(one.ref) for one in evidence]
