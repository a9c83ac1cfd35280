"""Which fragments an envelope is made of, and in which order: values and pure functions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
