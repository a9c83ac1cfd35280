"""Open a night from its settings: store, sources, workers, ledger and gates behind the stages of `night.run`.

    with open_night(settings, of_this_process()) as night:
        report = run_night(night)

A runner that harvests batches in other processes (a Prefect task, a Dask worker) calls `harvest_in_process` there: the
same settings open the same store. The ledger's file is beside the store's journal. If it is missing or outdated, it is
rebuilt from the store before the harvest, because the harvest also counts which events the records in force anticipated
(`harvest.usage`). A dry run does all of this over a store in memory (`night.environment`).

Raises `InputError` for settings that name a missing profile or source, `StoreError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri
from ctxsteward.store.backend import local_folder
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.journal.erasures import ErasureRequest
from ctxsteward.store.names import part_of
from ctxsteward.store.profiles.versions import WriterLease, profile_names
from ctxsteward.store.sqlite_file import IN_MEMORY

from .artifacts.storage import ArtifactStore
from .harvest.batches import Batch, BatchRecords, BatchResult, in_threads
from .harvest.usage import WatchedRecord
from .ingest.items import SourceItem
from .ingest.pipeline import IngestSettings
from .ingest.sources import STORE, TranscriptSource, open_source
from .ingest.watermark import Watermark, advanced, due, marker
from .ingest.worker_pool import Isolation, ItemLimits, WorkerPool
from .ledger.facade import Ledger
from .night.batch_harvest import HarvestResult, HarvestWorker, harvest_batch
from .night.chain import NightChain
from .night.environment import ProcessEnvironment, draft_store
from .night.run import Marks, MarksWithout, OpenNight, Tell
from .release.decision import Decisions, Records, in_force
from .settings import NightSettings

MAX_NAMES_SHOWN = 5


def home_of(settings: NightSettings) -> Path:
    """Return this machine's folder of the store, or of its journal."""
    return local_folder(settings.store, settings.journal)


def ledger_path(settings: NightSettings) -> Path:
    """Return the path of the ledger's file."""
    return home_of(settings) / "ledgers" / part_of(settings.tenant) / f"{part_of(settings.profile)}.sqlite"


def require(settings: NightSettings, store: Store) -> None:
    """Refuse a profile that was never committed, and a source without a transcript."""
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
    """Refuse a source that is missing or empty; only the store may still have no sessions."""
    if uri == STORE:
        return
    source = open_source(uri)
    try:
        first = next(iter(source.items()), None)
    finally:
        source.close()
    if first is None:
        raise InputError("no transcript is there; name a folder with .json, .jsonl, .ndjson or .traj files")


Isolate = Callable[[HarvestWorker, NightSettings], Isolation[HarvestResult]]
"""Makes a worker pool that runs a `HarvestWorker` on items; called once in each thread."""


def in_a_worker(worker: HarvestWorker, settings: NightSettings) -> Isolation[HarvestResult]:
    """Return one worker process under the limits of the settings."""
    limits = ItemLimits(
        wall_seconds=settings.limit_seconds, cpu_seconds=settings.limit_seconds, memory_bytes=settings.limit_bytes
    )
    return WorkerPool(worker, 1, limits)


@contextmanager
def open_night(
    settings: NightSettings,
    here: ProcessEnvironment,
    *,
    tell: Tell = lambda boundary: None,
    isolate: Isolate = in_a_worker,
) -> Iterator[OpenNight]:
    """Open everything that a night needs, and close it at the end."""
    if settings.dry_run and settings.runner != "threads":
        raise InputError("a dry run keeps everything in the memory of this process; set `runner: threads`")
    with ExitStack() as stack:
        store = _store(settings, here, stack)
        path = IN_MEMORY if settings.dry_run or settings.store == "memory:" else ledger_path(settings)
        ledger = stack.enter_context(Ledger.open(path, store, settings.tenant, settings.profile))
        sources = _sources(settings, store, here, stack)
        worker = _worker(settings, store)
        records = BatchRecords(store, settings.tenant, settings.profile, extractor=worker.extractor)

        @cache
        def watching() -> HarvestWorker:  # called after the ledger has caught up with the last night
            return _watching(worker, in_force(settings, store, ledger))

        harvest = partial(
            harvest_batch,
            sources=sources,
            artifacts=ArtifactStore(store, settings.tenant),
            records=records,
            isolate=lambda: isolate(watching(), settings),
            watch=ledger.uses.watched,
        )
        chain = NightChain(store, settings.tenant, settings.profile)
        yield OpenNight(
            settings=settings,
            store=store,
            ledger=ledger,
            date=settings.night or here.today,
            when=here.when,
            chain=chain,
            records=records,
            lease=WriterLease(store, settings.profile, settings.tenant, owner=here.owner, clock=here.clock),
            cpu_seconds=here.cpu_seconds,
            abandoned=here.abandoned,
            tell=tell,
            due=partial(
                _due,
                settings=settings,
                sources=sources,
                key=store.keys.address_key(settings.tenant),
                now_seconds=here.clock(),
                catch_up=partial(_catch_up, ledger, chain, records),
            ),
            harvest=in_threads(harvest, settings.workers),
            absorb=partial(
                _absorb, ledger, records, ErasureRequest(settings.who, here.when, "deleted where it came from")
            ),
            reconcile=ledger.components,
            decisions=Decisions(settings, store, ledger),
        )


