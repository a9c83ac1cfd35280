from .items import (
    LoadedItem as LoadedItem,
    QuarantinedItem as QuarantinedItem,
    SkippedItem as SkippedItem,
    SourceItem as SourceItem,
    is_named_like_transcript as is_named_like_transcript,
)
from .pipeline import IngestSettings as IngestSettings, Outcome as Outcome, ingest as ingest, load as load
from .redaction import RedactedText as RedactedText, Redactor as Redactor
from .replayer import TranscriptOrigin as TranscriptOrigin, replay as replay, said_in as said_in
from .sources import (
    SETTLED_SECONDS as SETTLED_SECONDS,
    STORE as STORE,
    FolderSource as FolderSource,
    ObjectSource as ObjectSource,
    StoreSource as StoreSource,
    TranscriptSource as TranscriptSource,
    open_source as open_source,
)
from .transcripts import SessionMeta as SessionMeta
from .watermark import Watermark as Watermark, advanced as advanced, due as due, marker as marker
from .worker_pool import (
    InProcess as InProcess,
    Isolation as Isolation,
    ItemAnswer as ItemAnswer,
    ItemLimits as ItemLimits,
    WorkerPool as WorkerPool,
    quarantined as quarantined,
    reason_of as reason_of,
)
