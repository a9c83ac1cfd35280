from .fold import fold as fold
from .follow import before_answer as before_answer
from .new_message import NewMessage as NewMessage, check_meta as check_meta
from .originals import META_REPORT as META_REPORT, report_in as report_in
from .session import Session as Session
from .session_head import head_of as head_of
from .state import Day as Day, Pin as Pin, State as State
from .tool_groups import (
    LogEntry as LogEntry,
    ToolGroup as ToolGroup,
    is_user_turn as is_user_turn,
    said_by as said_by,
    says_something as says_something,
    text_of as text_of,
    unanswered as unanswered,
)
