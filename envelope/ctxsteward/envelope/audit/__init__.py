"""The auditor of requests: `audit(expected, sent)` says what differs, `sealed_request` what to log for it."""

from .auditor import audit
from .kinds import KINDS
from .request import sealed_request

__all__ = ["KINDS", "audit", "sealed_request"]
