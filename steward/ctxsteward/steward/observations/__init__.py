"""What a harvest reads and gives: a replayed transcript, an observation, and what the steward does with each kind."""
