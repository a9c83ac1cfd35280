"""Steps: a tool group made valid, provider-neutral, ready for any renderer.

A group becomes `Say` (a message in its own role), `Results` (every call of the group answered) and `Aside` (derived
text: fenced, in the user's role). Long tool results are excerpted here, masked ones replaced by one line, unanswered
calls get a placeholder. Pure: the same group, cap and nonce give the same steps.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctxsteward.schemas import ImagePart, Message, ToolResultPart

from .arrival import excerpt
from .events import PLAIN
from .fence import fenced
from .groups import Entry, Group, says_something, unanswered

if TYPE_CHECKING:
    from .counting import Counter

NO_RESULT = "[no result was recorded for this call]"
MASKED_ARGUMENT_CHARS = 160
"""Call arguments of a masked group are shortened to this, whole JSON values only."""
_SHORT_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Say:
    """A message in its native role."""

    entry: Entry
    aliases: tuple[tuple[int, str], ...] = ()
    """(tool call index, id to render it with)."""
    without_results: bool = False
    """Only what is not a tool result."""
    arguments: tuple[tuple[int, str], ...] = ()
    """(tool call index, what is shown instead of its arguments)."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Our own text, fenced, in the user's role."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool result as shown."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    entry: Entry | None = None
    """The message it came in; None for a placeholder."""
    index: int = 0
    """Which tool result of that message."""
    verbatim: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """All answers to the group's calls, and what else came with them."""

    answers: tuple[Answer, ...]
    trailing: tuple[Say | Aside, ...] = ()


Step = Say | Aside | Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a group is shown."""

    cap_tokens: int
    masked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The steps of a group, what they cost, and what identifies them."""

    steps: tuple[Step, ...]
    tokens: int
    digest: bytes


def build_group(group: Group, shape: Shape, *, nonce: str, counter: Counter) -> Built:
    """Make a group valid under this shape."""
    only = group.entries[0]
    if len(group.entries) == 1 and only.event.placement is PLAIN and not only.message.tool_calls:
        digest = hashlib.sha256(f"{only.ordinal}\x00{only.event.wire}".encode()).digest()
        return Built(steps=(Say(only),), tokens=only.tokens(counter), digest=digest)
    tokens = 0
    parts: list[str] = []
    steps: list[Step] = []
    answers: list[Answer] = []
    trailing: list[Say | Aside] = []
    names = _call_names(group.entries[0])
    for position, entry in enumerate(group.entries):
        message, placement = entry.message, entry.event.placement
        parts += [str(entry.ordinal), entry.event.wire]
        if message.role in ("system", "developer"):
            aside = Aside(fenced(nonce, f"{message.role} message {entry.ref}", message.text))
            (trailing if position else steps).append(aside)
            tokens += counter.framed(aside.text)
            continue
        if message.role == "assistant" and not says_something(message):
            continue
        tokens += entry.tokens(counter)
        if placement is not None and (placement.answers or placement.orphans):
            tokens += _take_results(entry, shape, nonce, counter, names, answers, trailing, parts)
        elif position == 0:
            shortened = _shortened_calls(message) if shape.masked else ()
            for index, text in shortened:
                tokens += counter.text(text) - counter.text(message.tool_calls[index].arguments)
            steps.append(Say(entry, placement.aliases, arguments=shortened))
        else:
            trailing.append(Say(entry))
    for call in unanswered(group):
        answers.append(Answer(call.alias, names.get(call.alias, ""), NO_RESULT, is_error=True))
        tokens += counter.framed(NO_RESULT) + 4
        parts.append(call.alias)
    if answers:
        steps.append(Results(tuple(answers), tuple(trailing)))
    else:
        steps += trailing
    digest = hashlib.sha256("\x00".join((f"{shape.masked}", *parts)).encode()).digest()
    return Built(steps=tuple(steps), tokens=tokens, digest=digest)


def _take_results(
    entry: Entry,
    shape: Shape,
    nonce: str,
    counter: Counter,
    names: dict[str, str],
    answers: list[Answer],
    trailing: list[Say | Aside],
    parts: list[str],
) -> int:
    """Sort one message's tool results into answers and asides; return the change in tokens against the original."""
    change = 0
    message, placement = entry.message, entry.event.placement
    results = message.tool_results
    original = entry.tokens(counter)
    for index, alias in placement.answers:
        result = results[index]
        text, delta = _shown(entry, result, index, original, shape, counter)
        change += delta
        if text is not None:
            parts.append(text)
        answers.append(
            Answer(
                alias, result.name or names.get(alias, ""), result.text if text is None else text, result.is_error,
                () if shape.masked else result.images, entry, index, text is None and alias == result.call_id,
            )
        )  # fmt: skip
    for index in placement.orphans:
        text, delta = _shown(entry, results[index], index, original, shape, counter)
        aside = Aside(fenced(nonce, f"tool result {_ref(entry, index)}", results[index].text if text is None else text))
        trailing.append(aside)
        change += delta + 24
    if any(not isinstance(part, ToolResultPart) for part in message.parts):
        trailing.append(Say(entry, without_results=True))
    return change


def _shown(
    entry: Entry, result: ToolResultPart, index: int, original: int, shape: Shape, counter: Counter
) -> tuple[str | None, int]:
    """The text shown instead of a result (None: as it is) and the change in tokens."""
    if shape.masked:
        text = masked_line(result, _ref(entry, index))
        used = counter.text(result.text) + (counter.message(_images_only(result)) if result.images else 0)
        new = counter.text(text)
        return (text, new - used) if new < used else (None, 0)
    if original <= shape.cap_tokens:
        return None, 0
    used = counter.text(result.text)
    if used <= shape.cap_tokens:
        return None, 0
    text = excerpt(result.text, cap_tokens=shape.cap_tokens, ref=_ref(entry, index), tokens=used, count=counter.text)
    return text, counter.text(text) - used


def _shortened_calls(message: Message) -> tuple[tuple[int, str], ...]:
    calls = enumerate(message.tool_calls)
    return tuple((i, shortened_arguments(c.arguments)) for i, c in calls if len(c.arguments) > MASKED_ARGUMENT_CHARS)


def shortened_arguments(arguments: str) -> str:
    """Call arguments in at most `MASKED_ARGUMENT_CHARS` characters, still a JSON object: short values stay."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    kept: dict[str, object] = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        text = json.dumps(value, ensure_ascii=False)
        kept[key] = value if len(text) <= _SHORT_VALUE_CHARS else f"[{len(text)} characters]"
        if len(json.dumps(kept, ensure_ascii=False)) > MASKED_ARGUMENT_CHARS - 8:
            del kept[key]
            break
    return json.dumps(kept, ensure_ascii=False)


def masked_line(result: ToolResultPart, ref: str) -> str:
    """One line for a result that is no longer shown: kind, size, reference."""
    stripped = result.text.lstrip()[:1]
    kind = "structured" if stripped in ("{", "[") else "image" if result.images and not result.text else "text"
    error = " error" if result.is_error else ""
    return f"[{kind}{error} result, {len(result.text)} characters, {ref}]"


def _images_only(result: ToolResultPart) -> Message:
    return Message.model_construct(role="user", dialect="shared", parts=result.images, wire={})


def _ref(entry: Entry, index: int) -> str:
    return entry.ref if len(entry.message.tool_results) == 1 else f"{entry.ref}.{index + 1}"


def _call_names(entry: Entry) -> dict[str, str]:
    aliases = dict(entry.event.placement.aliases)
    return {aliases.get(index, call.id): call.name for index, call in enumerate(entry.message.tool_calls)}
