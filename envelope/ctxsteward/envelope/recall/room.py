"""Fill the room for recalled messages: first messages that a question names by number, then the best that fit.

    "Quote the third tool output"   "what did tool result 12 say?"   "引用第 3 条工具输出"   "see §11-§18"

Messages named in this way (`named`) are recalled before any ranked one, as far as they fit. Finding them is pure: it
costs nothing for a question without such names, and a few look-ups for each named tool output.

A message costs its line; the first one of a day also costs a line for the day. A message without text is passed over,
and so is one whose text the window or a better candidate shows word for word. A message that a later one replaces in
part is shown with that later one or not at all, so that no old value appears without the new one. Greedy choice by
score was measured against score per token and against an exact knapsack and won: `docs/selection.md`. Recalled messages
are shown in session order (`layout`).

Source: the layered-envelope design (finding things again: by reference, by the ordinal of a tool output).
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence, Set as AbstractSet
from functools import cache
from typing import NamedTuple

from ctxsteward.language.passages import passage_spans
from ctxsteward.schemas import Ref
from ctxsteward.store import process_forks as forking
from ctxsteward.store.journal.events import RecallSelected

from ..history.state import Day, State
from ..history.tool_groups import LogEntry
from ..layout.composition import context_fragment, day_above, day_line
from ..layout.fragments import Fragment
from ..layout.rows import MARK, noted_row, passage_lines, recalled_line, recalled_text
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
"""Least tokens of a named message's excerpt; the first named message gets them even without room."""
MISSES = 40
"""Number of candidates in a row without room after which the room counts as full."""
ROW_TOKENS = 24
"""Estimated tokens of a row's beginning and the line of its day."""
LEAST_TOKENS = 8
"""Least tokens of a line: reference, role, a word."""
SHORT_RESULT_CHARS = 600
"""The window shows a tool result of up to this length whole; a longer one may be an excerpt."""
_MOST_CHARS_A_TOKEN = 16
"""A text longer than this for each token of room is too long without counting: only white space is that dense."""


MAX_ROWS_CHARS = 2_000_000
"""Most characters of rows kept of a session; those made longest ago are dropped."""
MAX_ROW_CHARS = 2_000
"""Longer rows are not kept but made anew each time."""


class RecalledRow(NamedTuple):
    """An original, or a passage of one, in the form that recall shows."""

    line: str
    tokens: int
    """Tokens including the line break."""


class RecalledRows:
    """Rows of one session's originals, each read, written and counted once; safe with threads."""

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._rows: dict[Ref, RecalledRow] = {}
        self._chars = 0

    def row(
        self,
        entry: Callable[[int], LogEntry],
        pick: Ref,
        noted: Sequence[int],
        counter: Counter,
        most_tokens: int,
        text_tokens: int,
    ) -> RecalledRow | None:
        """Return the row of a message or passage, with the messages that replace it; None if it is erased or damaged.

        `text_tokens` are the known tokens of its text, or 0 to count them. With them the row may be a token or two too
        low; the final count of all rows corrects that. A row whose characters alone exceed `most_tokens` is not
        counted: it gets one token more than that.
        """
        found = self._rows.get(pick)
        if found is not None and not noted:
            return found
        if found is not None:
            line = noted_row(found.line, noted)
        else:
            original = entry(pick.ordinal)
            if original.event.damaged or original.event.erased:
                return None
            if pick.part and not 0 < pick.part <= len(passage_spans(recalled_text(original.message))):
                return RecalledRow("", 0)  # a caller's selector may name a missing passage
            line = passage_lines(original, (pick.part,), noted)[0] if pick.part else recalled_line(original, noted)
        if len(line) > _MOST_CHARS_A_TOKEN * most_tokens:
            return RecalledRow(line, most_tokens + 1)
        if text_tokens and not noted:
            head, _, text = line.partition(": ")
            marks_tokens = counter.text(MARK) * breaks if (breaks := text.count(f"\n{MARK}")) else 0
            row = RecalledRow(line, counter.text(f"{head}:") + text_tokens + marks_tokens)
        else:
            row = RecalledRow(line, counter.text(line + "\n"))
        if not noted and len(line) <= MAX_ROW_CHARS:
            with self._lock:
                if pick not in self._rows:
                    self._rows[pick] = row
                    self._chars += len(line)
                while self._chars > MAX_ROWS_CHARS:
                    self._chars -= len(self._rows.pop(next(iter(self._rows))).line)
        return row

    def keep(self, entry: LogEntry, counter: Counter, text_tokens: int) -> None:
        """Make and keep the row of a message that was just read, if it is short and its tokens are known."""
        if text_tokens:
            most_tokens = MAX_ROW_CHARS // _MOST_CHARS_A_TOKEN
            self.row(lambda ordinal: entry, Ref(entry.ordinal), (), counter, most_tokens, text_tokens)

    def line(self, ordinal: int) -> str | None:
        """Return the kept row of a whole message, or None."""
        found = self._rows.get(Ref(ordinal))
        return found.line if found is not None else None


