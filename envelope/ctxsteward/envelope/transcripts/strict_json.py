"""Strict JSON for the transcript readers: parse bytes from a file or from memory, and report errors with their place.

`open_input` and `memory_input` give the bytes, whole or line by line, within limits that are checked before parsing. A
byte-order mark, CRLF and blank lines are accepted; compressed files and UTF-16 are named in an error and not read.
`decode` parses one value. It refuses bytes that are not UTF-8, lone surrogates (also as ``\ud800`` escapes), a repeated
key in an object, NaN and infinities (also ``1e999``), and more than `MAX_VALUE_DEPTH` levels. The grammar is RFC 8259;
unique keys and no surrogates are I-JSON, RFC 7493. The hooks that refuse a value do not get its path. A refused value
is therefore parsed again with marks in the bad places, and the error names the path of the first mark.

`at` writes places in a file: ``line 4``, ``messages[3].content``, ``line 4, messages[3]``. Lines count from 1, indexes
from 0. Raises `InvalidTranscript` (also: no such file, a directory, …) and `InputTooLarge`.

>>> at("line 4", "messages[3]")
'line 4, messages[3]'
>>> at("line 4, messages[3]", "role")
'line 4, messages[3].role'
>>> at("[1]", "traj[3]")
'[1].traj[3]'
"""

from __future__ import annotations

import io
import json
import math
import re
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from ctxsteward.schemas import InvalidMessage, Message
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript
from ctxsteward.schemas.message import MAX_DEPTH


def at(place: str, path: str) -> str:
    """Return a path inside a place."""
    if not place or not path:
        return place or path
    if place.startswith("line ") and "," not in place:
        return f"{place}, {path}"
    return f"{place}{path}" if path.startswith("[") else f"{place}.{path}"


def inside(value: object) -> Iterator[tuple[str, object]]:
    """Yield every node of a JSON value with its path, depth first, in document order."""
    holds_messages = isinstance(value, list) and any(isinstance(item, dict) and "role" in item for item in value[:1])
    stack: list[tuple[str, object]] = [("messages" if holds_messages else "", value)]
    while stack:
        path, node = stack.pop()
        yield path, node
        children: list[tuple[str, object]] = []
        if isinstance(node, dict):
            for key, child in node.items():
                step = key if key.isidentifier() and key.isascii() else f"[{ascii(key)[:40]}]"
                children.append((at(path, step), child))
        elif isinstance(node, list):
            children = [(f"{path}[{index}]", child) for index, child in enumerate(node)]
        stack.extend(reversed(children))


def printable(text: str) -> str:
    """Return the text with a question mark for each lone surrogate, because streams refuse those."""
    return text.encode("utf-8", "replace").decode()


def show(value: object) -> str:
    """Describe a JSON value in words, for an error.

    >>> show({"a": 1, "b": 2}), show([]), show(5), show(None)
    ('an object with `a`, `b`', 'an array of 0', 'the number 5', 'null')
    """
    match value:
        case dict():
            keys = ", ".join(f"`{key:.30}`" for key in list(value)[:6])
            return f"an object with {keys or 'no keys'}"
        case list():
            return f"an array of {len(value)}"
        case str():
            return f"the text {value[:40]!r}"
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case _:
            return f"the number {value}"[:60]


def checked(wire: object, source: str, where: str) -> Message:
    """Return the typed view of a message, or raise an error with its place in the file."""
    if not isinstance(wire, dict):
        raise InvalidTranscript(source, where, f"found {show(wire)}", "expected a message with `role` and `content`")
    if not isinstance(wire.get("role", ""), str):
        raise InvalidTranscript(source, at(where, "role"), f"found {show(wire['role'])}", "expected a role's name")
    try:
        return Message.from_wire(wire)
    except InvalidMessage as error:
        raise InvalidTranscript(
            source, at(where, error.field), f"found {error.found}", f"expected {error.expected}"
        ) from error
    except InputTooLarge as error:
        raise InputTooLarge(f"{source}: {where}", error.size_bytes, error.cap_bytes) from error


