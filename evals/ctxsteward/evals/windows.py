"""What a window says, as one text, and which messages a text names."""

from __future__ import annotations

import re

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.render.text import spans

_REF = re.compile(r"§(\d+)(?:-§(\d+))?")


def window_of(envelope: Envelope) -> str:
    """Everything that the model is shown, as one text; tool schemas with it."""
    return "\n".join(span.text for span in spans(envelope))


def named_in(text: str) -> frozenset[int]:
    """Ordinals that a text names by reference, singly or within a range.

    >>> sorted(named_in("see §3, and §7-§9"))
    [3, 7, 8, 9]
    """
    found: set[int] = set()
    for first, last in _REF.findall(text):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
