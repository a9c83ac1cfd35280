"""One batch: each transcript read, replayed, redacted, harvested and kept; one bad transcript stops no other.

A runner calls `harvest_batch` with each batch. Reading an item and keeping what it gave happen here. What lies between
(`HarvestWorker`) is a pure function of bytes and settings, and runs in worker processes under limits of time and memory
(`ingest.worker_pool`). A worker hands back artifacts: the observations and the words they cite, never the whole
transcript.

Raises `StoreError` where a source or the store does not answer: the batch failed, and its transcripts stay due.
Source: the layered-envelope design (replay); the state design (input at every boundary).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from ctxsteward.schemas import Erased
from ctxsteward.store.crypto.keyring import AddressKey

from ..artifacts.artifact import Artifact, build_artifact
from ..artifacts.storage import ArtifactStore
from ..harvest.batches import (
    Batch,
    BatchRecords,
    BatchResult,
    RefusedTranscript,
    SessionUse,
    WithdrawnTranscript,
)
from ..harvest.harvester import EXTRACTOR, harvest, is_own_words, lasting
from ..harvest.usage import ActiveRecords, UseTally, WatchedRecord, merge_tallies, tally
from ..ingest.items import LoadedItem, QuarantinedItem, SkippedItem, SourceItem
from ..ingest.pipeline import IngestSettings, ingest, load
from ..ingest.sources import TranscriptSource
from ..ingest.worker_pool import Isolation, quarantined, reason_of
from ..observations.observation import Observation
from ..observations.transcript import Dated, ReplayedTranscript

Watch = Callable[[Collection[str]], Iterable[WatchedRecord]]
"""What is known of the records with these ids."""
WRITERS = 8
"""Threads that keep artifacts: a durable write waits for the disk or the network far longer than it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestedTranscript:
    """What one transcript gave, and what its session showed."""

    session: str
    principals: tuple[str | None, ...]
    """Who spoke in it."""
    artifacts: tuple[Artifact, ...]
    tally: UseTally
    dated: Dated
    """Where its times are from."""
    version: int | None
    """Version of the profile that the session was under; None: not known."""
    arm: Mapping[str, int]
    """What it showed of that version (`canary.CanaryArm`)."""
    principal: str | None
    """Whom it was with; None where nobody knows."""


HarvestResult = tuple[HarvestedTranscript | SkippedItem | QuarantinedItem, ...]
"""What one item gave, transcript by transcript."""


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
        return tuple(
            self._harvested(loaded, outcome) if isinstance(outcome, ReplayedTranscript) else outcome
            for outcome in ingest(loaded, self.settings)
        )

    def artifacts(self, loaded: LoadedItem) -> tuple[Artifact, ...]:
        """The artifacts of all transcripts of an item."""
        harvested = (outcome for outcome in self(loaded) if isinstance(outcome, HarvestedTranscript))
        return tuple(artifact for transcript in harvested for artifact in transcript.artifacts)

    def _harvested(self, loaded: LoadedItem, replayed: ReplayedTranscript) -> HarvestedTranscript | QuarantinedItem:
        """One transcript; where a harvester fails, it is quarantined alone."""
        try:
            observations = harvest(replayed)
            kept = lasting(observations)
            artifacts = build_artifact(replayed, kept, extractor=self.extractor, key=self.key)
            counted = tally(
                replayed,
                self.active.beside(loaded.watched),
                [one for one in observations if not is_own_words(one)],
            )
        except Exception as error:
            return quarantined(loaded, *reason_of(error))
        return HarvestedTranscript(
            session=replayed.session,
            principals=replayed.principals,
            artifacts=artifacts,
            tally=counted,
            dated=replayed.dated,
            version=replayed.profile_version,
            arm=_arm(replayed, observations, counted),
            principal=replayed.principal,
        )


def _arm(replayed: ReplayedTranscript, observations: Sequence[Observation], counted: UseTally) -> dict[str, int]:
    """What one session showed of the version it was under; nothing where that is not known."""
    if replayed.profile_version is None:
        return {}
    total, corrections = counted.total, sum(observation.kind == "correction" for observation in observations)
    turns = sum(1 for _ in replayed.users())
    return {
        "sessions": 1,
        "turns": turns,
        "corrections": min(turns, corrections),
        "fired": total.complied + total.contradicted,
        "obeyed": total.complied,
    }


