"""The past of a cascade: messages and state of its earlier phases, read from their logs.

A phase's messages carry its name (``append(…, phase=)``). A message that was injected into a log carries an `origin`
and belongs to no phase. Each own message has a *number*, its 1-based place in the past; in a past of one log that began
with its cascade it equals the ordinal. A message's body is fetched and decoded on access, so messages that no phase is
shown cost nothing here. The state that a phase set is a note of one of the logs, ``state-PHASE``, a JSON object.

Several attempts at one phase (soundings) are logs of their own, numbered from 1. Once one of them was chosen, the
others are no longer part of the past.

*Images* of past messages are found in their provider's own blocks and shown in these blocks, never re-encoded. An image
is identified by a digest of its data or URL, and not by its message, so an image that was passed on is shown once. The
digest stays in the process. `ctxsteward.envelope.tokens.models` gives an image's cost.

*Expiry* (`context_ttl`) limits which of a phase's messages other phases are shown. The age of a message is the number
of steps (assistant messages) of its phase after it. Expired tool results become one line, so that their calls stay
answered; expired images become one line; other expired messages are left out, an assistant message with tool calls
together with its results. The originals stay in their log.

Raises `InputError` for a state note that is no JSON object, and for logs of more than one tenant.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import InputError, Message
from ctxsteward.schemas.cascade import Source, TtlKind
from ctxsteward.schemas.message import Wire, with_results

from ..history.session import Session
from ..history.tool_groups import LogEntry, is_user_turn
from ..tokens.tokenizer import Counter

Form = Literal["openai", "anthropic"]
SHOWN_ALREADY = "[image already shown]"
_FORMS: dict[object, Form] = {"image_url": "openai", "image": "anthropic"}


class PastImage(NamedTuple):
    """An image and the message that contains it."""

    block: Wire
    """The provider's own block, shared with the original."""
    form: Form
    key: bytes
    held_by: PastMessage

    @property
    def attempt(self) -> int | None:
        """Number of the sounding that made it, or None."""
        return self.held_by.attempt


def images_in(message: Message, held_by: PastMessage) -> Iterator[PastImage]:
    """Yield the images of a message and of its tool results."""
    for block in _image_blocks(message.wire.get("content")):
        yield PastImage(block, _FORMS[block["type"]], image_key(block), held_by)


def _image_blocks(content: object) -> Iterator[Wire]:
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") in _FORMS:
            yield block
        elif block.get("type") == "tool_result":
            yield from _image_blocks(block.get("content"))


def image_key(block: Wire) -> bytes:
    """Return a digest of an image's data or URL; it is the same in every provider's block."""
    image = block.get("image_url", block.get("source"))
    if isinstance(image, dict):
        image = image.get("url") or image.get("data") or json.dumps(image, sort_keys=True)
    text = str(image)
    data = text.partition(",")[2] if text.startswith("data:") else text
    return hashlib.sha256(data.encode()).digest()


def chosen_images(images: Sequence[PastImage], source: Source) -> list[PastImage]:
    """Return the images that the source's filter selects."""
    match source.images_filter:
        case "last":
            return list(images[-1:])
        case "last_n":
            return list(images[-source.images_count :])
        case _:
            return list(images)


def image_messages(label: str, images: Iterable[PastImage], role: str) -> Iterator[tuple[Wire, list[PastImage]]]:
    """Yield labelled messages of images, one for each run of blocks of one provider.

    Images of a numbered attempt follow a line with the attempt's number and the image's place in it.
    """
    runs: list[list[PastImage]] = []
    for image in images:
        if runs and runs[-1][-1].form == image.form:
            runs[-1].append(image)
        else:
            runs.append([image])
    counts: dict[int, int] = {}
    for run in runs:
        content: list[Wire] = [{"type": "text", "text": label}]
        for image in run:
            if image.attempt is not None:
                counts[image.attempt] = counts.get(image.attempt, 0) + 1
                line = f"[Attempt {image.attempt}, image {counts[image.attempt]}]:"
                content.append({"type": "text", "text": line})
            content.append(image.block)
        yield {"role": role, "content": content}, run


def without_images(wire: Wire, hidden: set[bytes] | None, text: str = SHOWN_ALREADY) -> Wire:
    """Return the message with a line of text in place of each image in `hidden`, or of all images for None."""
    content = wire.get("content")
    if not isinstance(content, list):
        return wire
    shown = [_without(block, hidden, text) for block in content]
    return wire if all(new is old for new, old in zip(shown, content, strict=True)) else {**wire, "content": shown}


