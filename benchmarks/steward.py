"""The cost of a night: against parsing and tokenizing, by stage, against a full night, in memory, on two workers, and
in the size of its store relative to its input.

There is no model. Transcripts are made up (`conversations.write`), one file each; throughput uses public ones if their
folder is given. Work is CPU time of the driver and of all its workers. Throughput is measured in one process with a
store in memory, so that the disk does not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from ctxsteward.envelope import load_tokenizer
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward import NightReport, NightSettings, of_this_process, open_night, run_night
from ctxsteward.steward.harvest.batches import batched
from ctxsteward.steward.ingest.items import LoadedItem, is_named_like_transcript
from ctxsteward.steward.ingest.worker_pool import InProcess
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.steward.setup import Isolate, harvest_in_process, in_a_worker
from ctxsteward.store.crypto.keyring import AddressKey

from .conversations import write
from .rows import BenchmarkRow, row

NAME = "steward"
PUBLIC = ("tau_bench_airline", "swe_agent")
READ = 400
"""Transcripts of the throughput rows."""
FULL = 10_000
"""Transcripts of the full night."""
DRIVEN = (500, 2_000)
"""Transcripts of the nights whose drivers' memory is compared."""
SHARED_OUT, BATCH = 800, 100
"""Transcripts of the row on two workers, and of one of its batches."""
ROUNDS = 3
FREE_LOAD = 0.7
"""Load average of the machine above which two workers cannot be measured."""


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Yield the figures; `data` is a folder of public transcripts, for the throughput rows."""
    yield from _throughput(data)
    yield from _increment()
    yield from _sizes(data)
    yield from _memory()
    yield from _two_workers()


# -- throughput ---------------------------------------------------------------------------------------------------


def _throughput(data: Path | None) -> Iterator[BenchmarkRow]:
    with TemporaryDirectory() as folder:
        inside = Path(folder) / "in"
        write(inside, READ)
        sources = _sources(data, inside)
        files = [(path.name, path.read_bytes()) for source in sources for path in _transcripts(Path(source))]
        settings = NightSettings(store="memory:", sources=sources, profile="bench", night="2026-11-22")
        spent: dict[str, float] = {}
        acts = (lambda: _floor(files)), (lambda: _read(files)), (lambda: _night(settings, spent, isolate=_in_process))
        list(map(_cpu, acts))  # the first ones warm up
        spent.clear()
        rounds = [tuple(map(_cpu, acts)) for _ in range(ROUNDS)]
        reader = median(floor / read for floor, read, _ in rounds)
        whole = median(floor / night for floor, _, night in rounds)
        floors = sum(floor for floor, _, _ in rounds)
    kind = "public transcripts" if data else "made-up transcripts"
    yield row(NAME, f"speed of ingest and harvest / parsing and tokenizing alone, {kind}", reader, "×", at_least=0.25)
    yield row(NAME, "the same of the whole night, ledger and gate with it", whole, "×", at_least=0.25)
    for stage, seconds in _by_stage(spent).items():
        yield row(NAME, f"of that night, {stage} / parsing and tokenizing", seconds / floors, "×")


STAGES = {
    "its batches: reading, harvest, artifacts": ("batch", "harvested"),
    "its ledger": ("absorbed",),
    "its judgement": ("admitted",),
    "its versions": ("promoted",),
}
"""Stages of a night, and the boundaries that end their parts."""
OTHER = "all else"


def _by_stage(spent: Mapping[str, float]) -> dict[str, float]:
    """Return CPU seconds by stage."""
    named = {name: sum(spent.get(boundary, 0.0) for boundary in ends) for name, ends in STAGES.items()}
    return named | {OTHER: sum(spent.values()) - sum(named.values())}


def _sources(data: Path | None, inside: Path) -> tuple[str, ...]:
    return tuple(str(data / name) for name in PUBLIC) if data else (str(inside),)


def _transcripts(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if is_named_like_transcript(path.name)]


def _read(files: list[tuple[str, bytes]]) -> int:
    """Ingest and harvest every transcript, up to its artifact."""
    reaper = HarvestWorker(key=AddressKey(b"k" * 32))
    return sum(len(reaper.artifacts(LoadedItem(source=name, name=name, data=data))) for name, data in files)


def _floor(files: list[tuple[str, bytes]]) -> int:
    """Parse every transcript and count its tokens."""
    count = load_tokenizer("o200k_base").count
    total = 0
    for name, data in files:
        for transcript in parse_transcripts(data, name):
            for entry in transcript.entries():
                message = take_wire(entry.wire)[1]
                total += count(message.text)
                total += sum(count(result.text) for result in message.tool_results)
                total += sum(count(call.arguments) for call in message.tool_calls)
    return total


def _cpu(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def _in_process(reaper: HarvestWorker, settings: NightSettings) -> InProcess[Any]:
    return InProcess(reaper)


def _night(
    settings: NightSettings,
    spent: dict[str, float] | None = None,
    *,
    isolate: Isolate = in_a_worker,
) -> NightReport:
    """Run a night; add to `spent` the CPU time up to each boundary from the one before."""
    here = of_this_process()
    at = [here.cpu_seconds()]

    def tell(boundary: str) -> None:
        at.append(here.cpu_seconds())
        if spent is not None:
            spent[boundary] = spent.get(boundary, 0.0) + at[-1] - at[-2]

    with open_night(settings, here, isolate=isolate, tell=tell) as opening:
        tell("opened")
        return run_night(opening)


# -- a night with few new transcripts -----------------------------------------------------------------------------


def _increment() -> Iterator[BenchmarkRow]:
    spent: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        inside = Path(folder) / "in"
        write(inside, FULL)
        settings = _settings(folder, night="2026-11-22")
        full = _night(settings, spent)
        write(inside, FULL // 100, FULL)
        little = _night(_next(settings, "2026-11-23"))
        none = _night(_next(settings, "2026-11-24"))
    share, idle = (100 * one.cpu_seconds / full.cpu_seconds for one in (little, none))
    yield row(NAME, f"work of a night with 1 % new / that of the full one, {FULL:,} transcripts", share, "%", at_most=3)
    yield row(NAME, "work of a night with nothing new / that of the full one", idle, "%")
    yield row(NAME, f"CPU of the full night, {FULL:,} transcripts", full.cpu_seconds, "s")
    yield row(NAME, f"CPU of the night with {FULL // 100} new ones", little.cpu_seconds, "s")
    for stage, seconds in _by_stage(spent).items():
        yield row(NAME, f"of the full night, {stage}, a transcript", 1_000 * seconds / FULL, "ms")


# -- size of the store --------------------------------------------------------------------------------------------

PARTS = {
    "ledgers": "ledger",
    "blobs": "artifacts",
    "keys": "data keys",
    "steward": "batches and nights",
}
"""Folder of each part of a store, and the part's name."""


