"""One build: from a session, through at most one compaction and one selection, to an envelope with its manifest."""
