"""Settings of a night from a YAML file and from options: the option wins; what neither says keeps its default.

The file has the keys of `ctxsteward.steward.settings.NightSettings`:

    store: file:.ctxsteward
    profile: support
    sources: [logs/chats, "s3://bucket/transcripts"]
    actors: actors.yaml
    batch_transcripts: 500

Raises `InputError` naming file, line and key, or the option; `InputTooLarge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ctxsteward.envelope.strict_yaml import Lines, Reading, place, read_mapping, show
from ctxsteward.schemas import InputError
from ctxsteward.steward.settings import NightSettings

MAX_BYTES = 64 * 1024
OPTIONS = {
    "night": "--night", "since": "--since", "until": "--until", "workers": "--workers", "canary_share": "--canary",
    "profile": "--profile-name", "tenant": "--tenant", "runner": "--runner", "sources": "--transcripts",
    "dask_address": "--dask-address",
}  # fmt: skip
HINTS = {
    "night": "write a date such as 2026-11-22",
    "since": "write an ISO 8601 time such as 2026-11-22T03:00:00+00:00",
    "until": "write an ISO 8601 time such as 2026-11-22T03:00:00+00:00",
    "runner": "write threads or dask",
    "workers": "write a whole number from 1 to 256",
    "canary_share": "write a share over 0 and up to 1, such as 0.1",
}


def read_settings(path: str | None) -> dict[str, Any]:
    """What a settings file says, checked; nothing without one."""
    if path is None:
        return {}
    try:
        text = Path(path).read_bytes()[: MAX_BYTES + 1].decode()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise InputError(f"--settings {path}: {what}; pass a readable YAML file") from error
    tree, lines = read_mapping(text, path, _READING)
    if isinstance(tree.get("sources"), list):
        tree["sources"] = tuple(tree["sources"])
    try:
        return NightSettings.model_validate(tree).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _in_file(error, lines, path) from error


def night_settings(file: Mapping[str, Any], options: Mapping[str, Any]) -> NightSettings:
    """Both together; options that are None were not given."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return NightSettings.model_validate({**file, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        option = OPTIONS.get(name, name)
        found = str(first["input"])[:80]
        raise InputError(f"{option} {found}: {_said(first['msg'])}; {_hint(name)}") from error


def _in_file(error: ValidationError, lines: Lines, path: str) -> InputError:
    first = error.errors(include_url=False)[0]
    keys = tuple(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        allowed = ", ".join(NightSettings.model_fields)
        return _refused(place(path, lines, keys), ".".join(keys), "no such setting", f"allowed: {allowed}")
    found = f"found {show(first['input'])}: {_said(first['msg'])}"
    return _refused(place(path, lines, keys), ".".join(keys), found, _hint(keys[0] if keys else ""))


def _said(text: str) -> str:
    text = text.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _hint(name: str) -> str:
    return HINTS.get(name, "correct it, or leave it out")


def _refused(where: str, key: str, found: str, hint: str) -> InputError:
    return InputError(": ".join(part for part in (where, key, f"{found}; {hint}") if part))


_READING = Reading(
    what="settings",
    refuse=_refused,
    max_bytes=MAX_BYTES,
    max_depth=3,
    expected="write a mapping of settings, such as profile: support",
)