def _sizes(data: Path | None) -> Iterator[BenchmarkRow]:
    with TemporaryDirectory() as folder:
        write(Path(folder) / "in", READ)
        for kind, given in (("made-up", None), *((("public", data),) if data else ())):
            home = Path(folder) / kind
            sources = _sources(given, Path(folder) / "in")
            _night(_settings(str(home), sources=sources, night="2026-11-22"), isolate=_in_process)
            taken = {file: file.stat() for file in (home / "store").rglob("*") if file.is_file()}
            given_files = [file.stat() for source in sources for file in Path(source).iterdir()]
            whole = sum(file.st_size for file in given_files)
            room = sum(file.st_size for file in taken.values()) / whole
            yield row(NAME, f"store / its input, bytes, {kind} transcripts", room, "×", at_most=2)
            for part, name in PARTS.items():
                share = sum(found.st_size for file, found in taken.items() if _part(file, home / "store") == part)
                yield row(NAME, f"of that, {name}", share / whole, "×")
            blocks = sum(found.st_blocks for found in taken.values()) / sum(file.st_blocks for file in given_files)
            yield row(NAME, f"store / its input, blocks of this disk, {kind} transcripts", blocks, "×")


def _part(file: Path, store: Path) -> str:
    first, *rest = file.relative_to(store).parts
    return rest[0] if first == "objects" else first


def _next(settings: NightSettings, night: str) -> NightSettings:
    return settings.model_copy(update={"night": night})


def _settings(folder: str, **more: Any) -> NightSettings:
    fields: dict[str, Any] = {
        "store": f"file:{folder}/store",
        "sources": (f"{folder}/in",),
        "profile": "bench",
        "workers": 1,
    }
    return NightSettings(**fields | {"workers": 1} | more)


# -- the driver's memory ------------------------------------------------------------------------------------------

_PROBE = """
import re, sys
from pathlib import Path
from benchmarks.steward import _night
from ctxsteward.steward.settings import NightSettings

_night(NightSettings.model_validate_json(sys.argv[1]))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""Prints the peak of this process alone; `getrusage` includes its parent's."""


def _memory() -> Iterator[BenchmarkRow]:
    peaks = []
    for count in DRIVEN:
        with TemporaryDirectory() as folder:
            write(Path(folder) / "in", count)
            told = _settings(folder, night="2026-11-22").model_dump_json()
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            peaks.append(int(subprocess.check_output([sys.executable, "-c", _PROBE, told], env=env)) / 1024)
    few, many = DRIVEN
    what = f"peak memory of the driver, {many:,} / {few:,} transcripts"
    yield row(NAME, what, peaks[1] / peaks[0], "×", at_most=1.2)
    yield row(NAME, f"peak memory of the driver, {many:,} transcripts", peaks[1], "MB")


# -- two workers --------------------------------------------------------------------------------------------------


def _two_workers() -> Iterator[BenchmarkRow]:
    what = f"batches on Dask, two workers / one, wall time, {SHARED_OUT:,} transcripts"
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    if cores < 2 or load > FREE_LOAD:
        yield BenchmarkRow(bench=NAME, what=what, value=f"not measured: load {load:.1f} on {cores} cores")
        return
    try:
        import distributed
    except ImportError:
        yield BenchmarkRow(bench=NAME, what=what, value="not measured: Dask is not installed")
        return
    one, two = (_on_dask(distributed, workers) for workers in (1, 2))
    yield row(NAME, what, one / two, "×", at_least=1.6)


def _on_dask(distributed: Any, workers: int) -> float:
    """Return the seconds for all batches on a warm cluster of `workers` processes."""
    local = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with TemporaryDirectory() as folder, distributed.LocalCluster(n_workers=workers, **local) as cluster:
        write(Path(folder) / "in", SHARED_OUT)
        settings = _settings(folder)
        batches = list(_batches(settings))
        with distributed.Client(cluster) as client:
            client.gather([client.submit(_warm, n, pure=False) for n in range(4 * workers)])
            started = time.perf_counter()
            client.gather([client.submit(_harvest, settings, batch) for batch in batches])
            return time.perf_counter() - started


def _batches(settings: NightSettings) -> Iterator[Any]:
    with open_night(settings, of_this_process()) as opening:
        due, _ = opening.due({})
        for items in batched(due, BATCH):
            yield opening.records.batch(items)


def _harvest(settings: NightSettings, batch: Any) -> str:
    return harvest_in_process(settings, batch, of_this_process()).address


def _warm(number: int) -> int:
    return load_tokenizer("o200k_base").count(f"warm {number}")
