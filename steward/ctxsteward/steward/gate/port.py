"""The port of the eval gate: champion and challenger replay the same cases, and no guard may fall.

A *guard* is a metric with a direction and a margin. A guard has a value of champion and challenger for each case that
it applies to; the report is paired, case by case. `EvalGate` is implemented by the frozen suite (`suite.FrozenGate`),
and by the player of eval suites (`settings.with_suites`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.store.profiles.text import canonical_json

Direction = Literal["higher", "lower"]
"""Whether higher or lower values are better."""


class Guard(NamedTuple):
    """One metric that must not fall."""

    name: str
    direction: Direction
    margin: float
    """How much worse the mean over the cases may be."""


class GuardScores(NamedTuple):
    """One guard in one case."""

    case: str
    guard: str
    champion: float
    challenger: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """One guard over all cases it applies to."""

    guard: str
    direction: Direction
    margin: float
    cases: int
    champion: float | None
    """Mean, or None if the guard applied to no case."""
    challenger: float | None
    passed: bool

    @property
    def fall(self) -> float:
        """How much worse the challenger is, or 0."""
        if self.champion is None or self.challenger is None:
            return 0.0
        worse = self.champion - self.challenger if self.direction == "higher" else self.challenger - self.champion
        return max(0.0, round(worse, 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """Champion against challenger on the same cases."""

    suite: str
    """Name and version of the cases."""
    results: tuple[GuardResult, ...]
    pairs: tuple[GuardScores, ...]
    digests: tuple[str, str]
    """Digests of champion and challenger; in process only, never stored."""

    @property
    def passed(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Guards that fell by more than their margin."""
        return tuple(result.guard for result in self.results if not result.passed)

    def is_of(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> bool:
        """Whether the report is about this champion and challenger."""
        return self.digests == (digest_of(champion), digest_of(challenger))

    def document(self) -> dict[str, Any]:
        """Return the report as JSON values: numbers, and names of guards and cases."""
        return {
            "suite": self.suite,
            "passed": self.passed,
            "results": [asdict(result) | {"fall": result.fall} for result in self.results],
            "pairs": [list(pair) for pair in self.pairs],
        }


EvalGate = Callable[[ProfileDocument | None, ProfileDocument], GateReport]
"""Replays the frozen cases with champion (or None) and challenger."""


def judge_guards(
    suite: str,
    guards: Sequence[Guard],
    pairs: Sequence[GuardScores],
    champion: ProfileDocument | None,
    challenger: ProfileDocument,
) -> GateReport:
    """Make a report from measured pairs: means over the same cases, and the guards that fell."""
    results = tuple(_result(guard, [pair for pair in pairs if pair.guard == guard.name]) for guard in guards)
    digests = (digest_of(champion), digest_of(challenger))
    return GateReport(suite=suite, results=results, pairs=tuple(pairs), digests=digests)


def digest_of(document: ProfileDocument | None) -> str:
    """Return the SHA-256 of a profile's content, without number and name."""
    if document is None:
        return ""
    plain = ProfileDocument.model_validate(document.model_dump() | {"name": "default", "version": None})
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()


def _result(guard: Guard, pairs: Sequence[GuardScores]) -> GuardResult:
    champion = sum(pair.champion for pair in pairs) / len(pairs) if pairs else None
    challenger = sum(pair.challenger for pair in pairs) / len(pairs) if pairs else None
    result = GuardResult(
        guard=guard.name,
        direction=guard.direction,
        margin=guard.margin,
        cases=len(pairs),
        champion=champion,
        challenger=challenger,
        passed=True,
    )
    return replace(result, passed=result.fall <= guard.margin + 1e-9)
