"""Configuration files of the steward (settings, actors, gate cases): YAML or JSON, read strictly into a pydantic model.

    read("steward.yaml", NightSettings, ConfigFileKind(what="settings", …))

A file that is refused gives an error of one line: file and line, key, what was found, what to do. Raises `InputError`,
`InputTooLarge`.
Source: the YAML 1.2.2 core schema, of which JSON is a part; the state design (input at every boundary).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas import InputError
from ctxsteward.store.strict_yaml import Lines, Refuse, YamlSource, place, read_mapping, show

M = TypeVar("M", bound=BaseModel)

CORRECT_IT = "correct it, or leave it out"


def refused(where: str, key: str, found: str, hint: str) -> InputError:
    """One line: where, which key, what was found, what to do."""
    return InputError(": ".join(part for part in (where, key, f"{found}; {hint}") if part))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFileKind(YamlSource):
    """One kind of file: its name in errors, its caps, what is expected of it, and hints for wrong values."""

    refuse: Refuse = refused
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to do about a wrong value, by its last key."""


def read(path: str | Path, model: type[M], form: ConfigFileKind, named: str | None = None) -> M:
    """A file as a model; `named` is what errors call it, if not by its path."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(form.max_bytes + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise InputError(f"{named or f'{form.what} {path}'}: {what}; pass a readable YAML file") from error
    return parse(text, model, form, str(path))


def parse(text: str, model: type[M], form: ConfigFileKind, source: str) -> M:
    """YAML text as a model."""
    tree, lines = read_mapping(text, source, form)
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise invalid(error, model, form, lines, source) from error


def invalid(
    error: ValidationError, model: type[BaseModel], form: ConfigFileKind, lines: Lines, source: str
) -> InputError:
    """The first thing that is wrong, with its line."""
    first = error.errors(include_url=False)[0]
    keys = tuple(str(part) for part in first["loc"])
    where, key = place(source, lines, keys), ".".join(keys)
    if first["type"] == "extra_forbidden":
        return refused(where, key, "no such key", f"allowed: {', '.join(allowed_fields(model, keys))}")
    if first["type"] == "missing":
        return refused(where, key, "found nothing", hint(first, form))
    found = f"found {show(first['input'])}: {message_clause(first['msg'])}"
    return refused(where, key, found, hint(first, form))


def hint(error: ErrorDetails, form: ConfigFileKind) -> str:
    """What to do about it."""
    names = [str(part) for part in error["loc"] if isinstance(part, str)]
    return next((form.hints[name] for name in reversed(names) if name in form.hints), CORRECT_IT)


def message_clause(message: str) -> str:
    """What a check says, as a part of a sentence."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def allowed_fields(model: type[BaseModel], keys: Sequence[str]) -> list[str]:
    """Return the fields of the innermost model that contains the last of these keys."""
    for key in keys[:-1]:
        inner = _model_in(model.model_fields[key].annotation) if key in model.model_fields else None
        model = inner or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, alone, in a list, or as a mapping's value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part))), None)
