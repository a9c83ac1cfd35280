"""The auditor of requests: `audit(expected, sent)` says what differs, `sealed_request` what to log for it."""

from .auditor import audit
from .requests import sealed_request

__all__ = ["audit", "sealed_request"]
