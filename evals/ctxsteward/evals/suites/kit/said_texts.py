"""Read the texts of messages, and find them quoted in another text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ctxsteward.schemas.message import Wire

QUOTE_CHARS = 40
"""A message of at least this length is recognized inside another text."""
ELIDED = "…"
"""Mark in place of a removed quote."""


def texts_of(wire: Wire) -> Iterator[str]:
    """Yield the texts, tool calls and tool results of a message of any shape."""
    content = wire.get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            match block.get("type"):
                case "text":
                    yield str(block["text"])
                case "tool_result":
                    yield from texts_of({"content": block.get("content")})
                case "tool_use":
                    yield f"{block.get('name')} {block.get('input')}"
    for call in wire.get("tool_calls") or ():
        yield f"{call['function']['name']} {call['function']['arguments']}"


@dataclass(slots=True)
class SaidTexts:
    """Texts of a conversation so far; each is read once and found in other texts by its beginning.

    So a late call costs as much as an early one with a window of the same length.
    """

    texts: set[str] = field(default_factory=set)
    _read: int = 0
    _quotable: dict[str, set[str]] = field(default_factory=dict)
    """Texts of at least `QUOTE_CHARS`, by their first `QUOTE_CHARS`."""
    _elided: set[str] = field(default_factory=set)
    """Texts with `ELIDED` in their beginning: removing another quote may complete them."""

    def read(self, wires: Sequence[Wire]) -> None:
        """Read the messages added since the last call."""
        for wire in wires[self._read :]:
            self._read += 1
            text = "\n".join(texts_of(wire))
            self.texts.add(text)
            if len(text) >= QUOTE_CHARS:
                beginning = text[:QUOTE_CHARS]
                self._quotable.setdefault(beginning, set()).add(text)
                if ELIDED in beginning:
                    self._elided.add(text)

    def quotes(self, text: str) -> set[str]:
        """Return candidates for quotes in a text: every quoted text, and texts that only begin in it."""
        beginnings = {text[at : at + QUOTE_CHARS] for at in range(len(text) - QUOTE_CHARS + 1)}
        return self._elided.union(*(self._quotable[beginning] for beginning in self._quotable.keys() & beginnings))

    def taken_out_of(self, text: str) -> str:
        """Replace all quotes in a text, longest first."""
        for quote in sorted(self.quotes(text), key=lambda quote: (-len(quote), quote)):
            text = text.replace(quote, ELIDED)
        return text


def stands_alone(reference: str, text: str) -> bool:
    """Return whether a text contains a reference that is not joined to a letter, digit, underscore or hyphen.

    Uses `str.find`: each window has new references, so compiling patterns would not pay.
    """
    at = text.find(reference)
    while at >= 0 and (_joins(text[at - 1 : at]) or _joins(text[at + len(reference) : at + len(reference) + 1])):
        at = text.find(reference, at + 1)
    return at >= 0


def _joins(character: str) -> bool:
    return character.isalnum() or character in ("_", "-")
