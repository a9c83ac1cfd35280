from .budgets import (
    BULLETS_FLOOR_FRACTION as BULLETS_FLOOR_FRACTION,
    HEAD_SECTIONS as HEAD_SECTIONS,
    LEAST_RECALL_TOKENS as LEAST_RECALL_TOKENS,
    LIKELY_FRACTION as LIKELY_FRACTION,
    LIVE_FLOOR_FRACTION as LIVE_FLOOR_FRACTION,
    MIN_PROGRESS_FRACTION as MIN_PROGRESS_FRACTION,
    RECALLED_FRACTION as RECALLED_FRACTION,
    RECALLED_HALF_TOKENS as RECALLED_HALF_TOKENS,
    SECTIONS as SECTIONS,
    Budgets as Budgets,
    BuildTarget as BuildTarget,
    Scale as Scale,
    budgets_within as budgets_within,
    dynamic_room as dynamic_room,
    guard_notice as guard_notice,
    guarded_room as guarded_room,
    limited_notice as limited_notice,
    target_of as target_of,
)
from .models import (
    DEFAULT_CACHE_BLOCK_TOKENS as DEFAULT_CACHE_BLOCK_TOKENS,
    known_models as known_models,
    model_info as model_info,
)
from .tokenizer import (
    FRAME_TOKENS as FRAME_TOKENS,
    MESSAGE_TOKENS as MESSAGE_TOKENS,
    REPLY_PRIMING_TOKENS as REPLY_PRIMING_TOKENS,
    Counter as Counter,
    Tokenizer as Tokenizer,
    load_tokenizer as load_tokenizer,
    prompt_tokens_of as prompt_tokens_of,
)
