"""One build: a session in, one compaction and one selection decided, an envelope out and kept."""
