"""Ingest: transcripts in, from files, objects and the store's own sessions; replayed, redacted, labelled with trust.

source = open_source("transcripts/")                        what is there
tonight = due(source.items(), watermark, mark=mark)         what is to be read
loaded = load(source, item.name, item.version)              its bytes
outcomes = ingest(loaded, IngestSettings())                 Replayed | Skipped | Quarantined, each
with Workers(function, 2) as workers:                       the same in processes of their own, under limits
    for item, result in workers.run(many): ...
watermark = advanced(watermark, items, tonight, left, mark=mark, now_seconds=…)
"""

from .folder import FolderSource
from .isolation import Answer, InProcess, Isolation, Limits
from .items import Loaded, Quarantined, Skipped, SourceItem
from .metadata import SessionMeta
from .objects import ObjectSource
from .reading import IngestSettings, Outcome, ingest, load
from .redaction import Redacted, Redactor
from .replaying import Origin, replay, said_in
from .sources import Source, open_source
from .stored import StoreSource
from .watermark import Watermark, advanced, due, marker
from .workers import Workers

__all__ = [
    "Answer",
    "FolderSource",
    "InProcess",
    "IngestSettings",
    "Isolation",
    "Limits",
    "Loaded",
    "ObjectSource",
    "Origin",
    "Outcome",
    "Quarantined",
    "Redacted",
    "Redactor",
    "SessionMeta",
    "Skipped",
    "Source",
    "SourceItem",
    "StoreSource",
    "Watermark",
    "Workers",
    "advanced",
    "due",
    "ingest",
    "load",
    "marker",
    "open_source",
    "replay",
    "said_in",
]
