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
from .continuity import (
    INSTRUCTIONS as INSTRUCTIONS,
    ScratchpadVersion as ScratchpadVersion,
    Workspace as Workspace,
    WriteSections as WriteSections,
    handoff_of as handoff_of,
    opening_of as opening_of,
    resume as resume,
    scratchpad_in as scratchpad_in,
    scratchpad_versions as scratchpad_versions,
)
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
from .runner import (
    CascadeRunner as CascadeRunner,
    PhaseEnd as PhaseEnd,
    RunEnd as RunEnd,
    RunProgress as RunProgress,
    every_cascade as every_cascade,
    progress_of as progress_of,
    recording_of as recording_of,
    sub_cascade_of as sub_cascade_of,
)
from .script import (
    EvaluatedAttempt as EvaluatedAttempt,
    FunctionPlayer as FunctionPlayer,
    ModelAnswer as ModelAnswer,
    ModelRequest as ModelRequest,
    ModelScript as ModelScript,
    PhaseOutput as PhaseOutput,
    Player as Player,
    ScriptEnded as ScriptEnded,
    ToolAnswer as ToolAnswer,
    ToolUse as ToolUse,
    called as called,
    judged as judged,
    load_script as load_script,
    script_of as script_of,
    tool_schema as tool_schema,
)
from .turns import RunLedger as RunLedger, recorded_calls as recorded_calls