class VisibleMessages(NamedTuple):
    """Facts about a session's messages before the current user turn."""

    tokens: int
    """Tokens of all of them."""
    rows: RecalledRows
    """Rows made by earlier recalls."""
    replaced_by: Callable[[Ref], tuple[Ref, ...]] = lambda ref: ()
    """Return the messages or passages with the newest replacements of this one's statements; () for none."""
    least_tokens: Callable[[int], int] = lambda ordinal: 0
    """Return the least tokens of a recalled message, without reading it."""
    message_tokens: Callable[[int], int] | None = None
    """Return the tokens of a message that is sent; None to read them from its entry."""


class RecallRoom:
    """The room for one user turn, with the messages chosen so far."""

    def __init__(
        self,
        entry: Callable[[int], LogEntry],
        state: State,
        counter: Counter,
        visible: AbstractSet[int],
        known: VisibleMessages,
    ) -> None:
        self._entry, self._state, self._counter, self._visible = entry, state, counter, visible
        self._replaced_by, self._least_tokens, self._rows = known.replaced_by, known.least_tokens, known.rows
        self.superseded: dict[int, tuple[int, ...]] = {}
        """Of the chosen messages: those that later messages replace in part, with the later ones."""
        self.kept: list[int] = []
        """Ordinals of messages chosen whole or in part, best first."""
        self.passages: dict[int, list[int]] = {}
        """Passages, ascending, of messages chosen in part."""
        self._taken: list[Ref] = []
        self.excerpts: dict[int, int] = {}
        """Token limits of chosen messages that are shown as excerpts."""
        self.fragment: Fragment
        """The chosen messages as they were last measured, which happens after each filling."""
        self._days: set[Day] = set()
        self._said = _said_in_window(state, known.rows)
        self._room = self._used = self._shown()

    def fill(self, ranked: Iterable[Ref], room_tokens: int) -> dict[Ref, str]:
        """Choose candidates, best first, while there is room; return why others were passed over."""
        self._room = max(self._used, room_tokens)
        verdicts: dict[Ref, str] = {}
        misses, picks = 0, iter(ranked)
        for pick in picks:
            if self.holds(pick):
                continue
            full = misses >= MISSES or self._room - self._used < LEAST_TOKENS
            why = NO_ROOM if full else self._take(pick)
            if why is not None:
                verdicts[pick] = why
                misses += why == NO_ROOM
            else:
                misses = 0
            if full:
                verdicts |= dict.fromkeys(picks, NO_ROOM)
        while self._taken and self._shown() > self._room:  # measure once more, in the form that is shown
            verdicts[self._taken[-1]] = NO_ROOM
            self._give_back()
        return verdicts

    def holds(self, pick: Ref) -> bool:
        """Return whether a message or passage was chosen, or the message that it is a part of."""
        if pick.ordinal not in self.kept:
            return False
        return pick.ordinal not in self.passages or pick.part in self.passages[pick.ordinal]

    @property
    def shown(self) -> frozenset[Ref]:
        """Whole messages and passages that were chosen."""
        return frozenset(Ref(ordinal, part) for ordinal in self.kept for part in self.passages.get(ordinal, (0,)))

    def _give_back(self) -> None:
        """Drop the message or passage chosen last."""
        taken = self._taken.pop()
        ordinal, passage = taken.ordinal, taken.part
        numbers = self.passages.get(ordinal, [])
        if passage:
            numbers.remove(passage)
        if not numbers:
            self.passages.pop(ordinal, None)
            self.kept.remove(ordinal)
            self.superseded.pop(ordinal, None)

    def excerpt(self, ordinals: Iterable[int], room_tokens: int) -> None:
        """Choose excerpts that fit, each with its replacements; the first gets a few lines even without room."""
        wanted: list[int] = []
        for ordinal in ordinals:
            newest = _messages(self._replaced_by(Ref(ordinal)))
            if newest:
                self.superseded[ordinal] = newest
            wanted += (n for n in (*newest, ordinal) if n not in (*self._visible, *self.kept, *wanted))
        for place, ordinal in enumerate(wanted):
            left = (room_tokens - self._used) // (len(wanted) - place)
            if self.kept and room_tokens - self._used < LEAST_EXCERPT_TOKENS + ROW_TOKENS:
                return
            self._taken.clear()  # named messages stay
            self.kept.append(ordinal)
            self.excerpts[ordinal] = max(LEAST_EXCERPT_TOKENS, left - ROW_TOKENS)
            self._used = self._shown()
            while self._used > room_tokens and self.excerpts[ordinal] > LEAST_EXCERPT_TOKENS:  # its lines get marks
                less = self.excerpts[ordinal] - (self._used - room_tokens) - ROW_TOKENS
                self.excerpts[ordinal] = max(LEAST_EXCERPT_TOKENS, less)
                self._used = self._shown()
            if self._used > room_tokens and len(self.kept) > 1:
                self.kept.remove(ordinal)
                del self.excerpts[ordinal]
                self._used = self._shown()
                return

    def _take(self, pick: Ref) -> str | None:
        """Choose a candidate and return None, or return why it cannot be chosen."""
        ordinal, passage = pick.ordinal, pick.part
        text_tokens = 0 if passage else self._least_tokens(ordinal)
        if text_tokens > self._room - self._used:
            return NO_ROOM  # most candidates that do not fit are never read
        newest = self._replaced_by(pick)
        for newer in newest:
            why = None if newer.ordinal in self._visible or self.holds(newer) else self._take(newer)
            if why is not None and not why.startswith(SAME_TEXT):
                return f"{newer} replaces it: {why}"
        left = self._room - self._used
        noted = _messages((*map(Ref, self.superseded.get(ordinal, ())), *newest))
        row = self._rows.row(self._entry, pick, noted, self._counter, left, text_tokens)
        if row is None:
            return GONE
        text = _text(row.line)
        if not text:
            return NOTHING_TO_SHOW
        if text in self._said:
            return f"{SAME_TEXT} {self._said[text]}"
        if row.tokens > left:
            return NO_ROOM
        day = day_above(self._state, ordinal)
        cost = row.tokens
        if day is not None and day not in self._days:
            cost += self._counter.text(day_line(day, self._state.last_user) + "\n")
        if cost > left:
            return NO_ROOM
        self._keep(pick)
        if newest:
            self.superseded[ordinal] = noted
        self._said[text] = f"§{ordinal}"
        if day is not None:
            self._days.add(day)
        self._used += cost
        return None

    def _keep(self, pick: Ref) -> None:
        self._taken.append(pick)
        if pick.ordinal not in self.kept:
            self.kept.append(pick.ordinal)
        if pick.part:
            insort(self.passages.setdefault(pick.ordinal, []), pick.part)
        elif self.passages.pop(pick.ordinal, None):  # the whole replaces its parts
            self._taken = [one for one in self._taken if one == pick or one.ordinal != pick.ordinal]

    def _shown(self) -> int:
        chosen = RecallSelected(
            turn=self._state.last_user,
            refs=tuple(self.kept),
            log={},
            superseded=self.superseded,
            excerpts=self.excerpts,
            passages={ordinal: tuple(shown) for ordinal, shown in self.passages.items()},
        )
        self.fragment = context_fragment(chosen, self._state, self._counter, self._original)
        return self.fragment.tokens

    def _original(self, ordinal: int) -> LogEntry | str:
        """Return a chosen message, or its row if that is kept and shown whole."""
        is_cut = ordinal in self.passages or ordinal in self.excerpts
        row = None if is_cut else self._rows.line(ordinal)
        return noted_row(row, self.superseded.get(ordinal, ())) if row else self._entry(ordinal)


