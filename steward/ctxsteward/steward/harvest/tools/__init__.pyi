from .calls import ToolStep as ToolStep, leaf_name as leaf_name, name_words as name_words, steps as steps
from .episodes import (
    ErrorEpisode as ErrorEpisode,
    as_it_happened as as_it_happened,
    done_instead as done_instead,
    episodes as episodes,
)
from .errors import (
    ENVIRONMENT_EXTRACTOR as ENVIRONMENT_EXTRACTOR,
    TOOL_ERRORS_EXTRACTOR as TOOL_ERRORS_EXTRACTOR,
    FailureGroup as FailureGroup,
    FailurePlace as FailurePlace,
    environment as environment,
    expected as expected,
    identifiers as identifiers,
    sibling_fixes as sibling_fixes,
    tool_errors as tool_errors,
    troubles_of as troubles_of,
)
from .practices import (
    PRACTICES_EXTRACTOR as PRACTICES_EXTRACTOR,
    PracticeContrast as PracticeContrast,
    PracticeRun as PracticeRun,
    RunTask as RunTask,
    contrast as contrast,
    fix_of as fix_of,
    parse_run_key as parse_run_key,
    practices as practices,
    same_tasks as same_tasks,
)
from .templates import (
    SIBLINGS_EXTRACTOR as SIBLINGS_EXTRACTOR,
    ArgumentFix as ArgumentFix,
    FixTrigger as FixTrigger,
    action as action,
    is_repair as is_repair,
    learned_at as learned_at,
    only_checks as only_checks,
    only_looks as only_looks,
    parse_action as parse_action,
    parse_trigger as parse_trigger,
    practice as practice,
    sentence as sentence,
)
