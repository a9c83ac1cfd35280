"""An envelope's manifest in forms that other programs read: a CycloneDX bill of materials, an in-toto statement.

Both say of one model call what its prompt was made of: model and tokenizer, profile, sections with their budgets, every
piece with the originals behind it, the standing rules and whether the request shows them, and the seal. Neither has a
word of the prompt, nor a plain digest of one, because a digest confirms a guess. Originals and the envelope are named
by their addresses (HMAC-SHA-256 under the tenant's key), so whoever has the store can check them, and nobody else.

The envelope is laid out again first; one that the log no longer holds whole is refused.

Sources: CycloneDX 1.6 (ECMA-424); in-toto Attestation Framework, Statement v1. Its sets of digests
may have an algorithm of one's own, and consumers ignore those that they do not know.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal, get_args

from ctxsteward.schemas import Ref
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.message import Wire

from ..building.rebuild import rebuild
from ..store import Store
from .blame import sources_of

AttestationForm = Literal["cyclonedx", "in-toto"]
ATTESTATION_FORMS: tuple[AttestationForm, ...] = get_args(AttestationForm)
PREDICATE_TYPE = "https://ctxsteward.dev/attestations/envelope/v1"
DIGEST = "hmac_sha256"
"""Name of the algorithm of addresses in a statement's subject."""


def attest(store: Store, address: str, form: AttestationForm, *, tenant: str = "default") -> Wire:
    """Return the bill of materials or the statement of the envelope at this address.

    Raises what `rebuild` raises, and `Damaged` if the log no longer holds all that the envelope was laid out from.
    """
    facts = _facts(store, address, tenant)
    return _bill_of_materials(facts) if form == "cyclonedx" else _statement(facts)


def _facts(store: Store, address: str, tenant: str) -> Wire:
    """Return what is known of a call: the predicate of the statement."""
    envelope = rebuild(store, address, tenant=tenant)
    if envelope.address != address:
        raise Damaged(f"envelope {address[:16]}…: {envelope.findings[-1].text}; it cannot be attested")
    manifest = store.manifest(address, tenant=tenant)
    session = store.at(tenant, manifest["session"], manifest["position"])
    document = envelope.document()
    return {
        "envelope": address,
        **{name: document[name] for name in ("tenant", "session", "profile_version")},
        "position": envelope.position,
        **{name: manifest[name] for name in ("renderer", "model", "tokenizer", "window_tokens", "budgets")},
        "sections": {
            name: {figure: section[figure] for figure in ("tokens", "budget_tokens", "epoch")}
            for name, section in document["sections"].items()
        },
        "materials": [
            {
                "kind": source.kind,
                "name": source.name,
                "said_by": source.speaker,
                "originals": {ref: session.shown(Ref.parse(ref).ordinal).event.address for ref in source.refs},
            }
            for source in sources_of(envelope)
        ],
        "rules": document["rules"],
        "findings": [finding["kind"] for finding in document["findings"]],
        "reports": [report["id"] for report in document["reports"]],
        "seal": document["seal"],
    }


def _statement(facts: Wire) -> Wire:
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": f"envelope of session {facts['session']}", "digest": {DIGEST: facts["envelope"]}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": facts,
    }


def _bill_of_materials(facts: Wire) -> Wire:
    parts = [
        _component("model", "machine-learning-model", facts["model"] or facts["tokenizer"], facts, _MODEL),
        *(_component(f"section {name}", "data", name, one) for name, one in facts["sections"].items()),
        *(
            _component(f"rule {rule['id']}", "data", rule["id"], rule | {"shown": bool(rule["places"])}, _RULE)
            for rule in facts["rules"]["rules"]
        ),
        *(
            _component(f"material {number}", "data", f"{one['kind']} {one['name']}".strip(), one, _MATERIAL)
            for number, one in enumerate(facts["materials"], 1)
        ),
    ]
    if facts["profile_version"] is not None:
        parts.append(_component("profile", "data", "profile") | {"version": facts["profile_version"]})
    call = _component("envelope", "data", f"envelope of session {facts['session']}", facts, _CALL)
    seal = {f"seal.{name}": value for name, value in (facts["seal"] or {}).items()}
    call["properties"] += _properties(seal)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{PREDICATE_TYPE}/{facts['envelope']}").urn,
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "library", "name": "ctxsteward", "version": version("ctxsteward")}]},
            "component": call | {"version": facts["envelope"]},
        },
        "components": parts,
        "dependencies": [{"ref": "envelope", "dependsOn": [part["bom-ref"] for part in parts]}],
        "compositions": [{"aggregate": "complete", "assemblies": ["envelope"]}],
    }


_MODEL = ("tokenizer", "window_tokens")
_RULE = ("kind", "ref", "lifted_by", "shown")
_MATERIAL = ("kind", "said_by", "originals")
_CALL = ("tenant", "session", "position", "renderer", "findings", "reports")


def _component(
    ref: str, kind: str, name: str, facts: Mapping[str, Any] | None = None, names: tuple[str, ...] | None = None
) -> Wire:
    """Return a component with these facts as properties; without `names`, with all."""
    chosen = {} if facts is None else {each: facts[each] for each in names or facts}
    data = {"data": [{"type": "other"}]} if kind == "data" else {}
    return {"type": kind, "bom-ref": ref, "name": name, **data, "properties": _properties(chosen)}


def _properties(facts: Mapping[str, Any]) -> list[Wire]:
    """Return name-value pairs: a list or a mapping gives one for each member, null gives none."""
    pairs: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            pairs += [(f"{name}:{key}", each) for key, each in value.items()]
        elif isinstance(value, list):
            pairs += [(name, each) for each in value]
        else:
            pairs.append((name, value))
    return [{"name": f"ctxsteward:{name}", "value": str(value)} for name, value in pairs if value is not None]
