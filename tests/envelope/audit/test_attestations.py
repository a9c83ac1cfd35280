"""A call's manifest as a CycloneDX bill of materials and as an in-toto statement, judged by their published schemas."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, open_store
from ctxsteward.envelope.audit.attestations import PREDICATE_TYPE, attest
from ctxsteward.envelope.envelope import is_authentic, read_seal
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.erasure.forget import forget

from ...needs import PUBLISHED_FORMS

needs_published_forms = pytest.mark.skipif(
    find_spec("cyclonedx") is None or find_spec("in_toto_attestation") is None, reason=PUBLISHED_FORMS
)
PROFILE = Profile.from_yaml(
    "name: shop\npersona: You help.\n"
    "policies:\n  refunds: {text: Refunds above 500 dollars need a sign-off., locked: true}\n"
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file:{tmp_path}/store")


def called(store: Store, profile: Profile | None = PROFILE) -> str:
    """The address of a call that has bullets, a recalled message, and rules of two kinds."""
    session = store.session("s", profile=profile)
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=400))
    session.append({"role": "user", "content": "Never book a flight before 10:00."}, principal="ada")
    for turn in range(14):
        session.append({"role": "assistant", "content": f"Booked train {turn} to Treviso for 1{turn} euros. " * 4})
        session.append({"role": "user", "content": f"And what of train {turn}?"}, principal="ada")
        builder.build(session)
    return builder.build(session).address


def cyclonedx_faults(document: Any) -> list[str]:
    """What the published schema of CycloneDX 1.6 says against a document."""
    folder = files("cyclonedx") / "schema" / "_res"
    main, *others = (
        json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text(encoding="utf-8"))
        for name in ("bom-1.6", "spdx", "jsf-0.82", "cryptography-defs")
    )
    known = [(one["$id"], Resource.from_contents(one)) for one in (main, *others)]
    registry: Registry[Any] = Registry().with_resources(known)
    return [error.message for error in Draft7Validator(main, registry=registry).iter_errors(document)]


def in_toto_fault(document: Any) -> str | None:
    """What in-toto's own reader of statements says against a document."""
    from google.protobuf import json_format
    from in_toto_attestation.v1 import statement, statement_pb2

    try:
        statement.Statement.copy_from_pb(json_format.ParseDict(document, statement_pb2.Statement())).validate()
    except (ValueError, json_format.ParseError) as error:
        return str(error)
    return None


@needs_published_forms
@pytest.mark.parametrize("profile", [PROFILE, None], ids=["with a profile", "without one"])
def test_a_bill_of_materials_fits_the_published_schema_and_names_every_piece(
    store: Store, profile: Profile | None
) -> None:
    document = attest(store, called(store, profile), "cyclonedx")

    assert cyclonedx_faults(document) == []
    refs = [one["bom-ref"] for one in document["components"]]
    assert len(refs) == len(set(refs))
    assert document["dependencies"] == [{"ref": "envelope", "dependsOn": refs}]
    kinds = {one["name"].split()[0] for one in document["components"] if one["bom-ref"].startswith("material")}
    assert kinds >= {"bullet", "message", "recalled"}
    assert ("profile" in refs, "rule policy:refunds" in refs) == (profile is not None, profile is not None)
    assert [one["name"] for one in document["components"] if one["type"] == "machine-learning-model"] == ["gpt-4o"]


@needs_published_forms
def test_a_bill_that_is_none_is_refused_by_the_schema(store: Store) -> None:
    document = attest(store, called(store), "cyclonedx")

    assert cyclonedx_faults({**document, "bomFormat": "other"})
    assert cyclonedx_faults({**document, "components": [{"name": "a component without a type"}]})


@needs_published_forms
def test_a_statement_is_read_by_in_toto_and_its_subject_is_what_the_seal_holds(store: Store) -> None:
    address = called(store)

    document = attest(store, address, "in-toto")

    assert in_toto_fault(document) is None
    assert in_toto_fault({**document, "subject": []}) is not None
    assert document["predicateType"] == PREDICATE_TYPE
    predicate = document["predicate"]
    seal = read_seal(predicate["seal"])
    assert is_authentic(store.keys, seal)
    assert document["subject"][0]["digest"] == {"hmac_sha256": seal.address} == {"hmac_sha256": address}
    stated = store.at("default", "s").shown(1).event.address
    bullets = [one["originals"] for one in predicate["materials"] if one["kind"] == "bullet"]
    assert bullets
    assert {ref: code for each in predicate["materials"] for ref, code in each["originals"].items()}["§1"] == stated
    assert {rule["id"].split(":")[0]: bool(rule["places"]) for rule in predicate["rules"]["rules"]} == {
        "policy": True,
        "user": True,
    }


@pytest.mark.parametrize("form", ["cyclonedx", "in-toto"])
def test_neither_has_a_word_of_the_prompt(store: Store, form: Any) -> None:
    text = json.dumps(attest(store, called(store), form), ensure_ascii=False)

    assert not [word for word in ("flight", "Treviso", "Refunds above", "You help") if word in text]


def test_a_call_that_the_log_no_longer_holds_is_not_attested(store: Store) -> None:
    address = called(store)
    forget(store, tenant="default", principal="ada", who="ada", why="asked", when="2026-11-30T00:00:00Z")

    with pytest.raises(Damaged, match="it cannot be attested"):
        attest(store, address, "in-toto")


def test_the_command_writes_what_the_function_gives(store: Store, tmp_path: Path) -> None:
    address = called(store)
    arguments = ["export", "envelope", address[:12], "--as", "in-toto", "--store", f"{tmp_path}/store"]

    printed = CliRunner().invoke(cli, arguments)
    newest = CliRunner().invoke(cli, ["export", "envelope", "s", *arguments[3:]])
    CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path / "statement.json")])

    expected = attest(store, address, "in-toto")
    assert json.loads(printed.output) == json.loads(newest.output) == expected
    assert json.loads((tmp_path / "statement.json").read_text(encoding="utf-8")) == expected
