"""Harvest artifacts: what transcripts gave, kept encrypted so that it is verifiable for ever and forgotten at once."""

from __future__ import annotations

from .artifact import Artifact, Cited, Rank, made, subject_for
from .keeping import Artifacts
from .spans import Quote, span_address, verified

__all__ = ["Artifact", "Artifacts", "Cited", "Quote", "Rank", "made", "span_address", "subject_for", "verified"]
