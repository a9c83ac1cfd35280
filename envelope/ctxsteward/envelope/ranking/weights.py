"""What the heuristic ranking weighs: each signal is scaled to its weight at its best candidate.

Measured on conversations of 370-690 turns; `docs/selection.md` shows what each is worth.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MAX_WEIGHT = 100.0


class Weights(BaseModel):
    """Weights of the signals; 0 turns one off."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    near: float = Field(default=0.8, ge=0, le=MAX_WEIGHT)
    """BM25 of a turn together with the one before and the one after."""
    wide: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of a turn together with two on each side."""
    asked: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """BM25 of a turn together with the question it answers."""
    sitting: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the whole sitting (one day's talk) it belongs to, its date included."""
    date: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the sitting's date alone."""
    speaker: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """Added where the question names exactly the one who said it."""
    question: float = Field(default=0.4, ge=0, le=MAX_WEIGHT)
    """Taken off where the turn ends in a question: it asks more than it says."""
    recency: float = Field(default=0.0, ge=0, le=MAX_WEIGHT)
    """Newest turn 1, oldest 0, by turns and not by the clock."""
    callout: float = Field(default=0.3, ge=0, le=MAX_WEIGHT)
    """Added to pinned messages."""
    k1: float = Field(default=1.2, ge=0, le=MAX_WEIGHT)
    """BM25: how soon repeats of a term stop to count."""
    b: float = Field(default=0.75, ge=0, le=1)
    """BM25: how much length counts against a text."""
