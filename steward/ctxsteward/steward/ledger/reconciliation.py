"""Merge equal claims of a ledger into components, and draft a record from each.

A component is a set of claims with the same value of one thing, or of claims that several people mean alike; its label
is its least id. A draft is made from all observations of its component, so the result depends only on the set of
observations, not on their order. All claims are in memory at once; observations are read in pages.

A session that was shown a record supports neither it nor a claim that may repeat it in other words (`_supporting`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import inf

from ..harvest.people.own_words import OWN_WORDS
from ..observations.observation import KINDS
from ..reconcile.claims import Claim, DisjointSets, ObservationBrief, is_paraphrase, is_same_cause
from ..reconcile.draft import Draft, draw_draft, summarize_draft, supporting
from .database import BRIEF, LedgerDatabase, claim_in, observations
from .meanings import groups_by_meaning
from .records import LedgerIdentity, flaw_of

COMPONENTS_AT_ONCE = 400
VOICES = 2
"""A claim of fewer people makes no record and is not shown to reviewers, unless it was reviewed."""


Members = list[tuple[str, ObservationBrief]]
"""Observations, each with its claim."""


class Reconciliation:
    """All components of a ledger."""

    def __init__(self, database: LedgerDatabase, frame: LedgerIdentity) -> None:
        """Reconcile all observations of a ledger."""
        self._db = database
        self._claims: dict[str, Claim] = {}
        # The observation with the least id gives the claim's words, so that their order does not matter.
        query = "SELECT claim, min(id), says FROM seen GROUP BY claim ORDER BY claim"
        for id_, _, says in database.rows(query):
            self._claims[id_] = claim_in(id_, says)
        labels, self.opposed = _joined(self._claims)
        self.labels, self._alike = _grouped(database, self._claims, labels)
        """Labels of components by claim; labels of the components that several people mean alike."""
        self._components: dict[str, list[str]] = defaultdict(list)
        for id_, label in self.labels.items():
            self._components[label].append(id_)
        self.drafts: dict[str, Draft] = {}
        """Drafts by component, without those of too few people or too few tasks."""
        components = sorted(self._components)
        for start in range(0, len(components), COMPONENTS_AT_ONCE):
            self.drafts.update(self._drafted(components[start : start + COMPONENTS_AT_ONCE], least_voices=VOICES))
        flaws = ((label, flaw_of(draft, frame)) for label, draft in self.drafts.items())
        self.flaws: dict[str, str] = {label: flaw for label, flaw in flaws if flaw is not None}
        """Why the schema of records refuses drafts, by component."""

    def draft(self, id: str) -> Draft | None:
        """Return the draft with this id, or with this id before its claim was merged with others."""
        label = self.labels.get(id)
        if label is None:
            return None
        return self.drafts.get(label) or dict(self._drafted([label], least_voices=0)).get(label)

    def supporting(self, draft: Draft) -> list[ObservationBrief]:
        """Return the observations that support a draft."""
        return [brief for _, brief in self._supporting(draft.names, self._members(draft.names))]

    def _drafted(self, labels: Sequence[str], *, least_voices: int) -> Iterator[tuple[str, Draft]]:
        """Yield the drafts of components with enough voices; reads the observations that they quote in one query."""
        names = {id_: label for label in labels for id_ in self._components[label]}
        rows: dict[str, Members] = defaultdict(list)
        for claim, brief in self._members(names):
            rows[names[claim]].append((claim, brief))
        summaries: dict[str, Draft] = {}
        for label in labels:
            members, alike = self._supporting(self._components[label], rows[label]), label in self._alike
            if members and _voices(members, is_alike=alike) >= least_voices:
                summary = summarize_draft(members, alike=alike)
                if summary is not None:
                    summaries[label] = summary
        quoted = observations(self._db, {id_ for summary in summaries.values() for id_ in summary.quoted})
        for label, summary in summaries.items():
            group = min(filter(None, (self._claims[id_].group for id_ in self._components[label])), default="")
            yield label, draw_draft(summary, quoted, self._components[label], group)

    def _members(self, names: Iterable[str]) -> Members:
        rows = self._db.among(f"SELECT n.claim, {BRIEF} FROM seen n WHERE n.claim IN (…)", sorted(names))
        return [(row[0], ObservationBrief._make(row[1:])) for row in rows]

    def _supporting(self, names: Collection[str], members: Members) -> Members:
        """Return the members whose sessions were shown neither this component nor a claim that it may repeat."""
        shown = frozenset[str]().union(*(brief.shown_ids for _, brief in members))
        claims = [self._claims[id_] for id_ in names] if shown else []
        near = {
            name
            for name in shown
            if name in names
            or (name in self._claims and any(is_paraphrase(self._claims[name], claim) for claim in claims))
        }
        return supporting(members, {brief.id for _, brief in members if not near.isdisjoint(brief.shown_ids)})


def _grouped(
    database: LedgerDatabase, claims: Mapping[str, Claim], labels: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Join components that several people mean alike; return all labels, and the labels of the joined ones.

    A component with a cue and enough voices stays alone, because it makes a record by itself.
    """
    voices: dict[str, set[str]] = defaultdict(set)
    cued: set[str] = set()
    said = (kind for kind, spec in KINDS.items() if spec.is_said_anew)
    query = "SELECT DISTINCT claim, voice, extractor FROM seen WHERE trust IN ('operator', 'user') AND kind IN (…)"
    for claim, voice, extractor in database.among(query, sorted(said)):
        voices[labels[claim]].add(voice)
        cued |= {labels[claim]} if not extractor.startswith(f"{OWN_WORDS}/") else set()
    few = {label: who for label, who in voices.items() if len(who) < VOICES or label not in cued}
    # The longest wording represents a component: ids depend on the tenant's key, and would choose differently.
    wordings = {id_: claim.wording.tokens for id_, claim in claims.items() if claim.wording and labels[id_] in few}
    by_length = sorted(wordings, key=lambda id_: (-len(wordings[id_]), wordings[id_]), reverse=True)
    longest = {labels[id_]: claims[id_] for id_ in by_length}
    joined: dict[str, str] = {}
    for group in groups_by_meaning(longest, few):
        joined |= dict.fromkeys(group, group[0])
    return {id_: joined.get(label, label) for id_, label in labels.items()}, frozenset(joined.values())


