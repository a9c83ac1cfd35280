"""`FactLookup`: how sessions ask the object store for facts, without a build waiting for a dead store.

Where the journal lies in the store, asking is reading a local file. Where it does not, a thread asks and a build waits
`wait_seconds` at most: what comes later is there for the next user turn. After failures the store is not asked for a
while (`replication.breaker`), so a dead store costs a build nothing but a finding. `epoch` grows with each erasure, by
whichever process: what sessions hold of facts is void then.

Two functions keep withdrawn meta records out of sessions' heads. A session's log holds the profile it is pinned to,
records included; a record is withdrawn when its key in the vault is destroyed. An erasure cleans the logs that were
written before (`withdrawn_heads`): a head keeps its place, its other records and its version's number, and gets a valid
code only where it had one. A profile read before the erasure is checked when it is about to be written
(`without_withdrawn_records`), with a request for each record; where the store does not answer in time, the profile is
taken as it is, with a finding.

Raises `StoreUnavailable` and what the question raises.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ctxsteward.schemas import Finding, MetaRecord, StoreError

from ..crypto import AddressKey
from ..journal import JournalRecord, code_of, encoded_body
from ..profiles import of_known_fields, record_subject
from ..replication import Asker

if TYPE_CHECKING:
    from .fact_store import FactStore


def withdrawn_heads(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], is_gone: Callable[[str], bool]
) -> dict[int, JournalRecord]:
    """The head records that change, by position; `is_gone` judges the subject of a meta record."""
    changed: dict[int, JournalRecord] = {}
    for position, record in enumerate(rows):
        body = _without(record, is_gone) if record.kind == "head" and '"meta":[{' in record.body else None
        if body is not None:
            rewritten = record._replace(body=body)
            valid = hmac.compare_digest(record.mac, code_of(key, session, position, record))
            changed[position] = rewritten._replace(mac=code_of(key, session, position, rewritten) if valid else "")
    return changed


def without_withdrawn_records(
    lookup: FactLookup | None, tenant: str, profile: dict[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    """A profile, as JSON, without the records that were withdrawn since it was read."""
    records: list[dict[str, Any]] = profile.get("meta") or []
    if lookup is None or not records:
        return profile, []
    gone: dict[str, bool] = {}

    def look() -> None:
        vault = lookup.shelves(profile["name"], tenant).form.vault
        names = [vault.subject_address(_subject(profile["name"], record)) for record in records]
        are_gone = lookup.each(lambda name: vault.tombstone(name) is not None, names)
        gone.update({record["id"]: is_gone for record, is_gone in zip(records, are_gone, strict=True)})

    try:
        lookup.ask(look)
    except StoreError as error:
        text = f"it is not known whether records of the profile were withdrawn: {type(error).__name__}: {error}"
        return profile, [Finding(kind="withdrawals_unknown", field="meta", text=text[:500])]
    kept = [record for record in records if not gone[record["id"]]]
    if len(kept) == len(records):
        return profile, []
    text = f"the profile in memory is out of date: {len(records) - len(kept)} of its meta records were withdrawn since"
    return {**profile, "meta": kept}, [Finding(kind="meta_record_withdrawn", field="meta", text=text)]


def _without(record: JournalRecord, is_gone: Callable[[str], bool]) -> str | None:
    """The body without withdrawn records; None where it holds none, or cannot be read."""
    try:
        body: dict[str, Any] = json.loads(record.body)
        profile = body["profile"]
        kept = [meta_record for meta_record in profile["meta"] if not is_gone(_subject(profile["name"], meta_record))]
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    if len(kept) == len(profile["meta"]):
        return None
    profile["meta"] = kept
    return encoded_body(body)


def _subject(profile: str, fields: dict[str, Any]) -> str:
    return record_subject(profile, of_known_fields(MetaRecord, fields))


WAIT_SECONDS = 0.25
"""That a build waits for facts of a store that is not near."""
MAX_ASKING = 8
"""Questions under way at one time."""
MAX_AT_A_TIME = 8
"""Requests of one question."""
_LATE = "the object store did not answer in time"


A = TypeVar("A")
B = TypeVar("B")


class FactLookup:
    """Safe with threads."""

    def __init__(
        self,
        shelves: Callable[[str, str], FactStore],
        *,
        wait_seconds: float | None = None,
        erasures: Callable[[str], int] = lambda tenant: 0,
    ) -> None:
        """`shelves` are those of a profile and tenant; with `wait_seconds`, questions are asked aside; `erasures` are
        those of a tenant so far, by whichever process."""
        self.shelves = shelves
        self.epoch = erasures
        """Of what was read of a tenant's facts."""
        self._wait_seconds = wait_seconds
        self._asker = Asker("facts", MAX_ASKING, late=_LATE)

    def ask(self, question: Callable[[], None]) -> None:
        """Run this question, waiting `wait_seconds` at most; it keeps its answer itself, perhaps after the wait."""
        if self._wait_seconds is None:
            question()
        else:
            self._asker.ask(lambda _: question(), self._wait_seconds)

    def each(self, read: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """`map`; of a store that is not near, several at a time."""
        if self._wait_seconds is None:
            return map(read, items)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(MAX_AT_A_TIME, thread_name_prefix="ctxsteward facts") as pool:
            return list(pool.map(read, items))
