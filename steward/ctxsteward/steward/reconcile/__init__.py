"""Reconcile: which observations claim the same, and the record that they make together."""

from __future__ import annotations

from ctxsteward.schemas.profile import is_claim_id

from .claims import Audience, Claim, claims_of, relation
from .draft import Draft, drawn
from .seen import Seen, seen_in
from .support import Backing, wilson_lower95

__all__ = [
    "Audience",
    "Backing",
    "Claim",
    "Draft",
    "Seen",
    "claims_of",
    "drawn",
    "is_claim_id",
    "relation",
    "seen_in",
    "wilson_lower95",
]
