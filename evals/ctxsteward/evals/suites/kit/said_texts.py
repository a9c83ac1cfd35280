"""What was said in a conversation, as texts: what a message says, and where its words stand in another text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ctxsteward.schemas.message import Wire

QUOTE_CHARS = 40
"""A message of at least this length is known again inside another text."""
ELIDED = "…"
"""Stands where a quote was taken out."""


def texts_of(wire: Wire) -> Iterator[str]:
    """What a message of any shape says: its texts, its calls' names and arguments, its results."""
    content = wire.get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            yield from _texts_of_block(block)
    for call in wire.get("tool_calls") or ():
        yield f"{call['function']['name']} {call['function']['arguments']}"


def _texts_of_block(block: Wire) -> Iterator[str]:
    if block.get("type") == "text":
        yield str(block["text"])
    elif block.get("type") == "tool_result":
        yield from texts_of({"content": block.get("content")})
    elif block.get("type") == "tool_use":
        yield f"{block.get('name')} {block.get('input')}"


@dataclass(slots=True)
class SaidTexts:
    """What was said so far, each message read once, and found again inside another text by how it begins.

    So a call late in a conversation costs as much as an early one, at the same length of its window.
    """

    texts: set[str] = field(default_factory=set)
    _read: int = 0
    _quotable: dict[str, set[str]] = field(default_factory=dict)
    """Texts of at least `QUOTE_CHARS`, by their first so many."""
    _elided: set[str] = field(default_factory=set)
    """Those whose beginning may come about where another was taken out: it has the mark that stays behind."""

    def read(self, wires: Sequence[Wire]) -> None:
        """Take in what was said since."""
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
        """Said texts that may stand in a text: all those that do, longer ones of which it has the beginning, too."""
        beginnings = {text[at : at + QUOTE_CHARS] for at in range(len(text) - QUOTE_CHARS + 1)}
        return self._elided.union(*(self._quotable[each] for each in self._quotable.keys() & beginnings))

    def taken_out_of(self, text: str) -> str:
        """The text without what was said, the longest first."""
        for quote in sorted(self.quotes(text), key=lambda quote: (-len(quote), quote)):
            text = text.replace(quote, ELIDED)
        return text


def stands_alone(reference: str, text: str) -> bool:
    """Whether no letter, digit, underscore or hyphen is beside it; sought plainly, as each window has new ones."""
    at = text.find(reference)
    while at >= 0 and (_joins(text[at - 1 : at]) or _joins(text[at + len(reference) : at + len(reference) + 1])):
        at = text.find(reference, at + 1)
    return at >= 0


def _joins(character: str) -> bool:
    return character.isalnum() or character in ("_", "-")
