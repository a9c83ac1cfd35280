"""Adapters: ctxsteward inside somebody else's loop. Each module knows one SDK, and is loaded when it is asked for.

`Conversations` is what all of them do; an adapter is its framework's part alone.
"""
