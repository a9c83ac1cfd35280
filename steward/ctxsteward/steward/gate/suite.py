"""The frozen suite as an `EvalGate`: both profiles replay the same conversations, and no guard may fall.

    gate = FrozenGate(builder=lambda: EnvelopeBuilder(model="gpt-4o", budgets=…), reviewed=frozenset(drift.touched))
    gate(champion, challenger).passed

What people are asked about anyway (`reviewed`: the touched keys of the drift report) counts as it is in the challenger;
everything else of the champion's policies, locked entries and persona must still be there. Case by case the same words
are replayed, so the comparison is paired. A replay is a function of document, cases, builder and program: one that was
made before (`Known`: what stands beside the champion's version) is not made again, so a promotion costs one. The four
shipped cases of 44 messages take about 70 ms of CPU a profile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version

from ctxsteward.envelope.budgets import Budgets
from ctxsteward.envelope.builder import EnvelopeBuilder
from ctxsteward.envelope.envelope import RENDERER_VERSION
from ctxsteward.schemas.profile import ProfileDocument

from .cases import Suite, shipped
from .measures import Texts, Values, anticipates, contradictions, persona_consistency, replay, wanted_texts
from .port import GateReport, Guard, Pair, digest_of, judged

REPLAY = "replay/1"
"""Version of what is measured of a replay."""
TOKENIZER = "o200k_base"

DYNAMIC_TOKENS = 560
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


Measured = Mapping[str, Values]
"""What a replay gave, by case."""
Known = Callable[[str], Measured | None]
"""Gives a replay by its key (`FrozenGate.key`), where it was made before; None: make it."""


def unknown(key: str) -> None:
    """No replay was made before."""


def default_builder() -> EnvelopeBuilder:
    """A builder with the default head budgets and little room for the history."""
    return EnvelopeBuilder(
        tokenizer=TOKENIZER, budgets=Budgets().model_copy(update={"dynamic_tokens": DYNAMIC_TOKENS}).held()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenGate:
    """Replays frozen cases with champion and challenger."""

    suite: Suite = field(default_factory=shipped)
    guards: tuple[Guard, ...] = GUARDS
    builder: Callable[[], EnvelopeBuilder] = default_builder
    """With the head budgets of the application."""
    builds: str = ""
    """Tells builders apart; empty: replays of this one are not known again."""
    known: Known = unknown
    reviewed: frozenset[str] = frozenset()
    """Entries whose change is put before people, as ``policies.refunds``."""

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        pairs = tuple(self._pairs(champion or ProfileDocument(), challenger))
        found = judged(self.suite.name, self.guards, pairs, champion, challenger)
        wanted = wanted_texts(champion or ProfileDocument(), challenger, self.reviewed)
        return replace(found, replay=self.key(challenger, wanted))

    def key(self, document: ProfileDocument, wanted: Texts) -> str:
        """What decides a replay, as SHA-256: empty where builders cannot be told apart. In process only."""
        if not self.builds:
            return ""
        told = [REPLAY, RENDERER_VERSION, _package(), self.builds, self.suite.digest, digest_of(document)]
        return hashlib.sha256(json.dumps([*told, sorted(wanted.items())]).encode()).hexdigest()

    def _pairs(self, champion: ProfileDocument, challenger: ProfileDocument) -> Iterator[Pair]:
        now = wanted_texts(champion, challenger, self.reviewed)
        before = wanted_texts(champion, champion, frozenset())
        old = self._measured(champion, before)
        same = before == now and digest_of(champion) == digest_of(challenger)
        new = old if same else self._measured(challenger, now)
        for case in self.suite.cases:
            yield from (Pair(case.id, name, value, new[case.id][name]) for name, value in old[case.id].items())
        yield Pair(PROFILE, "contradictions", contradictions(champion), contradictions(challenger))
        yield Pair(PROFILE, "persona_consistency", 1.0, persona_consistency(champion, challenger, self.reviewed))
        for held in self.suite.held:
            yield Pair(held.id, "hit_rate", anticipates(champion, held), anticipates(challenger, held))

    def _measured(self, document: ProfileDocument, wanted: Texts) -> Measured:
        key = self.key(document, wanted)
        known = self.known(key) if key else None
        if known is not None and all(case.id in known for case in self.suite.cases):
            return known
        return {case.id: replay(case, document, wanted, self.builder) for case in self.suite.cases}


@cache
def _package() -> str:
    return version("ctxsteward")
