"""What records rest on: the words of their spans, whether the bytes are still theirs, and who stands behind them.

`basis` counts what people are told of a record before they decide: runs, by what was done in them and how they ended.

`support` names everybody behind a draft, in addresses of subjects, because forgetting asks about it: a place is gone
with its session and with anybody whose words the observation is made of. A record that a person approved needs one
voice; a fix as many principals as its gate wants recoveries; a record for many as many principals as its gate wants.
Names that look alike are one voice. Of what is for one person alone nothing is told.

The index must be refreshed. Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.schemas import Evidence, MetaRecommendation
from ctxsteward.store import AddressKey, RecordSupport, SupportPlace, support_of

from ..admission import AdmissionPolicy
from ..artifacts import ArtifactStore, CitedText, EvidenceQuote, quotes, subject_for, verified
from ..observations import KINDS
from ..reconcile import Draft, IndexedObservation, voice_of
from .database import LedgerDatabase, drafts_of, observations

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
    voices: dict[str, list[SupportPlace]] = defaultdict(list)
    for one in counted:
        who = voice_of(one.observation.principal, one.origin.session)
        if gate in ("contrast", "seen"):
            who = who or one.origin.session  # runs count by their tasks there, not by who speaks
        voices[who].append(_place(one, address))
    return support_of(voices, 1 if approved else least) if voices else None


def _place(one: IndexedObservation, address: Address) -> SupportPlace:
    session = one.origin.session
    people = {one.observation.principal, *(span.principal for span in one.spans)}
    return tuple(sorted({address(session), *(address(subject_for(session, who)) for who in people)}))


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
        return tuple(quotes(evidence, self._cited(evidence)))

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
            "said": backing.said, "confirmed": backing.confirmed, "worked": backing.obeyed_succeeded,
            "failed": backing.obeyed_failed, "from_tool": backing.from_tool,
        }  # fmt: skip
        return RecordBasis(
            names=tuple(row[0] for row in names), kinds=tuple(kind for kind, count in counts.items() if count),
            transcripts=backing.sessions, read=read, voices=backing.principals, helped=backing.helped,
            tried=self._tried(component) if KINDS[draft.kind].gate == "fix" else (),
        )  # fmt: skip

    def _tried(self, component: str) -> tuple[TriedFix, ...]:
        """By what was done: in how many runs."""
        rows = self._db.rows(
            "SELECT min(n.id), count(DISTINCT CASE n.strength WHEN 'recovered' THEN n.session END), "
            "count(DISTINCT CASE n.strength WHEN 'failed' THEN n.session END), "
            "count(DISTINCT CASE WHEN n.strength NOT IN ('recovered', 'failed') THEN n.session END) "
            "FROM claims c CROSS JOIN said s ON s.claim = c.id AND NOT s.idle CROSS JOIN seen n ON n.id = s.seen "
            "WHERE c.component = ? GROUP BY n.text", component
        )  # fmt: skip
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
            "GROUP BY d.id ORDER BY times DESC, d.id", since_seconds, until_seconds, *templates
        )  # fmt: skip

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
