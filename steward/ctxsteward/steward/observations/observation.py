"""An observation: one claim seen once, in one transcript. Records are made of observations, never of records.

A harvester gives observations; equal claims of many transcripts become one recommendation when they are reconciled.
An observation is a pure function of its transcript and of the harvester's version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.schemas import Modality, Polarity, RecommendationKind, Relation, Slot

from .transcript import ReplayedTranscript

Strength = Literal["strict", "broad", "scored", "recovered", "accepted", "failed"]
"""strict: a durable cue that suffices alone; broad: needs company; scored: a fact by cue score; recovered: an error
whose fix worked, in a run that succeeded; accepted: the same in a run of which nobody says how it ended; failed: the
same in a run that failed."""
Reach = Literal["session", "user", "project", "shared"]
"""The widest audience that the wording itself allows: a task-local wish is for its session alone."""


class MessageSpan(NamedTuple):
    """A span of one message."""

    ref: str
    start: int
    """First byte of the UTF-8 text."""
    stop: int
    relation: Relation = "supports"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One claim seen in one transcript."""

    kind: RecommendationKind
    text: str
    """The claim in one line of 8-280 characters: a template's words, or the speaker's own (one span)."""
    slot: Slot
    places: tuple[MessageSpan, ...]
    """At least one; the first is the claim itself."""
    strength: Strength
    score: float
    """0..1, comparable within one kind."""
    reach: Reach
    principal: str
    """Who makes the claim."""
    tool: str | None = None
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    trigger: str | None = None
    action: str | None = None
    answers: str | None = None
    """The question it answers: an index key, never shown."""
    ts: str | None = None
    sensitivity: Literal["none", "personal", "sensitive"] = "none"
    extractor: str = ""
    """Name and version, as ``preferences/1``."""


Harvester = Callable[[ReplayedTranscript], Sequence[Observation]]
"""One kind of insight out of one transcript; pure, and linear in its text."""
