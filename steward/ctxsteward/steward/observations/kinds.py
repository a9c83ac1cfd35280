"""What the steward does with each kind of recommendation, in one table: a new kind is a row here and a harvester.

The kinds themselves are the published `RecommendationKind`. A harvester names the kind of its observations; everything
that follows (claims, gates, decay, the slice, reviews) asks this table and never compares names.

Source: the state design (gates by kind and scope); the weights and half-lives are set by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ctxsteward.schemas import RecommendationKind

Gate = Literal["support", "fix", "person"]
"""What admits a record. support: enough people said it. fix: its fix worked often enough. person: somebody approves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """One kind of recommendation."""

    gate: Gate = "support"
    half_life_days: float | None
    """When a record nobody confirms is worth half; None: it does not fade."""
    slice_weight: float | None = None
    """What a record is worth in the slice where it applies; None: it never comes in."""
    is_personal: bool = False
    """Whether people claim it for themselves too; a record of another kind is about the agent alone."""
    is_template: bool = False
    """Whether its words are a template of ours: equal or different, never alike, and nobody is their author."""
    is_said_anew: bool = False
    """Whether people state the same thing as a correction, a wish or a fact: one claim, foreseen when said again."""
    holds_always: bool = False
    """Whether, without a trigger, it holds whatever is asked."""
    votes_suffice: bool = False
    """Whether enough independent people admit it for others. Not where it claims something of the world: there many can
    be wrong together, and a tool's answer, a rule in force or a person must say the same."""


KINDS: Mapping[RecommendationKind, KindSpec] = MappingProxyType({
    "correction": KindSpec(
        half_life_days=365.0, slice_weight=1.0, is_personal=True, is_said_anew=True, holds_always=True
    ),
    "preference": KindSpec(
        half_life_days=180.0, slice_weight=0.7, is_personal=True, is_said_anew=True, holds_always=True,
        votes_suffice=True,
    ),
    "fact": KindSpec(half_life_days=365.0, is_personal=True, is_said_anew=True),
    "decision": KindSpec(half_life_days=90.0, slice_weight=0.6, is_personal=True),
    "tool_fix": KindSpec(gate="fix", half_life_days=90.0, slice_weight=0.9, is_template=True),
    "eval_failure": KindSpec(half_life_days=60.0, is_template=True, votes_suffice=True),
    "policy": KindSpec(gate="person", half_life_days=None, slice_weight=1.0),
    "persona": KindSpec(gate="person", half_life_days=None, slice_weight=0.9),
})  # fmt: skip
