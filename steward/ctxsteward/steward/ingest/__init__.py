"""Ingest: transcripts in, from files, objects and the store's own sessions; replayed, redacted, labelled with trust.

source = open_source("transcripts/")                        a place with transcripts
tonight = due(source.items(), watermark, mark=mark)         the items that are to be read
loaded = load(source, item.name, item.version)              the bytes of one
outcomes = ingest(loaded, IngestSettings())                 its transcripts: replayed, skipped or quarantined
with WorkerPool(function, 2) as workers:                    a function of items in processes, under limits
    for item, result in workers.run(many): ...
watermark = advanced(watermark, items, tonight, left, mark=mark, now_seconds=…)
"""
