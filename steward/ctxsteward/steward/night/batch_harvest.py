"""Harvest one batch: read, replay, redact and harvest each transcript, and store its artifacts.

A runner calls `harvest_batch` with each batch. It reads items and stores artifacts. The step between them
(`HarvestWorker`) is a pure function of bytes and settings and runs in worker processes under limits of time and memory
(`ingest.worker_pool`). A worker returns artifacts (observations and the words they cite), never the whole transcript.
One bad transcript stops no other.

Raises `StoreError` if a source or the store does not answer; then the batch failed, and its transcripts stay due.
Source: the layered-envelope design (replay); the state design (input at every boundary).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

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
from ..harvest.usage import UseTally, WatchedRecord, tally
from ..ingest.items import LoadedItem, QuarantinedItem, SkippedItem, SourceItem
from ..ingest.pipeline import IngestSettings, ingest, load
from ..ingest.sources import TranscriptSource
from ..ingest.worker_pool import Isolation, quarantined, reason_of
from ..observations.observation import Observation
from ..observations.transcript import Dated, ReplayedTranscript
from .report import HITS

Watch = Callable[[Collection[str]], Iterable[WatchedRecord]]
"""Look up records by id."""
WRITERS = 8
"""Threads that store artifacts: a durable write waits for the disk or the network far longer than it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestedTranscript:
    """Artifacts and counts of one transcript."""

    session: str
    principals: tuple[str | None, ...]
    """Everybody who spoke in it."""
    artifacts: tuple[Artifact, ...]
    tally: UseTally
    dated: Dated
    """Source of its times."""
    version: int | None
    """Version of the profile that the session used; None if unknown."""
    arm: Mapping[str, int]
    """Counts for the canary of that version (`canary.CanaryArm`)."""
    principal: str | None
    """The user of the session; None if unknown."""


HarvestResult = tuple[HarvestedTranscript | SkippedItem | QuarantinedItem, ...]
"""A result for each transcript of an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestWorker:
    """Harvest the transcripts of an item; picklable, so that it can be sent to a worker process."""

    key: AddressKey
    settings: IngestSettings = field(default_factory=IngestSettings)
    active: tuple[WatchedRecord, ...] = ()
    """Records in force; the worker counts the events that they anticipated."""

    @property
    def extractor(self) -> str:
        """Version of all code that turns bytes into observations."""
        return f"{EXTRACTOR}+{self.settings.digest[:8]}"

    def __call__(self, loaded: LoadedItem) -> HarvestResult:
        return tuple(
            self._harvested(loaded, outcome) if isinstance(outcome, ReplayedTranscript) else outcome
            for outcome in ingest(loaded, self.settings)
        )

    def artifacts(self, loaded: LoadedItem) -> tuple[Artifact, ...]:
        """Return the artifacts of all transcripts of an item."""
        harvested = (outcome for outcome in self(loaded) if isinstance(outcome, HarvestedTranscript))
        return tuple(artifact for transcript in harvested for artifact in transcript.artifacts)

    def _harvested(self, loaded: LoadedItem, replayed: ReplayedTranscript) -> HarvestedTranscript | QuarantinedItem:
        """Harvest one transcript, or quarantine it if a harvester fails."""
        try:
            observations = harvest(replayed)
            artifacts = build_artifact(replayed, lasting(observations), extractor=self.extractor, key=self.key)
            cued = [observation for observation in observations if not is_own_words(observation)]
            counted = tally(replayed, self.active, cued, loaded.watched)
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
    """Return the session's counts for the canary; empty if its profile version is unknown."""
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


def harvest_batch(
    batch: Batch,
    *,
    sources: Mapping[str, TranscriptSource],
    artifacts: ArtifactStore,
    records: BatchRecords,
    isolate: Callable[[], Isolation[HarvestResult]],
    watch: Watch = lambda ids: (),
) -> BatchResult:
    """Harvest a batch, or return the result of another worker that has; safe with threads.

    Args:
        sources: by URI.
        isolate: make a pool that runs a `HarvestWorker`.
        watch: look up records by id.
    """
    finished = records.find(batch.address)
    if finished is not None:
        return finished

    def put(artifact: Artifact) -> str | None:
        with suppress(Erased):  # somebody who spoke in it was forgotten
            return artifacts.put(artifact)
        return None

    refused, gone, uses = list[RefusedTranscript](), list[WithdrawnTranscript](), list[SessionUse]()
    skipped, hits, dated = Counter[str](), Counter[str](), Counter[str]()
    writes: list[Future[str | None]] = []
    with closing(isolate()) as pool, ThreadPoolExecutor(WRITERS, thread_name_prefix="ctxsteward keep") as writers:
        for item, outcome in _outcomes(batch, sources, pool, watch):
            match outcome:
                case HarvestedTranscript():
                    dated[outcome.dated] += 1
                    counted = outcome.tally
                    hits.update(counted.total._asdict(), events=counted.events, anticipated=counted.anticipated)
                    if counted.uses or outcome.version is not None:
                        uses.append(
                            SessionUse(
                                reading=records.reading(item, outcome.session),
                                revision=item.revision,
                                fates=counted.fates,
                                rests=records.subjects(outcome.session, outcome.principals),
                                version=outcome.version,
                                arm=outcome.arm,
                                voice=records.voice(outcome.principal),
                            )
                        )
                    writes += (
                        writers.submit(put, replace(artifact, revision=item.revision)) for artifact in outcome.artifacts
                    )
                case QuarantinedItem():
                    refused.append(RefusedTranscript(outcome.reason, records.address(item)))
                case SkippedItem():
                    skipped[outcome.reason] += 1
                    if outcome.reason == "deleted":
                        session = records.session(outcome.session) if outcome.session else None
                        gone.append(WithdrawnTranscript(records.address(item), session))
    addresses = [write.result() for write in writes]
    skipped.update({"deleted": addresses.count(None)} if None in addresses else {})
    return records.write(
        BatchResult(
            address=batch.address,
            artifacts=tuple(sorted(set(filter(None, addresses)))),
            transcripts=dated.total(),
            skipped=skipped,
            quarantined=tuple(sorted(refused)),
            gone=tuple(sorted(gone, key=repr)),
            hits={name: hits[name] for name in HITS},
            uses=tuple(sorted(uses, key=repr)),
            dated=dated,
        )
    )


def _outcomes(
    batch: Batch, sources: Mapping[str, TranscriptSource], pool: Isolation[HarvestResult], watch: Watch
) -> Iterator[tuple[SourceItem, HarvestedTranscript | SkippedItem | QuarantinedItem]]:
    """Yield the result of each transcript of a batch, with its item."""
    for source in sorted({item.source for item in batch.items}):
        items = {item.name: item for item in batch.items if item.source == source}
        unread: list[tuple[SourceItem, SkippedItem | QuarantinedItem]] = []
        for item, result in pool.run(_loaded(sources[source], items.values(), watch, unread)):
            for outcome in (result,) if isinstance(result, QuarantinedItem) else result:
                yield items[item.name], outcome
        yield from unread


def _loaded(
    source: TranscriptSource,
    items: Iterable[SourceItem],
    watch: Watch,
    unread: list[tuple[SourceItem, SkippedItem | QuarantinedItem]],
) -> Iterator[LoadedItem]:
    """Yield items that could be read, and put the others into `unread`."""
    for item in items:
        outcome = load(source, item.name, item.version)
        if isinstance(outcome, LoadedItem):
            yield replace(outcome, watched=tuple(watch(outcome.shown)) if outcome.shown else ())
        else:
            unread.append((item, outcome))
