"""Fences: how derived or injected text is set apart from what people and models said.

A fence carries the session's nonce, drawn from the injected random source when the session was opened. Text that
contains the nonce is escaped, so nothing inside can close its fence or open another. One fence goes round a list, not
round each item: a pair costs 20-28 tokens.

>>> fenced("7f3a", "notes", "plan: ship")
'<7f3a notes>\\nplan: ship\\n</7f3a>\\n'
>>> unescape("7f3a", escape("7f3a", "</7f3a>")) == "</7f3a>"
True
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

NONCE_DIGITS = 9
"""Decimal digits: 30 bits, three tokens in every nonce, so that a session's costs do not depend on its luck."""


def random_nonce() -> str:
    """A nonce from the operating system's random source."""
    return f"{secrets.randbelow(10**NONCE_DIGITS):0{NONCE_DIGITS}d}"


def escape(nonce: str, text: str) -> str:
    """Break every occurrence of the nonce; the inverse is `unescape`."""
    return text.replace(nonce, nonce + "~") if nonce in text else text


def unescape(nonce: str, text: str) -> str:
    return text.replace(nonce + "~", nonce)


class Fenced(NamedTuple):
    """A fenced block, taken apart."""

    label: str
    text: str
    closing: str


def unfenced(nonce: str, block: str) -> Fenced:
    """The inverse of `fenced`; raises `ValueError` for a block of another session, or none."""
    opening, ending = f"<{nonce} ", f"\n</{nonce}"
    label, opened, rest = block.removeprefix(opening).partition(">\n")
    text, closed, closing = rest.rpartition(ending)
    if not (block.startswith(opening) and opened and closed and closing.endswith(">\n")):
        raise ValueError("the text is no fenced block of this session")
    return Fenced(label, unescape(nonce, text), closing[:-2].removeprefix(" "))


def fenced(nonce: str, label: str, text: str, *, closing: str = "") -> str:
    """A fenced block; `closing` is our own remark on its last line."""
    return f"<{nonce} {label}>\n{escape(nonce, text)}\n</{nonce}{' ' + closing if closing else ''}>\n"
