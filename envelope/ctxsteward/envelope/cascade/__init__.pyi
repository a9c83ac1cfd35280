from .auto_selection import Strategies as Strategies
from .config import (
    anchors as anchors,
    auto_enabled as auto_enabled,
    cascade_of as cascade_of,
    intra_context as intra_context,
    load_cascade as load_cascade,
    load_tree as load_tree,
    parse_cascade as parse_cascade,
    selection as selection,
)
from .context import PhaseMessage as PhaseMessage
from .past import Past as Past, PastMessage as PastMessage, PhaseLog as PhaseLog, read_past as read_past
from .phase import (
    PhaseContext as PhaseContext,
    RefusedAttempt as RefusedAttempt,
    intra_policy as intra_policy,
    phase_context as phase_context,
    retry_messages as retry_messages,
    sub_input as sub_input,
    sub_state as sub_state,
)
from .run import (
    OpenedPhase as OpenedPhase,
    RecordedRun as RecordedRun,
    choose_attempt as choose_attempt,
    close_phase as close_phase,
    open_phase as open_phase,
    past_of_rows as past_of_rows,
    read_rows as read_rows,
    read_run as read_run,
    record_state as record_state,
    recorded_of as recorded_of,
)
