"""Heads without the records that were withdrawn: a session's log holds the profile it is pinned to, records included.

A record is gone when the key it has in the vault is (`slices.record_subject`). Logs that were written before are
cleaned by whoever forgets (`withdrawn_heads`): the head keeps its place, its other records and its version's number; it
is given a valid code only where it had one. A profile that somebody read before then, and still holds, is asked about
when it is about to be written again (`standing`): a request for each of its records, in a store that is not near for a
bounded time; where that does not answer, the profile is taken as it is, with a finding.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ctxsteward.schemas import Finding, StoreError
from ctxsteward.schemas.profile import MetaRecord

from .keys import AddressKey
from .records import code_of
from .slices import record_subject
from .stores.port import Record

if TYPE_CHECKING:
    from .facts.lookup import FactLookup


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


def standing(lookup: FactLookup | None, tenant: str, profile: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """A profile, as JSON, without the records that were withdrawn since it was read."""
    records: list[dict[str, Any]] = profile.get("meta") or []
    if lookup is None or not records:
        return profile, []
    gone: dict[str, bool] = {}

    def look() -> None:
        vault = lookup.shelves(profile["name"], tenant).form.vault
        names = [vault.subject_address(_subject(profile["name"], one)) for one in records]
        found = lookup.each(lambda name: vault.tombstone(name) is not None, names)
        gone.update({one["id"]: is_gone for one, is_gone in zip(records, found, strict=True)})

    try:
        lookup.ask(look)
    except StoreError as error:
        text = f"it is not known whether records of the profile were withdrawn: {type(error).__name__}: {error}"
        return profile, [Finding(kind="withdrawals_unknown", field="meta", text=text[:500])]
    kept = [one for one in records if not gone[one["id"]]]
    if len(kept) == len(records):
        return profile, []
    text = f"the profile in memory is out of date: {len(records) - len(kept)} of its meta records were withdrawn since"
    return {**profile, "meta": kept}, [Finding(kind="meta_record_withdrawn", field="meta", text=text)]


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
