from .clients import wrap as wrap
from .conversations import (
    ConversationName as ConversationName,
    ConversationOptions as ConversationOptions,
    Conversations as Conversations,
    PreparedCall as PreparedCall,
    SessionSource as SessionSource,
    cached_tokens_of as cached_tokens_of,
    conversation as conversation,
    current_conversation as current_conversation,
    named_conversation as named_conversation,
    split_head as split_head,
)
from .entry_log import EntryLog as EntryLog
