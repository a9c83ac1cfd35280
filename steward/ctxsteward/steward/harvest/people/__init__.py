"""Observations from the sentences of people: wishes, corrections, failed evals, and sentences without a cue."""
