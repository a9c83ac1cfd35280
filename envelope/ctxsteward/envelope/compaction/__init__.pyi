from .ahead import (
    PlannedCompaction as PlannedCompaction,
    PrefixedSummarizer as PrefixedSummarizer,
    SummaryAhead as SummaryAhead,
    erasers_of as erasers_of,
)
from .compactor import (
    Compactor as Compactor,
    Shortened as Shortened,
    load_summarizer as load_summarizer,
    replacing_reader as replacing_reader,
    summarizers_of as summarizers_of,
)
from .importance import (
    ContextPruner as ContextPruner,
    ContextStats as ContextStats,
    ImportanceWeights as ImportanceWeights,
    PrunedContext as PrunedContext,
    PruneStats as PruneStats,
    SummarizedContext as SummarizedContext,
    auto_manage_context as auto_manage_context,
    context_stats as context_stats,
    importance_policy as importance_policy,
    middle_out as middle_out,
    prune_context as prune_context,
    summarize_context as summarize_context,
)
from .losses import said_by as said_by, stands_in as stands_in, text_of as text_of
from .policy import (
    CompactionCandidate as CompactionCandidate,
    CompactionChoice as CompactionChoice,
    Policy as Policy,
    ToolGroup as ToolGroup,
    Window as Window,
    choose as choose,
    phase_log as phase_log,
    with_default as with_default,
)
from .pricing import (
    KEPT_STEPS as KEPT_STEPS,
    asked_policy as asked_policy,
    price_policy as price_policy,
    rewriting_pays as rewriting_pays,
)
