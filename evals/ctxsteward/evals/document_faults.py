"""Validate documents that people write: each fault of a field is refused with its file, line and dotted key."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import counted
from ctxsteward.store.strict_yaml import Keys, explained, written

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
        keys, found, todo = explained(value, (unknown or faults)[0], model)
        raise part.at(*keys).refused(found, todo) from error