def _without(block: Any, hidden: set[bytes] | None, text: str) -> Any:
    if not isinstance(block, dict):
        return block
    if block.get("type") in _FORMS:
        return {"type": "text", "text": text} if hidden is None or image_key(block) in hidden else block
    if block.get("type") == "tool_result":
        return without_images(block, hidden, text)
    return block


LEDGER_SUFFIX = "..ledger"
"""Ending of the id of the session whose notes keep the state of a run."""
STATE_NOTE = "state-"


class PhaseLog(NamedTuple):
    """A session in which phases ran."""

    session: Session
    attempt: int | None = None
    """Number of the attempt, if the session is one attempt at a phase."""
    phase: str | None = None
    """Read only the messages of this phase; None reads all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage:
    """One message of the past; its body stays in its log."""

    number: int
    session: Session = field(repr=False)
    ordinal: int
    phase: str | None
    attempt: int | None
    is_pinned: bool
    joins: bool
    """Whether it belongs to the tool group of the message before it."""
    stored_tokens: Mapping[str, int]
    held: LogEntry | None = field(default=None, repr=False, compare=False)
    """The entry, if it is in the session's window."""

    @property
    def origin(self) -> str:
        """Session and ordinal: the `origin` of its copies in other logs."""
        return f"{self.session.id}§{self.ordinal}"

    @property
    def entry(self) -> LogEntry:
        return self.session.entry(self.ordinal) if self.held is None else self.held

    @property
    def message(self) -> Message:
        return self.entry.message

    def tokens(self, counter: Counter) -> int:
        stored = self.stored_tokens.get(counter.name)
        return self.entry.tokens(counter) if stored is None else stored


@dataclass(frozen=True, kw_only=True)
class Past:
    """The messages and state of earlier phases."""

    messages: tuple[PastMessage, ...]
    states: Mapping[str, Mapping[str, Any]]
    """State that each phase set, by phase."""
    copied: frozenset[str] = frozenset()
    """Origins of the messages that the first log has copies of."""

    @cached_property
    def ran(self) -> frozenset[str]:
        """Phases that left messages or state."""
        return frozenset(self.states) | frozenset(m.phase for m in self.messages if m.phase is not None)

    @property
    def state(self) -> dict[str, Any]:
        """All state; later phases override earlier ones."""
        return {key: value for values in self.states.values() for key, value in values.items()}

    @cached_property
    def groups(self) -> tuple[tuple[PastMessage, ...], ...]:
        """Messages in tool groups."""
        groups: list[list[PastMessage]] = []
        for message in self.messages:
            if message.joins and groups and groups[-1][-1].session is message.session:
                groups[-1].append(message)
            else:
                groups.append([message])
        return tuple(map(tuple, groups))

    def of(self, phase: str) -> tuple[PastMessage, ...]:
        """Return a phase's own messages."""
        return tuple(message for message in self.messages if message.phase == phase)

    def output(self, phase: str) -> tuple[PastMessage, str] | None:
        """Return the newest assistant message of a phase that has text, and the text; None without one."""
        for past in reversed(self.of(phase)):
            message = past.message
            if message.role == "assistant" and message.text.strip():
                return past, message.text
        return None

    def images(self, phase: str) -> tuple[PastImage, ...]:
        """Return all images of a phase in order."""
        return tuple(image for message in self.of(phase) for image in images_in(message.message, message))

    def last_turn(self, phase: str) -> tuple[PastMessage, ...]:
        """Return a phase's messages from its newest user turn on."""
        own = self.of(phase)
        for at in range(len(own) - 1, -1, -1):
            if is_user_turn(own[at].message):
                return own[at:]
        return own

    def ages(self, phase: str) -> dict[int, int]:
        """Count the steps (assistant messages) after each of the phase's messages, by number."""
        ages: dict[int, int] = {}
        steps = 0
        for message in reversed(self.of(phase)):
            ages[message.number] = steps
            steps += message.message.role == "assistant"
        return ages


