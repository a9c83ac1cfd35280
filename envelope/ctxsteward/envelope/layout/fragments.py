"""Fragments: the pieces of an envelope that are laid out, counted and rendered as one, and the steps inside them.

A tool group becomes provider-neutral steps: `MessageStep` (a message in its own role), `ToolResults` (every call of the
group answered) and `DerivedText` (fenced, in the user's role). This module excerpts long tool results, replaces masked
ones by one line, and gives unanswered calls a placeholder. It is pure: the same group, cap and nonce give the same
steps.

An excerpt of a long tool result has its head, the lines that look decisive, its tail, and the reference that resolves
to the whole. It is a pure function of text, cap and tokenizer, so it needs no record. Its cost is linear in the text.
Lines are cut but never reworded.

`FragmentCache` has the fragments of a window's groups in order, with running totals. Between compactions a window only
grows at its end, so the last build's fragments are extended and a build costs its newest messages. The cache has
results of pure functions of its groups. A fresh one over the same groups is equal (a property test), so it is no second
state.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from ctxsteward.schemas import ImagePart, Message, TextPart, ToolCallPart, ToolResultPart
from ctxsteward.schemas.message import Wire
from ctxsteward.store import process_forks as forking
from ctxsteward.store.journal.events import PLAIN

from ..history.tool_groups import LogEntry, ToolGroup, says_something, unanswered
from ..tokens.tokenizer import Counter
from .rows import fenced

_SIGNAL = re.compile(
    r"error|exception|fail|fatal|panic|traceback|denied|refused|timed? ?out|not found|warning|assert"
    r"|错误|失败|异常|超时",
    re.IGNORECASE,
)
_HEAD_SHARE, _SIGNAL_SHARE = 0.35, 0.25
_MAX_SIGNAL_LINES = 12
_LINE_CHARS = 240
_LOOK_CHARS = 400_000
"""The search for signal lines covers the first and last half of this many characters."""


def excerpt(text: str, *, cap_tokens: int, ref: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return at most about `cap_tokens` of a text (of `tokens`), with a line that gives the reference of the whole."""
    note = f"[… {tokens} tokens in all, excerpt; {ref} resolves to the whole …]"
    room = max(8, cap_tokens - count(note) - 4)
    chars_a_token = max(1.0, len(text) / max(1, tokens))
    while True:
        parts = _pick(text, room, chars_a_token)
        result = "\n".join([*parts[:1], note, *parts[1:]])
        used = count(result)
        if used <= cap_tokens or room <= 8:
            return result
        room = max(8, int(room * min(0.9, cap_tokens / used)))


def _pick(text: str, room: int, chars_a_token: float) -> list[str]:
    head_chars = int(room * _HEAD_SHARE * chars_a_token)
    signal_chars = int(room * _SIGNAL_SHARE * chars_a_token)
    head = _whole_lines(text[:head_chars], keep="head")
    middle = text[len(head) :]
    signal = _signal_lines(middle, signal_chars)
    tail_chars = max(0, int(room * chars_a_token) - len(head) - sum(len(line) + 1 for line in signal))
    tail = _whole_lines(text[len(text) - tail_chars :], keep="tail") if tail_chars else ""
    lines = [line for line in signal if line not in head and line not in tail]
    return [part for part in (head.rstrip("\n"), "\n".join(lines), tail.strip("\n")) if part]


def _whole_lines(text: str, *, keep: str) -> str:
    """Cut a text at a line end if that costs less than half of it."""
    if keep == "head":
        cut = text.rfind("\n")
        return text[: cut + 1] if cut > len(text) // 2 else text
    cut = text.find("\n")
    return text[cut + 1 :] if 0 <= cut < len(text) // 2 else text