def _messages(refs: Iterable[Ref]) -> tuple[int, ...]:
    """Return the ordinals of these references, each once, ascending."""
    return tuple(sorted({ref.ordinal for ref in refs}))


def _said_in_window(state: State, rows: RecalledRows) -> dict[str, str]:
    """Return texts that the window shows whole, and the message that says each."""
    said: dict[str, str] = {}
    for group in state.groups:
        if group.first not in state.masked:
            for entry in group.entries:
                text = _text(rows.line(entry.ordinal) or recalled_line(entry))
                if len(text) <= SHORT_RESULT_CHARS or not entry.message.tool_results:
                    said.setdefault(text, entry.ref)
    return said


def _text(line: str) -> str:
    """Return the text of a recalled line behind reference and role."""
    return line.partition(": ")[2].strip()


# -- messages that a question names ----------------------------------------------------------------------------

MAX_NAMED = 12
"""Most messages named by one question; a longer range is cut to its first ones."""
MAX_LOOK_CHARS = 4_000
_WORDS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)
_OUTPUT = r"(?:outputs?|results?|responses?|answers?|calls?|returns?|replies|reply)"
_GAP = r"\s{0,3}"
_NUMBER = r"\d{1,6}"
_NTH = rf"(?:{_NUMBER}(?:st|nd|rd|th)|{'|'.join(_WORDS)})"
_ZH = r"(?:\d{1,6}|[零〇一二三四五六七八九十百两]{1,7})"
_AND = rf"{_GAP}(?:,|and|or|&|,{_GAP}and){_GAP}"
_TO = rf"{_GAP}(?:-|–|—|to|through|until|至|到){_GAP}"
_ZH_AND = rf"{_GAP}[、，,和与及]{_GAP}"
_REF = re.compile(rf"§\s?(\d{{1,9}})(?:\.\d+(?:-\d+\b)?)?(?:{_TO}§?\s?(\d{{1,9}}))?", re.IGNORECASE)
_PLACE = re.compile(rf"(?P<to>{_TO})?(?P<place>{_NTH}|{_NUMBER}|{_ZH})", re.IGNORECASE)


