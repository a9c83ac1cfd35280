"""The thresholds of admission, in one closed value: the only place where they are written.

    admission:
      independent_principals: 3
      half_life_days: {preference: 180, fact: 365}

Half-lives are in days; what is not named keeps its default, null does not fade. A record expires when its worth,
halved once a half-life since it was last confirmed, is below `expire_below`.

Source: the state design (gates by kind and scope; k independent principals); hand-set half-lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt

from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.recommendation import RecommendationKind

from ..drift.rules import Rule, rules_of

Days = Annotated[float, Field(gt=0, allow_inf_nan=False)]
DEFAULT_HALF_LIFE_DAYS: Mapping[RecommendationKind, float | None] = {
    "correction": 365.0,
    "preference": 180.0,
    "fact": 365.0,
    "decision": 90.0,
    "tool_fix": 90.0,
    "eval_failure": 60.0,
    "policy": None,
    "persona": None,
}


def _complete(given: dict[RecommendationKind, float | None]) -> dict[RecommendationKind, float | None]:
    return {**DEFAULT_HALF_LIFE_DAYS, **given}


class AdmissionPolicy(BaseModel):
    """What it takes to be admitted, and how long that lasts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    independent_principals: Annotated[StrictInt, Field(ge=2, le=1_000)] = 3
    """k: how many must say the same before it reaches others."""
    strict_support: Annotated[StrictInt, Field(ge=1, le=1_000)] = 1
    """Sessions with a strict cue, in the author's own scope."""
    scored_support: Annotated[StrictInt, Field(ge=1, le=1_000)] = 1
    """Sessions with a fact found by its cue score, in the author's own scope."""
    broad_support: Annotated[StrictInt, Field(ge=2, le=1_000)] = 2
    """Sessions with any cue, in the author's own scope."""
    recoveries: Annotated[StrictInt, Field(ge=2, le=1_000)] = 2
    """How often a fix of a tool error must have worked."""
    half_life_days: Annotated[dict[RecommendationKind, Days | None], AfterValidator(_complete)] = Field(
        default_factory=lambda: dict(DEFAULT_HALF_LIFE_DAYS)
    )
    session_half_life_days: Days = 7.0
    """Of what is for one session alone, whatever its kind."""
    expire_below: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Worth, of 1 when last confirmed."""
    rules: tuple[Rule, ...] = ()
    """Lines that no record may gainsay; a night takes them from the profile in force (`under`)."""

    def under(self, profile: ProfileDocument | None) -> Self:
        """This policy with the rules of a profile."""
        return self.model_copy(update={"rules": rules_of(profile)})

    def half_life(self, kind: RecommendationKind, *, session: bool) -> float | None:
        """In days; None: it does not fade."""
        days = self.half_life_days[kind]
        return days if days is None or not session else min(days, self.session_half_life_days)
