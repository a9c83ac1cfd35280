"""Suites that teams bring as files: read and checked, played and judged, drafted from transcripts, run in parts.

This is the door; `__init__.pyi` says which module has a name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
