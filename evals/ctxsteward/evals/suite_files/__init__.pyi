from .file_scenarios import FIGURES as FIGURES, FileJob as FileJob, FileScenario as FileScenario, play_job as play_job
from .run_record import (
    MergedRun as MergedRun,
    RunHead as RunHead,
    RunRecord as RunRecord,
    Shard as Shard,
    merged as merged,
    run_head as run_head,
)
from .suite_reader import FileSuite as FileSuite, load_suite as load_suite
from .transcript_suite import DraftSettings as DraftSettings, SuiteDraft as SuiteDraft, draft_suite as draft_suite
