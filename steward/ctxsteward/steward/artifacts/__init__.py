"""Harvest artifacts: what transcripts gave, encrypted, so that citations can be checked and people can be forgotten."""
