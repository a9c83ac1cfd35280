"""Summarizers, which shorten originals into bullets that cite them.

<<<<<<< HEAD
`extractive` is the default summarizer: no model, verbatim quotes, at least one citation a bullet. `Reader` reads a
conversation for what replaces what; recall uses it. `UserRules` finds rules that a user states. They are found by entry
points, because `envelope` never imports this room.
=======
`extractive` is the default summarizer: no model, verbatim quotes, at least one citation per bullet. `Reader` finds the
messages of a conversation that replace earlier ones; recall uses it. Both are found by entry points, because `envelope`
never imports this package.
>>>>>>> 0268ae4c95a99887cfe9f6eddfa772a3f5412adc
"""

from .bullets import unsupported
from .extraction import Reader, extractive, structured
from .user_rules import UserRules

__all__ = ["Reader", "UserRules", "extractive", "structured", "unsupported"]
