"""Ingest: read transcripts of files, objects and the store's own sessions; replay, redact and label them with trust.

source = open_source("transcripts/")                        a place with transcripts
tonight = due(source.items(), watermark, mark=mark)         the items to read
loaded = load(source, item.name, item.version)              the bytes of an item
outcomes = ingest(loaded, IngestSettings())                 its transcripts: replayed, skipped or quarantined
with WorkerPool(function, 2) as workers:                    run a function on items in processes, under limits
    for item, result in workers.run(items): ...
watermark = advanced(watermark, items, tonight, left, mark=mark, now_seconds=…)
"""
