"""Peers, side by side: what other libraries send of the same histories, read by the same judge as ours.

`adapter` runs one peer in an environment of its own; `senders` has our own ways of sending, the port they share with
the peers (`Sender`), and the process that an adapter runs in; `judge` measures; `table` writes the block of
`docs/benchmarks.md`. No model, no key, no network: where a peer would ask a model for a summary, it does what it does
without.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
