"""Drift: what changed between two profiles, how bad that is, and the patches between them."""

from .polarity import PolarityChange, polarity_changes
from .report import CumulativeBase, ProfilePatches, apply, difference, document, keyed, report, without_text, worst

__all__ = [
    "CumulativeBase",
    "PolarityChange",
    "ProfilePatches",
    "apply",
    "difference",
    "document",
    "keyed",
    "polarity_changes",
    "report",
    "without_text",
    "worst",
]  # fmt: skip
