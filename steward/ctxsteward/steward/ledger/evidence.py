"""What records rest on: the words of their spans, whether the bytes are still theirs, and who stands behind them.

`support` names everybody behind a draft, in addresses of subjects, because forgetting asks about it: a place is gone
with its session and with anybody whose words the observation is made of. A record that a person approved needs one
voice; a fix as many principals as its gate wants recoveries; a record for many as many principals as its gate wants.
Names that look alike are one voice. Of what is for one person alone nothing is told.

The index must be refreshed. Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from ctxsteward.schemas import Evidence, MetaRecommendation
from ctxsteward.store import AddressKey, RecordSupport, SupportPlace, support_of

from ..admission import AdmissionPolicy
from ..artifacts import ArtifactStore, CitedText, EvidenceQuote, quotes, subject_for, verified
from ..observations import KINDS
from ..reconcile import OWN, Draft, IndexedObservation, voice_of
from .database import LedgerDatabase
from .rows import drafts_of, observations

Address = Callable[[str], str]
"""Address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[IndexedObservation], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> RecordSupport | None:
    """The voices behind a draft, out of the observations that support it; None where its gate counts no voices."""
    if KINDS[draft.kind].gate == "fix":
        least, counted = policy.recoveries, [one for one in seen if one.observation.strength == "recovered"]
    elif draft.audience.width not in OWN:
        least, counted = policy.independent_principals, [one for one in seen if one.is_said]
    else:
        return None
    voices: dict[str, list[SupportPlace]] = defaultdict(list)
    for one in counted:
        who = voice_of(one.observation.principal, one.origin.session)
        voices[who].append(_place(one, address))
    return support_of(voices, 1 if approved else least) if voices else None


def _place(one: IndexedObservation, address: Address) -> SupportPlace:
    session = one.origin.session
    people = {one.observation.principal, *(span.principal for span in one.spans)}
    return tuple(sorted({address(session), *(address(subject_for(session, who)) for who in people)}))


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
