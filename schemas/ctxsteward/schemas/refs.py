"""References to originals: how a bullet, a person or a model names a message.

``§128`` is the 128th message of the session (its *ordinal*, 1-based), ``§128.2`` the second tool result
inside that message, ``tool:3`` the third tool output of the session.

>>> Ref.parse("§128.2")
Ref(ordinal=128, part=2)
>>> str(Ref.parse("128"))
'§128'
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import InvalidReference

_REF = re.compile(r"§?([1-9][0-9]{0,11})(?:\.([1-9][0-9]{0,3}))?", re.ASCII)


class Ref(NamedTuple):
    """An ordinal, and the 1-based tool result inside that message (0: the whole message)."""

    ordinal: int
    part: int = 0

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Read ``§128``, ``128`` or ``§128.2``; raise `InvalidReference` otherwise."""
        match = _REF.fullmatch(text.strip())
        if match is None:
            raise InvalidReference(text)
        return cls(int(match[1]), int(match[2] or 0))

    def __str__(self) -> str:
        return f"§{self.ordinal}.{self.part}" if self.part else f"§{self.ordinal}"
