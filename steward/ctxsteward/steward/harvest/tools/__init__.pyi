from .calls import ToolStep as ToolStep, leaf_name as leaf_name, name_words as name_words, steps as steps
from .episodes import (
    ErrorEpisode as ErrorEpisode,
    as_it_happened as as_it_happened,
    done_instead as done_instead,
    episodes as episodes,
)
from .errors import (
    SIBLINGS_EXTRACTOR as SIBLINGS_EXTRACTOR,
    TOOL_ERRORS_EXTRACTOR as TOOL_ERRORS_EXTRACTOR,
    FailureGroup as FailureGroup,
    FailurePlace as FailurePlace,
    expected as expected,
    identifiers as identifiers,
    sibling_fixes as sibling_fixes,
    tool_errors as tool_errors,
    troubles_of as troubles_of,
)
from .templates import (
    ArgumentFix as ArgumentFix,
    FixTrigger as FixTrigger,
    is_repair as is_repair,
    parse_action as parse_action,
    parse_trigger as parse_trigger,
)