@cache
def _numbered() -> re.Pattern[str]:
    """Return the pattern of a tool output that a text names. Compiling it takes longer than most imports."""
    return re.compile(
        rf"""
      \b(?P<nth>{_NTH}(?:(?:{_AND}|{_TO})(?:the\s)?{_NTH}){{0,11}})\s{{1,3}}(?:\w{{1,20}}\s{{1,3}})?tools?\b
    | \b(?P<of>{_NTH})\s{{1,3}}(?:\w{{1,20}}\s{{1,3}})?{_OUTPUT}\s{{1,3}}(?:of|from|by)
      \s{{1,3}}(?:the|a|your)?\s?tools?\b
    | \btools?(?:'s?|’s?)?[\s_-]{{1,3}}{_OUTPUT}(?:\s{{1,3}}{_OUTPUT})?{_GAP}(?:numbers?|nos?\.?|nr\.?|\#)?{_GAP}
      (?P<n>\#?{_NUMBER}(?:(?:{_AND}|{_TO})\#?{_NUMBER}){{0,11}})\b
    | \btool:(?P<ref>{_NUMBER})\b
    | 第{_GAP}(?P<zh>{_ZH}(?:(?:{_ZH_AND}|{_TO})第?{_GAP}{_ZH}){{0,11}})
      {_GAP}(?:条|个|次|份|项|段|轮|笔)?{_GAP}的?{_GAP}工具
    | 工具(?:的)?(?:输出|结果|返回|调用){_GAP}(?:第|\#|编号)?{_GAP}(?P<zn>{_ZH}(?:(?:{_ZH_AND}|{_TO}){_ZH}){{0,11}})
        """,
        re.VERBOSE | re.IGNORECASE,
    )


