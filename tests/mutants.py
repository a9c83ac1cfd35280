"""A mutation run over the core: small mistakes, one at a time in a copy of the source, and whether tests notice.

    python -m tests.mutants                          # what `make mutants` runs: 64 mutants of a fresh seed
    python -m tests.mutants --seed 7 --count 80 --only drift
    python -m tests.mutants --seed 7 --survivors     # those that survived, against the tests of today

Every area gets the same share of mutants. Each is tried on the tests that mirror its module (`Area.near`) and, where
these pass, on a wider ring (`Area.far`). A mutant is killed by a test that fails twice with it and passes without, or
by the time limit. What was found stands in `.mutants/SEED.jsonl`, so a run goes on where it was stopped;
`--write PAGE --block NAME` writes the score into a document. `mutants.yaml` says of survivors why they are equivalent.

Not mutated: messages, annotations, assertions, and numbers in constants of a module, which evals and bars hold. The
kept tools did not fit: mutmut traces one run of every test first (20 minutes here) and mutates in one process, where
our tests start others; cosmic-ray has one test command for all modules and drops no statements, guards or arguments.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import Progress
from ruamel.yaml import YAML

from ctxsteward.evals.documents import check_markers, table, write_blocks

from .house import ROOMS, ROOT, tracked
from .mutations import Mutant, is_other_code, mutants_of

KEPT = ROOT / ".mutants"
EQUIVALENT: dict[str, str] = YAML(typ="safe").load(Path(__file__).with_suffix(".yaml"))
"""Why no test can tell a mutant from the source, by its key."""
LIMIT_SECONDS, STALLED_SECONDS = 400, 1800
"""CPU time of one ring of tests, which take a minute or two of it; and wall time, for those that wait for ever."""


class Area(NamedTuple):
    """Modules as glob patterns in the repository, and the tests of them, nearest first."""

    modules: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]


_BUILDS = ("building", "history", "render", "layout", "compaction", "audit", "test_seal.py", "recall/test_selection.py")


def _area(room: str, modules: str, near: str, far: Iterable[str], elsewhere: str = "") -> Area:
    """Of one room: modules below its root, tests below ``tests/ROOM``; `elsewhere`: more tests, below ``tests``."""
    root = f"{'envelope' if room == 'store' else room}/ctxsteward/{room}"
    ring = [f"tests/{room}/{tests}" for tests in far if tests != near]
    ring += [f"tests/{tests}" for tests in elsewhere.split()]
    return Area(tuple(f"{root}/{module}.py" for module in modules.split()), (f"tests/{room}/{near}",), tuple(ring))


AREAS = {
    "layout": _area("envelope", "layout/*", "layout", _BUILDS, "store/facts"),
    "compaction": _area("envelope", "compaction/[cl]*", "compaction", _BUILDS),
    "policy": _area("envelope", "compaction/p*", "compaction", _BUILDS),
    "recall": _area("envelope", "recall/[!m]*", "recall", _BUILDS, "store/facts"),
    "references": _area("envelope", "recall/model_tools store", "recall", _BUILDS, "console/test_mcp.py"),
    "derived files": Area(
        ("envelope/ctxsteward/store/derived_files.py",),
        ("tests/envelope/recall/test_kept_readings.py",),
        ("tests/store/erasure/test_forget.py",),
    ),
    "updates": Area(
        ("summarizers/ctxsteward/summarizers/updates.py",),
        ("tests/summarizers",),
        (
            "tests/envelope/recall/test_superseded.py",
            "tests/envelope/recall/test_kept_readings.py",
            "tests/evals/suites",
        ),
    ),
    "render": _area("envelope", "render/*", "render", _BUILDS, "golden"),
    "seal": _area("envelope", "envelope", "test_seal.py", _BUILDS, "golden"),
    "commit": _area("store", "profiles/*", "profiles", ("golden",), "steward/release"),
    "journal": _area("store", "journal/*", "journal", ("golden", "replication/test_ownership.py"), "envelope/history"),
    "drain": _area("store", "replication/*", "replication", ("erasure/test_unreached.py",), "envelope/test_stores.py"),
    "chain": _area("store", "crypto/hash_chain", "crypto", ("profiles",)),
    "admission": _area("steward", "admission", "test_admission.py", ("ledger", "release", "test_poison.py")),
    "drift": _area("steward", "drift/*", "drift", ("release",)),
    "gate": _area("steward", "gate/*", "gate", ("release",)),
    "ledger": _area("steward", "ledger/*", "ledger", ("reconcile", "golden", "release", "night/test_run.py")),
    "gates": _area("evals", "suites/gates", "suites/test_gates.py", ("suites/test_results.py", "test_steward_gate.py")),
}


# -- one mutant ----------------------------------------------------------------------------------------------


class Copy:
    """A checkout of its own, beside the same data: its sources are changed and its tests run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        for path in tracked():
            to = self.root / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)
        for there in (ROOT.parent / "shared", ROOT / ".venv-ministack"):
            if there.exists():
                (folder if there.name == "shared" else self.root).joinpath(there.name).symlink_to(there.resolve())

    def killer(self, ring: tuple[str, ...], mutant: Mutant) -> str | None:
        """The test that notices a mutant: it fails with it, again alone, and passes without. None: all pass.

        Or the limit that was reached; or what stopped all tests.
        """
        path = self.root / mutant.module
        sound = path.read_bytes()
        tests = [mutant.module, *self._nearest_first(ring, mutant)]
        while True:
            path.write_bytes(sound[: mutant.start] + mutant.now.encode() + sound[mutant.stop :])
            try:
                killer = self._first_failure(tests)
                if killer is None or "::" not in killer:
                    return killer
                is_sure = self._first_failure([killer]) is not None
            finally:
                path.write_bytes(sound)
            if is_sure and self._first_failure([killer]) is not None:
                raise click.ClickException(f"{killer} fails without any mutant, too; mend it first")
            if is_sure:
                return killer
            tests += ["--deselect", killer]

    def _nearest_first(self, tests: tuple[str, ...], mutant: Mutant) -> list[str]:
        """The files of these tests, those first that name the module or the function most often."""
        words = [mutant.function.rpartition(".")[2], Path(mutant.module).stem]
        files = [path for name in tests for path in sorted((self.root / name).rglob("test_*.py")) or [self.root / name]]
        texts = {path: path.read_text(encoding="utf-8") for path in files}
        nearest = sorted(texts, key=lambda path: -sum(texts[path].count(word) for word in words))
        return [path.relative_to(self.root).as_posix() for path in nearest]

    def _first_failure(self, tests: list[str]) -> str | None:
        path = os.pathsep.join(str(self.root / room) for room in ROOMS)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        cache = self.root.parent / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        options = ("-q", "-x", "--tb=no", "-o", f"cache_dir={cache}", "--basetemp", str(self.root.parent / "tmp"))
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS)),
        )
        try:
            said, _ = process.communicate(timeout=STALLED_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"no end within {STALLED_SECONDS} s"
        if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"more than {LIMIT_SECONDS} s of CPU"
        if process.returncode == 0:
            return None
        failed = cache / "v" / "cache" / "lastfailed"
        names = list(json.loads(failed.read_text(encoding="utf-8"))) if failed.is_file() else []
        return str(names[0]) if names else said.strip().rpartition("\n")[2]


# -- a run ---------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    area: str
    key: str
    """Of the mutant: module, function, what was there, what stands there now."""
    at_first: str | None
    """What killed it when it was drawn; None: it survived."""
    killed_by: str | None
    """The same today."""
    equivalent: str | None = None
    """Why no test can tell it from the source."""


def drawn(seed: int, count: int, only: str) -> list[tuple[str, Mutant]]:
    """Mutants by area; within one every kind of mistake is as likely as the others."""
    pools: dict[str, list[Mutant]] = {}
    for name, area in AREAS.items():
        paths = [path for pattern in area.modules for path in sorted(ROOT.glob(pattern))]
        modules = [path.relative_to(ROOT).as_posix() for path in paths]
        found = [
            mutant
            for module in modules
            if only in (name, "") or only in module
            for mutant in mutants_of(ROOT / module, module)
        ]
        if found:
            pools[name] = _shuffled(found, random.Random(f"{seed} {name}"))
    if not pools:
        raise click.UsageError(f"--only {only}: neither an area nor part of a module's path; areas: {', '.join(AREAS)}")
    rounds = itertools.zip_longest(*([(name, mutant) for mutant in pool] for name, pool in pools.items()))
    pairs = (pair for pairs in rounds for pair in pairs if pair)
    real = ((area, mutant) for area, mutant in pairs if is_other_code(mutant, (ROOT / mutant.module).read_bytes()))
    return list(itertools.islice(real, count))


def _shuffled(mutants: list[Mutant], chance: random.Random) -> list[Mutant]:
    kinds: dict[str, list[Mutant]] = {}
    for mutant in chance.sample(mutants, len(mutants)):
        kinds.setdefault(mutant.what, []).append(mutant)
    rounds = itertools.zip_longest(*(kinds[kind] for kind in chance.sample(sorted(kinds), len(kinds))))
    return [mutant for mutants_of_round in rounds for mutant in mutants_of_round if mutant]


class Run:
    """Tries mutants in copies of the checkout and writes down what became of each."""

    def __init__(self, folder: Path, log: Path, workers: int) -> None:
        self._log, self._writing = log, threading.Lock()
        self._copies: queue.Queue[Copy] = queue.Queue()
        for number in range(workers):
            self._copies.put(Copy(folder / str(number)))

    def attempt(self, area: str, mutant: Mutant, before: Result | None) -> None:
        copy = self._copies.get()
        try:
            rings = (AREAS[area].near, AREAS[area].far)
            killer = next((by for ring in rings if (by := copy.killer(ring, mutant))), None)
        finally:
            self._copies.put(copy)
        result = Result(area, mutant.key, before.at_first if before else killer, killer)
        with self._writing, self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(result._asdict(), ensure_ascii=False) + "\n")


