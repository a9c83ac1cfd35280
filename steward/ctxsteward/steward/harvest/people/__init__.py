"""What people say in a transcript: preferences, facts, corrections and decisions, as claims."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
