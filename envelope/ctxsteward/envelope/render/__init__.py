"""Rendering: an envelope as the arguments of a provider's client, and such a request read back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
