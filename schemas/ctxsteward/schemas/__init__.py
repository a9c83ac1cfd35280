"""Values and published schemas: what crosses a room or a wire.

Everything here is frozen. Nothing here reads a clock, a file or the environment.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
