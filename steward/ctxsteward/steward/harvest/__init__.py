"""Harvest: what one transcript says that is worth keeping, as observations; no model, nothing trained."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
