"""Harvest artifacts: what transcripts gave, encrypted, so that citations can be checked and people can be forgotten."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
