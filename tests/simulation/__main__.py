"""Run seeds and print what came of them: `python -m tests.simulation --seeds 10000 --first 0 --workers 2`.

Prints runs, each failed seed with its reason, and in which share of the runs each fault fired. `--seed N` prints the
history of one seed. Exit code 1 if a run failed. With `--postgres` every seed has a database of a PostgreSQL server,
which is started and stopped here.

What came of each seed stands in `.simulation/`, in a file for this very code, so a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from ..house import ROOMS, ROOT, tracked
from ..postgres import PostgresServer, programs, running
from .database import FAULTS as DATABASE_FAULTS
from .simulation import Result, simulate
from .world import FAULTS, OUTCOMES

KEPT = ROOT / ".simulation"


def results(seeds: Sequence[int], workers: int = 1, server: PostgresServer | None = None) -> Iterable[Result]:
    run = partial(simulate, server=server)
    if workers == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(run, seeds, chunksize=10)


def log_of_this_code(kind: str = "") -> Path:
    """The file of results that this code gave: any change of product or simulation begins another one."""
    digest = hashlib.sha256()
    for path in tracked(*(f"{room}/*" for room in ROOMS), "tests/simulation/*", "tests/steward/night/*"):
        digest.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return KEPT / f"{digest.hexdigest()[:16]}{kind}.jsonl"


def kept_results(seeds: Sequence[int], workers: int = 1, server: PostgresServer | None = None) -> Iterator[Result]:
    """Results of seeds, in any order: known ones from the log, the others as they are run, without their events."""
    log = log_of_this_code("" if server is None else "-postgres")
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.is_file() else []
    whole = [line for line in lines if line.endswith("\n")]  # a run that was killed may have left half a line
    known: dict[int, Result] = {}
    for line in whole:
        seed, digest, wrong, fired = json.loads(line)
        known[seed] = Result(seed, digest, tuple(wrong), fired, ())
    wanted = set(seeds)
    yield from (result for seed, result in known.items() if seed in wanted)
    KEPT.mkdir(exist_ok=True)
    if len(whole) < len(lines):
        log.write_text("".join(whole), encoding="utf-8")
    with log.open("a", encoding="utf-8") as kept:
        for result in results([seed for seed in seeds if seed not in known], workers, server):
            kept.write(json.dumps([result.seed, result.digest, result.wrong, result.fired]) + "\n")
            kept.flush()
            yield result._replace(events=())


def table(done: Sequence[Result], faults: Iterable[str] = (*FAULTS, *OUTCOMES)) -> str:
    """The report of these runs."""
    share = Counter(fault for result in done for fault, count in result.fired.items() if count)
    total = sum((Counter(result.fired) for result in done), Counter[str]())
    failed = [result for result in done if result.wrong]
    lines = [f"runs {len(done):,}, failed {len(failed):,}"]
    lines += [f"seed {result.seed}: {result.wrong[0].splitlines()[0][:160]}" for result in failed]
    lines += ["", f"{'fault':<24}{'fired':>9}{'of runs':>9}"]
    lines += [f"{fault:<24}{total[fault]:>9,}{share[fault] / len(done):>9.0%}" for fault in faults]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, help="print the history of this seed alone")
    parser.add_argument("--postgres", action="store_true", help="in a database; needs the programs of PostgreSQL")
    given = parser.parse_args(arguments)
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: expected at least 1")
    if given.postgres and programs() is None:
        parser.error("--postgres: there is no PostgreSQL here; apt-get install postgresql")
    with running() if given.postgres else nullcontext() as server:
        if given.seed is not None:
            result = simulate(given.seed, server=server)
            print(*result.events, *result.wrong, sep="\n")
            return bool(result.wrong)
        seeds = range(given.first, given.first + given.seeds)
        runs = kept_results(seeds, given.workers, server)
        done = list(track(runs, "histories", total=given.seeds, console=Console(stderr=True)))
    print(table(done) if server is None else table(done, DATABASE_FAULTS))
    return any(result.wrong for result in done)


if __name__ == "__main__":
    sys.exit(main())
