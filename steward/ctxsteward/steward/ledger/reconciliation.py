"""What the observations of a ledger make: claims that are one, and the draft of each. All is worked out anew.

A component is a connected set of claims under `claims.relation`, labelled by its least id. A component is drafted from
all of its observations. So all here depends on the set of observations alone, whatever came in which order. Claims are
held in memory at once, observations pass a page at a time.

A session that was shown a record lends it no support, nor anything that may repeat it in other words (`lending`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..harvest.people.own_words import OWN_WORDS_EXTRACTOR
from ..observations.observation import KINDS
from ..reconcile.claims import Claim, DisjointSets, ObservationBrief, is_paraphrase, relation
from ..reconcile.draft import Draft, DraftSummary, draw_draft, summarize_draft, supporting
from .database import BRIEF, LedgerDatabase, claim_in, observations
from .meanings import groups_by_meaning
from .records import LedgerIdentity, flaw_of

COMPONENTS_AT_ONCE = 400
VOICES = 2
"""What fewer people say is no record, unless people have decided about it: it is asked of nobody and listed nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """All components of a ledger."""

    labels: Mapping[str, str]
    """The component of each claim."""
    drafts: Mapping[str, Draft]
    """By component; none of one of runs that do not differ, or that one person alone says."""
    flaws: Mapping[str, str]
    """Why drafts fit no record, by component."""
    opposed: Mapping[str, Collection[str]]
    """Components that say the opposite of each other."""
    alone: Callable[[str], Draft | None]
    """Draws the draft of a component that one person alone says."""

    def draft(self, id: str) -> Draft | None:
        """The draft that has this id, or had it before its claim was found to be one with others."""
        label = self.labels.get(id)
        return None if label is None else self.drafts.get(label) or self.alone(label)


def reconcile(database: LedgerDatabase, frame: LedgerIdentity) -> Reconciliation:
    """Reconcile all observations of a ledger."""
    claims: dict[str, Claim] = {}
    buckets: dict[int, list[str]] = defaultdict(list)
    for id_, own, body in database.rows("SELECT id, bands, body FROM claims ORDER BY id"):
        claims[id_] = claim_in(id_, body)
        for band in json.loads(own):
            buckets[band].append(id_)
    labels, opposed = _joined(claims, buckets)
    labels, alike = _grouped(database, claims, labels)
    components: dict[str, list[str]] = defaultdict(list)
    for id_, label in labels.items():
        components[label].append(id_)

    def alone(label: str) -> Draft | None:
        return dict(_drafted(database, {label: components[label]}, claims, alike, least_voices=0)).get(label)

    drafts: dict[str, Draft] = {}
    every = sorted(components)
    for start in range(0, len(every), COMPONENTS_AT_ONCE):
        page = {label: components[label] for label in every[start : start + COMPONENTS_AT_ONCE]}
        drafts.update(_drafted(database, page, claims, alike, least_voices=VOICES))
    flaws = {label: flaw for label, draft in drafts.items() if (flaw := flaw_of(draft, frame)) is not None}
    return Reconciliation(labels=labels, drafts=drafts, flaws=flaws, opposed=opposed, alone=alone)


def _grouped(
    database: LedgerDatabase, claims: Mapping[str, Claim], labels: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[str]]:
    """The components with those joined that several people mean alike, and the labels of these.

    A component that a cue found and that makes a record already stands alone.
    """
    voices: dict[str, set[str]] = defaultdict(set)
    cued: set[str] = set()
    said = (kind for kind, spec in KINDS.items() if spec.is_said_anew)
    query = "SELECT DISTINCT claim, voice, extractor FROM seen WHERE trust IN ('operator', 'user') AND kind IN (…)"
    for claim, voice, extractor in database.among(query, sorted(said)):
        voices[labels[claim]].add(voice)
        cued |= {labels[claim]} if extractor != OWN_WORDS_EXTRACTOR else set()
    few = {label: who for label, who in voices.items() if len(who) < VOICES or label not in cued}
    joined: dict[str, str] = {}
    for group in groups_by_meaning(claims, few):
        joined |= dict.fromkeys(group, group[0])
    found = {id_: joined.get(label, label) for id_, label in labels.items()}
    return found, frozenset(joined.values())


