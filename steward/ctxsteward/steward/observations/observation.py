"""An observation: one claim seen once, in one transcript. Records are made of observations, never of records.

A harvester gives observations; equal claims of many transcripts become one recommendation when they are reconciled.
An observation is a pure function of its transcript and of the harvester's version.

What the steward does with each kind of recommendation stands in one table (`KINDS`): a new kind is a row there and a
harvester. A harvester names the kind of its observations; everything that follows (claims, gates, decay, the slice,
reviews) asks the table and never compares names. The kinds themselves are the published `RecommendationKind`; three of
them, ``fact``, ``decision`` and ``practice``, are retired: only records of earlier versions have them.

Source: the state design (gates by kind and scope); the weights and half-lives are set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from ctxsteward.schemas.profile import Modality, Polarity
from ctxsteward.schemas.recommendation import RecommendationKind, Relation, Slot

from .transcript import ReplayedTranscript

Strength = Literal["strict", "broad", "recovered", "accepted", "failed"]
"""strict: a durable cue; broad: a weaker one; recovered: an error whose fix worked, in a run that succeeded; accepted:
the same in a run of which nobody says how it ended; failed: the same in a run that failed."""
Reach = Literal["session", "shared"]
"""Whom the wording allows a claim to be for. What is for its session, or for its speaker alone, tells how the session
went and is not kept: search over the originals finds it again."""


class MessageSpan(NamedTuple):
    """A span of one message."""

    ref: str
    start: int
    """First byte of the UTF-8 text."""
    stop: int
    relation: Relation = "supports"

    @classmethod
    def within(cls, ref: str, text: str, start: int, stop: int) -> MessageSpan | None:
        """The characters from `start` to `stop` of a message's text; None: there are none.

        >>> MessageSpan.within("§2", "naïve", 2, 4)
        MessageSpan(ref='§2', start=2, stop=5, relation='supports')
        """
        if stop <= start:
            return None
        first = len(text[:start].encode())
        return cls(ref, first, first + len(text[start:stop].encode()))

    @classmethod
    def opening(cls, ref: str, text: str, most_chars: int) -> MessageSpan | None:
        """The first line that says something, at most so much of it."""
        start = len(text) - len(text.lstrip())
        return cls.within(ref, text, start, start + len(text[start : start + most_chars].split("\n", 1)[0].rstrip()))


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
    principal: str | None
    """Who makes the claim; None where nobody knows."""
    tool: str | None = None
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    trigger: str | None = None
    action: str | None = None
    cause: str | None = None
    """What an error says, without its values: words to compare it by, never shown of a tool from outside."""
    run: str | None = None
    """The task of its run: an index key, never shown."""
    ts: str | None = None
    sensitivity: Literal["none", "personal", "sensitive"] = "none"
    extractor: str = ""
    """Name and version, as ``preferences/1``."""


Harvester = Callable[[ReplayedTranscript], Sequence[Observation]]
"""One kind of insight out of one transcript; pure, and linear in its text."""


Gate = Literal["support", "fix", "person", "seen"]
"""What admits a record. support: enough people said it. fix: its fix worked often enough. person: somebody approves.
seen: tools showed it in enough tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """One kind of recommendation."""

    gate: Gate = "support"
    half_life_days: float | None
    """When a record nobody confirms is worth half; None: it does not fade."""
    slice_weight: float | None = None
    """What a record is worth in the slice where it applies; None: it never comes in."""
    is_template: bool = False
    """Whether its words are a template of ours: equal or different, never alike, and nobody is their author."""
    is_said_anew: bool = False
    """Whether people state the same thing as a correction or a wish: one claim, foreseen when said again."""
    votes_suffice: bool = False
    """Whether enough independent people admit it for others. Not where it claims something of the world: there many can
    be wrong together, and a tool's answer, a rule in force or a person must say the same."""


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
