"""The ledger: a set of observations, indexed, and the records they make."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
