"""Addresses, keys and ciphertext: who may read what, and what proves that nothing was changed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
