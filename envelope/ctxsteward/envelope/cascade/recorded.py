"""A cascade with a run beside it in one file: its input, its state, and what its phases said.

Beside the cascade's own keys the file may hold `input` (any JSON), `state` (what templates see), `states` (state by
phase) and `transcript`, a list of rows: ``{phase, message}`` or ``{phase, messages: […]}``, each with an optional
`attempt` (from 1) and `pin`. A transcript may also stand in a file of its own, as a JSON list or JSONL of such rows.
Messages are providers' dicts, verbatim; what is known about them stands beside them.

Raises `InvalidCascade`, naming row and key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.cascade import Cascade

from ..counting import Counter
from ..incoming import NewMessage, check_meta
from ..readers.json_input import open_input
from ..readers.strict_json import decode
from ..store import Store
from ..strict_yaml import show
from .past import Log, Past, read_past
from .reading import Tree, cascade_of_tree, refused

RECORDED_KEYS = ("input", "state", "states", "transcript")
ROW_KEYS = ("phase", "message", "messages", "attempt", "pin", "id", "ts", "principal")
_STREAM = "run"


class Row(NamedTuple):
    """One recorded message."""

    attempt: int | None
    new: NewMessage


class Recorded(NamedTuple):
    """What a file holds."""

    cascade: Cascade
    input: Any
    state: dict[str, Any] | None
    states: dict[str, dict[str, Any]]
    rows: tuple[Row, ...]


def recorded_of(tree: Tree) -> Recorded:
    """A cascade and the run beside it."""
    own = {key: value for key, value in tree.value.items() if key not in RECORDED_KEYS}
    cascade = cascade_of_tree(Tree(own, tree.lines, tree.source))
    state, states = (_mapping(tree, key) for key in ("state", "states"))
    for phase, values in (states or {}).items():
        if not isinstance(values, dict):
            raise refused(tree, ("states", phase), show(values), "write a mapping of keys to values")
        _known_phase(cascade, tree, ("states", phase), phase)
    rows = tree.value.get("transcript", [])
    if not isinstance(rows, list):
        raise refused(tree, ("transcript",), show(rows), "write a list of {phase, message}")
    read = tuple(_rows(cascade, tree, rows, ("transcript",)))
    return Recorded(cascade, tree.value.get("input"), state, states or {}, read)


def read_rows(cascade: Cascade, path: str | Path) -> tuple[Row, ...]:
    """A transcript in a file of its own."""
    raw = open_input(path)
    first = next(iter(raw.lines()), None)
    if first is not None and not first.data.lstrip().startswith(b"["):
        rows = [decode(line.data, raw.source, f"line {line.number}") for line in raw.lines()]
        return tuple(_rows(cascade, Tree({}, {}, raw.source), rows, ()))
    value = raw.document()
    assert isinstance(value, list)  # its text begins with a bracket
    return tuple(_rows(cascade, Tree({}, {}, raw.source), value, ()))


def past_of_rows(
    cascade: Cascade, rows: Iterable[Row], states: Mapping[str, Mapping[str, Any]], *, store: Store, counter: Counter
) -> Past:
    """The past that recorded rows make, kept in a store; pass one in memory."""
    stream = store.session(_STREAM, counter=counter)
    logs = [Log(stream)]
    attempts: dict[tuple[str | None, int], Log] = {}
    batch: list[NewMessage] = []
    for row in rows:
        if row.attempt is None:
            batch.append(row.new)
            continue
        key = (row.new.phase, row.attempt)
        if key not in attempts:
            session = store.session(f"{_STREAM}.{row.new.phase}.{row.attempt}", counter=counter)
            attempts[key] = Log(session, row.attempt, row.new.phase)
        attempts[key].session.extend([row.new])
    stream.extend(batch)
    return read_past(*logs, *attempts.values(), order=cascade.names, states=states)


def _mapping(tree: Tree, key: str) -> dict[str, Any] | None:
    value = tree.value.get(key)
    if value is not None and not isinstance(value, dict):
        raise refused(tree, (key,), show(value), "write a mapping")
    return value


def _known_phase(cascade: Cascade, tree: Tree, keys: tuple[str, ...], phase: object) -> None:
    if phase not in cascade.names:
        hint = f"phases of this cascade: {', '.join(cascade.names)}"
        raise refused(tree, keys, f"{phase!r:.60} is no phase of this cascade", hint)


def _rows(cascade: Cascade, tree: Tree, rows: list[Any], above: tuple[str, ...]) -> Iterable[Row]:
    for index, row in enumerate(rows):
        keys = (*above, str(index))
        if not isinstance(row, dict):
            raise refused(tree, keys, show(row), "write {phase, message}")
        for key in row:
            if key not in ROW_KEYS:
                raise refused(tree, (*keys, key), "unknown key", f"allowed: {', '.join(ROW_KEYS)}")
        if row.get("phase") is not None:
            _known_phase(cascade, tree, (*keys, "phase"), row["phase"])
        if ("message" in row) == ("messages" in row):
            raise refused(tree, keys, "no message", "write one of `message` and `messages`")
        attempt = row.get("attempt")
        if attempt is not None and (type(attempt) is not int or not 1 <= attempt <= 100 or not row.get("phase")):
            raise refused(tree, (*keys, "attempt"), show(attempt), "write 1 to 100, with a phase")
        yield from _messages(tree, row, keys, attempt)


def _messages(tree: Tree, row: dict[str, Any], keys: tuple[str, ...], attempt: int | None) -> Iterable[Row]:
    messages = [row["message"]] if "message" in row else row["messages"]
    if not isinstance(messages, list):
        raise refused(tree, (*keys, "messages"), show(messages), "write a list of messages")
    for at, wire in enumerate(messages):
        place = (*keys, "message") if "message" in row else (*keys, "messages", str(at))
        try:
            message = Message.from_wire(wire)
        except InvalidMessage as error:
            raise refused(tree, (*place, error.field), f"found {error.found}", f"expected {error.expected}") from error
        beside: dict[str, Any] = {key: row.get(key) for key in ("phase", "pin", "id", "ts", "principal")}
        new = NewMessage(message=message, **beside)
        try:
            check_meta(new)
        except InputError as error:
            raise refused(tree, place[:2], str(error), "correct this row") from error
        yield Row(attempt, new)
