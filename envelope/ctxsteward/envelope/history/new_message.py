"""What a caller hands a session: a message and what stands beside it, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas import InputError, Message, Outcome, encode_wire
from ctxsteward.store import MAX_META_CHARS, PinStrength, unseen

MAX_NOTE_NAME_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to add, and what `Session.append` takes beside it."""

    message: object
    id: str | None = None
    phase: str | None = None
    pin: PinStrength | None = None
    ts: str | None = None
    principal: str | None = None
    origin: str | None = None


def check_meta(new: NewMessage) -> None:
    """What stands beside a message is text that can be stored."""
    for name in ("id", "phase", "ts", "principal", "origin"):
        value = getattr(new, name)
        if value is None:
            continue
        if not isinstance(value, str) or not value or len(value) > MAX_META_CHARS:
            raise InputError(f"`{name}` is {value!r:.60}; write a text of 1 to {MAX_META_CHARS} characters, or None")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"`{name}` holds a lone surrogate; write well-formed Unicode") from None
    if new.principal is not None:
        _check_principal(new.principal)
    if new.pin not in (None, "keep", "soft"):
        raise InputError(f"`pin` is {new.pin!r:.60}; write 'keep', 'soft' or None")


def _check_principal(name: str) -> None:
    """A name that others can read: characters that nobody sees would make one person many."""
    if (char := unseen(name)) is not None:
        raise InputError(f"`principal` {name!r:.60} holds {char}, which nobody can see; write the name without it")
    if name.isspace():
        raise InputError(f"`principal` is {name!r:.60}; write a name that can be seen, or None")


def check_note(name: str, text: object) -> None:
    """A note has a short name and is text that can be stored."""
    if not name or not name.replace("-", "").replace("_", "").isalnum() or len(name) > MAX_NOTE_NAME_CHARS:
        raise InputError(
            f"note name {name[:70]!r} is not usable; take letters, digits, - and _, at most {MAX_NOTE_NAME_CHARS}"
        )
    if not isinstance(text, str):
        raise InputError(f"note {name!r} is {type(text).__name__}; a note is text")
    encode_wire({"role": "user", "content": text})


def checked_outcome(told: Mapping[str, object]) -> Outcome:
    """How a session ended, of what was given; None is not told."""
    given = {name: value for name, value in told.items() if value is not None}
    reward = given.get("reward")
    try:
        return Outcome.model_validate(given | ({"reward": float(reward)} if type(reward) is int else {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        found = f"`{where}` is {given[where]!r:.60}: " if where in given else ""
        raise InputError(f"outcome: {found}{first['msg'].removeprefix('Value error, ')}") from error


class ParsedMessage(NamedTuple):
    """A message that was read and counted."""

    wire: str
    """Its bytes, as they are kept."""
    message: Message
    tokens: dict[str, int]
    """By tokenizer."""
    new: NewMessage
    """What stands beside it."""
