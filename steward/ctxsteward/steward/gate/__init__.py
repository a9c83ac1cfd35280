"""The eval gate: champion and challenger replay the same cases, and no guard may fall by more than its margin."""

from .port import EvalGate, GateReport, Guard, GuardResult, GuardScores, judge_guards
from .settings import CombinedGate, GateSettings, HeadBudgets, configured, with_suites
from .suite import (
    GUARDS,
    FrozenCase,
    FrozenGate,
    FrozenSuite,
    HeldOutRequest,
    KnownReplay,
    load_suite,
    read_suite,
    shipped,
)

__all__ = [
    "GUARDS",
    "CombinedGate",
    "EvalGate",
    "FrozenCase",
    "FrozenGate",
    "FrozenSuite",
    "GateReport",
    "GateSettings",
    "Guard",
    "GuardResult",
    "GuardScores",
    "HeadBudgets",
    "HeldOutRequest",
    "KnownReplay",
    "configured",
    "judge_guards",
    "load_suite",
    "read_suite",
    "shipped",
    "with_suites",
]  # fmt: skip
