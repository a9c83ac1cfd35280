"""Strict JSON: one value from bytes, refused with its place where it is not what a transcript may hold.

Refused: bytes that are not UTF-8, lone surrogates (also as ``\\ud800`` escapes), a key twice in one object,
NaN and infinities (also ``1e999``), more than `MAX_VALUE_DEPTH` levels. The grammar is RFC 8259; unique
keys and no surrogates are I-JSON, RFC 7493. The hooks that refuse do not know where they are; a value that
was refused is parsed once more with marks in the bad places, and the path to the first mark is reported.

Raises `InvalidTranscript`. Lines count from 1, indexes from 0.
"""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple, NoReturn

from ctxsteward.schemas import InvalidTranscript
from ctxsteward.schemas.message import MAX_DEPTH

from .places import at, inside, printable

MAX_VALUE_DEPTH = MAX_DEPTH + 8
"""Levels of lists and dicts in one JSON value: a message's own, and what the formats wrap around it."""

SAVE_AS_UTF8 = "save it as UTF-8"

_DEPTH_HINT = f"flatten it to at most {MAX_VALUE_DEPTH} levels"
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def decode(data: bytes, source: str, place: str) -> object:
    """Parse one JSON value strictly; `place` (``line 4``; nothing for a document) is where it stands."""
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
    """Whether `decode` refused these bytes only because they end too early: the next line may go on."""
    cause = error.__cause__
    cut = isinstance(cause, json.JSONDecodeError) and cause.pos >= len(cause.doc.rstrip())
    return cut and data.lstrip()[:1] in (b"[", b"{")


class _RefusedError(ValueError):
    """Raised by a hook; where in the value it was is found by `_refuse_marked`."""


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
