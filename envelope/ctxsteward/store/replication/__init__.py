"""Draining the local journal into the object store, and moving sessions from machine to machine."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