def harvest_in_process(settings: NightSettings, batch: Batch, here: ProcessEnvironment) -> BatchResult:
    """Harvest one batch in this process, with its own store and worker.

    Anticipated events are counted only on the machine that has the ledger.
    """
    before = here.cpu_seconds()
    with ExitStack() as stack:
        store, path = _store(settings, here, stack), ledger_path(settings)
        opened = Ledger.open(path, store, settings.tenant, settings.profile) if path.exists() else None
        ledger = stack.enter_context(opened) if opened else None
        worker = _worker(settings, store)
        active = in_force(settings, store, ledger) if ledger else ()
        result = harvest_batch(
            batch,
            sources=_sources(settings, store, here, stack),
            artifacts=ArtifactStore(store, settings.tenant),
            records=BatchRecords(store, settings.tenant, settings.profile, extractor=worker.extractor),
            isolate=lambda: in_a_worker(_watching(worker, active), settings),
            watch=ledger.uses.watched if ledger else lambda ids: (),
        )
    return replace(result, cpu_seconds=here.cpu_seconds() - before)


def _store(settings: NightSettings, here: ProcessEnvironment, stack: ExitStack) -> Store:
    if settings.dry_run and settings.store.startswith("file:") and not home_of(settings).exists():
        return stack.enter_context(open_store("memory:"))
    store = stack.enter_context(open_store(settings.store, journal=settings.journal, keys=here.keys()))
    return draft_store(store, settings.tenant) if settings.dry_run else store


def _sources(
    settings: NightSettings, store: Store, here: ProcessEnvironment, stack: ExitStack
) -> dict[str, TranscriptSource]:
    """Open the sources, by URI, until the stack ends."""
    opened = {}
    for uri in settings.sources:
        opened[uri] = open_source(
            uri, store=store, tenant=settings.tenant, profile=settings.profile, now_seconds=here.clock()
        )
        stack.callback(opened[uri].close)
    return opened


def _worker(settings: NightSettings, store: Store) -> HarvestWorker:
    ingest = IngestSettings(
        internal_tools=frozenset(settings.internal_tools), confirming_tools=settings.confirming_tools
    )
    return HarvestWorker(key=store.keys.address_key(settings.tenant), settings=ingest)


def _watching(worker: HarvestWorker, active: Records) -> HarvestWorker:
    """Return the worker with these records, of which it counts how many events they anticipated."""
    return replace(worker, active=tuple(map(WatchedRecord.of, active)))


def _catch_up(ledger: Ledger, chain: NightChain, records: BatchRecords) -> None:
    """Rebuild a ledger that does not match the last night, because it is new, erased, or of another machine."""
    newest = chain.head()
    if newest is not None and newest.ledger != ledger.digest():
        ledger.absorb_kept(artifact for batch in records.every() for artifact in batch.artifacts)


def _due(
    marks: Marks,
    *,
    settings: NightSettings,
    sources: Mapping[str, TranscriptSource],
    key: AddressKey,
    now_seconds: float,
    catch_up: Callable[[], None],
) -> tuple[tuple[SourceItem, ...], MarksWithout]:
    """Return the items to read; the ledger catches up with the last night first, because harvesting asks it."""
    catch_up()
    # The URI of a bucket in the settings names its endpoint as well.
    listed = {uri: tuple(item._replace(source=uri) for item in source.items()) for uri, source in sources.items()}
    before = {uri: Watermark.from_json(marks[uri]) if uri in marks else Watermark(source=uri) for uri in listed}
    tonight = {
        uri: due(
            items,
            before[uri],
            mark=marker(key, uri),
            since_seconds=_seconds(settings.since),
            until_seconds=_seconds(settings.until),
            full=settings.full,
        )
        for uri, items in listed.items()
    }

    def after(left: Collection[SourceItem]) -> Marks:
        moved = {}
        for uri, items in listed.items():
            unread = [item for item in tonight[uri] if item in left]
            mark = marker(key, uri)
            watermark = advanced(before[uri], items, tonight[uri], unread, mark=mark, now_seconds=now_seconds)
            moved[uri] = watermark.to_json()
        return dict(marks) | moved

    return tuple(item for items in tonight.values() for item in items), after


def _absorb(
    ledger: Ledger,
    records: BatchRecords,
    request: ErasureRequest,
    artifacts: Iterable[str],
    withdrawn: Sequence[tuple[SourceItem, str | None]],
) -> tuple[str, int]:
    """Add artifacts to the ledger, and remove for good the transcripts that were withdrawn at their source."""
    ledger.absorb_kept(artifacts)
    for item, address in withdrawn:
        for session in ledger.sessions(item.name):
            if address in (None, records.session(session)):
                ledger.withdraw(session=session, told=request)
    return ledger.digest(), ledger.observations()


def _seconds(when: str | None) -> float | None:
    return None if when is None else datetime.fromisoformat(when).timestamp()
