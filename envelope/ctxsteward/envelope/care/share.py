"""A share of a store: ``1/7`` is the first of seven parts that together are everything.

The split is by SHA-256 of a name (a session's, a chain's folder, an object's key), so it is the same on every machine
and in every run: seven nights of one share each have looked at everything that was there all week.

>>> everything = Share.parse("1/1")
>>> everything.holds("blobs/acme/ab/…")
True
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from ctxsteward.schemas import InputError

MAX_SHARES = 10_000
_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)


class Share(NamedTuple):
    """The `part`-th of `parts`; parts count from 1."""

    part: int = 1
    parts: int = 1

    @classmethod
    def parse(cls, text: str | None) -> Share:
        """Read ``1/7``; nothing is everything. Raises `InputError`."""
        if text is None:
            return cls()
        found = _FORM.fullmatch(text)
        share = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= share.part <= share.parts <= MAX_SHARES:
            raise InputError(f"subset {text[:40]!r} is none; write K/N with 1 ≤ K ≤ N ≤ {MAX_SHARES:,}, such as 1/7")
        return share

    def holds(self, name: str) -> bool:
        """Whether what has this name belongs to this share."""
        if self.parts == 1:
            return True
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % self.parts == self.part - 1

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"
