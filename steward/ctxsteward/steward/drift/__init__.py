"""Drift: what changed between two profiles, how bad that is, and the patches between them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
