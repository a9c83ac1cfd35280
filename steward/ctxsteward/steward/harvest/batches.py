"""Batches of transcripts: how they are cut, who runs them, and the record of a finished one, which is not done twice.

Due transcripts are dealt into batches by a hash of their names, so the same transcripts make the same batches in any
order, and one more transcript changes one batch. A batch is known by what it reads (names, versions of their content,
the harvesters' version); a night that was killed finds its finished batches again. A finished batch is a chain of one
link:

    steward/<tenant>/<profile>/batches/<batch address>/000000000001.json
    body: {"schema_version": 1, "artifacts": [address], "transcripts": n, "skipped": {reason: n},
           "quarantined": [[reason, address of a name]], "gone": [[address of a name, address of a session]],
           "hits": {what: n}, "dated": {where its times are from: n},
           "uses": [[address of a reading, revision, {fate: [id of a record]}, [address of a subject], version | null,
           {what: n}]]}

It holds addresses and numbers only, because the name of a transcript may itself say something about somebody. A runner
(`Run`: threads here, Prefect tasks in `flows`) is given the batches and yields a result for each, in order; a batch
that raises is a `BatchFailure`, and its transcripts stay due.

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
    """What one task takes."""

    address: str
    items: tuple[SourceItem, ...]


class WithdrawnTranscript(NamedTuple):
    """A transcript that its people took back where it came from."""

    item: str
    """Address of its name."""
    session: str | None
    """Address of the session; None: all that came out of the item."""


class RefusedTranscript(NamedTuple):
    """A transcript that could not be used."""

    reason: str
    """A code."""
    item: str
    """Address of its name."""


class BatchFailure(NamedTuple):
    """A batch that came to no end; its transcripts stay due."""

    batch: Batch
    error: str
    """Name of the exception's class."""


class SessionUse(NamedTuple):
    """What one session showed: of the version it was under, and of the records in its sight."""

    reading: str
    """Address of the session where it was read; the same for every reading of it."""
    revision: int
    """Number of the reading; of two readings of one session the higher one counts."""
    fates: Mapping[str, Sequence[str]]
    """Ids of records by what became of them (`usage.FATES`)."""
    rests: Sequence[str] = ()
    """Addresses of the session and of everybody who spoke in it (`Vault.subject_address`): it counts until one of them
    is forgotten."""
    version: int | None = None
    """Version of the profile that it was under; None: not known."""
    arm: Mapping[str, int] = MappingProxyType({})
    """What it showed of that version (`canary.CanaryArm`)."""
    voice: str = ""
    """Address of the principal it was with: names that look alike are one. Empty: nobody knows who that was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What became of a batch."""

    address: str
    artifacts: tuple[str, ...]
    """Addresses of harvest artifacts, sorted."""
    transcripts: int = 0
    """That were read and harvested."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Transcripts that are none of the steward's business, by reason."""
    quarantined: tuple[RefusedTranscript, ...] = ()
    gone: tuple[WithdrawnTranscript, ...] = ()
    hits: Mapping[str, int] = field(default_factory=dict)
    """What use the records in force were: the sums of the sessions' `usage.UseTally`."""
    uses: tuple[SessionUse, ...] = ()
    """Session by session, and record by record; sessions under no version that were shown none are left out."""
    dated: Mapping[str, int] = field(default_factory=dict)
    """Transcripts by where their times are from (`transcript.Dated`)."""
    found: bool = False
    """Finished by an earlier run."""
    cpu_seconds: float = 0.0
    """What it took this time."""


