"""Summarizers, which shorten originals into bullets that cite them.

`extractive` is the default summarizer: no model, verbatim quotes, at least one citation per bullet. `Reader` finds the
messages of a conversation that replace earlier ones; recall uses it. `UserRules` finds rules that a user states. They
are found by entry points, because `envelope` never imports this package.
"""

from .bullets import unsupported
from .extraction import Reader, extractive, structured
from .user_rules import UserRules

__all__ = ["Reader", "UserRules", "extractive", "structured", "unsupported"]
