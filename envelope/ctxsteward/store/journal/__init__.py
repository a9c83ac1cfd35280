"""The journal: ordered, durable records of sessions, in SQLite tables on disk or in memory."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
