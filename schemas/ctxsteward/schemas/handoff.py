"""A handoff: what somebody needs who goes on with a session's work in a new one.

Source: the continuity design (handoff summaries).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from .profile import Timestamp
from .summary import SummaryOrigin

HandoffSection = Literal["intent", "technical", "files", "errors", "decisions", "pending", "state"]
"""What the user wants; tools and limits; files; errors and fixes; what was settled; what is open; where it stands."""


class HandoffLine(BaseModel):
    """One line that a model wrote, and that holds against the messages it rests on."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    section: HandoffSection
    text: Annotated[str, Field(min_length=1, max_length=600)]
    refs: Annotated[tuple[str, ...], Field(min_length=1)]


class HandoffSummary(BaseModel):
    """Where a piece of work stands."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    LATER: ClassVar[frozenset[str]] = frozenset(("lines", "origin"))

    schema_version: Literal[1] = 1
    generated_at: Timestamp | None = None
    session: str
    """Whose log holds all of it; references lead there."""
    task_title: str
    goal: str
    """The task as it was set."""
    current_hat: str | None = None
    """The role, or the cascade's phase; null: there is none."""
    branch: str | None = None
    head_commit: str | None = None
    plan: str = ""
    completed_items: tuple[str, ...] = ()
    remaining_items: tuple[str, ...] = ()
    blocking_issues: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    created_files: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    """References of the newest tool results in the window."""
    key_decisions: tuple[str, ...] = ()
    understanding: str = ""
    last_action: str = ""
    continuation_prompt: str
    lines: tuple[HandoffLine, ...] = ()
    """By a model, section by section; empty: none was asked, or none of its lines holds."""
    origin: SummaryOrigin | None = None
    """What a model had to do with them; null: none was asked."""
