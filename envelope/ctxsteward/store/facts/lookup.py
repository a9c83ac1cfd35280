"""How the sessions of one store ask for facts, and keep withdrawn records out of their heads.

Where the journal lies in the store, asking is reading a local file. Where it does not, a thread asks and a build waits
`wait_seconds` at most: what comes later is there for the next user turn. After failures nobody asks for a while
(`replication.breaker`), so a dead store costs a build nothing but a finding. `epoch` grows when something was
forgotten, by whichever process: what sessions hold of facts is void then.

A session's log holds the profile it is pinned to, records included. A record is gone when the key it has in the vault
is. Whoever forgets cleans the logs that were written before (`withdrawn_heads`): a head keeps its place, its other
records and its version's number, and is given a valid code only where it had one. A profile that somebody still holds
from before is asked about when it is about to be written (`without_withdrawn_records`): a request for each record;
where the store does not answer in time, the profile is taken as it is, with a finding.

Raises `StoreUnavailable` and what the question raises.
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ctxsteward.schemas import Finding, OutcomeUnknown, StoreError, StoreUnavailable
from ctxsteward.schemas.profile import MetaRecord

from .. import process_forks as forking
from ..crypto.addresses import AddressKey
from ..journal.events import encoded_body
from ..journal.log import code_of
from ..journal.port import JournalRecord
from ..profiles.meta_records import record_subject

if TYPE_CHECKING:
    from ..replication.breaker import Breaker
    from .fact_store import FactStore


def withdrawn_heads(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], is_gone: Callable[[str], bool]
) -> dict[int, JournalRecord]:
    """The head records that change, by position; `is_gone` judges the subject of a meta record."""
    changed: dict[int, JournalRecord] = {}
    for position, record in enumerate(rows):
        body = _without(record, is_gone) if record.kind == "head" and '"meta":[{' in record.body else None
        if body is not None:
            made = record._replace(body=body)
            valid = hmac.compare_digest(record.mac, code_of(key, session, position, record))
            changed[position] = made._replace(mac=code_of(key, session, position, made) if valid else "")
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


def _without(record: JournalRecord, is_gone: Callable[[str], bool]) -> str | None:
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
    return encoded_body(body)


def _subject(profile: str, fields: dict[str, Any]) -> str:
    return record_subject(profile, MetaRecord(**{n: v for n, v in fields.items() if n in MetaRecord.model_fields}))


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
        breaker: Breaker | None = None,
        erasures: Callable[[str], int] = lambda tenant: 0,
    ) -> None:
        """`shelves` are those of a profile and tenant; with `wait_seconds`, questions are asked aside; `erasures` are
        those of a tenant so far, by whichever process."""
        self.shelves = shelves
        self._erasures = erasures
        self._wait_seconds, self._breaker = wait_seconds, breaker
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """The parent's threads that ask are not here."""
        self._asking, self._lock = 0, threading.Lock()

    def epoch(self, tenant: str) -> int:
        """Of what was read of this tenant's facts."""
        return self._erasures(tenant)

    def ask(self, question: Callable[[], None]) -> None:
        """Have a question answered; it keeps its answer itself, and may do so after this has given up."""
        if self._wait_seconds is None:
            question()
            return
        breaker = self._breaker or self._made_breaker()
        with self._lock:
            if breaker.pause_seconds() > 0 or self._asking >= MAX_ASKING:
                raise StoreUnavailable(f"the object store is not asked for facts now: {breaker.last_error or _LATE}")
            self._asking += 1
        done = threading.Event()
        failed: list[BaseException] = []
        threading.Thread(target=self._run, args=(question, done, failed), name="ctxsteward facts", daemon=True).start()
        if not done.wait(self._wait_seconds):
            breaker.failed(_LATE)
            raise StoreUnavailable(f"{_LATE} for facts ({self._wait_seconds} s)")
        if failed:
            if isinstance(failed[0], (StoreUnavailable, OutcomeUnknown)):
                breaker.failed(failed[0])
            raise failed[0]
        breaker.succeeded()

    def each(self, read: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """`map`; of a store that is not near, several at a time."""
        if self._wait_seconds is None:
            return map(read, items)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(MAX_AT_A_TIME, thread_name_prefix="ctxsteward facts") as pool:
            return list(pool.map(read, items))

    def _run(self, question: Callable[[], None], done: threading.Event, failed: list[BaseException]) -> None:
        try:
            question()
        except BaseException as error:  # handed to whoever waits, if anybody still does
            failed.append(error)
        finally:
            with self._lock:
                self._asking -= 1
            done.set()

    def _made_breaker(self) -> Breaker:
        from ..replication.breaker import Breaker

        self._breaker = Breaker()
        return self._breaker
