"""Peers, side by side: what other libraries send of the same histories, read by the same judge as ours.

`adapter` runs one peer in an environment of its own; `sending` is ours and the port they share; `process` speaks to an
adapter; `judge` measures; `table` writes the block of `docs/benchmarks.md`. No model, no key, no network: where a peer
would ask a model for a summary, it does what it does without.
"""
