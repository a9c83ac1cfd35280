from .fold import fold as fold
from .follow import CONTEXT_PASTED as CONTEXT_PASTED, ERASED_SKIPPED as ERASED_SKIPPED
from .head_check import still_told as still_told
from .originals import META_REPORT as META_REPORT, report_in as report_in
from .session import Session as Session
from .session_head import head_of as head_of
from .state import Day as Day, Pin as Pin, State as State
from .tool_groups import (
    LogEntry as LogEntry,
    NewMessage as NewMessage,
    ToolGroup as ToolGroup,
    check_meta as check_meta,
    is_user_turn as is_user_turn,
    said_by as said_by,
    says_something as says_something,
    text_of as text_of,
    unanswered as unanswered,
)
