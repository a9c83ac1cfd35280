"""Back ends of the journal port: memory, file, and a draft on top of either."""