def _signal_lines(text: str, room_chars: int) -> list[str]:
    if len(text) > _LOOK_CHARS:
        text = text[: _LOOK_CHARS // 2] + "\n" + text[-_LOOK_CHARS // 2 :]
    lines: list[str] = []
    used, last_stop = 0, -1
    for match in _SIGNAL.finditer(text):
        if match.start() < last_stop:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        stop = text.find("\n", match.end())
        last_stop = len(text) if stop < 0 else stop
        begin = max(start, match.start() - _LINE_CHARS // 2)
        line = text[begin : min(last_stop, begin + _LINE_CHARS)].strip()
        if used + len(line) > room_chars or len(lines) >= _MAX_SIGNAL_LINES:
            break
        if line and line not in lines:
            lines.append(line)
            used += len(line) + 1
    return lines


NO_RESULT = "[no result was recorded for this call]"
MASKED_ARGUMENT_CHARS = 160
"""Most characters of a masked group's call arguments; only whole JSON values are kept."""
_SHORT_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class MessageStep:
    """A message in its own role."""

    entry: LogEntry
    aliases: tuple[tuple[int, str], ...] = ()
    """Pairs of tool call index and the id to render."""
    without_results: bool = False
    """Whether the message is shown without its tool results."""
    arguments: tuple[tuple[int, str], ...] = ()
    """Pairs of tool call index and the text shown instead of its arguments."""

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of each tool call, as they are shown."""
        aliases, shortened = dict(self.aliases), dict(self.arguments)
        return [
            (aliases.get(index, call.id), call.name, shortened.get(index, call.arguments))
            for index, call in enumerate(self.entry.message.tool_calls)
        ]


@dataclass(frozen=True, slots=True)
class DerivedText:
    """This package's own text, fenced, in the user's role."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result as shown."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    entry: LogEntry | None = None
    """The message with the result, or None for a placeholder."""
    index: int = 0
    """Index of the result in that message."""
    verbatim: bool = True


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Answers to all calls of a group, and other content of the messages that brought them."""

    answers: tuple[ToolResult, ...]
    trailing: tuple[MessageStep | DerivedText, ...] = ()


Step = MessageStep | DerivedText | ToolResults


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """Options of how a group is shown."""

    cap_tokens: int
    masked: bool = False
    text_tokens: int | None = None
    """Most tokens of its first message's text, or None for no limit."""


def shortened_entry(entry: LogEntry, text_tokens: int | None, counter: Counter) -> LogEntry:
    """Return a message with its text cut to beginning and end, if it is too long and has only text and calls."""
    message = entry.message
    if text_tokens is None or entry.tokens(counter) <= text_tokens:
        return entry
    if not all(isinstance(part, TextPart | ToolCallPart) for part in message.parts) or not message.text:
        return entry
    tokens = counter.text(message.text)
    if tokens <= text_tokens:
        return entry
    text = excerpt(message.text, cap_tokens=text_tokens, ref=entry.ref, tokens=tokens, count=counter.text)
    return entry.saying(text) if counter.text(text) < tokens else entry


def _built(group: ToolGroup, shape: RenderOptions, nonce: str, counter: Counter) -> Fragment:
    """Make the fragment of a group, valid for providers, with these options."""
    only = shortened_entry(group.entries[0], shape.text_tokens, counter)
    if len(group.entries) == 1 and only.event.placement is PLAIN and not only.message.tool_calls:
        said = only.event.wire if only is group.entries[0] else f"short\x00{only.message.text}"
        digest = hashlib.sha256(f"{only.ordinal}\x00{said}".encode()).digest()
        return Fragment("group", (MessageStep(only),), only.tokens(counter), digest, "", group.ordinals)
    tokens = 0
    parts: list[str] = []
    steps: list[Step] = []
    answers: list[ToolResult] = []
    trailing: list[MessageStep | DerivedText] = []
    names: dict[str, str] = {}
    for entry in group.entries:
        aliases = dict(entry.event.placement.aliases)
        names |= {aliases.get(index, call.id): call.name for index, call in enumerate(entry.message.tool_calls)}
    for position, entry in enumerate((only, *group.entries[1:])):
        message, placement = entry.message, entry.event.placement
        parts += [str(entry.ordinal), entry.event.wire]
        if not position and only is not group.entries[0]:
            parts.append(message.text)
        if message.role in ("system", "developer"):
            aside = DerivedText(fenced(nonce, f"{message.role} message {entry.ref}", message.text))
            (trailing if position else steps).append(aside)
            tokens += counter.framed(aside.text)
            continue
        if message.role == "assistant" and not says_something(message):
            is_empty = "empty_assistant_message" in placement.findings
            if is_empty or (shape.masked and any(_shortened_calls(other.message) for other in group.entries)):
                continue  # providers take reasoning back only with its calls unchanged
        tokens += entry.tokens(counter)
        if placement is not None and (placement.answers or placement.orphans):
            tokens += _take_results(entry, shape, nonce, counter, names, answers, trailing, parts)
        elif position == 0 or message.role == "assistant":
            shortened = _shortened_calls(message) if shape.masked else ()
            for index, text in shortened:
                tokens += counter.text(text) - counter.text(message.tool_calls[index].arguments)
            steps.append(MessageStep(entry, placement.aliases, arguments=shortened))
        else:
            trailing.append(MessageStep(entry))
    for call in unanswered(group):
        answers.append(ToolResult(call.alias, names.get(call.alias, ""), NO_RESULT, is_error=True))
        tokens += counter.framed(NO_RESULT) + 4
        parts.append(call.alias)
    if answers:
        steps.append(ToolResults(tuple(answers), tuple(trailing)))
    else:
        steps += trailing
    digest = hashlib.sha256("\x00".join((f"{shape.masked}", *parts)).encode()).digest()
    return Fragment("group", tuple(steps), tokens, digest, "", group.ordinals)


def _take_results(
    entry: LogEntry,
    shape: RenderOptions,
    nonce: str,
    counter: Counter,
    names: dict[str, str],
    answers: list[ToolResult],
    trailing: list[MessageStep | DerivedText],
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
            ToolResult(
                alias,
                result.name or names.get(alias, ""),
                result.text if text is None else text,
                result.is_error,
                () if shape.masked else result.images,
                entry,
                index,
                text is None and alias == result.call_id,
            )
        )
    for index in placement.orphans:
        text, delta = _shown(entry, results[index], index, original, shape, counter)
        aside = DerivedText(
            fenced(nonce, f"tool result {_ref(entry, index)}", results[index].text if text is None else text)
        )
        trailing.append(aside)
        change += delta + 24
    if any(not isinstance(part, ToolResultPart) for part in message.parts):
        trailing.append(MessageStep(entry, without_results=True))
    return change


def _shown(
    entry: LogEntry, result: ToolResultPart, index: int, original: int, shape: RenderOptions, counter: Counter
) -> tuple[str | None, int]:
    """Return the text shown instead of a result (None if unchanged) and the change in tokens."""
    if shape.masked:
        text = masked_line(result, _ref(entry, index))
        images = Message.model_construct(role="user", dialect="shared", parts=result.images, wire={})
        used = counter.text(result.text) + (counter.message(images) if result.images else 0)
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
    """Return call arguments in at most `MASKED_ARGUMENT_CHARS` characters, as a JSON object with the short values."""
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
    """Return the line shown for a masked result: kind, size, reference."""
    stripped = result.text.lstrip()[:1]
    kind = "structured" if stripped in ("{", "[") else "image" if result.images and not result.text else "text"
    error = " error" if result.is_error else ""
    return f"[{kind}{error} result, {len(result.text)} characters, {ref}]"


def _ref(entry: LogEntry, index: int) -> str:
    return entry.ref if len(entry.message.tool_results) == 1 else f"{entry.ref}.{index + 1}"


T = TypeVar("T")
Kind = Literal["text", "tools", "observations", "bullets", "group", "context", "notes"]


@dataclass(slots=True, eq=False, repr=False)
class Fragment:
    """A piece of an envelope with its content, tokens and digest."""

    kind: Kind
    steps: tuple[Step, ...]
    tokens: int
    digest: bytes
    """SHA-256, never stored."""
    name: str = ""
    refs: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """Text of a derived fragment; empty for a group."""
        return "".join(step.text for step in self.steps if isinstance(step, DerivedText))

    def __repr__(self) -> str:
        return f"Fragment({self.kind}, {self.name or self.refs}, {self.tokens} tokens)"


def text_fragment(kind: Kind, name: str, text: str, counter: Counter) -> Fragment:
    """Return a fragment of this package's or the operator's text."""
    return Fragment(kind, (DerivedText(text),), counter.framed(text), hashlib.sha256(text.encode()).digest(), name)


def cached(cache: dict[object, object], key: object, basis: object, make: Callable[[], T]) -> T:
    """Return the cached result if made from an equal `basis`, else make it; only for results of pure functions."""
    found = cache.get(key)
    if isinstance(found, tuple) and found[0] == basis:
        known: T = found[1]
        return known
    made = make()
    cache[key] = (basis, made)
    return made


_START = hashlib.sha256(b"dynamic").digest()


def context_key(counter: Counter) -> tuple[str, str]:
    """Return the key of a session's turn context in the cache: (selection, token of its facts, fragment)."""
    return "context", counter.name


def group_fragment(group: ToolGroup, shape: RenderOptions, nonce: str, counter: Counter) -> Fragment:
    """Return the fragment of a group with these options, cached with the group."""
    cache = group.cache
    if cache is None:
        cache = group.cache = {}
    key = (shape.cap_tokens, shape.masked, shape.text_tokens, counter.name)
    fragment = cache.get(key)
    if fragment is None:
        fragment = cache[key] = _built(group, shape, nonce, counter)
    assert isinstance(fragment, Fragment)
    return fragment


class FragmentCache:
    """Fragments of groups, with running tokens, digests and numbers of rendered messages."""

    def __init__(
        self,
        groups: list[ToolGroup],
        hidden: frozenset[int],
        shortened: dict[int, int],
        cap_tokens: int,
        nonce: str,
        counter: Counter,
    ) -> None:
        self.groups = groups
        """The state's own list. A compaction replaces the list; otherwise only its end changes."""
        self.hidden = hidden
        self.shortened = shortened
        self.nonce = nonce
        self.counter = counter
        self._plain = RenderOptions(cap_tokens=cap_tokens)
        self.fragments: list[Fragment] = []
        self.tokens: list[int] = [0]
        self.chain: list[bytes] = [_START]
        self._lock = forking.lock()
        """Guards `wires`, because several threads may render envelopes that share a strip."""
        self.wires: dict[str, tuple[list[Wire], list[int]]] = {}
        """Rendered messages by provider, and the number of messages before each fragment."""

    def fits(
        self,
        groups: list[ToolGroup],
        hidden: frozenset[int],
        shortened: dict[int, int],
        cap_tokens: int,
        counter: Counter,
    ) -> bool:
        """Return whether this is a strip of these groups; not if its last group has grown, because envelopes use it."""
        last = len(self.fragments) - 1
        return (
            self.groups is groups
            and self.hidden is hidden
            and self.shortened is shortened
            and self._plain.cap_tokens == cap_tokens
            and self.counter == counter
            and (last < 0 or self.fragments[last].refs == groups[last].ordinals)
        )

    def resume(self, before: FragmentCache) -> None:
        """Take over an earlier strip's fragments of the same groups, up to the first that is now shown differently."""
        if not before.fits(self.groups, self.hidden, before.shortened, self._plain.cap_tokens, self.counter):
            return
        changed = {first for first, tokens in self.shortened.items() if before.shortened.get(first) != tokens}
        stop = len(before.fragments)
        while changed and stop:
            stop -= 1
            changed.discard(self.groups[stop].first)
        self.fragments, self.tokens = before.fragments[:stop], before.tokens[: stop + 1]
        self.chain = before.chain[: stop + 1]
        with before._lock:
            for provider, (messages, offsets) in before.wires.items():
                known = offsets[: stop + 1]
                self.wires[provider] = (messages[: known[-1]], known)

    def extend(self) -> None:
        """Add fragments of the groups that were added since."""
        fragments = self.fragments
        for group in self.groups[len(fragments) :]:
            shape = self._plain
            if group.first in self.hidden or group.first in self.shortened:
                text_tokens = self.shortened.get(group.first)
                shape = replace(shape, masked=group.first in self.hidden, text_tokens=text_tokens)
            fragment = group_fragment(group, shape, self.nonce, self.counter)
            fragments.append(fragment)
            self.tokens.append(self.tokens[-1] + fragment.tokens)
            self.chain.append(hashlib.sha256(self.chain[-1] + fragment.digest).digest())

    def rendered(
        self, provider: str, start: int, stop: int, wires_of: Callable[[Fragment], Sequence[Wire]]
    ) -> list[Wire]:
        """Return messages of fragments `start` to `stop` for a provider, as shallow copies."""
        with self._lock:
            known = self.wires.get(provider)
            if known is None:
                known = self.wires[provider] = ([], [0])
            messages, offsets = known
            for fragment in self.fragments[len(offsets) - 1 :]:
                messages += wires_of(fragment)
                offsets.append(len(messages))
        return [wire.copy() for wire in messages[offsets[start] : offsets[stop]]]
