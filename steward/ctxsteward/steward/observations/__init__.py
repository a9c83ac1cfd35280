"""Input and output of a harvest: replayed transcripts, observations, and the table of their kinds."""
