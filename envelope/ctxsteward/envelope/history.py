"""What is known of a session's history besides its window: how long it is, and what of it was replaced since.

Every message is read once, when the first turn after it recalls. What was read is a cache, as a selector's index is:
the first turn in a new process reads the session again. The reader (`Replacing`) is installed under the entry-point
group ``ctxsteward.replacing``; an answer costs what it finds, not the session's age.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from ctxsteward.schemas import Message, Ref, Replacing, SourceMessage, TextPart

from .counting import Counter
from .ranking.kept import PerSession
from .selection import Known, SelectionRequest
from .tokens import MESSAGE_TOKENS


class History:
    """One session's, up to the message before the current user turn."""

    __slots__ = ("_of_text", "_replacing", "tokens", "upto")

    def __init__(self, replacing: Replacing) -> None:
        self._replacing = replacing
        self._of_text = array("Q", (0,))
        """By ordinal, tokens of a message's text; 0 where it is more than a text."""
        self.upto = 0
        self.tokens = 0
        """Of all originals read so far."""

    def read(self, request: SelectionRequest, counter: Counter) -> None:
        """Read what was appended since."""
        for ordinal in range(self.upto + 1, request.last + 1):
            entry = request.entry(ordinal)
            self._replacing.read(SourceMessage(ref=entry.ref, message=entry.message))
            tokens = entry.tokens(counter)
            self._of_text.append(max(0, tokens - MESSAGE_TOKENS) if _is_text(entry.message) else 0)
            self.tokens += tokens
            self.upto = ordinal

    def replaced_by(self, ordinal: int) -> tuple[int, ...]:
        """The messages that say the newest of what this one says; () where nothing of it was replaced."""
        return tuple(Ref.parse(ref).ordinal for ref in self._replacing.replaced_by(f"§{ordinal}"))

    def least_tokens(self, ordinal: int) -> int:
        """What a message takes at least where it is shown again, told without reading it."""
        return self._of_text[ordinal]


def _is_text(message: Message) -> bool:
    return len(message.wire) == 2 and len(message.parts) == 1 and isinstance(message.parts[0], TextPart)


class Histories:
    """Of many sessions; safe with threads."""

    def __init__(self, replacing: Callable[[], Replacing], counter: Counter, max_sessions: int = 64) -> None:
        self._replacing, self._counter = replacing, counter
        self._sessions: PerSession[History] = PerSession(max_sessions)

    def __call__(self, request: SelectionRequest) -> Known:
        """Everything up to the request's last message."""
        kept = self._sessions.of(request)
        with kept.lock:
            if kept.made is None or not kept.holds(request):
                kept.made, kept.newest, kept.generation = History(self._replacing()), None, request.generation
            history = kept.made
            history.read(request, self._counter)
            kept.newest = request.entry(history.upto) if history.upto else None

        def replaced_by(ordinal: int) -> tuple[int, ...]:
            with kept.lock:
                return history.replaced_by(ordinal)

        return Known(history.tokens, replaced_by, history.least_tokens)
