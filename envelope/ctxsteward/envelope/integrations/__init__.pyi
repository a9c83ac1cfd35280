from .agent_framework import CtxstewardHistory as CtxstewardHistory, CtxstewardView as CtxstewardView
from .claude_agent_sdk import ClaudeMirror as ClaudeMirror
from .clients import wrap as wrap
from .conversations import (
    ConversationName as ConversationName,
    Conversations as Conversations,
    EntryLog as EntryLog,
    PreparedCall as PreparedCall,
    cached_tokens_of as cached_tokens_of,
    conversation as conversation,
    named_conversation as named_conversation,
    split_head as split_head,
)
