from .__main__ import BENCHES as BENCHES, line_of as line_of, run as run
from .advice import (
    ADVICE as ADVICE,
    ADVICE_HEAD as ADVICE_HEAD,
    PRACTICES as PRACTICES,
    PRACTICES_HEAD as PRACTICES_HEAD,
    AdviceRow as AdviceRow,
    AdviceRun as AdviceRun,
    PracticeRow as PracticeRow,
    advice_cells as advice_cells,
    lines_of as lines_of,
    measure_advice as measure_advice,
    measure_practices as measure_practices,
    own_practised_runs as own_practised_runs,
    own_runs as own_runs,
    own_worded_runs as own_worded_runs,
    practice_cells as practice_cells,
    read_runs as read_runs,
    records_of as records_of,
    runs_of as runs_of,
)
from .benchmark_row import BenchmarkRow as BenchmarkRow, conversation as conversation
from .cascade_runs import (
    SCENARIOS as SCENARIOS,
    PhaseEfficiency as PhaseEfficiency,
    RunScenario as RunScenario,
    efficiency_of as efficiency_of,
    judged_calls as judged_calls,
    play_scenario as play_scenario,
    prices_of as prices_of,
)
from .noted_chats import (
    LINE_CHECKS as LINE_CHECKS,
    NOTED as NOTED,
    NOTED_HEAD as NOTED_HEAD,
    WORTH as WORTH,
    WORTH_HEAD as WORTH_HEAD,
    NotedRow as NotedRow,
    WorthRow as WorthRow,
    measure_noted as measure_noted,
    measure_worth as measure_worth,
    noted_cells as noted_cells,
    read_noted as read_noted,
    worth_cells as worth_cells,
)
from .survival import (
    BLOCK as BLOCK,
    HEAD as HEAD,
    SurvivalRow as SurvivalRow,
    cells as cells,
    measure as measure,
    survival_block as survival_block,
)
from .written_runs import RIGHT_PRACTICES as RIGHT_PRACTICES
