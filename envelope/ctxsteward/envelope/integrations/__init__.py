"""Adapters that run ctxsteward inside another framework's loop. Each module adapts one SDK and is loaded on demand.

`Conversations` is the part common to all adapters; an adapter adds only its framework's part.
"""
