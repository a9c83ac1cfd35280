from .port import (
    EvalGate as EvalGate,
    GateReport as GateReport,
    Guard as Guard,
    GuardResult as GuardResult,
    GuardScores as GuardScores,
    judge_guards as judge_guards,
)
from .settings import (
    CombinedGate as CombinedGate,
    GateSettings as GateSettings,
    HeadBudgets as HeadBudgets,
    configured as configured,
    with_suites as with_suites,
)
from .suite import (
    GUARDS as GUARDS,
    FrozenCase as FrozenCase,
    FrozenGate as FrozenGate,
    FrozenSuite as FrozenSuite,
    HeldOutRequest as HeldOutRequest,
    KnownReplay as KnownReplay,
    load_suite as load_suite,
    no_known_replay as no_known_replay,
    read_suite as read_suite,
    shipped as shipped,
)
