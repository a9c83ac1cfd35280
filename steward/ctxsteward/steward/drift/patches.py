"""The difference of two profiles as RFC 6902 patches, both ways.

Patches are over the *keyed form*, in which an entry's place in the JSON is its key and not a number that shifts:

    {"name": …, "policies": {"order": ["refunds", …], "entries": {"refunds": {"text": …, "locked": true, …}, …}}, …}

so a patch says ``replace /policies/entries/refunds/text`` whatever stands before it. `keyed` and `document` are each
other's inverse; `version` and `schema_version` are about the commit and stay out.

Raises `InputError` where what a patch gives is no profile. Source: RFC 6902 (JSON Patch), RFC 6901 (JSON Pointer).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument

Json = dict[str, Any]
Operation = Mapping[str, Any]
"""One operation of RFC 6902: ``{"op", "path", "value"?, "from"?}``."""

ALL_BLOCKS = (*BLOCKS, "meta")


class Difference(NamedTuple):
    """From one document to another, and back."""

    patch: tuple[Operation, ...]
    inverse: tuple[Operation, ...]

    def __bool__(self) -> bool:
        return bool(self.patch)


def _whole(record: MetaRecord) -> Json:
    return record.model_dump(mode="json", exclude={"id"})


def _id(record: MetaRecord) -> str:
    return record.id


def keyed(
    profile: ProfileDocument,
    shown: Callable[[MetaRecord], Json] = _whole,
    named: Callable[[MetaRecord], str] = _id,
) -> Json:
    """A profile with its entries under their ids; of a meta record stands there what `shown` and `named` say."""
    made: Json = {"name": profile.name}
    for block in BLOCKS:
        made[block] = _block({e.id: e.model_dump(mode="json", exclude={"id"}) for e in getattr(profile, block)})
    made["meta"] = _block({named(record): shown(record) for record in profile.meta})
    return made


def document(form: Mapping[str, Any]) -> ProfileDocument:
    """The profile whose keyed form this is; raises `InputError`."""
    try:
        fields = {name: _listed(form[name]) for name in ALL_BLOCKS}
        return ProfileDocument.model_validate({"name": form["name"], **fields})
    except (KeyError, TypeError, ValidationError) as error:
        raise InputError(f"patched profile: it is none: {str(error).splitlines()[0]}; check the patch") from error


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """The patch from one keyed form to another, and the patch back."""
    return Difference(_patch(before, after), _patch(after, before))


def apply(patch: tuple[Operation, ...], form: Mapping[str, Any]) -> Json:
    """The form after a patch; the one given is not changed. Raises `InputError` where it does not fit."""
    import jsonpatch

    try:
        return cast(Json, jsonpatch.apply_patch(form, list(patch)))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise InputError(
            f"patch: it does not fit this profile: {str(error)[:120]}; patch the version it names"
        ) from error


def _block(entries: Mapping[str, Json]) -> Json:
    return {"order": list(entries), "entries": dict(entries)}


def _listed(block: Mapping[str, Any]) -> list[Json]:
    if sorted(block["order"]) != sorted(block["entries"]):
        raise KeyError("order")
    return [{"id": key, **block["entries"][key]} for key in block["order"]]


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Operation, ...]:
    import jsonpatch

    made = jsonpatch.make_patch(before, after).patch
    if _same(jsonpatch.apply_patch(before, made), after):
        return tuple(made)
    return tuple({"op": "replace", "path": f"/{name}", "value": after[name]} for name in after)  # always right


def _same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
