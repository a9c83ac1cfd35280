"""The ledger: a set of observations, indexed, and the records they make."""

from __future__ import annotations

from .ledger import Flawed, Ledger, Size
from .records import AsOf
from .writing import LineCounter

__all__ = ["AsOf", "Flawed", "Ledger", "LineCounter", "Size"]
