"""Read YAML and JSON files that people write (settings, profiles, cascades, suites, gates), strictly.

    read_document("steward.yaml", NightSettings, DocumentKind(what="settings", …))   a pydantic model
    read_mapping(text, "profile.yaml", kind)                                         a `Tree`: plain values with lines

YAML 1.2 in the core schema, which includes JSON. Aliases, anchors, tags, directives, repeated keys, several documents,
lone surrogates, NaN and infinity are refused; the cap on bytes is checked before parsing, the one on depth before
anything is built. Lines count from 1. The keys of a value lead to it from the root; an item of a list has its 0-based
index as key.

An error has one line: file and line, key, what was found, what to do. Raises the error that the `DocumentKind` names,
and `InputTooLarge`. Source: the YAML 1.2.2 core schema (yaml.org).
"""

from __future__ import annotations

import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InputTooLarge

Keys = tuple[str, ...]
M = TypeVar("M", bound=BaseModel)


def refused(where: str, key: str, found: str, hint: str) -> InputError:
    """Return the error for file and line, key, what was found, what to do."""
    return InputError(": ".join(part for part in (where, key, f"{found}; {hint}") if part))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKind:
    """A kind of document: its name in errors, its limits, and the error for an invalid one."""

    what: str
    max_bytes: int
    max_depth: int
    expected: str
    """Advice in the error for a text that is not a mapping."""
    refuse: Callable[[str, str, str, str], InputError] = refused
    hints: Mapping[str, str] = field(default_factory=dict)
    """Advice for a value that the model refuses, by its last key."""


class Tree(NamedTuple):
    """The mapping in a document, before validation against a model."""

    value: dict[str, Any]
    lines: Mapping[Keys, int]
    """Line of each key; empty for a value that does not come from YAML text."""
    source: str

    def place(self, keys: Keys) -> str:
        """Return source and line of these keys, else of the first key inside them, else of the nearest key above."""
        for depth in range(len(keys), 0, -1):
            above = keys[:depth]
            line = self.lines.get(above) or min(
                (n for path, n in self.lines.items() if path[:depth] == above), default=0
            )
            if line:
                return f"{self.source}:{line}"
        return self.source


def written(keys: Iterable[str]) -> str:
    """Format keys as a path that people read.

    >>> written(("phases", "1", "context", "from", "0"))
    'phases[1].context.from[0]'
    """
    text = ""
    for key in keys:
        text += f"[{key}]" if key.isdecimal() else f".{key[:60]}" if text else key[:60]
    return text


def keys_in(value: object, error: ErrorDetails, second_names: Mapping[str, str] = {}) -> Keys:
    """Return pydantic's location without its names of types and union members, as keys of the document.

    `second_names` maps a field to another name that the document may use for it.
    """
    keys: list[str] = []
    node = value
    for part in error["loc"]:
        if isinstance(node, dict):
            name = part if part in node else second_names.get(str(part), "")
            if name not in node:
                continue
            node = node[name]
            keys.append(str(name))
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
            keys.append(str(part))
    return tuple(keys)


def explained(
    value: object, error: ErrorDetails, model: type[BaseModel], second_names: Mapping[str, str] = {}
) -> tuple[Keys, str, str]:
    """Return the keys of pydantic's error, a description of the value there, and what to do.

    `second_names` is for `keys_in`.
    """
    keys, given, context = keys_in(value, error, second_names), error.get("input"), error.get("ctx", {})
    found = show(given)
    unit = "characters" if isinstance(given, str) else "entries"
    length = f"{len(given):,} {unit}" if isinstance(given, Sized) else found
    match error["type"]:
        case "missing":
            return (*keys, str(error["loc"][-1])), "nothing", "add this key"
        case "extra_forbidden":
            return keys, "no such key", f"allowed: {', '.join(allowed_fields(model, keys))}"
        case "string_pattern_mismatch":
            return keys, found, f"write text that matches {context['pattern']}"
        case "string_too_long" | "too_long":
            return keys, length, f"write at most {context['max_length']:,}"
        case "string_too_short" | "too_short":
            least = context["min_length"]
            return keys, length if given else "nothing", f"write at least {'one' if least == 1 else least}"
        case "literal_error":
            return keys, found, f"write {context['expected']}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return keys, found, "write a mapping"
        case "tuple_type":
            return keys, found, "write a list"
        case _:
            todo = error["msg"].lower().replace("input should be", "write").replace("a valid ", "a ")
            todo = re.sub("^write (greater|less)", r"write a number \1", todo.replace("a boolean", "true or false"))
            return keys, found, todo.replace("integer", "whole number").replace("string", "text")


