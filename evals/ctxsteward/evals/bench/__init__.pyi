from .__main__ import BENCHES as BENCHES, line_of as line_of, run as run
from .benchmark_row import BenchmarkRow as BenchmarkRow
from .conversations import conversation as conversation
from .survival import (
    BLOCK as BLOCK,
    HEAD as HEAD,
    SurvivalRow as SurvivalRow,
    cells as cells,
    measure as measure,
    survival_block as survival_block,
)
