"""The published JSON Schemas (2020-12): read them, check a value against them, generate them again.

The files ``json/NAME.v1.json`` are generated from the models and shipped; a test fails when they differ::

    python -m ctxsteward.schemas.publish        # rewrites the files, prints the names of those that changed

Only ``json/message.v1.json`` is written by hand: it describes the input of `Message.from_wire`.

`$id` is only a name: nothing is ever fetched. Descriptions are the docstrings of models and fields, so generating reads
the source; reading and checking do not. A schema is weaker than its model if JSON Schema cannot express a condition
(blank texts, unique ids, real dates).

A document is checked against its schema when it is written (`validate`; `validate_quickly` on the request path). When
it is read, the model of its schema reads it. `ProfileDocument` and `Cascade` convert no value, so everything that they
accept fits the schema. Their errors name the line of the file, and the code that reads the file only counts them
(`errors.counted`). `EvalResult` accepts ``"5"`` as a number, so a history is checked against the schema as well.

Raises `InputError` for an unknown name and for a value that does not fit.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from .bundle import BundleLine
from .cards import ContextCard
from .cascade import Cascade
from .documents import EnvelopeDocument, HandoffSummary, SelectionLog
from .errors import InputError, count_violation
from .eval_result import EvalResult
from .eval_suite import SuiteFile, SuiteScenario
from .findings import Finding
from .frozen import FrozenModel
from .profile import ProfileDocument
from .profile_changes import ChangelogEntry, DriftReport
from .recommendation import MetaRecommendation
from .summary import CompressionReport, Summary

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator
    from pydantic_core import core_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
Schema = dict[str, Any]


class PublishedSchema(NamedTuple):
    """The source of a published schema."""

    model: type[BaseModel]
    mode: Literal["validation", "serialization"]
    """serialization: this program writes all fields, and only documents of earlier versions lack those in `LATER`;
    validation: other programs write it, and may omit defaults."""


_MODELS = {
    "envelope": PublishedSchema(EnvelopeDocument, "serialization"),
    "compression_report": PublishedSchema(CompressionReport, "serialization"),
    "summary": PublishedSchema(Summary, "validation"),
    "selection_log": PublishedSchema(SelectionLog, "serialization"),
    "profile": PublishedSchema(ProfileDocument, "validation"),
    "changelog_entry": PublishedSchema(ChangelogEntry, "serialization"),
    "finding": PublishedSchema(Finding, "serialization"),
    "cascade": PublishedSchema(Cascade, "validation"),
    "context_card": PublishedSchema(ContextCard, "serialization"),
    "handoff": PublishedSchema(HandoffSummary, "serialization"),
    "meta_recommendation": PublishedSchema(MetaRecommendation, "serialization"),
    "drift_report": PublishedSchema(DriftReport, "serialization"),
    "eval_result": PublishedSchema(EvalResult, "serialization"),
    "eval_suite": PublishedSchema(SuiteFile, "validation"),
    "eval_scenario": PublishedSchema(SuiteScenario, "validation"),
    "session_bundle": PublishedSchema(BundleLine, "serialization"),
}


def names() -> tuple[str, ...]:
    """Return the names of all published schemas."""
    return ("message", *_MODELS)


def schema(name: str) -> Schema:
    """Return the shipped schema.

    >>> schema("finding")["required"]
    ['kind', 'ref', 'field', 'text']
    """
    loaded: Schema = json.loads((files(__package__) / "json" / _file(name)).read_text(encoding="utf-8"))
    return loaded


def generate(name: str) -> Schema:
    """Generate a schema from its current model."""
    if name == "message":  # written by hand, because a wire dict has no model: each provider has its own form
        return schema(name)
    head = {"$schema": DIALECT, "$id": f"https://ctxsteward.dev/schemas/{_file(name)}"}
    published = _MODELS[name]
    body = published.model.model_json_schema(mode=published.mode, schema_generator=_Generator)
    return head | {"title": name} | {key: value for key, value in body.items() if key != "title"}


def validate(name: str, value: object, where: str = "") -> None:
    """Check the JSON form of `value` against a schema; `where` is the file or key of the value.

    Raises `InputError` with place, path, the value found and the allowed ones, and counts it (`errors.violations`).

    >>> validate("finding", {"kind": "loss", "ref": 7, "field": None, "text": "…"})
    Traceback (most recent call last):
    ctxsteward.schemas.errors.InputError: finding: at $.ref: found 7; expected string or null
    """
    what = _violation(name, value)
    if what:
        count_violation(name)
        raise InputError(f"{where + ': ' if where else ''}{name}: at {what}")


def validate_quickly(name: str, value: object) -> None:
    """Do `validate` quickly, for the request path: if the compiled model of the schema accepts the value, trust it;
    else check the schema.
    """
    try:
        _MODELS[name].model.__pydantic_validator__.validate_python(value, strict=False)
    except (ValueError, RecursionError):
        validate(name, value)


def _violation(name: str, value: object) -> str:
    """Return the path of the first violation and its description, or ""."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        written = json.loads(text)
        if _is_model_s(name, text, written) or _validator(name).is_valid(written):
            return ""
        from jsonschema.exceptions import best_match

        error = best_match(_validator(name).iter_errors(written))
    except (TypeError, ValueError) as cause:
        return f"$: {cause}; expected JSON values"
    except RecursionError:
        return "$: found very deep nesting; expected JSON of ordinary depth"
    return f"{error.json_path}: {_explain(error)}" if error is not None else ""