def show(value: object) -> str:
    """Describe a value in words for an error."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the truth value {str(value).lower()}"
        case int() | float():
            return f"the number {value}"[:80]
        case str():
            return f"the text {value[:60]!r}"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case _:
            return "a list"


_NULL = re.compile(r"(?:~|null|Null|NULL|)")
_BOOL = re.compile(r"true|True|TRUE|(false|False|FALSE)")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def read_document(path: str | os.PathLike[str], model: type[M], kind: DocumentKind, named: str | None = None) -> M:
    """Read a file as a model; `named` is the name of an unreadable file in errors."""
    return parse_document(read_text(path, kind, named=named or f"{kind.what} {path}"), model, kind, str(path))


def parse_document(text: str, model: type[M], kind: DocumentKind, source: str) -> M:
    """Read YAML text as a model. The error names the first fault."""
    tree = read_mapping(text, source, kind)
    try:
        return model.model_validate(tree.value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys = tuple(str(part) for part in first["loc"])
        match first["type"]:
            case "extra_forbidden":
                found, todo = "no such key", f"allowed: {', '.join(allowed_fields(model, keys))}"
            case "missing":
                found, todo = "found nothing", hint(first, kind)
            case _:
                found = f"found {show(first['input'])}: {message_clause(first['msg'])}"
                todo = hint(first, kind)
        raise kind.refuse(tree.place(keys), ".".join(keys), found, todo) from error


def hint(error: ErrorDetails, kind: DocumentKind) -> str:
    """Return what to do about a fault."""
    names = [str(part) for part in error["loc"] if isinstance(part, str)]
    return next((kind.hints[name] for name in reversed(names) if name in kind.hints), "correct it, or leave it out")


def message_clause(message: str) -> str:
    """Return pydantic's message as a part of a sentence."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def allowed_fields(model: type[BaseModel], keys: Sequence[str]) -> list[str]:
    """Return the fields of the innermost model that contains the last of these keys."""
    for key in keys[:-1]:
        inner = _model_in(model.model_fields[key].annotation) if key in model.model_fields else None
        model = inner or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, alone, in a list, or as a mapping's value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part))), None)


def read_text(
    path: str | os.PathLike[str],
    kind: DocumentKind,
    *,
    named: str | None = None,
    max_bytes: int | None = None,
    forms: str = "YAML",
) -> str:
    """Read the text of a file, without its byte-order mark; `forms` names the formats that the caller accepts."""
    source = str(path)
    cap_bytes = kind.max_bytes if max_bytes is None else max_bytes
    try:
        with pathlib.Path(path).open("rb") as file:
            data = file.read(cap_bytes + 1)
        size_bytes = max(len(data), os.stat(path).st_size)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise kind.refuse(named or source, "", reason, f"pass the path of a readable {forms} file") from error
    except ValueError as error:  # not a path: it contains a NUL
        raise kind.refuse(source[:80], "", str(error), f"pass the path of a {forms} file") from error
    if size_bytes > cap_bytes:
        raise InputTooLarge(f"{kind.what} {source}", size_bytes, cap_bytes)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise kind.refuse(source, "", f"byte {error.start} is not UTF-8", "save the file as UTF-8") from error


def read_mapping(text: str, source: str, kind: DocumentKind) -> Tree:
    """Read YAML text that is one mapping; `source` names it in errors."""
    refuse = kind.refuse
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise refuse(source, "", "a lone surrogate", "write well-formed Unicode") from error
    if size_bytes > kind.max_bytes:
        raise InputTooLarge(f"{kind.what} {source}", size_bytes, kind.max_bytes)
    from ruamel.yaml import YAML  # imported here: the request path never reads YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        reader = _TreeReader(source, kind, YAML(typ="safe", pure=True).parse(text))
        return Tree(reader.mapping(), reader.lines, source)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise refuse(where, "", f"no YAML: {error.problem or error.context}", "correct the syntax") from error
    except (YAMLError, OverflowError) as error:
        raise refuse(source, "", f"no YAML: {str(error).splitlines()[0]}", "correct the syntax") from error


