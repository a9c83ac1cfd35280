"""Validate documents that people write: each fault of a field is refused with its file, line and dotted key."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import counted
from ctxsteward.store.strict_yaml import Keys, allowed_fields, keys_in, show, written

_Model = TypeVar("_Model", bound=BaseModel)


def refused(where: str, key: str, found: str, todo: str) -> InputError:
    """Return the error for a place: what was found and what to do."""
    return InputError(f"{where}: {f'`{key}`: ' if key else ''}{found}; {todo}")


class PlacedPart(NamedTuple):
    """Place of a part of a document, for errors."""

    where: Callable[[Keys], str]
    """File and line of a path of keys."""
    keys: Keys = ()

    def at(self, *keys: str | int) -> PlacedPart:
        return self._replace(keys=(*self.keys, *map(str, keys)))

    def refused(self, found: str, todo: str) -> InputError:
        return refused(self.where(self.keys), written(self.keys), found, todo)


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
    keys = keys_in(value, error)
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
