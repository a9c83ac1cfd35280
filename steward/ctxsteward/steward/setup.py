"""A night opened from its settings: store, sources, workers, ledger and gates behind the stages of `night.run`.

    with open_night(settings, of_this_process()) as night:
        report = run_night(night.stages, night.shell)

A runner that harvests batches in other processes (a Prefect task, a Dask worker) calls `harvest_in_process` there: the
same settings open the same store. The ledger's file lies beside the store's journal. Where it is missing or behind, it
is made again from the store before anything is harvested, because the harvest also counts how far the records in force
foresaw what is read (`harvest.usage`). A dry run is all of this over a store in memory (`night.environment`).

Raises `InputError` for settings that name nothing, `StoreError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri
from ctxsteward.schemas.message import Wire
from ctxsteward.store.backend import local_folder
from ctxsteward.store.journal.erasures import ErasureRequest
from ctxsteward.store.names import part_of
from ctxsteward.store.profiles.versions import WriterLease, profile_names
from ctxsteward.store.sqlite_file import IN_MEMORY

from .artifacts.storage import ArtifactStore
from .harvest.batches import Batch, BatchRecords, BatchResult, DueTranscript, WithdrawnTranscript, in_threads
from .harvest.usage import ActiveRecords, WatchedRecord
from .ingest.items import SourceItem
from .ingest.pipeline import IngestSettings
from .ingest.sources import STORE, TranscriptSource, open_source
from .ingest.watermark import Watermark, advanced, due, marker
from .ingest.worker_pool import Isolation, ItemLimits, WorkerPool
from .ledger.facade import Ledger
from .night.batch_harvest import BatchHarvester, HarvestResult, HarvestWorker, Watch
from .night.environment import ProcessEnvironment, draft_store
from .night.history import NightChain
from .night.run import DueTranscripts, LedgerUpdate, Marks, NightContext, Stages, Tell
from .release.decision import DecisionStage, Records, in_force
from .settings import NightSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedNight:
    """A night that is ready to run."""

    store: Store
    ledger: Ledger
    stages: Stages
    shell: NightContext
    results: Path
    """Folder for what a flow persists: addresses."""


def home_of(settings: NightSettings) -> Path:
    """The folder on this machine where the store, or its journal, lies."""
    return local_folder(settings.store, settings.journal)


def ledger_path(settings: NightSettings) -> Path:
    """Where the index of observations lies."""
    return home_of(settings) / "ledgers" / part_of(settings.tenant) / f"{part_of(settings.profile)}.sqlite"


def require(settings: NightSettings, store: Store) -> None:
    """Refuse a night over nothing: a profile that was never committed, a source without a transcript."""
    known = tuple(profile_names(store.objects, settings.tenant))
    if settings.profile not in known:
        some = f"it has {', '.join(known[:MAX_NAMES_SHOWN])}" if known else "it has none"
        raise InputError(
            f"{store.uri}: tenant {settings.tenant!r} has no profile {settings.profile!r}; {some}: name one of them, "
            "or commit a first one with `ctxsteward steward run --profile FILE`"
        )
    for uri in settings.sources:
        try:
            require_transcripts(uri)
        except InputError as error:
            raise InputError(f"sources, {shown_uri(uri)}: {error}") from error


def require_transcripts(uri: str) -> None:
    """Refuse a source that is not there or lists nothing; the store's own sessions may be none yet."""
    if uri == STORE:
        return
    source = open_source(uri)
    try:
        first = next(iter(source.items()), None)
    finally:
        source.close()
    if first is None:
        raise InputError("no transcript is there; name a folder with .json, .jsonl, .ndjson or .traj files")


MAX_NAMES_SHOWN = 5
Isolate = Callable[[HarvestWorker, NightSettings], Isolation[HarvestResult]]
"""Makes a worker pool that runs a `HarvestWorker` on items; called once a thread."""


def in_a_worker(reaper: HarvestWorker, settings: NightSettings) -> Isolation[HarvestResult]:
    """One worker process, under the limits that the settings name."""
    limits = ItemLimits(
        wall_seconds=settings.limit_seconds, cpu_seconds=settings.limit_seconds, memory_bytes=settings.limit_bytes
    )
    return WorkerPool(reaper, 1, limits)


