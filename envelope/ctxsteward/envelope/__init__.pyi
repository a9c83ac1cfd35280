from .building.builder import EnvelopeBuilder as EnvelopeBuilder, rebuild as rebuild
from .compaction.ahead import SummaryAhead as SummaryAhead
from .compaction.policy import Policy as Policy
from .envelope import PROVIDERS as PROVIDERS, Envelope as Envelope, Section as Section
from .history.new_message import NewMessage as NewMessage
from .history.session import Profile as Profile, Session as Session
from .history.tool_groups import LogEntry as LogEntry
from .integrations.clients import wrap as wrap
from .integrations.conversations import (
    ConversationName as ConversationName,
    Conversations as Conversations,
    conversation as conversation,
)
from .recall.heuristic import Heuristic as Heuristic
from .recall.model_tools import (
    Hit as Hit,
    answer_call as answer_call,
    model_tools as model_tools,
    resolve_reference as resolve_reference,
    resolve_reference_tool as resolve_reference_tool,
    search_context as search_context,
    search_context_tool as search_context_tool,
    what_was_dropped as what_was_dropped,
    what_was_dropped_tool as what_was_dropped_tool,
)
from .recall.postings import Weights as Weights
from .recall.selection import (
    ScoredOriginal as ScoredOriginal,
    SelectionRequest as SelectionRequest,
    Selector as Selector,
)
from .store import Store as Store, open_store as open_store
from .tokens.budgets import Budgets as Budgets
