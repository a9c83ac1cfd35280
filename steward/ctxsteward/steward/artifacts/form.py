"""An artifact as canonical JSON and back: the same artifact is always the same bytes.

Raises `Damaged` for what is no artifact, `UnsupportedVersion` for one of a later major version.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from operator import attrgetter
from typing import Any

from pydantic import ValidationError

from ctxsteward.envelope.slices import canonical
from ctxsteward.schemas import Damaged, UnsupportedVersion
from ctxsteward.schemas.recommendation import Slot

from ..observation import Observation, Place
from .artifact import Artifact, Cited, Taken

ARTIFACT_VERSION = 1


def written(artifact: Artifact) -> bytes:
    """Canonical JSON."""
    fields = {name: getattr(artifact, name) for name in Artifact.__slots__}
    fields["observations"] = [observation_fields(observation) for observation in artifact.observations]
    fields["cited"] = [asdict(cited) for cited in artifact.cited]
    if not artifact.takes:
        del fields["takes"]
    return canonical({"schema_version": ARTIFACT_VERSION, **fields})


def read(data: bytes, what: str = "artifact") -> Artifact:
    """The artifact again; `what` names it in errors."""
    try:
        fields: dict[str, Any] = json.loads(data)
        version = fields.pop("schema_version")
        if version != ARTIFACT_VERSION:
            raise UnsupportedVersion(what, version, ARTIFACT_VERSION)
        fields["observations"] = tuple(map(observation_of, fields["observations"]))
        fields["cited"] = tuple(Cited(**cited) for cited in fields["cited"])
        for name in ("principals", "shown"):
            fields[name] = tuple(fields[name])
        fields["takes"] = tuple(Taken(tool, tuple(paths)) for tool, paths in fields.get("takes", ()))
        return Artifact(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
        raise Damaged(f"{what}: it is not a harvest artifact; harvest its transcript again") from error


def observation_fields(observation: Observation) -> dict[str, Any]:
    """JSON values; what has its default is left out."""
    fields: dict[str, Any] = {
        name: value for name, value, default in zip(_NAMES, _VALUES(observation), _DEFAULTS, strict=True)
        if value != default
    }  # fmt: skip
    fields["slot"] = [observation.slot.subject, observation.slot.attribute, observation.slot.cardinality]
    fields["places"] = [list(place) for place in observation.places]
    return fields


_NAMES = tuple(Observation.__dataclass_fields__)
_VALUES = attrgetter(*_NAMES)
_DEFAULTS = tuple(field.default for field in Observation.__dataclass_fields__.values())


def observation_of(fields: dict[str, Any]) -> Observation:
    """The inverse of `observation_fields`."""
    slot = _slot(*fields["slot"])
    places = tuple(Place(*place) for place in fields["places"])
    return Observation(**{**fields, "slot": slot, "places": places})


@lru_cache(maxsize=4096)
def _slot(subject: str, attribute: str, cardinality: Any) -> Slot:
    return Slot(subject=subject, attribute=attribute, cardinality=cardinality)
