"""A fragment: a piece of an envelope that is laid out, counted and rendered as one."""

from __future__ import annotations

import hashlib
from typing import Literal

from .counting import Counter
from .steps import Aside, Step

Kind = Literal["text", "tools", "bullets", "group", "context", "notes"]


class Fragment:
    """A piece of an envelope: what it says, what it costs, what identifies it."""

    __slots__ = ("digest", "kind", "name", "refs", "steps", "tokens")

    def __init__(
        self,
        kind: Kind,
        steps: tuple[Step, ...],
        tokens: int,
        digest: bytes,
        name: str = "",
        refs: tuple[int, ...] = (),
    ) -> None:
        self.kind = kind
        self.steps = steps
        self.tokens = tokens
        self.digest = digest
        """SHA-256, in process only."""
        self.name = name
        self.refs = refs

    @property
    def text(self) -> str:
        """The text of a derived fragment; empty for a group."""
        return "".join(step.text for step in self.steps if isinstance(step, Aside))

    def __repr__(self) -> str:
        return f"Fragment({self.kind}, {self.name or self.refs}, {self.tokens} tokens)"


def text_fragment(kind: Kind, name: str, text: str, counter: Counter) -> Fragment:
    """A fragment of our own or the operator's text."""
    return Fragment(kind, (Aside(text),), counter.framed(text), hashlib.sha256(text.encode()).digest(), name)
