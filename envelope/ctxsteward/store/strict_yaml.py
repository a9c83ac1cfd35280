"""Strict YAML: one mapping from text, and the line of each key; refused with its place where it is more than that.

YAML 1.2, core schema. Aliases, anchors, tags, directives, repeated keys, several documents, lone surrogates, NaN and
infinity are refused; the cap on bytes is checked before parsing, the one on depth before anything is built. Lines
count from 1; a path is the keys down to a value, a mapping inside a list under its 0-based index.

Raises the error that the `YamlSource` names, and `InputTooLarge`. Source: the YAML 1.2.2 core schema (yaml.org).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from ctxsteward.schemas.errors import InputError, InputTooLarge

Tree = dict[str, Any]
Path = tuple[str, ...]
Lines = dict[Path, int]
Refuse = Callable[[str, str, str, str], InputError]
"""The error for (source and line, dotted key, what was found, what to do)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlSource:
    """What is read, and how a refusal of it is told."""

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

    reader = _TreeReader(source, reading)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            reader.take(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise refuse(where, "", f"no YAML: {error.problem or error.context}", "correct the syntax") from error
    except (YAMLError, OverflowError) as error:
        raise refuse(source, "", f"no YAML: {str(error).splitlines()[0]}", "correct the syntax") from error
    return reader.tree(), reader.lines


class _TreeReader:
    """Builds plain values from parser events; refuses everything that a configuration has no use for."""

    def __init__(self, source: str, reading: YamlSource) -> None:
        self.source, self.reading, self.lines = source, reading, Lines()
        self._open: list[tuple[dict[str, Any] | list[Any], Path]] = []
        self._key: list[str | None] = []
        self._roots: list[object] = []

    def tree(self) -> Tree:
        root = self._roots[0] if self._roots else None
        if not isinstance(root, dict) or not root:
            raise self.reading.refuse(self.source, "", show(root), self.reading.expected)
        return root

    def take(self, event: Any) -> None:
        match type(event).__name__:
            case "DocumentStartEvent":
                self._start(event)
            case "AliasEvent":
                self._refuse(event, f"the alias *{event.anchor}", "write the text out: aliases are not read")
            case "ScalarEvent":
                self._plain(event)
                self._scalar(event)
            case "MappingStartEvent" | "SequenceStartEvent" as kind:
                self._plain(event)
                self._begin({} if kind == "MappingStartEvent" else [], event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._open.pop()
                self._key.pop()

    def _start(self, event: Any) -> None:
        if self._roots:
            self._refuse(event, "a second document", "keep one document to a file")
        if event.tags or event.version not in (None, (1, 2)):
            self._refuse(event, "a YAML directive", f"remove the % lines; a {self.reading.what} is YAML 1.2")

    def _plain(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse(event, f"the anchor &{event.anchor}", "write the text out: anchors are not read")
        if event.tag is not None:
            self._refuse(event, f"the tag {event.tag}", "remove it: tags are not read")

    def _begin(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if len(self._open) >= self.reading.max_depth:
            self._refuse(event, "deeper nesting", f"keep to {self.reading.max_depth} levels")
        if self._open and isinstance(self._open[-1][0], dict) and self._key[-1] is None:
            self._refuse(event, f"{show(value)} as a key", "write a plain id")
        path = self._place(value, event)
        self._open.append((value, path))
        self._key.append(None)

    def _scalar(self, event: Any) -> None:
        if self._open and isinstance(self._open[-1][0], dict) and self._key[-1] is None:
            self._begin_pair(event)
            return
        self._place(self._value(event), event)

    def _begin_pair(self, event: Any) -> None:
        mapping, path = self._open[-1]
        key = self._text(event)
        if key in mapping:
            self._refuse(event, f"the key {key[:80]!r} a second time", "keep one of the two", (*path, key))
        self._key[-1] = key
        self.lines[(*path, key)] = event.start_mark.line + 1

    def _place(self, value: object, event: Any) -> Path:
        if not self._open:
            self._roots.append(value)
            return ()
        parent, path = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
            return (*path, str(len(parent) - 1)) if isinstance(value, dict) else path
        key = self._key[-1]
        assert key is not None
        parent[key], self._key[-1] = value, None
        return (*path, key)

    def _value(self, event: Any) -> object:
        text = self._text(event)
        if event.style is not None and event.style != "":
            return text
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, text, "write a finite number, or quote the text")
        if _NULL.fullmatch(text):
            return None
        if truth := _BOOL.fullmatch(text):
            return truth[1] is None
        if len(text) <= 40 and _INT.fullmatch(text):
            return int(text)
        if len(text) <= 40 and _FLOAT.fullmatch(text):
            return self._float(text, event)
        return text

    def _float(self, text: str, event: Any) -> float:
        number = float(text)
        if number in (float("inf"), float("-inf")):
            self._refuse(event, f"the number {text}, which is not finite", "write a finite number")
        return number

    def _text(self, event: Any) -> str:
        text: str = event.value
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(event, "a lone surrogate", "write well-formed Unicode")
        return text

    def _refuse(self, event: Any, found: str, hint: str, path: Path | None = None) -> NoReturn:
        if path is None:
            pending = self._key[-1] if self._key else None
            path = (*(self._open[-1][1] if self._open else ()), *([pending] if pending else []))
        raise self.reading.refuse(f"{self.source}:{event.start_mark.line + 1}", ".".join(path), found, hint)