def _file(name: str) -> str:
    if name not in names():
        raise InputError(f"no schema is published as {name!r}; names: {', '.join(names())}")
    return f"{name}.v{VERSION}.json"


def _is_model_s(name: str, text: bytes, written: object) -> bool:
    """Return whether the value is exactly what the schema's model writes, and therefore fits the schema. This takes a
    hundredth of the time of a check against the schema, which decides if the result is False.
    """
    published = _MODELS.get(name)
    if published is None:
        return False
    try:
        return published.model.model_validate_json(text, strict=True).model_dump(mode="json") == written
    except (ValueError, RecursionError):
        return False


# -- checking ----------------------------------------------------------------------------------------------


@cache
def _validator(name: str) -> Validator:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(validator: object, wanted: str, instance: object, schema: Schema) -> Any:
        # JSON Schema's `$` matches only at the end; Python's also before a last newline.
        if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", wanted), instance):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    made: Validator = extend(Draft202012Validator, {"pattern": pattern})(_inlined(schema(name)))  # type: ignore[no-untyped-call]
    return made


def _inlined(published: Schema) -> Schema:
    """Return the schema with definitions in place of `$ref`, because looking references up takes most of the time of a
    check. Recursive references stay.
    """
    definitions = published.get("$defs", {})

    def put(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [put(item, inside) for item in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions and len(node) == 1 and name not in inside:
            return put(definitions[name], (*inside, name))
        return {key: put(item, inside) for key, item in node.items() if key != "$defs"}

    made: Schema = put(published, ())
    return made | {"$defs": definitions} if '"$ref"' in json.dumps(made) else made


def _explain(error: ValidationError) -> str:
    """Describe the value found and the allowed ones, in words for the common keywords."""
    wanted: Any = error.validator_value
    instance: Any = error.instance
    found = _show(instance)
    match error.validator:
        case "type":
            return f"found {found}; expected {_alternatives(wanted)}"
        case "enum":
            return f"found {found}; expected {', '.join(map(str, wanted))}"
        case "const":
            return f"found {found}; expected {json.dumps(wanted, ensure_ascii=False)}"
        case "anyOf" if all("type" in branch for branch in wanted):
            return f"found {found}; expected {_alternatives([branch['type'] for branch in wanted])}"
        case "required":
            missing = [key for key in wanted if key not in instance]
            return f"found no {', '.join(map(repr, missing))}; expected {', '.join(wanted)}"
        case "additionalProperties":
            allowed = list((error.schema if isinstance(error.schema, dict) else {}).get("properties", {}))
            extra = [key for key in instance if key not in allowed]
            return f"found the unknown field {', '.join(map(_show, extra))}; allowed are {', '.join(allowed)}"
        case "pattern":
            return f"found {found}; expected text that matches {wanted}"
        case _:
            return f"found {found}; expected {error.validator} {json.dumps(wanted)[:80]}"


def _alternatives(types: str | list[str]) -> str:
    return types if isinstance(types, str) else " or ".join(types)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


# -- generating --------------------------------------------------------------------------------------------


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, with our docstrings and without titles derived from field names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        schema_made, model = super().model_schema(schema), schema["cls"]
        schema_made.pop("title", None)
        if model.__doc__:
            schema_made["description"] = _first_paragraph(model.__doc__)
        if issubclass(model, FrozenModel) and model.LATER:
            schema_made["required"] = [name for name in schema_made["required"] if name not in model.LATER]
        docs = _field_docs(model)
        for field, info in model.__pydantic_fields__.items():
            place = schema_made.get("properties", {}).get(info.serialization_alias or field)
            if place is not None and field in docs:
                place["description"] = docs[field]
        return schema_made


def _field_docs(model: type) -> dict[str, str]:
    """Return the docstring under each field, from the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    docs: dict[str, str] = {}
    field = ""
    for node in tree.body if isinstance(tree, ast.ClassDef) else []:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                docs[field] = _first_paragraph(text)
                field = ""
            case _:
                field = ""
    return docs


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def as_text(schema: Schema) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> list[str]:
    """Write every schema that differs from its file in `folder`; return the names of the written ones."""
    folder.mkdir(exist_ok=True)
    changed = []
    for name in names():
        path, text = folder / _file(name), as_text(generate(name))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


if __name__ == "__main__":
    print("\n".join(write(Path(__file__).parent / "json")) or "nothing changed")