MAX_VALUE_DEPTH = MAX_DEPTH + 8
"""Levels of lists and dicts in one JSON value: those of a message, and those that formats wrap around it."""

SAVE_AS_UTF8 = "save it as UTF-8"

_DEPTH_HINT = f"flatten it to at most {MAX_VALUE_DEPTH} levels"
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def decode(data: bytes, source: str, place: str) -> object:
    """Parse one JSON value strictly; `place` names it in errors (``line 4``; empty for a document)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        where = place or f"line {data[: error.start].count(10) + 1}"
        found = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        raise InvalidTranscript(source, where, found, SAVE_AS_UTF8) from error
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        _refuse_syntax(error, source, place)
    except RecursionError as error:
        raise InvalidTranscript(source, place, "very deep nesting", _DEPTH_HINT) from error
    except _RefusedError as error:
        _refuse_marked(text, source, place, error)
    except ValueError as error:  # an integer beyond the interpreter's digit limit
        raise InvalidTranscript(source, place, str(error), "write so long a number as text") from error
    if text.count("{") + text.count("[") > MAX_VALUE_DEPTH and _deeper_than(value, MAX_VALUE_DEPTH):
        raise InvalidTranscript(source, place, f"more than {MAX_VALUE_DEPTH} levels", _DEPTH_HINT)
    if _HALF_PAIR.search(text):
        _refuse_surrogates(value, source, place)
    return value


def is_cut_short(error: InvalidTranscript, data: bytes) -> bool:
    """Return whether `decode` refused these bytes only because they end too early: the next line may continue."""
    cause = error.__cause__
    cut = isinstance(cause, json.JSONDecodeError) and cause.pos >= len(cause.doc.rstrip())
    return cut and data.lstrip()[:1] in (b"[", b"{")


class _RefusedError(ValueError):
    """Raised by a hook; `_refuse_marked` finds the place."""


class _Mark(NamedTuple):
    found: str


def _object(pairs: list[tuple[str, object]]) -> object:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _RefusedError("a key twice")
    return value


def _marked_object(pairs: list[tuple[str, object]]) -> object:
    seen: dict[str, object] = {}
    for key, value in pairs:
        seen[key] = _Mark("the same key twice") if key in seen else value
    return seen


def _constant(name: str) -> NoReturn:
    raise _RefusedError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedError(digits)
    return value


def _marked_float(digits: str) -> object:
    return _Mark(f"the number {digits:.40}, which is infinite") if math.isinf(float(digits)) else 0.0


def _marked_constant(name: str) -> object:
    return _Mark(f"{name}, which is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
_MARKING = json.JSONDecoder(
    object_pairs_hook=_marked_object,
    parse_constant=_marked_constant,
    parse_float=_marked_float,
)


def _refuse_syntax(error: json.JSONDecodeError, source: str, place: str) -> NoReturn:
    column = min(error.pos, len(error.doc.rstrip())) + 1
    where = f"{place}, column {column}" if place else f"line {error.lineno}, column {error.colno}"
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
        raise InvalidTranscript(source, where, f"the JSON ends too early ({error.msg})", "is it cut off?") from error
    raise InvalidTranscript(source, where, f"not JSON ({error.msg})", "expected one JSON value") from error


def _refuse_marked(text: str, source: str, place: str, error: _RefusedError) -> NoReturn:
    hint = "write each key once, and finite numbers only"
    try:
        marked = _MARKING.decode(text)
    except json.JSONDecodeError as later:
        _refuse_syntax(later, source, place)
    except (ValueError, RecursionError):
        raise InvalidTranscript(source, place, str(error), hint) from error
    for path, node in inside(marked):
        if isinstance(node, _Mark):
            raise InvalidTranscript(source, at(place, path), node.found, hint) from error
    raise InvalidTranscript(source, place, str(error), hint) from error


def _refuse_surrogates(value: object, source: str, place: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        path = next((path for path, node in inside(value) if _has_surrogate(node)), "")
        raise InvalidTranscript(source, at(place, path), "a lone surrogate", "write well-formed Unicode") from error


def _has_surrogate(node: object) -> bool:
    texts = node if isinstance(node, dict) else (node,)
    return any(isinstance(text, str) and printable(text) != text for text in texts)


def _deeper_than(value: object, levels: int) -> bool:
    layer: list[object] = [value]
    for _ in range(levels):
        layer = [
            child
            for node in layer
            for child in (node.values() if type(node) is dict else node if type(node) is list else ())
            if type(child) is dict or type(child) is list
        ]
        if not layer:
            return False
    return True


MAX_VALUE_BYTES = 64 * 1024 * 1024
"""Limit of one JSON value, a document or a line. A JSONL file may have any number of lines."""

MAX_PIPE_BYTES = 256 * 1024 * 1024
"""Limit of input that cannot be read twice and is kept in memory; a regular file is not."""

_BOM = b"\xef\xbb\xbf"
_MAGIC = (
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
)


class InputLine(NamedTuple):
    """A line of a file that is not blank."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonInput:
    """Bytes that can be read again from the start: a regular file, or bytes in memory."""

    source: str
    path: Path | None = None
    data: bytes = b""

    def open(self) -> BinaryIO:
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InvalidTranscript(
                self.source, "", f"cannot be opened: {error.strerror}", "check the path and its permissions"
            ) from error

    def lines(self, cap_bytes: int = MAX_VALUE_BYTES) -> Generator[InputLine, None, None]:
        """Yield the lines that are not blank, in bounded memory."""
        with self.open() as stream:
            number = 0
            while data := stream.readline(cap_bytes + 1):
                number += 1
                if len(data) > cap_bytes and data[-1:] != b"\n":
                    raise InputTooLarge(f"{self.source}: line {number}", len(data) + _rest_bytes(stream), cap_bytes)
                if number == 1:
                    data = _without_mark(data, self.source)
                if data and not data.isspace():
                    yield InputLine(number, data)

    def document(self) -> object:
        """Return the whole input as one JSON value."""
        with self.open() as stream:
            data = stream.read(MAX_VALUE_BYTES + 1)
            if len(data) > MAX_VALUE_BYTES:
                size_bytes = stream.seek(0, io.SEEK_END)
                raise InputTooLarge(
                    f"{self.source} (one JSON document; JSONL may be longer)", size_bytes, MAX_VALUE_BYTES
                )
        return decode(_without_mark(data, self.source), self.source, "")


