"""Reading messages into statements and tool outputs, within hard caps.

Caps: of one text the first `HEAD_CHARS` and the last `TAIL_CHARS` characters are read; of one call at most
`LOOK_CHARS` (or 16 a token of the budget) characters of text and `MAX_TOOL_OUTPUTS` tool outputs. When a
backlog is larger, every text still gets a cheap glance (role, digits, a few telling substrings) and the most
telling ones are read. What was not read stays resolvable by its reference; the accounting of losses is the builder's.

Reading a conversation for what replaces what: corrections, other values for the same thing, revoked rules.

Where an earlier message is shown again, the later ones have to stand beside it. A message may say several things, each
replaced by another message, and these again by later ones: each thing is followed to its newest. Every message is read
once, up to `READ_CHARS` of its own text; tool results are not read. Rules of `updates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.language.sentences import SentenceSpan, sentences
from ctxsteward.schemas import Bullet, InvalidReference, Ref, SourceMessage, TextPart, ToolCallPart, ToolResultPart

from .salience import SentenceReading, read_sentence
from .tool_outputs import ToolOutput
from .updates import PlacedSentence, UpdateTracker

HEAD_CHARS = 6_000
TAIL_CHARS = 2_000
GLANCE_CHARS = 500
LOOK_CHARS = 24_000
LOOK_CHARS_A_TOKEN = 16
"""A larger budget reads more: this many characters for each token of it."""
MAX_TOOL_OUTPUTS = 250
VISIBLE_CHARS = 4_000
"""Of the text of one visible message; visible messages only supersede."""

_GLANCE = (
    *("must", "never", "n't ", "only", "without", "nobody", "no one", "always", "instead", "actually"),
    *("change", "switch", "move", "decid", "go with", "agreed", "limit", "budget", "confirm", "number"),
    *("code", "error", "prefer", "deadline"),
)
_GLANCE_CHINESE = ("不", "必须", "别", "只", "改", "定", "号")
_DIGIT = re.compile(r"[0-9]")
_PASTED = re.compile(r"^```[^\n]*\n.*?(?:^```|\Z)|^\|[^\n]*", re.DOTALL | re.MULTILINE)
PASTED_WORTH = 45.0
"""What a line of pasted code, logs or a table is worth at most: material, and its reference leads to all of it."""


class StatementText(NamedTuple):
    """One text part to read."""

    text: str
    role: str
    ref: str
    order: int
    position: int


def ordinal(ref: str, fallback: int) -> int:
    """The ordinal of a reference, or the position if it is not one of ours."""
    if ref[:1] == "§" and len(ref) < 12 and ref[1:].isascii() and ref[1:].isdigit():
        return int(ref[1:])
    try:
        return Ref.parse(ref).ordinal
    except InvalidReference:
        return fallback


def texts(messages: Sequence[SourceMessage]) -> list[StatementText]:
    """The text parts of messages in their own role; thinking, images and tool results are not text."""
    return [
        StatementText(part.text, item.message.role, item.ref, ordinal(item.ref, index + 1), index)
        for index, item in enumerate(messages)
        for part in item.message.parts
        if isinstance(part, TextPart) and part.text and not part.text.isspace()
    ]


def worth_reading(found: list[StatementText], budget_tokens: int = 0) -> list[StatementText]:
    """All texts if they fit what this budget reads, else the most telling ones, in their order."""
    room = max(LOOK_CHARS, LOOK_CHARS_A_TOKEN * budget_tokens)
    if sum([min(len(text.text), HEAD_CHARS + TAIL_CHARS) for text in found]) <= room:
        return found
    ranked = sorted(range(len(found)), key=lambda i: (-_glance(found[i]), -i))
    chosen: list[int] = []
    for i in ranked:
        room -= min(len(found[i].text), HEAD_CHARS + TAIL_CHARS)
        if room < 0:
            break
        chosen.append(i)
    return [found[i] for i in sorted(chosen)]


def _glance(text: StatementText) -> float:
    """Telling signs per length, cheaply."""
    look = text.text[:GLANCE_CHARS]
    marks = _GLANCE if look.isascii() else _GLANCE + _GLANCE_CHINESE
    signs = len([mark for mark in marks if mark in look]) + (2 if _DIGIT.search(look) else 0)
    return (signs + 1) * (2.0 if text.role != "assistant" else 1.0) / (400 + len(look))


def pieces(text: str) -> Iterator[SentenceSpan]:
    """The sentences of the head and the tail of a text."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        yield from sentences(text)
    else:
        yield from sentences(text, 0, HEAD_CHARS)
        yield from sentences(text, len(text) - TAIL_CHARS)


