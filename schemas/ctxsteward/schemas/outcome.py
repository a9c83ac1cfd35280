"""How a session ended, as its application says: a verdict, a reward, thumbs, whether it was resolved or escalated.

It is read from a transcript's metadata and appended to a session's log (`Session.outcome`). It holds closed values and
no text, so it tells nothing of what was said. The steward learns from what failed and what succeeded by `verdict`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

FULL_REWARD = 1.0
"""A task's whole reward; less is no success."""


class Outcome(BaseModel):
    """What is known of how a session ended; None: not told."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    succeeded: StrictBool | None = None
    """Whether its task was solved, as somebody has judged; it outweighs all other signs."""
    reward: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """Of an environment or a scorer; `FULL_REWARD` or more is success."""
    thumbs: Literal["up", "down"] | None = None
    """What its user pressed."""
    resolved: StrictBool | None = None
    """Whether its matter was settled."""
    escalated: StrictBool | None = None
    """Whether it went on to a person or a higher desk; that it did not says nothing."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("an outcome that says nothing; give succeeded, reward, thumbs, resolved or escalated")
        return self

    @property
    def verdict(self) -> bool | None:
        """Whether it succeeded; None where nothing says so, or signs contradict each other.

        >>> Outcome(reward=1.0).verdict, Outcome(resolved=True, thumbs="down").verdict, Outcome(escalated=False).verdict
        (True, None, None)
        """
        if self.succeeded is not None:
            return self.succeeded
        signs = [
            None if self.reward is None else self.reward >= FULL_REWARD,
            self.resolved,
            None if self.thumbs is None else self.thumbs == "up",
            False if self.escalated else None,
        ]
        told = {sign for sign in signs if sign is not None}
        return told.pop() if len(told) == 1 else None

    def then(self, later: Outcome) -> Outcome:
        """Both; of what both tell, the later one counts.

        >>> Outcome(reward=0.0).then(Outcome(thumbs="up", reward=1.0)) == Outcome(thumbs="up", reward=1.0)
        True
        """
        return Outcome(**self.model_dump(exclude_none=True) | later.model_dump(exclude_none=True))
