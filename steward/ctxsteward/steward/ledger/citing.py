"""What records rest on: the words of their spans, everybody behind them, and whether the bytes are still theirs.

The index must be refreshed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.envelope.keys import AddressKey
from ctxsteward.envelope.supports import Support
from ctxsteward.schemas.recommendation import Evidence, MetaRecommendation

from ..admission.policy import AdmissionPolicy
from ..artifacts.artifact import Cited
from ..artifacts.keeping import Artifacts
from ..artifacts.spans import Quote, quotes, verified
from .database import Database
from .form import draft_of, seen_of
from .voices import Address, support


class Citing:
    """Asks a `Database` for what stands behind its records, and the store for the words."""

    def __init__(self, database: Database, artifacts: Artifacts, key: AddressKey, address: Address) -> None:
        self._db, self._artifacts, self._key, self._address = database, artifacts, key, address

    def why(self, id: str) -> tuple[Quote, ...]:
        """The spans a record rests on, with their words; empty for an id that is not known."""
        evidence = self._evidence(id)
        return tuple(quotes(evidence, self._cited(evidence)))

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy) -> Support | None:
        """Everybody behind a record; None where it is not known or counts no voices."""
        rows = self._db.rows("SELECT component, body FROM drafts WHERE id = ? AND malformed IS NULL", record.id)
        if not rows:
            return None
        seen = self._db.rows(
            "SELECT n.body FROM claims c CROSS JOIN said s ON s.claim = c.id AND NOT s.idle "
            "CROSS JOIN seen n ON n.id = s.seen WHERE c.component = ?", rows[0][0]
        )  # fmt: skip
        approved = record.review is not None and record.review.state == "approved"
        draft = draft_of(rows[0][1])
        return support(draft, (seen_of(row[0]) for row in seen), policy, self._address, approved=approved)

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Those of the evidence whose bytes are not what their addresses say, or are gone."""
        told = zip(evidence, self._cited(evidence), strict=True)
        return tuple(one for one, cited in told if not verified(one, cited, self._key))

    def _evidence(self, id: str) -> tuple[Evidence, ...]:
        rows = self._db.rows(
            "SELECT d.body FROM claims c JOIN drafts d ON d.component = c.component "
            "WHERE c.id = ? AND d.id IS NOT NULL",
            id,
        )
        return tuple(Evidence(**one) for row in rows for one in draft_of(row[0]).evidence)

    def _cited(self, evidence: Sequence[Evidence]) -> list[Cited | None]:
        found: dict[tuple[str, str], dict[str, Cited]] = {}
        for one in evidence:
            place = (one.source, one.session)
            if place not in found:
                rows = self._db.rows("SELECT address FROM artifacts WHERE live AND source = ? AND session = ?", *place)
                kept = [self._artifacts.find(row[0]) for row in rows]
                found[place] = {cited.ref: cited for artifact in kept if artifact for cited in artifact.cited}
        return [found[one.source, one.session].get(one.ref) for one in evidence]
