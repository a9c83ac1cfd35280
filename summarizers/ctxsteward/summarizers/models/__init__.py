"""Models in the loop: adapters, limits on what they use, summaries whose every bullet is held against its sources."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
