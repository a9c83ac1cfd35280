"""Batches of transcripts: dealing, runners, and the record of a finished batch, which is not harvested twice.

A hash of their names deals due transcripts into batches, so that the order of the transcripts does not matter, and one
more transcript changes one batch. A batch's address depends on its input (names, versions of their content, the
harvesters' version), so that a night after a kill finds finished batches again. A finished batch is a chain of one
link:

    steward/<tenant>/<profile>/batches/<batch address>/000000000001.json
    body: {"schema_version": 1, "artifacts": [address], "transcripts": n, "skipped": {reason: n},
           "quarantined": [[reason, address of a name]], "gone": [[address of a name, address of a session]],
           "hits": {count of `usage.UseTally`: n}, "dated": {source of times: n},
           "uses": [[address of a reading, revision, {fate: [id of a record]}, [address of a subject], version | null,
           {count for the canary: n}]]}

It holds only addresses and numbers, because the name of a transcript may reveal something about a person. A runner
(`Run`: threads here, Prefect tasks in `flows`) yields the result of each batch, in order. If a batch raises, its result
is a `BatchFailure`, and its transcripts stay due.

Raises `Damaged`, `OutcomeUnknown`, `StoreUnavailable`. Source: the layered-envelope design (replay in batches).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.schemas.errors import ObjectMissing, UnsupportedVersion, VersionTaken
from ctxsteward.store.crypto.hash_chain import Chain, Link
from ctxsteward.store.crypto.keyring import address_of, subject_of
from ctxsteward.store.names import skeleton, steward_folder

from ..ingest.items import SourceItem

VERSION = 1


class Batch(NamedTuple):
    """The items of one task."""

    address: str
    items: tuple[SourceItem, ...]


class WithdrawnTranscript(NamedTuple):
    """A transcript that its people withdrew at its source."""

    item: str
    """Address of the item's name."""
    session: str | None
    """Address of the session; None for all sessions of the item."""


class RefusedTranscript(NamedTuple):
    """A transcript that could not be used."""

    reason: str
    """A code."""
    item: str
    """Address of its name."""


class BatchFailure(NamedTuple):
    """A batch that failed; its transcripts stay due."""

    batch: Batch
    error: str
    """Name of the exception's class."""


class SessionUse(NamedTuple):
    """The use of records and of a profile version in one session."""

    reading: str
    """Address of the session in its source; the same for every reading."""
    revision: int
    """Number of the reading; the highest of a session counts."""
    fates: Mapping[str, Sequence[str]]
    """Ids of records by fate (`usage.FATES`)."""
    rests: Sequence[str] = ()
    """Addresses of the session and of everybody who spoke in it (`Vault.subject_address`); the session counts until one
    of them is forgotten."""
    version: int | None = None
    """Version of the profile that the session used; None if unknown."""
    arm: Mapping[str, int] = MappingProxyType({})
    """Counts for the canary of that version (`canary.CanaryArm`)."""
    voice: str = ""
    """Address of the session's principal, the same for look-alike names; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The result of a batch."""

    address: str
    artifacts: tuple[str, ...]
    """Sorted addresses of harvest artifacts."""
    transcripts: int = 0
    """Number of harvested transcripts."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of transcripts that are not for the steward, by reason."""
    quarantined: tuple[RefusedTranscript, ...] = ()
    gone: tuple[WithdrawnTranscript, ...] = ()
    hits: Mapping[str, int] = field(default_factory=dict)
    """Sums of the sessions' `usage.UseTally`."""
    uses: tuple[SessionUse, ...] = ()
    """Uses by session, without sessions that have neither a version nor shown records."""
    dated: Mapping[str, int] = field(default_factory=dict)
    """Number of transcripts by the source of their times (`transcript.Dated`)."""
    found: bool = False
    """Whether an earlier run finished the batch."""
    cpu_seconds: float = 0.0
    """CPU time of this run."""


