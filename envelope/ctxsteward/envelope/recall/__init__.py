"""Which originals and facts a user turn is shown again, and how they are ranked."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
