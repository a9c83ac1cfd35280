"""The HTTP service: a JSON API over a store, events, and the pages mounted on it. Needs the extra `console`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
