"""The auditor of requests: `audit(expected, sent)` says what differs, `audit_rules` which rules are gone."""

from .auditor import audit
from .requests import sealed_request
from .rules import audit_rules

__all__ = ["audit", "audit_rules", "sealed_request"]
