"""The eval gate: champion and challenger replay the same cases, and no guard may fall by more than its margin."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