def source_statements(found: Iterable[StatementText]) -> list[PlacedSentence]:
    """Read texts that leave the window; repeated texts are read once and cite their newest place."""
    newest = {text.text: text for text in found}
    return [
        PlacedSentence(
            reading=reading,
            refs=(text.ref,),
            order=text.order,
            role=text.role,
            place="source",
            index=text.position,
        )
        for text in sorted(newest.values(), key=lambda text: text.order)
        for piece in pieces(text.text)
        if _says_something(reading := _read(text, piece, read_sentence))
    ]


def _says_something(reading: SentenceReading) -> bool:
    """Whether a sentence is worth anything, or may settle something else."""
    return reading.worth > 0 or bool(reading.stands or reading.deeds)


def _read(text: StatementText, piece: SentenceSpan, read: Callable[[str, str], SentenceReading]) -> SentenceReading:
    """A sentence, understood; what stands in something pasted says nothing of what anybody wants."""
    reading = read(text.text[piece.start : piece.stop], text.role)
    if reading.worth > 0 and any(start <= piece.start < stop for start, stop in _pasted(text.text)):
        none: frozenset[str] = frozenset()
        worth = min(PASTED_WORTH, reading.worth)
        return replace(
            reading, worth=worth, values=(), names=none, subject=none, stands="", deeds=none, updates=0, revokes=False
        )
    return reading


@lru_cache(maxsize=256)
def _pasted(text: str) -> tuple[tuple[int, int], ...]:
    """Where code blocks and tables are."""
    if "```" not in text and "|" not in text:
        return ()
    return tuple(match.span() for match in _PASTED.finditer(text))


def visible_statements(messages: Sequence[SourceMessage]) -> list[PlacedSentence]:
    """Read the texts that stay; they supersede and are superseded, and need no bullet."""
    return [
        PlacedSentence(
            reading=reading,
            refs=(text.ref,),
            order=text.order,
            role=text.role,
            place="visible",
            index=text.position,
        )
        for text in worth_reading(texts(messages))
        for piece in sentences(text.text, 0, min(len(text.text), VISIBLE_CHARS))
        if _says_something(reading := _read(text, piece, _remembered))
    ]


def standing_statements(bullets: Sequence[Bullet]) -> list[PlacedSentence]:
    """Read standing bullets; their order is that of their newest citation, they are worth what they were when said."""
    return [
        PlacedSentence(
            reading=_standing(bullet),
            refs=bullet.citations,
            order=max(ordinal(ref, index + 1) for ref in bullet.citations),
            role="user",
            place="standing",
            index=index,
        )
        for index, bullet in enumerate(bullets)
    ]


def _standing(bullet: Bullet) -> SentenceReading:
    reading = _remembered(bullet.text, "user")
    return reading if reading.worth <= bullet.value else replace(reading, worth=bullet.value)


@lru_cache(maxsize=4096)
def _remembered(text: str, role: str) -> SentenceReading:
    """Readings of texts that come back at every compaction; a pure function."""
    return read_sentence(text, role)


def tool_outputs(messages: Sequence[SourceMessage], visible: Sequence[SourceMessage]) -> list[ToolOutput]:
    """Tool outputs with their calls; of identical ones the newest, and the newest `MAX_TOOL_OUTPUTS`."""
    calls: dict[str, tuple[str, ToolCallPart]] = {}
    newest: dict[tuple[str, str], ToolOutput] = {}
    for index, item in enumerate((*visible, *messages)):
        results = 0
        total = sum(isinstance(part, ToolResultPart) for part in item.message.parts)
        for part in item.message.parts:
            if isinstance(part, ToolCallPart):
                calls[part.id] = (item.ref, part)
            elif isinstance(part, ToolResultPart) and index >= len(visible):
                results += 1
                ref = item.ref if total < 2 or "." in item.ref else f"{item.ref}.{results}"
                output = _output(part, ref, ordinal(item.ref, index + 1), calls.get(part.call_id))
                newest.pop((output.name or "", output.text), None)
                newest[output.name or "", output.text] = output
    return list(newest.values())[-MAX_TOOL_OUTPUTS:]


def _output(part: ToolResultPart, ref: str, order: int, call: tuple[str, ToolCallPart] | None) -> ToolOutput:
    name = part.name or (call[1].name if call else None)
    refs = (ref,) if call is None or not call[1].arguments.strip("{} ") else (call[0], ref)
    return ToolOutput(
        text=part.text,
        name=name,
        arguments=call[1].arguments if call else "",
        is_error=part.is_error,
        refs=refs,
        order=order,
    )


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
        self._updates = UpdateTracker()
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
