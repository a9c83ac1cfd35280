"""Summarizers: what shortens text into bullets that cite what they kept.

`extractive` is the default summarizer: no model, verbatim quotes, at least one citation a bullet. `Reader` reads a
conversation for what replaces what; recall uses it. `UserRules` finds rules that a user states. They are found by entry
points, because `envelope` never imports this room.
"""

from .bullets import unsupported
from .extraction import Reader, extractive, structured
from .user_rules import UserRules

__all__ = ["Reader", "UserRules", "extractive", "structured", "unsupported"]
