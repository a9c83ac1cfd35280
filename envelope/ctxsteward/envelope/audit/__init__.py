"""The auditor of requests: `audit(expected, sent)` says what differs, `sealed_request` what to log for it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
