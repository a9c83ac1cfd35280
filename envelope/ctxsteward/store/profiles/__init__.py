"""Profiles, their versions and meta records: what people approve before a session is shown it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
