"""Use suites as the steward's eval gate: champion and challenger play the same scenarios, and no figure may fall.

    gate = SuiteGate(suites=("verbatim", "compression"), scenarios=2)
    gate(champion, challenger).passed

Every scenario is played twice, once with each profile as its head. This gives a pair of values for every figure that
both scored, and a pair for reaching the end (``SUITE.finished``), where a profile over its budget fails.

Source: the layered-envelope design (eval-gated promotion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from ctxsteward.envelope import Budgets
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.gate.port import GateReport, Guard, GuardScores, judge_guards

from .suites.catalogue import suite_named
from .suites.kit.suite import LONG_TURNS, ScenarioResult, Setup, Split, drawn, refuse_sealed
from .suites.results import play_one

MARGINS = {"rate": 0.02, "mean": 0.05, "ratio": 0.05, "count": 0.0}
"""Allowed decrease of the mean over the scenarios, by the kind of figure."""
UNTIMED = frozenset(("late_cpu_ratio",))
"""Excluded figures of time, which differ between two plays of the same scenario."""
FINISHED = "finished"
MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGate:
    """An `EvalGate` over the first scenarios of some suites."""

    suites: tuple[str, ...] = ("verbatim", "compression")
    scenarios: int = 2
    """Number of scenarios per suite; long ones are skipped."""
    split: Split = "docs"
    setup: Setup = field(default_factory=Setup)
    margins: Mapping[str, float] = field(default_factory=dict)
    """Other margins, by ``suite.figure``."""

    def __post_init__(self) -> None:
        refuse_sealed(self.split)

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        pairs = tuple(self._pairs(champion or ProfileDocument(), challenger))
        name = f"{'+'.join(self.suites)}, {self.scenarios} scenarios of {self.split}"
        return judge_guards(name, tuple(self._guards()), pairs, champion, challenger)

    def _guards(self) -> Iterator[Guard]:
        for suite in self.suites:
            yield Guard(f"{suite}.{FINISHED}", "higher", 0.0)
            for metric in suite_named(suite).metrics:
                if metric.name not in UNTIMED:
                    name = f"{suite}.{metric.name}"
                    yield Guard(name, metric.better, self.margins.get(name, MARGINS[metric.kind]))

    def _pairs(self, champion: ProfileDocument, challenger: ProfileDocument) -> Iterator[GuardScores]:
        profiles = (champion,) if champion == challenger else (champion, challenger)
        for suite in self.suites:
            short = (draw for draw in drawn(suite, self.split, MOST) if draw.turns < LONG_TURNS[0])
            for draw in islice(short, self.scenarios):
                figures = [_values(play_one(draw, replace(self.setup, profile=profile))) for profile in profiles]
                old, new = figures[0], figures[-1]
                for name in (name for name in old if name in new and name not in UNTIMED):
                    yield GuardScores(draw.id, f"{suite}.{name}", old[name], new[name])


def _values(played: ScenarioResult) -> dict[str, float]:
    """Return the means of a scenario; for a scenario that broke off only `FINISHED`."""
    if played.error is not None:
        return {FINISHED: 0.0}
    return {FINISHED: 1.0} | {name: tally.mean for name, tally in played.tallies.items() if tally.count}


def suite_gate(suites: Sequence[str], *, model: str | None, tokenizer: str, budgets: Mapping[str, int]) -> SuiteGate:
    """Make the gate that a steward's settings name; raise `InputError` for an unknown suite."""
    names = tuple(suite_named(name).name for name in suites)
    return SuiteGate(suites=names, setup=Setup(model=model, tokenizer=tokenizer, budgets=Budgets(**budgets).held()))
