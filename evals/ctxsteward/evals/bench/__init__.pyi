from .__main__ import BENCHES as BENCHES, line_of as line_of, run as run
from .advice import (
    ADVICE as ADVICE,
    ADVICE_HEAD as ADVICE_HEAD,
    AdviceRow as AdviceRow,
    AdviceRun as AdviceRun,
    advice_cells as advice_cells,
    measure_advice as measure_advice,
    own_runs as own_runs,
    read_runs as read_runs,
    records_of as records_of,
    runs_of as runs_of,
)
from .asked_chats import (
    CHATS_BLOCK as CHATS_BLOCK,
    Half as Half,
    is_chat_folder as is_chat_folder,
    measure_chats as measure_chats,
    read_chats as read_chats,
    write_chats_table as write_chats_table,
)
from .conversations import conversation as conversation
from .noted_chats import (
    NOTED as NOTED,
    NOTED_HEAD as NOTED_HEAD,
    NotedRow as NotedRow,
    measure_noted as measure_noted,
    noted_cells as noted_cells,
    read_noted as read_noted,
)
from .survival import (
    BLOCK as BLOCK,
    HEAD as HEAD,
    SurvivalRow as SurvivalRow,
    cells as cells,
    measure as measure,
    survival_block as survival_block,
)