def results_of(log: Path, mutants: list[tuple[str, Mutant]]) -> list[Result]:
    """What is known of these mutants: from the log, the newest last, and from the list of equivalent ones."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    known = {result.key: result for result in (Result(**json.loads(line)) for line in lines)}
    for area, mutant in mutants:
        if why := EQUIVALENT.get(mutant.key):
            known[mutant.key] = Result(area, mutant.key, None, None, why)
    return [known[mutant.key] for _, mutant in mutants if mutant.key in known]


def report(seed: int, results: list[Result]) -> Iterator[str]:
    """The score by area, and one line for each mutant that survived when it was drawn."""

    def row(name: str, part: list[Result]) -> list[str]:
        real = [result for result in part if result.equivalent is None]
        killed = [
            sum(by is not None for by in found) for found in ([r.at_first for r in real], [r.killed_by for r in real])
        ]
        shares = [text for count in killed for text in (str(count), f"{100 * count / max(1, len(real)):.0f}")]
        return [name, str(len(part)), str(len(part) - len(real)), *shares]

    head = ("area", "mutants", "equivalent", "killed when drawn", "% of the others", "killed today", "% of the others")
    areas = {name: [result for result in results if result.area == name] for name in AREAS}
    yield f"Seed {seed}."
    yield ""
    yield from table(head, [*(row(name, part) for name, part in areas.items() if part), row("all", results)])
    yield ""
    for result in results:
        if result.at_first is None:
            said = f"killed since by `{result.killed_by}`" if result.killed_by else "survives"
            what = result.key.partition("/ctxsteward/")[2]
            yield f"- `{what}`: {f'equivalent: {result.equivalent}' if result.equivalent else said}"


@click.command()
@click.option("--seed", type=int, default=lambda: random.SystemRandom().randrange(10**6), help="default: a fresh one")
@click.option("--count", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--only", default="", help="an area, or part of a module's path")
@click.option("--survivors", is_flag=True, help="try those again that survived so far")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--write", "page", type=click.Path(path_type=Path), help="a document with a place for the score")
@click.option("--block", default="mutants", show_default=True, help="the place's name")
def main(
    seed: int, count: int, only: str, survivors: bool, workers: int, as_json: bool, page: Path | None, block: str
) -> None:
    """Draw mutants of the core and see which survive its tests."""
    if page is not None:
        check_markers(page, block)
    KEPT.mkdir(exist_ok=True)
    log, mutants = KEPT / f"{seed}.jsonl", drawn(seed, count, only)
    before = {result.key: result for result in results_of(log, mutants)}
    due = [
        (area, mutant)
        for area, mutant in mutants
        if (known := before.get(mutant.key)) is None or (survivors and not (known.killed_by or known.equivalent))
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(workers) as pool,
        Progress(console=Console(stderr=True)) as bar,
    ):
        run = Run(Path(folder), log, workers)
        tried = pool.map(lambda pair: run.attempt(*pair, before.get(pair[1].key)), due)
        for _ in bar.track(tried, total=len(due), description=f"seed {seed}"):
            pass
    results = results_of(log, mutants)
    lines = list(report(seed, results))
    click.echo(json.dumps([result._asdict() for result in results], indent=1) if as_json else "\n".join(lines))
    if page is not None:
        write_blocks(page, {block: lines})


if __name__ == "__main__":
    main()