@contextmanager
def open_night(
    settings: NightSettings,
    here: ProcessEnvironment,
    *,
    tell: Tell = lambda boundary: None,
    isolate: Isolate = in_a_worker,
) -> Iterator[OpenedNight]:
    """Open everything that a night needs, and close it at the end."""
    if settings.dry_run and settings.runner != "threads":
        raise InputError("a dry run keeps everything in this process's memory; run it with `runner` threads")
    with ExitStack() as stack:
        store = _store(settings, here, stack)
        path = IN_MEMORY if settings.dry_run or settings.store == "memory:" else ledger_path(settings)
        ledger = stack.enter_context(Ledger.open(path, store, settings.tenant, settings.profile))
        harvesting = _harvesting(
            settings, store, here, stack, isolate, lambda: in_force(settings, store, ledger), ledger.uses.watched
        )
        taking = IngestStage(settings, store, ledger, harvesting, here)
        deciding = DecisionStage(settings, store, ledger, model=here.models)
        stages = Stages(
            due=taking.due,
            harvest=harvesting,
            absorb=taking.absorb,
            reconcile=taking.reconcile,
            admit=deciding.admit,
            fit=deciding.fit,
            stage=deciding.stage,
            drift=deciding.drift,
            gate=deciding.gate,
            promote=deciding.promote,
            canary=deciding.canary,
            wording=deciding.wording,
        )
        yield OpenedNight(
            store=store,
            ledger=ledger,
            stages=stages,
            results=home_of(settings) / "results",
            shell=_shell(settings, store, here, harvesting, tell),
        )


def _shell(
    settings: NightSettings, store: Store, here: ProcessEnvironment, harvesting: BatchHarvester, tell: Tell
) -> NightContext:
    return NightContext(
        settings=settings,
        night=settings.night or here.today,
        when=here.when,
        nights=NightChain(store, settings.tenant, settings.profile),
        records=harvesting.records,
        lease=WriterLease(store, settings.profile, settings.tenant, owner=here.owner, clock=here.clock),
        key=store.keys.address_key(settings.tenant),
        cpu_seconds=here.cpu_seconds,
        run=in_threads(harvesting, settings.workers, harvesting.close),
        abandoned=here.abandoned,
        tell=tell,
    )


def harvest_in_process(
    settings: NightSettings, batch: Batch, here: ProcessEnvironment, *, isolate: Isolate = in_a_worker
) -> BatchResult:
    """Harvest one batch with a store and workers of its own, in whatever process this is."""
    before = here.cpu_seconds()
    with ExitStack() as stack:
        store = _store(settings, here, stack)
        ledger = _ledger_here(settings, store, stack)

        def active() -> Records:
            known = ledger()
            return in_force(settings, store, known) if known is not None else ()

        def watch(ids: Collection[str]) -> Iterable[WatchedRecord]:
            known = ledger()
            return known.uses.watched(ids) if known is not None else ()

        done = _harvesting(settings, store, here, stack, isolate, active, watch)(batch)
    return replace(done, cpu_seconds=here.cpu_seconds() - before)


def _store(settings: NightSettings, here: ProcessEnvironment, stack: ExitStack) -> Store:
    if settings.dry_run and settings.store.startswith("file:") and not home_of(settings).exists():
        return stack.enter_context(open_store("memory:"))
    store = stack.enter_context(open_store(settings.store, journal=settings.journal, keys=here.keys()))
    return draft_store(store, settings.tenant) if settings.dry_run else store


def _harvesting(
    settings: NightSettings,
    store: Store,
    here: ProcessEnvironment,
    stack: ExitStack,
    isolate: Isolate,
    active: Callable[[], Records],
    watch: Watch,
) -> BatchHarvester:
    ingest = IngestSettings(
        internal_tools=frozenset(settings.internal_tools), confirming_tools=settings.confirming_tools
    )
    reaper = HarvestWorker(key=store.keys.address_key(settings.tenant), settings=ingest)
    harvesting = BatchHarvester(
        {uri: stack.enter_context(_closing(uri, settings, store, here)) for uri in settings.sources},
        ArtifactStore(store, settings.tenant),
        BatchRecords(store, settings.tenant, settings.profile, extractor=reaper.extractor),
        lambda: isolate(replace(reaper, active=ActiveRecords(active())), settings),
        watch,
    )
    stack.callback(harvesting.close)
    return harvesting


def _ledger_here(settings: NightSettings, store: Store, stack: ExitStack) -> Callable[[], Ledger | None]:
    """The ledger of this machine, opened where it is asked for; None on another machine, which has none."""
    path = ledger_path(settings)

    @cache
    def ledger() -> Ledger | None:
        if not path.exists():
            return None
        return stack.enter_context(Ledger.open(path, store, settings.tenant, settings.profile))

    return ledger


