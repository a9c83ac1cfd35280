"""Drift: what changed between two profiles, how bad that is, and the patches between them."""

from .flips import Turn, turns
from .patches import Difference, apply, difference, document, keyed
from .report import Base, report, without_text, worst

__all__ = [
    "Base", "Difference", "Turn", "apply", "difference", "document", "keyed", "report", "turns", "without_text",
    "worst",
]  # fmt: skip
