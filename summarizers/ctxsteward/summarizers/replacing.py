"""Reading a conversation for what replaces what: corrections, other values for the same thing, revoked rules.

Where an earlier message is shown again, the later ones have to stand beside it. A message may say several things, each
replaced by another message, and these again by later ones: each thing is followed to its newest. Every message is read
once, up to `READ_CHARS` of its own text; tool results are not read. Rules of `updates`.
"""

from __future__ import annotations

from ctxsteward.schemas import SourceMessage

from .backlog import source_statements, texts
from .updates import Updates

READ_CHARS = 2_000


class Reader:
    """Reads one conversation; a `Replacing`.

    >>> from ctxsteward.schemas import Message
    >>> said = "My budget is 90,000 yen. The train leaves at 14:30.", "Change of plan: my budget is 120,000 yen."
    >>> reader = Reader()
    >>> for n, text in enumerate((*said, "The train leaves at 16:45 instead."), 1):
    ...     reader.read(SourceMessage(ref=f"§{n}", message=Message.from_wire({"role": "user", "content": text})))
    >>> reader.replaced_by("§1"), reader.replaced_by("§2")
    (('§2', '§3'), ())
    """

    def __init__(self) -> None:
        self._updates = Updates()
        self._refs: dict[int, str] = {}
        """Of statements that replace something."""
        self._stale: dict[str, list[int]] = {}
        """Statements of a message that were replaced."""
        self._said_in: dict[int, str] = {}

    def read(self, message: SourceMessage) -> None:
        """Take the next message, in ordinal order."""
        for text in texts((message,)):
            for statement in source_statements((text._replace(text=text.text[:READ_CHARS]),)):
                position = self._updates.count
                self._said_in[position] = message.ref
                for old in self._updates.add(statement):
                    self._refs[position] = message.ref
                    self._stale.setdefault(self._said_in[old], []).append(old)

    def replaced_by(self, ref: str) -> tuple[str, ...]:
        """The messages that say the newest of what this one says, in the order in which they were read."""
        newest = sorted({self._newest(stale) for stale in self._stale.get(ref, ())})
        return tuple(dict.fromkeys(found for position in newest if (found := self._refs[position]) != ref))

    def _newest(self, position: int) -> int:
        stale = self._updates.outcome.stale
        path = []
        while (match := stale.get(position)) is not None:
            path.append(position)
            position = match.newer
        for passed in path[:-1]:  # a long chain is walked once
            stale[passed] = stale[passed]._replace(newer=position)
        return position
