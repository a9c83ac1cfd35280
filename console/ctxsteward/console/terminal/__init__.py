"""What every command says and asks at a terminal: options, stores, tables, output, and errors told as one line."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
