from . import telemetry as telemetry
from .batch_harvest import (
    BatchHarvester as BatchHarvester,
    HarvestResult as HarvestResult,
    HarvestWorker as HarvestWorker,
    Watch as Watch,
)
from .environment import (
    KEY_VARIABLE as KEY_VARIABLE,
    ProcessEnvironment as ProcessEnvironment,
    draft_store as draft_store,
    environment_keys as environment_keys,
)
from .history import (
    ALERT_NIGHTS as ALERT_NIGHTS,
    Night as Night,
    NightChain as NightChain,
    NightReport as NightReport,
    Outcome as Outcome,
    WordingReport as WordingReport,
    alerts_of as alerts_of,
    line as line,
    moment_of as moment_of,
    rates_of as rates_of,
    status as status,
)
from .run import (
    AdmittedRecords as AdmittedRecords,
    Challenger as Challenger,
    CheckVerdict as CheckVerdict,
    CommitContext as CommitContext,
    DueTranscripts as DueTranscripts,
    FittedSlice as FittedSlice,
    LedgerUpdate as LedgerUpdate,
    Marks as Marks,
    NightContext as NightContext,
    PromotionResult as PromotionResult,
    Stages as Stages,
    Tell as Tell,
    run_night as run_night,
)
from .telemetry import tell_night as tell_night