def named(text: str, last: int, entry: Callable[[int], LogEntry]) -> list[int]:
    """Return the ordinals up to `last` that this text names, each once, in order."""
    text = text[:MAX_LOOK_CHARS]
    found = [*_by_reference(text), *_by_output(text, last, entry)]
    return [ordinal for ordinal in dict.fromkeys(found) if 0 < ordinal <= last][:MAX_NAMED]


def _by_reference(text: str) -> Iterator[int]:
    for match in _REF.finditer(text) if "§" in text else ():
        first = int(match[1])
        yield from range(first, min(int(match[2] or first), first + MAX_NAMED - 1) + 1)


def _by_output(text: str, last: int, entry: Callable[[int], LogEntry]) -> Iterator[int]:
    for number in outputs_named(text):
        ordinal = _output(number, last, entry)
        if ordinal is not None:
            yield ordinal


def outputs_named(text: str) -> list[int]:
    """Return the numbers of the tool outputs that a text names.

    >>> outputs_named("Quote the third tool output, then tool result #12; 引用第十二条工具输出")
    [3, 12, 12]
    >>> outputs_named("compare tool outputs 2 and 5-7; 第3、4条工具输出")
    [2, 5, 6, 7, 3, 4]
    """
    numbers: list[int] = []
    for match in _numbered().finditer(text) if "tool" in text.lower() or "工具" in text else ():
        places = next(group for group in match.groups() if group)
        for place in _PLACE.finditer(places):
            number = _number(place["place"])
            first = numbers[-1] + 1 if place["to"] and numbers else number
            numbers.extend(range(first, min(number, first + MAX_NAMED - 1) + 1))
    return numbers


def _number(text: str) -> int:
    """Read digits (``3``, ``3rd``), an English ordinal, or a Chinese numeral below a thousand.

    >>> [_number(text) for text in ("7", "７", "3rd", "third", "十", "十二", "二十五", "一百零三", "两百一十")]
    [7, 7, 3, 3, 10, 12, 25, 103, 210]
    """
    if text.lower() in _WORDS:
        return _WORDS.index(text.lower()) + 1
    if text[0].isdecimal():
        return int(text.rstrip("stndrhSTNDRH"))
    from ctxsteward.language.values import chinese_number

    return int(chinese_number(text))


def _output(number: int, last: int, entry: Callable[[int], LogEntry]) -> int | None:
    """Return the message with the n-th tool output (binary search: messages with outputs have the count so far)."""
    low, high, holder = 1, last, None
    while low <= high:
        middle = (low + high) // 2
        at = next((ordinal for ordinal in range(middle, high + 1) if entry(ordinal).event.outputs), None)
        if at is None:
            high = middle - 1
        elif entry(at).event.outputs >= number:
            holder, high = at, middle - 1
        else:
            low = at + 1
    return holder if number > 0 else None