def lending(database: LedgerDatabase, names: Collection[str]) -> list[tuple[str, ObservationBrief]]:
    """The observations that support the component of these claims, each with its claim."""
    return _lending(database, names, _members(database, names), None)


def _joined(
    claims: Mapping[str, Claim], buckets: Mapping[int, Sequence[str]]
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The component of each claim, and the components that oppose each other; what shares a bucket is compared."""
    union = DisjointSets()
    against: set[tuple[str, str]] = set()
    for one, other in sorted({pair for bucket in buckets.values() for pair in _pairs(bucket)}):
        if union.find(one) == union.find(other):
            continue  # of one polarity, as all of a component are
        match relation(claims[one], claims[other]):
            case "same":
                union.join(one, other)
            case "opposes":
                against.add((one, other))
    opposed: dict[str, set[str]] = defaultdict(set)
    for one, other in against:
        opposed[union.find(one)].add(union.find(other))
        opposed[union.find(other)].add(union.find(one))
    return {id_: union.find(id_) for id_ in claims}, dict(opposed)


def _pairs(bucket: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((one, other) for at, one in enumerate(bucket) for other in bucket[at + 1 :] if one != other)


def _drafted(
    database: LedgerDatabase,
    page: Mapping[str, Sequence[str]],
    claims: Mapping[str, Claim],
    alike: Collection[str],
    *,
    least_voices: int,
) -> Iterator[tuple[str, Draft]]:
    """The drafts of components that so many people say, or tools show; what they quote is read at once."""
    names = {id_: label for label, ids in page.items() for id_ in ids}
    rows: dict[str, list[tuple[str, ObservationBrief]]] = defaultdict(list)
    for claim, brief in _members(database, names):
        rows[names[claim]].append((claim, brief))
    weighed: dict[str, DraftSummary] = {}
    for label, ids in page.items():
        members = _lending(database, ids, rows[label], claims)
        if (
            _voices(members, is_alike=label in alike) >= least_voices
            and members
            and (summary := summarize_draft(members, alike=label in alike)) is not None
        ):
            weighed[label] = summary
    quoted = observations(database, {id_ for one in weighed.values() for id_ in one.quoted})
    for label, summary in weighed.items():
        group = min(filter(None, (claims[id_].group for id_ in page[label])), default="")
        yield label, draw_draft(summary, quoted, page[label], group)


def _voices(members: Sequence[tuple[str, ObservationBrief]], *, is_alike: bool) -> float:
    """How many people say it; of a template nobody needs to."""
    if members and KINDS[members[0][1].kind].is_template:
        return inf
    said = [brief for _, brief in members if brief.is_said]
    return 0 if not is_alike and all(brief.is_own_words for brief in said) else len({brief.voice for brief in said})


def _members(database: LedgerDatabase, names: Iterable[str]) -> list[tuple[str, ObservationBrief]]:
    rows = database.among(f"SELECT n.claim, {BRIEF} FROM seen n WHERE n.claim IN (…)", sorted(names))
    return [(row[0], ObservationBrief._make(row[1:])) for row in rows]


def _lending(
    database: LedgerDatabase,
    names: Collection[str],
    members: Sequence[tuple[str, ObservationBrief]],
    claims: Mapping[str, Claim] | None,
) -> list[tuple[str, ObservationBrief]]:
    if not any(brief.is_shown for _, brief in members):
        return supporting(members)
    sessions = [brief.id for _, brief in members if brief.is_shown]
    shown = {row[0] for row in database.among("SELECT DISTINCT name FROM shown WHERE seen IN (…)", sessions)}
    known = claims if claims is not None else _claims(database, {*names, *shown})
    mine = [known[id_] for id_ in names]
    near = {
        name
        for name in shown
        if name in names or (name in known and any(is_paraphrase(known[name], claim) for claim in mine))
    }
    return supporting(members, {row[0] for row in database.among("SELECT seen FROM shown WHERE name IN (…)", near)})


def _claims(database: LedgerDatabase, ids: Iterable[str]) -> dict[str, Claim]:
    rows = database.among("SELECT id, body FROM claims WHERE id IN (…)", sorted(ids))
    return {id_: claim_in(id_, body) for id_, body in rows}
