from .builder import EnvelopeBuilder as EnvelopeBuilder, rebuild as rebuild
from .past_calls import (
    CallCompaction as CallCompaction,
    PastCall as PastCall,
    holds_task_first as holds_task_first,
    past_calls as past_calls,
    prefix_between as prefix_between,
)
from .snapshots import Snapshots as Snapshots
