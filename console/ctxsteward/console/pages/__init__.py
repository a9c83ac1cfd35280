"""Pages for people to look at: one HTML file each, with nothing loaded from anywhere."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
