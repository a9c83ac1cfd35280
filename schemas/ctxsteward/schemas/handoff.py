"""A handoff: what somebody needs who goes on with a session's work in a new one.

Source: the continuity design (handoff summaries).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from .profile import Timestamp


class HandoffSummary(BaseModel):
    """Where a piece of work stands."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

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