def _joined(claims: Mapping[str, Claim]) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the component of each claim, and the components that contradict each."""
    union = DisjointSets()
    things: dict[tuple[str | None, ...], list[Claim]] = defaultdict(list)
    causes: dict[tuple[str | None, ...], list[Claim]] = defaultdict(list)
    for claim in claims.values():
        if claim.thing is not None:
            things[claim.thing].append(claim)
        elif claim.family == "tool_fix":
            causes[claim.tool, claim.subject, claim.attribute].append(claim)
    for same in causes.values():
        for one, other in combinations(same, 2):
            if union.find(one.id) != union.find(other.id) and is_same_cause(one, other):
                union.join(one.id, other.id)
    firsts: list[dict[tuple[str, str], Claim]] = []
    for same in things.values():
        firsts.append({})
        for claim in same:
            union.join(firsts[-1].setdefault((claim.family, claim.polarity), claim).id, claim.id)
    opposed: dict[str, set[str]] = defaultdict(set)
    for first in firsts:
        for one, other in permutations(first.values(), 2):
            if one.polarity != other.polarity:
                opposed[union.find(one.id)].add(union.find(other.id))
    return {id_: union.find(id_) for id_ in claims}, dict(opposed)


def _voices(members: Members, *, is_alike: bool) -> float:
    """Return the number of people who say a claim; infinite for a template, which needs nobody."""
    if KINDS[members[0][1].kind].is_template:
        return inf
    said = [brief for _, brief in members if brief.is_said]
    return 0 if not is_alike and all(brief.is_own_words for brief in said) else len({brief.voice for brief in said})
