"""The ledger: a set of observations, indexed, and the records they make."""

from __future__ import annotations

from .facade import FlawedRecord, Ledger, LedgerSize
from .records import JudgementContext, LineCounter

__all__ = ["FlawedRecord", "JudgementContext", "Ledger", "LedgerSize", "LineCounter"]
