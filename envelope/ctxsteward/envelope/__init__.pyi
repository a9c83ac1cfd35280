from .audit.requests import sealed_request as sealed_request
from .building.builder import EnvelopeBuilder as EnvelopeBuilder, rebuild as rebuild
from .building.past_calls import PastCall as PastCall, past_calls as past_calls
from .building.snapshots import Snapshots as Snapshots
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
from .layout.rows import RENDERER_VERSION as RENDERER_VERSION, rows_of as rows_of, unfenced as unfenced
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
from .render.text import fragment_spans as fragment_spans, section_text as section_text
from .store import Store as Store, open_store as open_store
from .telemetry.spans import prefix_tokens as prefix_tokens
from .testing import memory_store as memory_store
from .tokens.budgets import HEAD_SECTIONS as HEAD_SECTIONS, SECTIONS as SECTIONS, Budgets as Budgets
from .tokens.models import (
    DEFAULT_CACHE_BLOCK_TOKENS as DEFAULT_CACHE_BLOCK_TOKENS,
    Prices as Prices,
    known_models as known_models,
    model_info as model_info,
)
from .tokens.tokenizer import (
    DEFAULT_TOKENIZER as DEFAULT_TOKENIZER,
    FRAME_TOKENS as FRAME_TOKENS,
    Counter as Counter,
    load_tokenizer as load_tokenizer,
)
from .transcripts.files import (
    FORMATS as FORMATS,
    parse_transcripts as parse_transcripts,
    read_transcripts as read_transcripts,
)
from .transcripts.strict_json import MAX_PIPE_BYTES as MAX_PIPE_BYTES, decode as decode, show as show
from .transcripts.transcript import Transcript as Transcript, TranscriptEntry as TranscriptEntry
