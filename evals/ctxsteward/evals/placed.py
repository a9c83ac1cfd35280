"""Validate documents that people write: each fault of a field is refused with its file, line and dotted key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import counted
from ctxsteward.steward.config_file import allowed_fields
from ctxsteward.store.strict_yaml import Lines, show

Keys = tuple[str, ...]
_Model = TypeVar("_Model", bound=BaseModel)


def refused(where: str, key: str, found: str, todo: str) -> InputError:
    """Return the error for a place: what was found and what to do."""
    return InputError(f"{where}: {f'`{key}`: ' if key else ''}{found}; {todo}")


class PlacedPart(NamedTuple):
    """Place of a part of a document, for errors."""

    where: Callable[[Keys], str]
    """File and line of a path of keys."""
    keys: Keys = ()

    @classmethod
    def of(cls, source: str, lines: Lines) -> PlacedPart:
        """Return the whole of a YAML file."""

        def where(keys: Keys) -> str:
            # the line of these keys, else of the first key inside them, else of the mapping around them
            for depth in range(len(keys), 0, -1):
                inside = [line for path, line in lines.items() if path[:depth] == keys[:depth]]
                if inside:
                    return f"{source}:{min(inside)}"
            return source

        return cls(where)

    def at(self, *keys: str | int) -> PlacedPart:
        return self._replace(keys=(*self.keys, *map(str, keys)))

    def refused(self, found: str, todo: str) -> InputError:
        return refused(self.where(self.keys), written(self.keys), found, todo)


def written(keys: Iterable[str]) -> str:
    """Write a path of keys as people do.

    >>> written(("scenarios", "1", "asks", "0", "after"))
    'scenarios[1].asks[0].after'
    """
    text = ""
    for key in keys:
        text += f"[{key}]" if key.isdecimal() else f".{key[:60]}" if text else key[:60]
    return text


def checked(model: type[_Model], value: object, part: PlacedPart, schema: str) -> _Model:
    """Validate a value; raise `InputError` with the place of the first fault."""
    try:
        with counted(schema):
            return model.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]  # explains a missing key, too
        raise _explained(value, part, (unknown or faults)[0], model) from error


def _explained(value: object, part: PlacedPart, error: ErrorDetails, model: type[BaseModel]) -> InputError:
    keys = _keys_in(value, error)
    at, found, context = part.at(*keys), show(error.get("input")), error.get("ctx", {})
    match error["type"]:
        case "missing":
            return part.at(*keys, str(error["loc"][-1])).refused("nothing", "add this key")
        case "extra_forbidden":
            return at.refused("no such key", f"there are: {', '.join(allowed_fields(model, keys))}")
        case "string_pattern_mismatch":
            return at.refused(found, f"write text that matches {context['pattern']}")
        case "string_too_long" | "too_long":
            return at.refused("too much", f"write at most {context['max_length']:,}")
        case "string_too_short" | "too_short":
            return at.refused("nothing" if not error.get("input") else found, "write at least one")
        case "literal_error":
            return at.refused(found, f"write {context['expected']}")
        case "model_type" | "dict_type" | "model_attributes_type":
            return at.refused(found, "write a mapping")
        case "tuple_type":
            return at.refused(found, "write a list")
        case _:
            hint = (
                error["msg"]
                .lower()
                .replace("input should be", "write")
                .replace("a valid ", "a ")
                .replace("a boolean", "true or false")
            )
            hint = re.sub("^write (greater|less)", r"write a number \1", hint)
            return at.refused(found, hint.replace("integer", "whole number").replace("string", "text"))


def _keys_in(value: object, error: ErrorDetails) -> Keys:
    """Return the part of pydantic's location that is in the file."""
    keys: list[str] = []
    node = value
    for part in error["loc"]:
        is_index = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if is_index or (isinstance(node, dict) and part in node):
            node = node[part]  # type: ignore[index]
            keys.append(str(part))
    return tuple(keys)
