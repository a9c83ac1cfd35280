"""Metrics and spans of the request path, recorded where the process has loaded OpenTelemetry."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
