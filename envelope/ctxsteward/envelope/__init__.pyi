from .audit.requests import sealed_request as sealed_request
from .building.builder import EnvelopeBuilder as EnvelopeBuilder, rebuild as rebuild
from .building.past_calls import PastCall as PastCall, past_calls as past_calls
from .cascade.continuity import handoff_of as handoff_of
from .compaction.ahead import SummaryAhead as SummaryAhead
from .compaction.policy import Policy as Policy
from .envelope import (
    PROVIDERS as PROVIDERS,
    Envelope as Envelope,
    Provider as Provider,
    Section as Section,
    verify_seal as verify_seal,
)
from .history.session import Profile as Profile, Session as Session
from .history.tool_groups import LogEntry as LogEntry, NewMessage as NewMessage, text_of as text_of
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
from .tokens.models import Prices as Prices, known_models as known_models, model_info as model_info
from .tokens.tokenizer import Counter as Counter, load_tokenizer as load_tokenizer
from .transcripts.files import parse_transcripts as parse_transcripts, read_transcripts as read_transcripts
from .transcripts.transcript import Transcript as Transcript, TranscriptEntry as TranscriptEntry
