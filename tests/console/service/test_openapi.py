"""The OpenAPI document: it holds, requests made from it find no error of ours, and the clients are made from it.

Schemathesis plays generated requests, right ones and wrong ones, against the service in this process: some hundred on
every run, some thousand under CTXSTEWARD_SOAK=1 (``make soak``). Its generator has no word for `if` and `then`, so it
makes messages from a plainer schema; whether a message may be refused is asked of the published one.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate as validate_openapi
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from ctxsteward.console.cli import cli
from ctxsteward.console.service.desk import ServiceLimits
from ctxsteward.schemas.publish import schema, validate

from ...examples import SOAK
from ...needs import CLIENTS as GENERATED
from .serving import FREE, Served, served

ROOT = Path(__file__).parents[3]
CLIENTS = ROOT / "clients"
ROUTES = {
    ("get", "/healthz"),
    ("get", "/metrics"),
    ("get", "/api/sessions"),
    ("get", "/api/events"),
    ("get", "/api/sessions/{session}/envelope"),
    ("get", "/api/sessions/{session}/reports"),
    ("get", "/api/sessions/{session}/handoff"),
    ("post", "/api/sessions/{session}/handoff"),
    ("get", "/api/sessions/{session}/refs/{ref}"),
    ("get", "/api/sessions/{session}/preview"),
    ("get", "/api/sessions/{session}/health"),
    ("post", "/api/sessions/{session}/messages"),
    ("post", "/api/sessions/{session}/build"),
    ("post", "/api/sessions/{session}/compact"),
    ("post", "/api/erasures"),
    ("get", "/api/profile/versions"),
    ("get", "/api/recommendations"),
    ("get", "/api/evals"),
}
CASES = 100 if SOAK else 8
"""Of each operation and mode."""
PLAIN_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant"]}, "content": {"type": "string"}},
}


@cache
def document() -> dict[str, Any]:
    described: dict[str, Any] = served(limits=FREE).app.openapi()
    return described


def test_the_document_is_openapi_3_1_and_has_every_route_of_the_contract() -> None:
    validate_openapi(document())
    assert document()["openapi"].startswith("3.1")
    assert {(method, path) for path, item in document()["paths"].items() for method in item} == ROUTES
    ids = [one["operationId"] for item in document()["paths"].values() for one in item.values()]
    assert [id for id, count in Counter(ids).items() if count > 1] == []


def test_the_command_prints_what_the_service_publishes() -> None:
    printed = CliRunner().invoke(cli, ["serve", "--openapi"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == served(limits=FREE).get("/openapi.json") == document()


def test_every_error_is_described_as_a_problem() -> None:
    for path, item in document()["paths"].items():
        for method, one in item.items():
            codes = set(one["responses"])
            assert codes == {"200", "default"}, (method, path)
            assert list(one["responses"]["default"]["content"]) == ["application/problem+json"]


def inlined(node: Any, components: dict[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """Without references, as far as they do not lead back."""
    if isinstance(node, list):
        return [inlined(item, components, seen) for item in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen and name in components:
        return inlined(
            {**components[name], **{k: v for k, v in node.items() if k != "$ref"}}, components, (*seen, name)
        )
    return {
        key: inlined(item, components, seen) for key, item in node.items() if key not in ("$defs", "$schema", "$id")
    }


@pytest.mark.parametrize(
    "name",
    [
        "message",
        "envelope",
        "compression_report",
        "finding",
        "handoff",
        "changelog_entry",
        "meta_recommendation",
        "eval_result",
    ],
)
def test_a_published_schema_stands_in_the_document_as_it_is_published(name: str) -> None:
    published, components = schema(name), document()["components"]["schemas"]
    here = inlined(components[name], components)
    there = inlined(published, published.get("$defs", {}))
    assert json.dumps(here, sort_keys=True).replace(f"#/components/schemas/{name}_", "#/$defs/") == json.dumps(
        there, sort_keys=True
    )
    Draft202012Validator.check_schema(components[name])


BOUNDS = {"array": "maxItems", "string": "maxLength", "object": "maxProperties"}


def unbounded(node: Any, components: dict[str, Any], path: str, seen: tuple[str, ...] = ()) -> list[str]:
    """Paths of what a client may send without a bound: lists, texts, numbers, and objects of any fields.

    What is inside a message is its provider's; the message itself, and its parts and texts, have bounds.
    """
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name == "message":
        content = node.get("properties", {}).get("content", {})
        bounds = (node.get("maxProperties"), content.get("maxItems"), content.get("maxLength"))
        return [] if all(bounds) else [path]
    if name:
        assert name not in seen, f"{path} leads back to itself"
        return unbounded(components[name], components, f"{path}<{name}>", (*seen, name))
    found: list[str] = []
    for at, one in enumerate((*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ()))):
        found += unbounded(one, components, f"{path}|{at}", seen)
    kind = node.get("type")
    is_closed = kind == "object" and node.get("additionalProperties") is False
    if kind in BOUNDS and not is_closed and "enum" not in node and "const" not in node and BOUNDS[kind] not in node:
        found.append(path)
    if kind in ("integer", "number") and not {"maximum", "minimum"} <= node.keys():
        found.append(path)
    for key, one in node.get("properties", {}).items():
        found += unbounded(one, components, f"{path}.{key}", seen)
    if "items" in node:
        found += unbounded(node["items"], components, f"{path}[]", seen)
    return found


def sent() -> dict[str, Any]:
    """Schemas of all that a client may send, by where it does."""
    places: dict[str, Any] = {}
    for path, item in document()["paths"].items():
        for method, one in item.items():
            for parameter in one.get("parameters", ()):
                places[f"{method} {path} {parameter['name']}"] = parameter["schema"]
            for kind, body in one.get("requestBody", {}).get("content", {}).items():
                places[f"{method} {path} {kind}"] = body["schema"]
    return places


def test_all_that_may_be_sent_has_a_bound() -> None:
    places = sent()
    assert len([place for place in places if "application/json" in place]) == 5
    components = document()["components"]["schemas"]
    assert [one for place, schema in places.items() for one in unbounded(schema, components, place)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "string"},
        {"type": "object"},
        {"type": "integer"},
        {"$ref": "#/components/schemas/message"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "array", "maxItems": 3, "items": {"type": "string"}},
        {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
    ],
)
def test_what_has_no_bound_is_found(schema: dict[str, Any]) -> None:
    assert len(unbounded(schema, {}, "here")) == 1


# -- played -----------------------------------------------------------------------------------------------------------


def played_document() -> dict[str, Any]:
    described = copy.deepcopy(document())
    schemas = described["components"]["schemas"]
    for name in [name for name in schemas if name.startswith("message_")]:
        del schemas[name]
    schemas["message"] = PLAIN_MESSAGE
    del described["paths"]["/api/events"]  # it does not end
    return described


@pytest.fixture(scope="module")
def wild() -> Served:
    """A service that has something to show."""
    on = served(limits=ServiceLimits(requests_per_second=None, messages=100))
    on.say("s", *(f"A long walk along the river number {at}." for at in range(30)))
    on.post("/api/sessions/s/build")
    return on


@pytest.fixture(scope="module")
def operations() -> dict[tuple[str, str], Any]:
    """What may be asked for, by method and path."""
    every = [found.ok() for found in schemathesis.openapi.from_dict(played_document()).get_all_operations()]
    return {(one.method.lower(), one.path): one for one in every}


def is_rightly_taken(case: Any) -> bool:
    """Whether a body that breaks the plainer schema is one that the published document allows."""
    body = case.body
    try:
        for one in body.get("messages", ()):
            validate("message", one["message"])
        for one in body.get("history") or ():
            validate("message", one)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", sorted(ROUTES - {("get", "/api/events")}), ids=" ".join)
def test_a_generated_request_finds_no_error_and_an_answer_that_fits(
    route: tuple[str, str], mode: GenerationMode, operations: dict[tuple[str, str], Any], wild: Served
) -> None:
    load_all_checks()
    operation = operations[route]
    if mode is GenerationMode.NEGATIVE and not (operation.query or operation.path_parameters or operation.body):
        pytest.skip("nothing can be wrong with it")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=CASES,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        database=None,
        derandomize=True,
    )
    def play(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and len(str((case.path_parameters or {}).get("session", ""))) % 2:
            case.path_parameters["session"] = "s"  # one that is there
        answer = case.call(app=wild.app, base_url="http://127.0.0.1")
        assert answer.status_code < 500, answer.text
        left_out: list[Any] = []
        if answer.status_code == 422 and not answer.json()["errors"]:
            left_out.append(positive_data_acceptance)  # well formed, and no such model, or budgets that contradict
        if answer.status_code < 300 and mode is GenerationMode.NEGATIVE and is_rightly_taken(case):
            left_out.append(negative_data_rejection)
        case.validate_response(answer, excluded_checks=left_out)

    play()


# -- clients ----------------------------------------------------------------------------------------------------------


def test_the_generated_clients_have_every_operation_of_the_document() -> None:
    """`make clients` generates them, and the example in `docs/examples` calls the service through the Python one."""
    python, typescript = CLIENTS / "python" / "ctxsteward_client" / "api", CLIENTS / "typescript" / "api.d.ts"
    if not typescript.is_file():
        pytest.skip(GENERATED)
    operations = {one["operationId"] for item in document()["paths"].values() for one in item.values()}
    assert operations == {path.stem for path in python.glob("*/*.py") if path.stem != "__init__"}
    types = typescript.read_text(encoding="utf-8")
    assert [path for path in document()["paths"] if f'"{path}": {{' not in types] == []