def open_input(path: str | Path) -> JsonInput:
    """Open a file for reading; a pipe or device is read into memory, up to `MAX_PIPE_BYTES`."""
    source = printable(str(path))
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise InvalidTranscript(source, "", found, "check the path") from error
    if stat.S_ISDIR(mode):
        raise InvalidTranscript(source, "", "a directory", "pass one of its files")
    if stat.S_ISREG(mode):
        return JsonInput(source=source, path=Path(path))
    with JsonInput(source=source, path=Path(path)).open() as stream:
        data = stream.read(MAX_PIPE_BYTES + 1)
    if len(data) > MAX_PIPE_BYTES:
        raise InputTooLarge(f"{source} (a pipe, so held in memory)", len(data), MAX_PIPE_BYTES)
    return memory_input(data, source)


def memory_input(data: bytes | str, source: str) -> JsonInput:
    """Return bytes or text in memory, such as standard input, as an input."""
    source = printable(source)
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            raise InvalidTranscript(
                source,
                f"character {error.start}",
                "a lone surrogate",
                "pass well-formed Unicode, or the bytes",
            ) from error
    return JsonInput(source=source, data=data)


def _without_mark(data: bytes, source: str) -> bytes:
    for magic, name in _MAGIC:
        if data.startswith(magic):
            raise InvalidTranscript(source, "", name, "decompress it first; compressed files are not read")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InvalidTranscript(source, "", "UTF-16 text", SAVE_AS_UTF8)
    return data.removeprefix(_BOM)


def _rest_bytes(stream: BinaryIO) -> int:
    """Return the number of bytes up to the end of the line, read in pieces."""
    size = 0
    while piece := stream.readline(1 << 20):
        size += len(piece)
        if piece[-1:] == b"\n":
            break
    return size
