"""An observation: one claim seen once, in one transcript. Records are made of observations, never of records.

Harvesters make observations; reconciliation merges equal claims of many transcripts into one recommendation. An
observation is a pure function of its transcript and of the harvester's version.

The table `KINDS` says how the steward treats each kind of recommendation; a new kind needs a row and a harvester. Later
steps (claims, gates, decay, the slice, reviews) ask the table and do not compare names of kinds. `RecommendationKind`
publishes the kinds; ``fact``, ``decision`` and ``practice`` are retired, and only records of earlier versions have
them.

Source: the state design (gates by kind and scope); the weights and half-lives are set by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from ctxsteward.schemas.profile import Modality, Polarity
from ctxsteward.schemas.recommendation import RecommendationKind, Relation, Slot

Strength = Literal["strict", "broad", "recovered", "accepted", "failed"]
"""strict: a durable cue. broad: a weaker cue. recovered: a fix after an error in a run that succeeded. accepted: the
same in a run with an unknown end. failed: the same in a run that failed."""
Reach = Literal["session", "shared"]
"""Scope that the wording of a claim allows. Claims for the session or its speaker only measure how the session went,
and are not stored: search over the originals finds them again."""


class MessageSpan(NamedTuple):
    """A span of one message."""

    ref: str
    start: int
    """First byte of the UTF-8 text."""
    stop: int
    relation: Relation = "supports"

    @classmethod
    def within(cls, ref: str, text: str, start: int, stop: int) -> MessageSpan | None:
        """Return the span of the characters from `start` to `stop` of a message's text; None if it is empty.

        >>> MessageSpan.within("§2", "naïve", 2, 4)
        MessageSpan(ref='§2', start=2, stop=5, relation='supports')
        """
        if stop <= start:
            return None
        first = len(text[:start].encode())
        return cls(ref, first, first + len(text[start:stop].encode()))

    @classmethod
    def opening(cls, ref: str, text: str, most_chars: int) -> MessageSpan | None:
        """Return the span of the first line that is not blank, of at most `most_chars`."""
        start = len(text) - len(text.lstrip())
        return cls.within(ref, text, start, start + len(text[start : start + most_chars].split("\n", 1)[0].rstrip()))

    def overlaps(self, other: MessageSpan) -> bool:
        """Whether two spans of one message share a byte."""
        return self.ref == other.ref and self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One claim seen in one transcript."""

    kind: RecommendationKind
    text: str
    """The claim in one line of 8-280 characters: a template, or the speaker's own words (one span)."""
    slot: Slot
    places: tuple[MessageSpan, ...]
    """At least one span; the first is the claim itself."""
    strength: Strength
    score: float
    """0..1, comparable within one kind."""
    reach: Reach
    principal: str | None
    """Person who makes the claim; None if unknown."""
    tool: str | None = None
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    trigger: str | None = None
    action: str | None = None
    cause: str | None = None
    """Words of an error without its values, for comparisons; never shown if the tool is external."""
    run: str | None = None
    """Key of the run's task, for counting; never shown."""
    ts: str | None = None
    sensitivity: Literal["none", "personal", "sensitive"] = "none"
    extractor: str = ""
    """Name and version, as ``preferences/1``."""


Gate = Literal["support", "fix", "person", "seen"]
"""Condition that admits a record. support: enough people said it. fix: its fix worked often enough. person: a person
approves it. seen: tools said it in enough tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """One kind of recommendation."""

    gate: Gate = "support"
    half_life_days: float | None
    """Days after which an unconfirmed record is worth half; None: it does not fade."""
    slice_weight: float | None = None
    """Effect of a record in the slice; None: the kind never enters the slice."""
    is_template: bool = False
    """Whether the words are one of our templates: equal or different, never alike, and without an author."""
    is_said_anew: bool = False
    """Whether people say it in their own words, as a correction or a wish. Both make the same claim, and saying it
    again is an event that a record may anticipate."""
    votes_suffice: bool = False
    """Whether enough independent people admit it for others. A claim about the world needs more, because many people
    can be wrong together: a tool's answer, a rule in force or a reviewer must agree."""


KINDS: Mapping[RecommendationKind, KindSpec] = MappingProxyType(
    {
        "correction": KindSpec(half_life_days=365.0, slice_weight=1.0, is_said_anew=True),
        "preference": KindSpec(half_life_days=180.0, slice_weight=0.7, is_said_anew=True, votes_suffice=True),
        "tool_fix": KindSpec(gate="fix", half_life_days=90.0, slice_weight=0.9, is_template=True),
        "eval_failure": KindSpec(half_life_days=60.0, is_template=True, votes_suffice=True),
        "environment": KindSpec(gate="seen", half_life_days=60.0, slice_weight=0.8, is_template=True),
        "policy": KindSpec(gate="person", half_life_days=None, slice_weight=1.0),
        "persona": KindSpec(gate="person", half_life_days=None, slice_weight=0.9),
    }
)
