"""The frozen suite as an `EvalGate`: both profiles replay the same conversations, and no guard may fall.

    gate = FrozenGate(builder=lambda: EnvelopeBuilder(model="gpt-4o", budgets=…), reviewed=frozenset(drift.touched))
    gate(champion, challenger).passed

What people are asked about anyway (`reviewed`: the touched keys of the drift report) counts as it is in the challenger;
everything else of the champion's policies, locked entries and persona must still be there. Case by case the same words
are replayed, so the comparison is paired. Reads its cases once; 4 cases of 44 messages take about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ctxsteward.envelope.budgets import Budgets
from ctxsteward.envelope.builder import EnvelopeBuilder
from ctxsteward.schemas.profile import ProfileDocument

from .cases import Suite, shipped
from .measures import anticipates, contradictions, persona_consistency, replay, wanted_texts
from .port import GateReport, Guard, Pair, judged

DYNAMIC_TOKENS = 480
"""Of the replay: so little that every case is compacted more than four times, when a slice too large is cut."""

GUARDS: tuple[Guard, ...] = (
    Guard("policies_verbatim", "higher", 0.0),
    Guard("locked_present", "higher", 0.0),
    Guard("canary_facts", "higher", 0.05),
    Guard("prefix_stable", "higher", 0.0),
    Guard("section_budgets", "higher", 0.0),
    Guard("contradictions", "lower", 0.0),
    Guard("persona_consistency", "higher", 0.2),
    Guard("hit_rate", "higher", 0.25),
)
"""What the frozen suite guards, and by how much the mean of each may be worse. Of the five shipped held cases one may
be lost; who has many of their own narrows the margin of `hit_rate`."""

PROFILE = "profile"
"""Name of the case of guards that are about a profile alone."""


def default_builder() -> EnvelopeBuilder:
    """A builder with the default head budgets and little room for the history."""
    return EnvelopeBuilder(
        tokenizer="o200k_base", budgets=Budgets().model_copy(update={"dynamic_tokens": DYNAMIC_TOKENS})
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenGate:
    """Replays frozen cases with champion and challenger."""

    suite: Suite = field(default_factory=shipped)
    guards: tuple[Guard, ...] = GUARDS
    builder: Callable[[], EnvelopeBuilder] = default_builder
    """With the head budgets of the application."""
    reviewed: frozenset[str] = frozenset()
    """Entries whose change is put before people, as ``policies.refunds``."""

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        pairs = tuple(self._pairs(champion or ProfileDocument(), challenger))
        return judged(self.suite.name, self.guards, pairs, champion, challenger)

    def _pairs(self, champion: ProfileDocument, challenger: ProfileDocument) -> Iterator[Pair]:
        now = wanted_texts(champion, challenger, self.reviewed)
        before = wanted_texts(champion, champion, frozenset())
        for case in self.suite.cases:
            old = replay(case, champion, before, self.builder())
            new = replay(case, challenger, now, self.builder())
            yield from (Pair(case.id, name, old[name], new[name]) for name in old)
        yield Pair(PROFILE, "contradictions", contradictions(champion), contradictions(challenger))
        yield Pair(PROFILE, "persona_consistency", 1.0, persona_consistency(champion, challenger, self.reviewed))
        for held in self.suite.held:
            yield Pair(held.id, "hit_rate", anticipates(champion, held), anticipates(challenger, held))
