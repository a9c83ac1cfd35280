"""What tool calls of a transcript show: errors, their codes, and the later calls that repaired them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