def read_past(
    *logs: Session | PhaseLog,
    order: Sequence[str] = (),
    states: Mapping[str, Mapping[str, Any]] | None = None,
    chosen: Mapping[str, int] | None = None,
) -> Past:
    """Read a past from logs: first the stream, then the sessions of single phases.

    `order` is the order of phases in the cascade; `states` is added to the states in the logs' notes; `chosen` is the
    attempt that counts, by phase.
    """
    placed: list[tuple[int, PastMessage]] = []
    seen: set[tuple[int, str]] = set()
    copied: set[str] = set()
    noted: dict[str, dict[str, Any]] = {}
    tenants = {(given.session if isinstance(given, PhaseLog) else given).tenant for given in logs}
    if len(tenants) > 1:
        raise InputError(f"logs of tenants {', '.join(sorted(map(repr, tenants)))}; a past is one tenant's")
    for at, given in enumerate(logs):
        log = given if isinstance(given, PhaseLog) else PhaseLog(given)
        noted |= state_notes(log.session)
        place = -1
        held = {entry.ordinal: entry for group in log.session.state.groups for entry in group.entries}
        for ordinal in range(1, len(log.session) + 1):
            entry = held[ordinal] if ordinal in held else log.session.entry(ordinal)
            event = entry.event
            if event.origin is not None:
                copied |= {event.origin} if at == 0 else set()
                continue
            if log.phase is not None and event.phase != log.phase:
                continue
            if (event.ordinal, event.address) in seen:
                continue  # the part that a fork shares with its parent
            seen.add((event.ordinal, event.address))
            if event.phase in order:
                place = max(place, order.index(event.phase))
            wanted = (chosen or {}).get(event.phase or "")
            if wanted is None or log.attempt is None or log.attempt == wanted:
                message = PastMessage(
                    number=0,
                    session=log.session,
                    ordinal=event.ordinal,
                    phase=event.phase,
                    attempt=log.attempt,
                    is_pinned=event.pin is not None or event.ordinal in log.session.state.pins,
                    joins=event.placement.joins,
                    stored_tokens=event.tokens,
                    held=held.get(event.ordinal),
                )
                placed.append((place, message))
    placed.sort(key=lambda row: row[0])
    messages = tuple(replace(message, number=number) for number, (_, message) in enumerate(placed, 1))
    for phase, values in (states or {}).items():
        noted[phase] = {**noted.get(phase, {}), **values}
    ordered = sorted(noted, key=lambda phase: order.index(phase) if phase in order else len(order))
    return Past(messages=messages, states={name: noted[name] for name in ordered}, copied=frozenset(copied))


def state_notes(session: Session) -> dict[str, dict[str, Any]]:
    """Read the state notes of a log, by phase."""
    states: dict[str, dict[str, Any]] = {}
    for name, text in session.state.notes.items():
        if not name.startswith(STATE_NOTE):
            continue
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise InputError(f"note {name!r} of session {session.id!r} is {text[:40]!r}; state is a JSON object")
        states[name.removeprefix(STATE_NOTE)] = values
    return states


def origins_of(messages: Iterable[PastMessage]) -> str:
    """Name the places of several messages in at most 200 characters: ``s-1§3,§5``."""
    text, session = "", ""
    for message in {message.number: message for message in messages}.values():
        piece = f"§{message.ordinal}" if message.session.id == session else message.origin
        if len(text) + len(piece) > 195:
            return f"{text},…"
        text += f",{piece}" if text else piece
        session = message.session.id
    return text


EXPIRED_IMAGE = "[image expired]"


class ShownMessage(NamedTuple):
    """A message that has not expired."""

    message: PastMessage
    original: Message
    wire: Wire
    """The wire to show; the original's own dict if nothing of it expired."""


class Expiry:
    """A phase's time limits, applied to its own messages."""

    def __init__(self, past: Past, phase: str, limits: Mapping[TtlKind, int | None]) -> None:
        self.limits: dict[str, int] = {kind: limit for kind, limit in limits.items() if limit is not None}
        self._ages = past.ages(phase) if self.limits else {}
        self.hidden: int = 0
        """Number of messages that were shortened or left out."""

    def hides_images(self, message: PastMessage) -> bool:
        """Return whether the message's images are too old."""
        return self._over("images", message)

    def applied(self, messages: Iterable[PastMessage]) -> Iterator[ShownMessage]:
        """Yield the messages that have not expired, as they are shown."""
        leaving = False
        for message in messages:
            original = message.message
            leaving = self._leaves(message, original) or (leaving and message.joins)
            if leaving:
                self.hidden += 1
                continue
            wire = original.wire
            if original.tool_results and self._over("tool_results", message):
                wire = with_results(wire, partial(_expired, message.origin))
            if self.hides_images(message):
                wire = without_images(wire, None, EXPIRED_IMAGE)
            self.hidden += wire is not original.wire
            yield ShownMessage(message, original, wire)

    def _leaves(self, message: PastMessage, original: Message) -> bool:
        if original.role == "assistant":
            return self._over("assistant", message)
        return original.role == "user" and not original.tool_results and self._over("user", message)

    def _over(self, kind: TtlKind, message: PastMessage) -> bool:
        limit = self.limits.get(kind)
        return limit is not None and self._ages.get(message.number, 0) > limit


def _expired(origin: str, content: object) -> str:
    return f"[tool result expired, {origin}]"