class BatchRecords:
    """Stored results of the batches of one profile."""

    def __init__(self, store: Store, tenant: str, profile: str, *, extractor: str) -> None:
        """`extractor` is the version of all code that turns a transcript into observations."""
        self._store, self._tenant, self._profile = store, tenant, profile
        self._key, self._extractor = store.keys.address_key(tenant), extractor

    def batch(self, items: tuple[SourceItem, ...], salt: str = "") -> Batch:
        """Make a batch of items; another `salt` makes another batch, which is harvested again."""
        read = [(item.source, item.name, item.version, item.revision) for item in items]
        data = json.dumps([self._profile, self._extractor, salt, read]).encode()
        return Batch(address_of(self._key, self._tenant, "batch", data), items)

    def voice(self, principal: str | None) -> str:
        """Return the address of the person with this name; empty if unknown."""
        return "" if principal is None else address_of(self._key, self._tenant, "voice", skeleton(principal).encode())

    def address(self, item: SourceItem) -> str:
        """Return the address that stands for an item's name."""
        return address_of(self._key, self._tenant, "item", json.dumps([item.source, item.name]).encode())

    def session(self, session: str) -> str:
        """Return the address that stands for a session's name."""
        return address_of(self._key, self._tenant, "session", session.encode())

    def reading(self, item: SourceItem, session: str) -> str:
        """Return the address that stands for a session of an item."""
        named = json.dumps([item.source, item.name, session]).encode()
        return address_of(self._key, self._tenant, "reading", named)

    def subjects(self, session: str, principals: Iterable[str | None]) -> tuple[str, ...]:
        """Return the subject addresses of a session and its people, which an erasure names."""
        names = {session, *(subject_of(session, who) for who in principals)}
        return tuple(sorted(map(self._store.vault(self._tenant).subject_address, names)))

    def find(self, address: str) -> BatchResult | None:
        """Return the result of a batch, or None if it was never finished."""
        try:
            return self._read(address, self._chain(address).read(1))
        except ObjectMissing:
            return None

    def read(self, address: str) -> BatchResult:
        """Return the result of a finished batch."""
        return self._read(address, self._chain(address).present(1))

    def every(self) -> Iterator[BatchResult]:
        """Yield the results of all finished batches; costs a listing, and a request for each."""
        return map(self.read, self.addresses())

    def addresses(self) -> Iterator[str]:
        """Yield the addresses of all finished batches; costs a listing."""
        folder = steward_folder(self._tenant, self._profile, "batches")
        return (info.key.split("/")[-2] for info in self._store.objects.list(f"{folder}/"))

    def write(self, result: BatchResult) -> BatchResult:
        """Store a result and return it, or return the result of a worker that finished the batch first."""
        body = {
            "schema_version": VERSION,
            "artifacts": list(result.artifacts),
            "transcripts": result.transcripts,
            "skipped": dict(sorted(result.skipped.items())),
            "quarantined": [list(refused) for refused in result.quarantined],
            "gone": [list(withdrawn) for withdrawn in result.gone],
            "hits": dict(result.hits),
            "dated": dict(sorted(result.dated.items())),
        }
        if result.uses:
            body["uses"] = [_row(use) for use in result.uses]
        try:
            link = self._chain(result.address).append(None, body, commit_id=result.address)
        except VersionTaken:
            return self.read(result.address)
        return replace(self._read(result.address, link), found=False, cpu_seconds=result.cpu_seconds)

    def _chain(self, address: str) -> Chain:
        folder = steward_folder(self._tenant, self._profile, "batches", address)
        return self._store.chain(folder, tenant=self._tenant)

    def _read(self, address: str, link: Link) -> BatchResult:
        body = link.body
        if body.get("schema_version") != VERSION:
            raise UnsupportedVersion(f"batch {address[:16]}…", body.get("schema_version"), VERSION)
        return BatchResult(
            address=address,
            artifacts=tuple(body["artifacts"]),
            transcripts=body["transcripts"],
            skipped=body["skipped"],
            quarantined=tuple(RefusedTranscript(*row) for row in body["quarantined"]),
            gone=tuple(WithdrawnTranscript(*row) for row in body["gone"]),
            hits=body["hits"],
            uses=tuple(SessionUse(*row) for row in body.get("uses", ())),
            dated=body.get("dated", {}),
            found=True,
        )


def newest(uses: Iterable[SessionUse]) -> list[SessionUse]:
    """Return the newest reading of each session, whatever the order of the input.

    Of readings with one revision, the one with more records counts.
    """
    in_order = sorted(uses, key=lambda use: (use.revision, sum(map(len, use.fates.values())), repr(use)))
    readings = {use.reading: use for use in in_order}  # the last one of a session stays
    return [readings[reading] for reading in sorted(readings)]


def _row(use: SessionUse) -> list[object]:
    fates = {fate: list(ids) for fate, ids in sorted(use.fates.items())}
    voice = [use.voice] if use.voice else []
    return [use.reading, use.revision, fates, list(use.rests), use.version, dict(use.arm), *voice]


def batched(items: Iterable[SourceItem], batch_transcripts: int) -> Iterator[tuple[SourceItem, ...]]:
    """Deal items into sorted batches with half to all of `batch_transcripts` on average.

    The number of batches is a power of two, so that it rarely changes. The hash of an item's name decides its batch.

    >>> [len(batch) for batch in batched([SourceItem("s", str(n), "") for n in range(1_000)], 500)]
    [502, 498]
    """
    every = sorted(set(items))
    count = 1
    while count * batch_transcripts < len(every):
        count *= 2
    batches: list[list[SourceItem]] = [[] for _ in range(count)]
    for item in every:
        name = f"{item.source}\x00{item.name}".encode(errors="surrogatepass")
        number = int.from_bytes(hashlib.sha256(name).digest()[:8], "big")
        batches[number & (count - 1)].append(item)
    return (tuple(batch) for batch in batches if batch)


Harvest = Callable[[Batch], BatchResult]
"""Harvest one batch, store artifacts and result, and return the result; safe to repeat."""

Run = Callable[[Iterable[Batch]], Iterator[BatchResult | BatchFailure]]
"""A runner: yield the result of each batch, in order (`in_threads`)."""


def in_threads(harvest: Harvest, workers: int) -> Run:
    """Run batches in a pool of threads."""

    def result_of(batch: Batch) -> BatchResult | BatchFailure:
        try:
            return harvest(batch)
        except Exception as error:
            return BatchFailure(batch, type(error).__name__)

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailure]:
        with ThreadPoolExecutor(workers, thread_name_prefix="ctxsteward batch") as pool:
            yield from pool.map(result_of, batches)

    return run
