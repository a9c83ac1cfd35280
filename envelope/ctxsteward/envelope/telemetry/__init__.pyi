from .prefix_breaks import (
    Layouts as Layouts,
    PrefixBreak as PrefixBreak,
    common_beginning as common_beginning,
    first_prefix_break as first_prefix_break,
    prefix_tokens as prefix_tokens,
)
from .sdk import exported as exported, scraped as scraped
from .spans import (
    API as API,
    LOGGER as LOGGER,
    BuildSpan as BuildSpan,
    spanned as spanned,
    usage_reported as usage_reported,
)
