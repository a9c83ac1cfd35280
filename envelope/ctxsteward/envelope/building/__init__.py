"""One build: a session in, one compaction and one selection decided, an envelope out and kept."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
