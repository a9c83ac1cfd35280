"""The eval gate: champion and challenger replay the same cases, and no guard may fall by more than its margin."""

from .cases import Case, Held, Suite, read_suite, shipped
from .port import EvalGate, GateReport, Guard, GuardResult, Pair, judged
from .suite import GUARDS, FrozenGate

__all__ = [
    "GUARDS", "Case", "EvalGate", "FrozenGate", "GateReport", "Guard", "GuardResult", "Held", "Pair", "Suite", "judged",
    "read_suite", "shipped",
]  # fmt: skip
