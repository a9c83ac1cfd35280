"""Peers, side by side: what other libraries send of the same histories, read by the same judge as ours.

Everybody is a subject (`subjects`); `judge` measures, the command writes the block of `docs/benchmarks.md`. No model,
no key, no network: where a library would ask a model for a summary, it does what it does without.
"""
