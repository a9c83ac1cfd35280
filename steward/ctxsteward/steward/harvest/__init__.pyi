from .batches import (
    Batch as Batch,
    BatchFailure as BatchFailure,
    BatchRecords as BatchRecords,
    BatchResult as BatchResult,
    DueTranscript as DueTranscript,
    RefusedTranscript as RefusedTranscript,
    Run as Run,
    SessionUse as SessionUse,
    WithdrawnTranscript as WithdrawnTranscript,
    batched as batched,
    in_threads as in_threads,
)
from .harvester import EXTRACTOR as EXTRACTOR, harvest as harvest, lasting as lasting
from .usage import (
    FATES as FATES,
    ActiveRecords as ActiveRecords,
    RecordUse as RecordUse,
    UseTally as UseTally,
    WatchedRecord as WatchedRecord,
    fires as fires,
    foresees as foresees,
    merge_tallies as merge_tallies,
    sum_uses as sum_uses,
    tally as tally,
    tool_trigger as tool_trigger,
)
