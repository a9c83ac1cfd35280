"""The eval gate: champion and challenger replay the same cases, and no guard may fall by more than its margin."""

from .cases import Case, Held, Suite, load_suite, read_suite, shipped
from .configured import GateSettings, HeadBudgets, configured
from .port import EvalGate, GateReport, Guard, GuardResult, Pair, judged
from .suite import GUARDS, FrozenGate, Known
from .together import Together, with_suites

__all__ = [
    "GUARDS", "Case", "EvalGate", "FrozenGate", "GateReport", "GateSettings", "Guard", "GuardResult", "HeadBudgets",
    "Held", "Known", "Pair", "Suite", "Together", "configured", "judged", "load_suite", "read_suite", "shipped",
    "with_suites",
]  # fmt: skip
