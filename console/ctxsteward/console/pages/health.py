"""How full a session is: the shares of the dynamic budget and of the model's window that its next prompt takes.

The larger share decides the level: *healthy* below `WARNS`, *warning* from there on, *critical* from `COMPACTS` on (the
fractions at which builds warn and compact by the window). A session without messages is *idle*. The figures are those
of a prompt built now without a compaction (`health_of`), or of the newest call if there is no builder
(`health_of_call`). The values are frozen and contain no text of the session.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ctxsteward.envelope import EnvelopeBuilder, Session
from ctxsteward.envelope.building.past_calls import PastCall
from ctxsteward.envelope.tokens.budgets import GUARD_COMPACTS_FRACTION, GUARD_WARNS_FRACTION

WARNS, COMPACTS = GUARD_WARNS_FRACTION, GUARD_COMPACTS_FRACTION
HealthLevel = Literal["idle", "healthy", "warning", "critical"]


class SessionHealth(BaseModel):
    """How full a session is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: str
    level: HealthLevel
    utilization: float
    """The larger of the two shares; it is over 1 if the session is over budget."""
    budget_utilization: float
    """Share of the dynamic budget that is filled."""
    window_utilization: float | None
    """Filled share of the tokens that the model's window leaves for a prompt; null if that is not known."""
    prompt_tokens: int
    dynamic_tokens: int
    dynamic_budget_tokens: int
    threshold_tokens: int
    """Tokens of the dynamic section from which on it is compacted."""
    window_tokens: int | None
    """Tokens that the model's window leaves for a prompt."""
    messages: int
    compactions: int
    next_call: bool
    """Whether the figures are of a prompt built now; false if they are of the newest call."""


def health_of(session: Session, builder: EnvelopeBuilder) -> SessionHealth:
    """Return the health of the next call, as this builder would lay it out; writes nothing."""
    probe = builder.preview(session, compact=False)
    section, window = probe.section("dynamic"), builder.window_tokens
    budget = section.budget_tokens
    return _health(
        session,
        probe.tokens,
        section.tokens,
        budget,
        int(budget * builder.budgets.compact_at_fraction),
        None if window is None else max(1, window - builder.output_reserve_tokens),
        next_call=True,
    )


def health_of_call(session: Session, call: PastCall | None) -> SessionHealth:
    """Return the health at the newest call; all figures are 0 without one."""
    if call is None:
        return _health(session, 0, 0, 0, 0, None, next_call=False)
    head = call.prompt_tokens - call.dynamic_tokens
    return _health(
        session,
        call.prompt_tokens,
        call.dynamic_tokens,
        max(0, call.limit_tokens - head),
        max(0, call.threshold_tokens - head),
        None,
        next_call=False,
    )


def _health(
    session: Session, prompt: int, dynamic: int, budget: int, threshold: int, window: int | None, *, next_call: bool
) -> SessionHealth:
    of_budget = dynamic / budget if budget else 0.0
    of_window = None if window is None else prompt / window
    most = max(of_budget, of_window or 0.0)
    level: HealthLevel = "critical" if most >= COMPACTS else "warning" if most >= WARNS else "healthy"
    return SessionHealth(
        session=session.id,
        level=level if len(session) else "idle",
        utilization=round(most, 4),
        budget_utilization=round(of_budget, 4),
        window_utilization=None if of_window is None else round(of_window, 4),
        prompt_tokens=prompt,
        dynamic_tokens=dynamic,
        dynamic_budget_tokens=budget,
        threshold_tokens=threshold,
        window_tokens=window,
        messages=len(session),
        compactions=session.state.compactions,
        next_call=next_call,
    )
