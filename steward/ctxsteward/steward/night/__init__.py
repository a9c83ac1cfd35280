"""One night: the order of its stages, the process it runs in, its report, and the chain of finished nights."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
