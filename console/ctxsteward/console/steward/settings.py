"""Settings of a night from a YAML file and from options: the option wins; what neither says keeps its default.

The file has the keys of `ctxsteward.steward.settings.NightSettings`. It is the one named, else `CTXSTEWARD_SETTINGS`:
then every verb judges by the same thresholds as the nights do.

Raises `InputError` naming file, line and key, or the option; `InputTooLarge`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.steward.config_file import hint, message_clause
from ctxsteward.steward.settings import FORM, NightSettings, settings_of

SETTINGS_VARIABLE = "CTXSTEWARD_SETTINGS"
OPTIONS = {
    "night": "--night", "since": "--since", "until": "--until", "workers": "--workers", "canary_share": "--canary",
    "profile": "--profile-name", "tenant": "--tenant", "runner": "--runner", "sources": "--transcripts",
    "dask_address": "--dask-address",
}  # fmt: skip
THRESHOLDS = ("admission", "drift", "gate", "canary", "internal_tools")


def read_settings(path: str | None) -> dict[str, Any]:
    """What a settings file says, checked; nothing without one."""
    told = path or os.environ.get(SETTINGS_VARIABLE) or None
    if told is None:
        return {}
    found = settings_of(told, f"--settings {told}" if path else f"{SETTINGS_VARIABLE}={told}")
    found.gate.suite()  # refuses cases that are none
    return {name: getattr(found, name) for name in found.model_fields_set}


def thresholds(file: Mapping[str, Any]) -> dict[str, Any]:
    """What a verb that is no night takes from the file."""
    return {name: file[name] for name in THRESHOLDS if name in file}


def night_settings(file: Mapping[str, Any], options: Mapping[str, Any]) -> NightSettings:
    """Both together; options that are None were not given."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return NightSettings.model_validate({**file, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        found = str(first["input"])[:80]
        raise InputError(
            f"{OPTIONS.get(name, name)} {found}: {message_clause(first['msg'])}; {hint(first, FORM)}"
        ) from error