class BatchRecords:
    """What became of the batches of one profile's transcripts."""

    def __init__(self, store: Store, tenant: str, profile: str, *, extractor: str) -> None:
        """`extractor`: version of all that turns a transcript into observations."""
        self._store, self._tenant, self._profile = store, tenant, profile
        self._key, self._extractor = store.keys.address_key(tenant), extractor

    def batch(self, items: tuple[SourceItem, ...], salt: str = "") -> Batch:
        """These items as a batch; another `salt` makes it another batch, that is done anew."""
        read = [(item.source, item.name, item.version, item.revision) for item in items]
        data = json.dumps([self._profile, self._extractor, salt, read]).encode()
        return Batch(address_of(self._key, self._tenant, "batch", data), items)

    def voice(self, principal: str | None) -> str:
        """Return the address of the person with this name; empty if unknown."""
        return (
            address_of(self._key, self._tenant, "voice", skeleton(principal).encode()) if principal is not None else ""
        )

    def address(self, item: SourceItem) -> str:
        """What an item is called where names may not stand."""
        return address_of(self._key, self._tenant, "item", json.dumps([item.source, item.name]).encode())

    def session(self, session: str) -> str:
        """What a session is called where names may not stand."""
        return address_of(self._key, self._tenant, "session", session.encode())

    def reading(self, item: SourceItem, session: str) -> str:
        """What a session of an item is called where names may not stand."""
        named = json.dumps([item.source, item.name, session]).encode()
        return address_of(self._key, self._tenant, "reading", named)

    def subjects(self, session: str, principals: Iterable[str | None]) -> tuple[str, ...]:
        """A session and its people, by the addresses under which they may be forgotten."""
        names = {session, *(subject_of(session, who) for who in principals)}
        return tuple(sorted(map(self._store.vault(self._tenant).subject_address, names)))

    def find(self, address: str) -> BatchResult | None:
        """What became of this batch; None where it was never finished."""
        try:
            return self._read(address, self._chain(address).read(1))
        except ObjectMissing:
            return None

    def read(self, address: str) -> BatchResult:
        """What became of a batch that is known to be finished."""
        return self._read(address, self._chain(address).present(1))

    def every(self) -> Iterator[BatchResult]:
        """All batches that were ever finished, by address; costs a listing and a request each."""
        return map(self.read, self.addresses())

    def addresses(self) -> Iterator[str]:
        """Addresses of all batches that were ever finished; costs a listing."""
        folder = steward_folder(self._tenant, self._profile, "batches")
        return (info.key.split("/")[-2] for info in self._store.objects.list(f"{folder}/"))

    def write(self, result: BatchResult) -> BatchResult:
        """Keep it; where another worker has finished the same batch first, what that one found."""
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
        stands = self._read(result.address, link)
        return replace(stands, found=False, cpu_seconds=result.cpu_seconds)

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
    """Each session once, by its newest reading, of two by the one that tells more; the same for any order."""
    found: dict[str, SessionUse] = {}
    for use in sorted(uses, key=lambda use: (use.revision, sum(map(len, use.fates.values())), repr(use))):
        found[use.reading] = use
    return [found[reading] for reading in sorted(found)]


def _row(use: SessionUse) -> list[object]:
    fates = {fate: list(ids) for fate, ids in sorted(use.fates.items())}
    voice = [use.voice] if use.voice else []
    return [use.reading, use.revision, fates, list(use.rests), use.version, dict(use.arm), *voice]


def batched(items: Iterable[SourceItem], batch_transcripts: int) -> Iterator[tuple[SourceItem, ...]]:
    """Items in batches of half to all of `batch_transcripts` on average, each sorted; the same for any order.

    >>> [len(batch) for batch in batched([SourceItem("s", str(n), "") for n in range(1_000)], 500)]
    [502, 498]
    """
    every = sorted(set(items))
    count = 1
    while count * batch_transcripts < len(every):
        count *= 2
    boxes: list[list[SourceItem]] = [[] for _ in range(count)]
    for item in every:
        boxes[_lot(item) & (count - 1)].append(item)
    return (tuple(box) for box in boxes if box)


def _lot(item: SourceItem) -> int:
    name = f"{item.source}\x00{item.name}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big")


Harvest = Callable[[Batch], BatchResult]
"""Reads the transcripts of one batch, keeps what they gave, and says what became of it. Repeating it does no harm."""

Run = Callable[[Iterable[Batch]], Iterator[BatchResult | BatchFailure]]
"""A runner: given batches, it yields what became of each, in order. `in_threads` makes one."""


def in_threads(harvest: Harvest, workers: int) -> Run:
    """Run batches in a pool of threads."""

    def ended(batch: Batch) -> BatchResult | BatchFailure:
        try:
            return harvest(batch)
        except Exception as error:
            return BatchFailure(batch, type(error).__name__)

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailure]:
        with ThreadPoolExecutor(workers, thread_name_prefix="ctxsteward batch") as pool:
            yield from pool.map(ended, batches)

    return run
