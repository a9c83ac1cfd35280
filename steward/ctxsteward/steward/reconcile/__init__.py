"""Reconcile: which observations claim the same, and the record that they make together."""

from __future__ import annotations

from ctxsteward.schemas.profile import is_claim_id

from .claims import Claim, ClaimAudience, claims_of, relation
from .draft import Draft, draw_draft
from .indexed_observation import IndexedObservation, seen_in
from .support import ClaimSupport, wilson_lower95

__all__ = [
    "Claim",
    "ClaimAudience",
    "ClaimSupport",
    "Draft",
    "IndexedObservation",
    "claims_of",
    "draw_draft",
    "is_claim_id",
    "relation",
    "seen_in",
    "wilson_lower95",
]
