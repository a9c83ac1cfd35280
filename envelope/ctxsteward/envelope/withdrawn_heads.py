"""Heads without the records that were withdrawn: a session's log holds the profile it is pinned to, records included.

A record is gone when the key it has in the vault is (`slices.record_subject`). The head keeps its place, its other
records and its version's number; it is given a valid code only where it had one. Pure.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from ctxsteward.schemas.profile import MetaRecord

from .keys import AddressKey
from .records import code_of
from .slices import record_subject
from .stores.port import Record


def withdrawn_heads(
    key: AddressKey, session: str, rows: Sequence[Record], is_gone: Callable[[str], bool]
) -> dict[int, Record]:
    """The head records that change, by position; `is_gone` judges the subject of a meta record."""
    changed: dict[int, Record] = {}
    for position, record in enumerate(rows):
        body = _without(record, is_gone) if record.kind == "head" and '"meta":[{' in record.body else None
        if body is not None:
            made = record._replace(body=body)
            valid = hmac.compare_digest(record.mac, code_of(key, session, position, record))
            changed[position] = made._replace(mac=code_of(key, session, position, made) if valid else "")
    return changed


def _without(record: Record, is_gone: Callable[[str], bool]) -> str | None:
    """The body without withdrawn records; None where it holds none, or cannot be read."""
    try:
        body: dict[str, Any] = json.loads(record.body)
        profile = body["profile"]
        kept = [one for one in profile["meta"] if not is_gone(_subject(profile["name"], one))]
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    if len(kept) == len(profile["meta"]):
        return None
    profile["meta"] = kept
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _subject(profile: str, fields: dict[str, Any]) -> str:
    return record_subject(profile, MetaRecord(**{n: v for n, v in fields.items() if n in MetaRecord.model_fields}))