class WorkerPools:
    """Worker pools that threads borrow, one each at a time; close them at the end."""

    def __init__(self, isolate: Callable[[], Isolation[HarvestResult]]) -> None:
        """`isolate` makes a pool that runs a `HarvestWorker`."""
        self._isolate = isolate
        self._idle: SimpleQueue[Isolation[HarvestResult]] = SimpleQueue()

    @contextmanager
    def borrowed(self) -> Iterator[Isolation[HarvestResult]]:
        """A pool that nobody else uses meanwhile."""
        try:
            pool = self._idle.get_nowait()
        except Empty:
            pool = self._isolate()
        try:
            yield pool
        finally:
            self._idle.put(pool)

    def close(self) -> None:
        """End all worker processes that are not borrowed."""
        with ExitStack() as stack, suppress(Empty):
            while True:
                stack.callback(self._idle.get_nowait().close)


def harvest_batch(
    batch: Batch,
    *,
    sources: Mapping[str, TranscriptSource],
    artifacts: ArtifactStore,
    records: BatchRecords,
    pools: WorkerPools,
    watch: Watch = lambda ids: (),
) -> BatchResult:
    """Harvest a batch, or find that another worker has; safe with threads.

    `sources` are by URI; `watch` looks up records by id.
    """
    finished = records.find(batch.address)
    if finished is not None:
        return finished

    def watched(loaded: LoadedItem) -> LoadedItem:
        return replace(loaded, watched=tuple(watch(loaded.shown))) if loaded.shown else loaded

    with pools.borrowed() as pool, ThreadPoolExecutor(WRITERS, thread_name_prefix="ctxsteward keep") as writers:
        totals = _BatchTotals(artifacts, records, writers)
        for source in sorted({item.source for item in batch.items}):
            items = {item.name: item for item in batch.items if item.source == source}
            for item, result in pool.run(map(watched, totals.loaded(sources[source], items))):
                totals.add((result,) if isinstance(result, QuarantinedItem) else result, items[item.name])
        finished = totals.result(batch)
    return records.write(finished)


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

    def loaded(self, source: TranscriptSource, items: Mapping[str, SourceItem]) -> Iterator[LoadedItem]:
        """Items that could be read; the others are added at once."""
        for name, item in items.items():
            outcome = load(source, name, item.version)
            if isinstance(outcome, LoadedItem):
                yield outcome
            else:
                self.add((outcome,), item)

    def add(self, outcomes: HarvestResult, item: SourceItem) -> None:
        for outcome in outcomes:
            match outcome:
                case HarvestedTranscript():
                    self._add_harvested(outcome, item)
                case QuarantinedItem():
                    self._refused.append(RefusedTranscript(outcome.reason, self._records.address(item)))
                case SkippedItem():
                    self._skipped[outcome.reason] += 1
                    if outcome.reason == "deleted":
                        session = self._records.session(outcome.session) if outcome.session else None
                        self._gone.append(WithdrawnTranscript(self._records.address(item), session))

    def _add_harvested(self, transcript: HarvestedTranscript, item: SourceItem) -> None:
        self._transcripts += 1
        self._dated[transcript.dated] += 1
        self._tally = merge_tallies((self._tally, transcript.tally))
        if transcript.tally.hits or transcript.version is not None:
            reading = self._records.reading(item, transcript.session)
            subjects = self._records.subjects(transcript.session, transcript.principals)
            use = SessionUse(
                reading,
                item.revision,
                transcript.tally.fates,
                subjects,
                transcript.version,
                transcript.arm,
                self._records.voice(transcript.principal),
            )
            self._uses.append(use)
        for artifact in transcript.artifacts:
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
            address=batch.address,
            artifacts=tuple(sorted(self._addresses)),
            transcripts=self._transcripts,
            skipped=self._skipped,
            quarantined=tuple(sorted(self._refused)),
            gone=tuple(sorted(self._gone, key=repr)),
            hits=_counts(self._tally),
            uses=tuple(sorted(self._uses, key=repr)),
            dated=self._dated,
        )


def _counts(tally: UseTally) -> dict[str, int]:
    total = tally.total
    return {
        "events": tally.events,
        "anticipated": tally.anticipated,
        "shown": total.shown,
        "judged": total.judged,
        "fired": total.fired,
        "complied": total.complied,
        "contradicted": total.contradicted,
    }
