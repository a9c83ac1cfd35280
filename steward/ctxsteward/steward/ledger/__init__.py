"""The ledger: a set of observations, indexed, and the records they make."""

from __future__ import annotations

from .ledger import Flawed, Ledger, Size
from .writing import LineCounter

__all__ = ["Flawed", "Ledger", "LineCounter", "Size"]
