"""Made-up results for tests of what is told of them."""

from __future__ import annotations

from ctxsteward.evals.suites.gates import Gate, Gates
from ctxsteward.evals.suites.kit.suite import EvalSuite, Metric, ScenarioResult, Score, ScoreTally, Setup
from ctxsteward.evals.suites.results import result
from ctxsteward.schemas.eval_result import EvalResult

SHOWN = Metric(name="shown", about="The value is shown.")
STALE = Metric(name="stale", about="Outdated values shown.", kind="count", better="lower")
COST = Metric(name="cost", about="Priced tokens against sending everything.", kind="ratio", better="lower")
UNKNOWN = Metric(name="unknown", about="Never scored.")
GATES: Gates = {"shown": (Gate(rule="at_least", bound=0.9, scenarios=2),), "stale": (Gate(rule="at_most", bound=0),)}


def _nothing(*_: object) -> None:
    raise AssertionError("never played")


SUITE = EvalSuite(
    name="made",
    about="A suite | of <made> figures.",
    metrics=(SHOWN, STALE, COST, UNKNOWN),
    make=_nothing,
    play=_nothing,
    scenarios=2,  # type: ignore[arg-type]
)


def played(
    number: int, shown: int, of: int, *, stale: int = 0, cost: float = 0.5, error: str | None = None, turns: int = 60
) -> ScenarioResult:
    misses = [Score("shown", 0.0, f"turn {n}", "not shown: '\x1b[31m| <b>'") for n in range(of - shown)]
    return ScenarioResult(
        id=f"made/ci-{number}",
        turns=turns,
        messages=120,
        builds=60,
        cpu_seconds=0.25,
        error=error,
        tallies={
            "shown": ScoreTally(of, shown, misses),
            "stale": ScoreTally(1, stale, [Score("stale", stale, "end", "8949")] if stale else []),
            "cost": ScoreTally(1, cost),
            "unknown": ScoreTally(),
        },
    )


def made(*rows: ScenarioResult, gates: Gates = GATES, when: str = "2026-11-22T08:00:00+00:00") -> EvalResult:
    return result(SUITE, rows, split="ci", setup=Setup(), gates=gates, when=when, reproduce="ctxsteward evals run made")
