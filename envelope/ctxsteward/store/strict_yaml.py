"""Strict YAML: one mapping from text, and the line of each key; refused with its place where it is more than that.

YAML 1.2, core schema. Aliases, anchors, tags, directives, repeated keys, several documents, lone surrogates, NaN and
infinity are refused; the cap on bytes is checked before parsing, the one on depth before anything is built. Lines
count from 1; a path is the keys down to a value, a mapping inside a list under its 0-based index.

Raises the error that the `YamlSource` names, and `InputTooLarge`. Source: the YAML 1.2.2 core schema (yaml.org).
"""

from __future__ import annotations

import math
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InputTooLarge

Tree = dict[str, Any]
Path = tuple[str, ...]
Lines = dict[Path, int]
Refuse = Callable[[str, str, str, str], InputError]
"""The error for (source and line, dotted key, what was found, what to do)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlSource:
    """The kind of document that is read, with its limits, and the error that refuses it."""

    what: str
    refuse: Refuse
    max_bytes: int
    max_depth: int
    expected: str
    """What to write instead of a text that is no mapping."""


def place(source: str, lines: Lines, path: Path) -> str:
    """The source with the line of a path, or of the nearest key above it."""
    known = path
    while known and known not in lines:
        known = known[:-1]
    return f"{source}:{lines[known]}" if known else source


def show(value: object) -> str:
    """What a value is, in words, for a refusal."""
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


def read_text(path: str | os.PathLike[str], reading: YamlSource, *, max_bytes: int, forms: str = "YAML") -> str:
    """The text of a file of one of these forms, of so many bytes at most."""
    source = str(path)
    try:
        with pathlib.Path(path).open("rb") as file:
            data = file.read(max_bytes + 1)
        size_bytes = max(len(data), os.stat(path).st_size)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise reading.refuse(source, "", reason, f"pass the path of a readable {forms} file") from error
    except ValueError as error:  # no path at all
        raise reading.refuse(source[:80], "", str(error), f"pass the path of a {forms} file") from error
    if size_bytes > max_bytes:
        raise InputTooLarge(f"{reading.what} {source}", size_bytes, max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise reading.refuse(source, "", f"byte {error.start} is not UTF-8", "save the file as UTF-8") from error


def read_mapping(text: str, source: str, reading: YamlSource) -> tuple[Tree, Lines]:
    """The mapping that the text is, and the lines of its keys; `source` names it in errors."""
    refuse = reading.refuse
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise refuse(source, "", "a lone surrogate", "write well-formed Unicode") from error
    if size_bytes > reading.max_bytes:
        raise InputTooLarge(f"{reading.what} {source}", size_bytes, reading.max_bytes)
    from ruamel.yaml import YAML  # imported here: the request path never reads YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        reader = _TreeReader(source, reading, YAML(typ="safe", pure=True).parse(text))
        return reader.tree(), reader.lines
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise refuse(where, "", f"no YAML: {error.problem or error.context}", "correct the syntax") from error
    except (YAMLError, OverflowError) as error:
        raise refuse(source, "", f"no YAML: {str(error).splitlines()[0]}", "correct the syntax") from error


class _TreeReader:
    """Builds plain values from parser events; refuses everything that a configuration has no use for."""

    def __init__(self, source: str, reading: YamlSource, events: Iterator[Any]) -> None:
        self._source, self._reading, self._events = source, reading, events
        self.lines = Lines()

    def tree(self) -> Tree:
        roots: list[object] = []
        for event in self._events:
            if _kind(event) == "DocumentStart":
                if roots:
                    self._refuse(event, (), "a second document", "keep one document to a file")
                if event.tags or event.version not in (None, (1, 2)):
                    hint = f"remove the % lines; a {self._reading.what} is YAML 1.2"
                    self._refuse(event, (), "a YAML directive", hint)
                roots.append(self._value(next(self._events), (), 0))
        root = roots[0] if roots else None
        if not isinstance(root, dict) or not root:
            raise self._reading.refuse(self._source, "", show(root), self._reading.expected)
        return root

    def _value(self, event: Any, path: Path, depth: int, index: str | None = None) -> object:
        """What begins with this event, in `depth` others; `index` is its own in a list."""
        self._check_plain(event, path, depth)
        if _kind(event) == "Scalar":
            return self._scalar(event, path)
        if _kind(event) == "SequenceStart":
            items: list[object] = []
            while _kind(item := next(self._events)) != "SequenceEnd":
                items.append(self._value(item, path, depth + 1, str(len(items))))
            return items
        return self._mapping(path if index is None else (*path, index), depth + 1)

    def _mapping(self, path: Path, depth: int) -> Tree:
        mapping: Tree = {}
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

    def _check_plain(self, event: Any, path: Path, depth: int) -> None:
        if _kind(event) == "Alias":
            self._refuse(event, path, f"the alias *{event.anchor}", "write the text out: aliases are not read")
        if event.anchor is not None:
            self._refuse(event, path, f"the anchor &{event.anchor}", "write the text out: anchors are not read")
        if event.tag is not None:
            self._refuse(event, path, f"the tag {event.tag}", "remove it: tags are not read")
        if _kind(event) != "Scalar" and depth >= self._reading.max_depth:
            self._refuse(event, path, "deeper nesting", f"keep to {self._reading.max_depth} levels")

    def _scalar(self, event: Any, path: Path) -> object:
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

    def _text(self, event: Any, path: Path) -> str:
        text: str = event.value
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(event, path, "a lone surrogate", "write well-formed Unicode")
        return text

    def _refuse(self, event: Any, path: Path, found: str, hint: str) -> NoReturn:
        raise self._reading.refuse(f"{self._source}:{event.start_mark.line + 1}", ".".join(path), found, hint)


def _kind(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")