@contextmanager
def _closing(uri: str, settings: NightSettings, store: Store, here: ProcessEnvironment) -> Iterator[TranscriptSource]:
    source = open_source(uri, store=store, tenant=settings.tenant, profile=settings.profile, now_seconds=here.clock())
    try:
        yield source
    finally:
        source.close()


class IngestStage:
    """The first stages of a night, from listings to the ledger: `due`, `absorb` and `reconcile`."""

    def __init__(
        self,
        settings: NightSettings,
        store: Store,
        ledger: Ledger,
        harvesting: BatchHarvester,
        here: ProcessEnvironment,
    ) -> None:
        self._settings, self._ledger, self._harvesting = settings, ledger, harvesting
        self._key, self._now_seconds = store.keys.address_key(settings.tenant), here.clock()
        self._nights = NightChain(store, settings.tenant, settings.profile)
        self._told = ErasureRequest(settings.who, here.when, "deleted where it came from")
        self._items: tuple[DueTranscript, ...] = ()

    def due(self, marks: Marks) -> DueTranscripts:
        """What is new in any source. Brings the ledger up to the last night first, because harvesting asks it."""
        if self._is_behind():
            self._ledger.absorb_kept(kept for batch in self._harvesting.records.every() for kept in batch.artifacts)
        listed = {uri: tuple(source.items()) for uri, source in self._harvesting.sources.items()}
        before = {uri: _mark(uri, marks) for uri in listed}
        tonight = {uri: self._due(uri, items, before[uri]) for uri, items in listed.items()}

        def after(left: Collection[DueTranscript]) -> Marks:
            undone = {(item.source, item.name) for item in left}
            return dict(marks) | {
                uri: self._advanced(uri, before[uri], items, tonight[uri], undone) for uri, items in listed.items()
            }

        self._items = tuple(_item(uri, item) for uri, items in tonight.items() for item in items)
        return DueTranscripts(items=self._items, marks=after)

    def _due(self, uri: str, items: Iterable[SourceItem], watermark: Watermark) -> tuple[SourceItem, ...]:
        settings = self._settings
        return due(
            items,
            watermark,
            mark=marker(self._key, uri),
            since_seconds=_seconds(settings.since),
            until_seconds=_seconds(settings.until),
            full=settings.full,
        )

    def _advanced(
        self,
        uri: str,
        watermark: Watermark,
        items: tuple[SourceItem, ...],
        tonight: tuple[SourceItem, ...],
        undone: set[tuple[str, str]],
    ) -> Mapping[str, object]:
        left = [item for item in tonight if (uri, item.name) in undone]
        mark = marker(self._key, uri)
        return advanced(watermark, items, tonight, left, mark=mark, now_seconds=self._now_seconds).to_json()

    def absorb(self, artifacts: Iterable[str], gone: Sequence[WithdrawnTranscript]) -> LedgerUpdate:
        """Take artifacts into the ledger.

        A transcript that was withdrawn where it came from leaves for good, and its artifacts with it.
        """
        self._ledger.absorb_kept(artifacts)
        for session in self._withdrawn(gone):
            self._ledger.withdraw(session=session, told=self._told)
        return LedgerUpdate(digest=self._ledger.digest(), observations=self._ledger.observations())

    def _is_behind(self) -> bool:
        """Whether the ledger is not what the last night left: another machine's, a new one, or something was erased."""
        newest = self._nights.head()
        return newest is not None and newest[1].ledger != self._ledger.digest()

    def _withdrawn(self, gone: Sequence[WithdrawnTranscript]) -> Iterator[str]:
        records = self._harvesting.records
        named = {records.address(item): item for item in self._items} if gone else {}
        for transcript in gone:
            for session in self._ledger.sessions(named[transcript.item].name) if transcript.item in named else ():
                if transcript.session in (None, records.session(session)):
                    yield session

    def reconcile(self) -> int:
        return self._ledger.components()


def _is_of(profile: Wire | None, name: str) -> bool:
    """Whether a session is one of this profile's, or of none that was ever committed."""
    return profile is None or profile.get("version") is None or profile.get("name") == name


def _item(uri: str, item: SourceItem) -> DueTranscript:
    """A listed item as a due transcript. The revision of a log is its length, that of a file its time."""
    revision = int(item.version.partition("@")[0]) if uri == "store" else int(item.modified_seconds * 1e6)
    return DueTranscript(uri, item.name, item.version, revision)


def _mark(uri: str, marks: Marks) -> Watermark:
    return Watermark.from_json(marks[uri]) if uri in marks else Watermark(source=uri)


def _seconds(when: str | None) -> float | None:
    return None if when is None else datetime.fromisoformat(when).timestamp()
