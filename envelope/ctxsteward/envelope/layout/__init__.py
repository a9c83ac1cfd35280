"""The order of an envelope's fragments, as values and pure functions."""
