"""Filling the room for recalled messages: best first, whatever still fits.

A message costs its line, and a line for the day that it opens. What says nothing by itself, and what the window or a
better candidate says word for word already, is passed over. A message of which a later one replaces something comes
with that later one or not at all, so that no old value is shown without the new one. Greedy by score was measured
against score per token and against an exact knapsack and won: `docs/selection.md`. What is recalled is shown in session
order (`layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from ctxsteward.store.journal.events import RecallSelected

from ..history.state import Day, State
from ..history.tool_groups import LogEntry
from ..layout.composition import context_fragment, day_above, day_line, recalled_line
from ..tokens.tokenizer import Counter

CHOSEN = "ranked, and it fits"
NAMED = "the question names it, and it fits"
NAMED_EXCERPT = "the question names it, and an excerpt of it fits"
REPLACES = "it replaces what a candidate says"
NO_ROOM = "no room"
NOTHING_TO_SHOW = "it has no text"
SAME_TEXT = "the same text as"
GONE = "its original is erased or damaged"
LEAST_EXCERPT_TOKENS = 80
"""What the question names is shown with so much of it at least, room or no room."""
MISSES = 40
"""The room counts as full when so many in a row did not fit."""
ROW_TOKENS = 24
"""What the beginning of a row and the line of its day take, about."""
LEAST_TOKENS = 8
"""No line is shorter: reference, role, a word."""
SHORT_RESULT_CHARS = 600
"""A tool result up to this is in the window whole; of a longer one it may show an excerpt."""
_MOST_CHARS_A_TOKEN = 16
"""A text longer than this for each token of room is not counted: no text but white space is that dense."""


class RecallRoom:
    """One user turn's room."""

    def __init__(
        self,
        entry: Callable[[int], LogEntry],
        state: State,
        counter: Counter,
        visible: AbstractSet[int],
        replaced_by: Callable[[int], tuple[int, ...]],
        least_tokens: Callable[[int], int],
    ) -> None:
        self._entry, self._state, self._counter, self._visible = entry, state, counter, visible
        self._replaced_by, self._least_tokens = replaced_by, least_tokens
        self.superseded: dict[int, tuple[int, ...]] = {}
        """Of those taken, what later messages replace, with these."""
        self.kept: list[int] = []
        """Ordinals that were taken, best first."""
        self.excerpts: dict[int, int] = {}
        """Of those taken, what is shown as an excerpt, with the tokens it may take."""
        self._days: set[Day] = set()
        self._said = _said_in_window(state)
        self._room = self._used = self._shown()

    def fill(self, ranked: Iterable[int], room_tokens: int) -> dict[int, str]:
        """Take candidates, best first, while there is room beside those taken before; why others were passed over."""
        self._room = max(self._used, room_tokens)
        verdicts: dict[int, str] = {}
        misses = 0
        for ordinal in ranked:
            if ordinal in self.kept:
                continue
            full = misses >= MISSES or self._room - self._used < LEAST_TOKENS
            why = NO_ROOM if full else self._take(ordinal)
            if why is not None:
                verdicts[ordinal] = why
                misses += why == NO_ROOM
            else:
                misses = 0
        while (
            self.kept and self.kept[-1] not in self.excerpts and self._shown() > self._room
        ):  # measured once more, as it will be shown
            verdicts[self.kept[-1]] = NO_ROOM
            self.superseded.pop(self.kept.pop(), None)
        return verdicts

    def excerpt(self, ordinals: Iterable[int], room_tokens: int) -> None:
        """Take these as excerpts of what fits, each with what replaces it, and a few lines where nothing fits."""
        wanted: list[int] = []
        for ordinal in ordinals:
            newest = self._replaced_by(ordinal)
            if newest:
                self.superseded[ordinal] = newest
            wanted += (n for n in (*newest, ordinal) if n not in (*self._visible, *self.kept, *wanted))
        for place, ordinal in enumerate(wanted):
            left = (room_tokens - self._used) // (len(wanted) - place)
            self.kept.append(ordinal)
            self.excerpts[ordinal] = max(LEAST_EXCERPT_TOKENS, left - ROW_TOKENS)
            self._used = self._shown()

    def _take(self, ordinal: int) -> str | None:
        """Take one; or why not."""
        newest = self._replaced_by(ordinal)
        if not newest and self._least_tokens(ordinal) > self._room - self._used:
            return NO_ROOM  # most of those that do not fit are never read
        entry = self._entry(ordinal)
        if entry.event.damaged or entry.event.erased:
            return GONE
        for newer in newest:
            why = None if newer in self._visible or newer in self.kept else self._take(newer)
            if why is not None and not why.startswith(SAME_TEXT):
                return f"§{newer} replaces it: {why}"
        left = self._room - self._used
        line = recalled_line(entry, newest)
        text = _text(line)
        if not text:
            return NOTHING_TO_SHOW
        if text in self._said:
            return f"{SAME_TEXT} {self._said[text]}"
        if len(line) > _MOST_CHARS_A_TOKEN * left:
            return NO_ROOM
        day = day_above(self._state, ordinal)
        cost = self._counter.text(line + "\n")
        if day is not None and day not in self._days:
            cost += self._counter.text(day_line(day, self._state.last_user) + "\n")
        if cost > left:
            return NO_ROOM
        self.kept.append(ordinal)
        if newest:
            self.superseded[ordinal] = newest
        self._said[text] = entry.ref
        if day is not None:
            self._days.add(day)
        self._used += cost
        return None

    def _shown(self) -> int:
        chosen = RecallSelected(
            turn=self._state.last_user, refs=tuple(self.kept), log={}, superseded=self.superseded,
            excerpts=self.excerpts,
        )  # fmt: skip
        return context_fragment(chosen, self._state, self._counter, self._entry).tokens


def _said_in_window(state: State) -> dict[str, str]:
    """Texts that the window shows whole, and the message that says each."""
    said: dict[str, str] = {}
    for group in state.groups:
        if group.first not in state.masked:
            for entry in group.entries:
                text = _text(recalled_line(entry))
                if len(text) <= SHORT_RESULT_CHARS or not entry.message.tool_results:
                    said.setdefault(text, entry.ref)
    return said


def _text(line: str) -> str:
    """What a recalled line says after reference and role."""
    return line.partition(": ")[2].strip()
