from .prefix_breaks import common_beginning as common_beginning, prefix_tokens as prefix_tokens
from .sdk import exported as exported
from .spans import (
    API as API,
    LOGGER as LOGGER,
    BuildSpan as BuildSpan,
    spanned as spanned,
    usage_reported as usage_reported,
)
