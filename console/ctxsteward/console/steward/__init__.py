"""What the verbs of `ctxsteward steward` do and show: each module is imported when its verb runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
