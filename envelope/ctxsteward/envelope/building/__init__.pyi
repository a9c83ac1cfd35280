from .builder import EnvelopeBuilder as EnvelopeBuilder
from .past_calls import (
    CallCompaction as CallCompaction,
    PastCall as PastCall,
    dynamic_tokens as dynamic_tokens,
    holds_task_first as holds_task_first,
    past_calls as past_calls,
)
from .snapshots import Snapshots as Snapshots
