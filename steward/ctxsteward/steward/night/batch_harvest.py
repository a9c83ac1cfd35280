"""One batch: each transcript read, replayed, redacted, harvested and kept; one bad transcript stops no other.

Reading an item and keeping what it gave happen here. What lies between (`HarvestWorker`) is a pure function of bytes
and settings, and runs in worker processes under limits of time and memory (`ingest.worker_pool`). A worker hands back
artifacts: the observations and the words they cite, never the whole transcript.

Raises `StoreError` where a source or the store does not answer: the batch failed, and its transcripts stay due.
Source: the layered-envelope design (replay); the state design (input at every boundary).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import NamedTuple

from ctxsteward.schemas import Erased
from ctxsteward.store.crypto.addresses import AddressKey

from ..artifacts import Artifact, ArtifactStore, build_artifact
from ..harvest.batches import (
    Batch,
    BatchRecords,
    BatchResult,
    DueTranscript,
    RefusedTranscript,
    SessionUse,
    WithdrawnTranscript,
)
from ..harvest.harvester import EXTRACTOR, harvest
from ..harvest.tools.siblings import identifiers
from ..harvest.usage import ActiveRecords, UseTally, WatchedRecord, merge_tallies, tally
from ..ingest import IngestSettings, Isolation, LoadedItem, QuarantinedItem, SkippedItem, TranscriptSource, ingest, load
from ..ingest.worker_pool import reason_of
from ..observation import Observation
from ..transcript import Dated, ReplayedTranscript

Watch = Callable[[Collection[str]], Iterable[WatchedRecord]]
"""What is known of the records with these ids."""
WRITERS = 8
"""Threads that keep artifacts: a durable write waits for the disk or the network far longer than it computes."""


class SessionTally(NamedTuple):
    """What one session showed."""

    session: str
    principals: tuple[str, ...]
    """Who spoke in it."""
    tally: UseTally
    version: int | None
    arm: Mapping[str, int]
    """Of the version it was under (`canary.CanaryArm`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestResult:
    """What one item gave."""

    artifacts: tuple[Artifact, ...] = ()
    transcripts: int = 0
    skipped: tuple[SkippedItem, ...] = ()
    quarantined: tuple[QuarantinedItem, ...] = ()
    tally: UseTally = field(default_factory=UseTally)
    uses: tuple[SessionTally, ...] = ()
    """Of sessions that were under a version, or were shown records."""
    dated: tuple[Dated, ...] = ()
    """Where the times of each transcript are from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestWorker:
    """Turns an item into what it gave; picklable, so that a worker process has it by value."""

    key: AddressKey
    settings: IngestSettings = field(default_factory=IngestSettings)
    active: ActiveRecords = field(default_factory=ActiveRecords)
    """Records in force: how far they foresaw what is read now is counted."""

    @property
    def extractor(self) -> str:
        """Version of all that turns bytes into observations."""
        return f"{EXTRACTOR}+{self.settings.digest[:8]}"

    def __call__(self, loaded: LoadedItem) -> HarvestResult:
        reaped = HarvestResult()
        for outcome in ingest(loaded, self.settings):
            reaped = _with(
                reaped, self._reaped(loaded, outcome) if isinstance(outcome, ReplayedTranscript) else outcome
            )
        return reaped

    def _reaped(self, loaded: LoadedItem, replayed: ReplayedTranscript) -> HarvestResult | QuarantinedItem:
        """One transcript; where a harvester fails, it is quarantined alone."""
        try:
            observations = harvest(replayed)
            takes = identifiers(replayed).items()
            artifacts = build_artifact(replayed, observations, extractor=self.extractor, key=self.key, takes=takes)
            counted = tally(replayed, self.active.beside(loaded.watched), observations)
        except Exception as error:
            reason, detail = reason_of(error)
            return QuarantinedItem(source=loaded.source, name=loaded.name, reason=reason, detail=detail)
        version, arm = replayed.profile_version, _arm(replayed, observations, counted)
        used = SessionTally(replayed.session, replayed.principals, counted, version, arm)
        uses = (used,) if counted.hits or version is not None else ()
        return HarvestResult(artifacts=artifacts, transcripts=1, tally=counted, uses=uses, dated=(replayed.dated,))


def _with(reaped: HarvestResult, more: HarvestResult | SkippedItem | QuarantinedItem) -> HarvestResult:
    match more:
        case SkippedItem():
            return replace(reaped, skipped=(*reaped.skipped, more))
        case QuarantinedItem():
            return replace(reaped, quarantined=(*reaped.quarantined, more))
    return HarvestResult(
        artifacts=(*reaped.artifacts, *more.artifacts), transcripts=reaped.transcripts + more.transcripts,
        skipped=(*reaped.skipped, *more.skipped), quarantined=(*reaped.quarantined, *more.quarantined),
        tally=merge_tallies((reaped.tally, more.tally)), uses=(*reaped.uses, *more.uses),
        dated=(*reaped.dated, *more.dated),
    )  # fmt: skip


def _arm(replayed: ReplayedTranscript, observations: Sequence[Observation], counted: UseTally) -> dict[str, int]:
    """What one session showed of the version it was under; nothing where that is not known."""
    if replayed.profile_version is None:
        return {}
    total, corrections = counted.total, sum(one.kind == "correction" for one in observations)
    turns = sum(1 for _ in replayed.users())
    return {
        "sessions": 1, "turns": turns, "corrections": min(turns, corrections),
        "fired": total.complied + total.contradicted, "obeyed": total.complied,
    }  # fmt: skip


class BatchHarvester:
    """Harvests batches; safe with threads, each of which has worker processes of its own. Close it at the end."""

    def __init__(
        self,
        sources: Mapping[str, TranscriptSource],
        artifacts: ArtifactStore,
        records: BatchRecords,
        isolate: Callable[[], Isolation[HarvestResult]],
        watch: Watch = lambda ids: (),
    ) -> None:
        """`sources` by URI; `isolate` makes a pool that runs a `HarvestWorker`; `watch` looks up records that were
        shown.
        """
        self.sources, self.records = sources, records
        self._artifacts, self._watch = artifacts, watch
        self._isolate = isolate
        self._idle: SimpleQueue[Isolation[HarvestResult]] = SimpleQueue()

    def __call__(self, batch: Batch) -> BatchResult:
        """Harvest a batch, or find that another worker has."""
        found = self.records.find(batch.address)
        if found is not None:
            return found
        pool = self._borrowed()
        try:
            result = self._harvested(batch, pool)
        finally:
            self._idle.put(pool)
        return self.records.write(result)

    def close(self) -> None:
        """End all worker processes."""
        with ExitStack() as stack:
            while (pool := self._taken()) is not None:
                stack.callback(pool.close)

    def _borrowed(self) -> Isolation[HarvestResult]:
        return self._taken() or self._isolate()

    def _taken(self) -> Isolation[HarvestResult] | None:
        try:
            return self._idle.get_nowait()
        except Empty:
            return None

    def _harvested(self, batch: Batch, pool: Isolation[HarvestResult]) -> BatchResult:
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="ctxsteward keep") as writers:
            kept = _BatchTotals(self._artifacts, self.records, writers)
            for source in sorted({item.source for item in batch.items}):
                items = {item.name: item for item in batch.items if item.source == source}
                for answer in pool.run(map(self._watched, kept.loaded(self.sources[source], items))):
                    kept.add(answer.result, items[answer.item.name])
            return kept.result(batch)

    def _watched(self, loaded: LoadedItem) -> LoadedItem:
        return replace(loaded, watched=tuple(self._watch(loaded.shown))) if loaded.shown else loaded


class _BatchTotals:
    """What a batch gave, added up."""

    def __init__(self, artifacts: ArtifactStore, records: BatchRecords, writers: ThreadPoolExecutor) -> None:
        self._artifacts, self._records, self._writers = artifacts, records, writers
        self._under_way: deque[Future[str | None]] = deque()
        self._addresses: set[str] = set()
        self._refused: list[RefusedTranscript] = []
        self._skipped: Counter[str] = Counter()
        self._transcripts = 0
        self._tally = UseTally()
        self._gone: list[WithdrawnTranscript] = []
        self._uses: list[SessionUse] = []
        self._dated: Counter[str] = Counter()

    def loaded(self, source: TranscriptSource, items: Mapping[str, DueTranscript]) -> Iterator[LoadedItem]:
        """Items that could be read; the others are added at once."""
        for name, item in items.items():
            found = load(source, name, item.version)
            if isinstance(found, LoadedItem):
                yield found
            else:
                self.add(_with(HarvestResult(), found), item)

    def add(self, result: HarvestResult | QuarantinedItem, item: DueTranscript) -> None:
        reaped = _with(HarvestResult(), result)
        self._tally = merge_tallies((self._tally, reaped.tally))
        self._skipped.update(skipped.reason for skipped in reaped.skipped)
        self._refused += [RefusedTranscript(one.reason, self._records.address(item)) for one in reaped.quarantined]
        self._transcripts += reaped.transcripts
        self._dated.update(reaped.dated)
        self._uses += [
            SessionUse(
                self._records.reading(item, used.session),
                item.revision,
                used.tally.fates,
                self._records.subjects(used.session, used.principals),
                used.version,
                used.arm,
            )
            for used in reaped.uses
        ]
        self._gone += [
            WithdrawnTranscript(
                self._records.address(item), self._records.session(one.session) if one.session else None
            )
            for one in reaped.skipped
            if one.reason == "deleted"
        ]
        for artifact in reaped.artifacts:
            self._under_way.append(self._writers.submit(self._put, replace(artifact, revision=item.revision)))
        while len(self._under_way) > 4 * WRITERS:
            self._landed()

    def _put(self, artifact: Artifact) -> str | None:
        """Its address; None where somebody in it was forgotten."""
        try:
            return self._artifacts.put(artifact)
        except Erased:
            return None

    def _landed(self) -> None:
        address = self._under_way.popleft().result()
        if address is None:
            self._skipped["deleted"] += 1
        else:
            self._addresses.add(address)

    def result(self, batch: Batch) -> BatchResult:
        while self._under_way:
            self._landed()
        return BatchResult(
            address=batch.address, artifacts=tuple(sorted(self._addresses)), transcripts=self._transcripts,
            skipped=self._skipped, quarantined=tuple(sorted(self._refused)),
            gone=tuple(sorted(self._gone, key=repr)), hits=_counts(self._tally),
            uses=tuple(sorted(self._uses, key=repr)), dated=self._dated,
        )  # fmt: skip


def _counts(found: UseTally) -> dict[str, int]:
    total = found.total
    return {
        "events": found.events, "anticipated": found.anticipated, "shown": total.shown, "judged": total.judged,
        "fired": total.fired, "complied": total.complied, "contradicted": total.contradicted,
    }  # fmt: skip
