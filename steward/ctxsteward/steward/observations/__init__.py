"""What a harvest reads and gives: a replayed transcript, an observation, and what the steward does with each kind."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