class _TreeReader:
    """Builder of plain values from parser events; refuses YAML features that a configuration does not need."""

    def __init__(self, source: str, kind: DocumentKind, events: Iterator[Any]) -> None:
        self._source, self._document_kind, self._events = source, kind, events
        self.lines: dict[Keys, int] = {}

    def mapping(self) -> dict[str, Any]:
        roots: list[object] = []
        for event in self._events:
            if _kind(event) == "DocumentStart":
                if roots:
                    self._refuse(event, (), "a second document", "keep one document to a file")
                if event.tags or event.version not in (None, (1, 2)):
                    hint = f"remove the % lines; a {self._document_kind.what} is YAML 1.2"
                    self._refuse(event, (), "a YAML directive", hint)
                roots.append(self._value(next(self._events), (), 0))
        root = roots[0] if roots else None
        if not isinstance(root, dict) or not root:
            raise self._document_kind.refuse(self._source, "", show(root), self._document_kind.expected)
        return root

    def _value(self, event: Any, path: Keys, depth: int, index: str | None = None) -> object:
        """Return the value that begins with this event at this depth; `index` is its place in a list."""
        self._check_plain(event, path, depth)
        if _kind(event) == "Scalar":
            return self._scalar(event, path)
        if _kind(event) == "SequenceStart":
            items: list[object] = []
            while _kind(item := next(self._events)) != "SequenceEnd":
                items.append(self._value(item, path, depth + 1, str(len(items))))
            return items
        return self._mapping(path if index is None else (*path, index), depth + 1)

    def _mapping(self, path: Keys, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while _kind(event := next(self._events)) != "MappingEnd":
            self._check_plain(event, path, depth)
            if _kind(event) != "Scalar":
                kind = "an empty mapping" if _kind(event) == "MappingStart" else "a list"
                self._refuse(event, path, f"{kind} as a key", "write a plain id")
            key = self._text(event, path)
            if key in mapping:
                self._refuse(event, (*path, key), f"the key {key[:80]!r} a second time", "keep one of the two")
            self.lines[*path, key] = event.start_mark.line + 1
            mapping[key] = self._value(next(self._events), (*path, key), depth)
        return mapping

    def _check_plain(self, event: Any, path: Keys, depth: int) -> None:
        if _kind(event) == "Alias":
            self._refuse(event, path, f"the alias *{event.anchor}", "write the text out: aliases are not read")
        if event.anchor is not None:
            self._refuse(event, path, f"the anchor &{event.anchor}", "write the text out: anchors are not read")
        if event.tag is not None:
            self._refuse(event, path, f"the tag {event.tag}", "remove it: tags are not read")
        if _kind(event) != "Scalar" and depth >= self._document_kind.max_depth:
            self._refuse(event, path, "deeper nesting", f"keep to {self._document_kind.max_depth} levels")

    def _scalar(self, event: Any, path: Keys) -> object:
        text = self._text(event, path)
        if event.style:  # quoted, or a block
            return text
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, path, text, "write a finite number, or quote the text")
        if _NULL.fullmatch(text):
            return None
        if truth := _BOOL.fullmatch(text):
            return truth[1] is None
        if len(text) <= 40 and _INT.fullmatch(text):
            return int(text)
        if len(text) <= 40 and _FLOAT.fullmatch(text):
            number = float(text)
            if math.isinf(number):
                self._refuse(event, path, f"the number {text}, which is not finite", "write a finite number")
            return number
        return text

    def _text(self, event: Any, path: Keys) -> str:
        text: str = event.value
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(event, path, "a lone surrogate", "write well-formed Unicode")
        return text

    def _refuse(self, event: Any, path: Keys, found: str, hint: str) -> NoReturn:
        raise self._document_kind.refuse(f"{self._source}:{event.start_mark.line + 1}", ".".join(path), found, hint)


def _kind(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")
