"""From records to a profile in force: the slice, the decision, approvals, promotion, canary and rollback."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
