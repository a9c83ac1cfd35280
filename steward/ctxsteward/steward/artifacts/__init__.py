"""Harvest artifacts: what transcripts gave, kept encrypted so that it is verifiable for ever and forgotten at once."""

from __future__ import annotations

from .artifact import (
    Artifact,
    ArtifactRank,
    CitedText,
    EvidenceQuote,
    build_artifact,
    span_address,
    subject_for,
    verified,
)
from .storage import ArtifactStore

__all__ = [
    "Artifact",
    "ArtifactRank",
    "ArtifactStore",
    "CitedText",
    "EvidenceQuote",
    "build_artifact",
    "span_address",
    "subject_for",
    "verified",
]
