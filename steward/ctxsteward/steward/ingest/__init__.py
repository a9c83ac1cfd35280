"""Ingest: transcripts in, from files, objects and the store's own sessions; replayed, redacted, labelled with trust.

source = open_source("transcripts/")                        what is there
tonight = due(source.items(), watermark, mark=mark)         what is to be read
loaded = load(source, item.name, item.version)              its bytes
outcomes = ingest(loaded, IngestSettings())                 a transcript, skipped or quarantined, each
with WorkerPool(function, 2) as workers:                    the same in processes of their own, under limits
    for item, result in workers.run(many): ...
watermark = advanced(watermark, items, tonight, left, mark=mark, now_seconds=…)
"""

from .items import LoadedItem, QuarantinedItem, SkippedItem, SourceItem
from .pipeline import IngestSettings, Outcome, ingest, load
from .redaction import RedactedText, Redactor
from .replayer import TranscriptOrigin, replay, said_in
from .sessions import StoreSource
from .sources import FolderSource, ObjectSource, TranscriptSource, open_source
from .transcripts import SessionMeta
from .watermark import Watermark, advanced, due, marker
from .worker_pool import InProcess, Isolation, ItemAnswer, ItemLimits, WorkerPool

__all__ = [
    "FolderSource",
    "InProcess",
    "IngestSettings",
    "Isolation",
    "ItemAnswer",
    "ItemLimits",
    "LoadedItem",
    "ObjectSource",
    "Outcome",
    "QuarantinedItem",
    "RedactedText",
    "Redactor",
    "SessionMeta",
    "SkippedItem",
    "SourceItem",
    "StoreSource",
    "TranscriptOrigin",
    "TranscriptSource",
    "Watermark",
    "WorkerPool",
    "advanced",
    "due",
    "ingest",
    "load",
    "marker",
    "open_source",
    "replay",
    "said_in",
]
