"""Run seeds and print what came of them: `python -m tests.simulation --seeds 10000 --first 0 --workers 2`.

Prints runs, each failed seed with its reason, and in which share of the runs each fault fired. `--seed N` prints the
history of one seed. Exit code 1 if a run failed.

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
from pathlib import Path

from rich.console import Console
from rich.progress import track

from ..house import ROOMS, ROOT, tracked
from .simulation import Result, simulate
from .world import FAULTS, OUTCOMES

KEPT = ROOT / ".simulation"


def results(seeds: Sequence[int], workers: int = 1) -> Iterable[Result]:
    if workers == 1:
        yield from map(simulate, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(simulate, seeds, chunksize=10)


def log_of_this_code() -> Path:
    """The file of results that this code gave: any change of product or simulation begins another one."""
    digest = hashlib.sha256()
    for path in tracked(*(f"{room}/*" for room in ROOMS), "tests/simulation/*", "tests/steward/night/*"):
        digest.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return KEPT / f"{digest.hexdigest()[:16]}.jsonl"


def kept_results(seeds: Sequence[int], workers: int = 1) -> Iterator[Result]:
    """Results of seeds, in any order: known ones from the log, the others as they are run, without their events."""
    log = log_of_this_code()
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
        for result in results([seed for seed in seeds if seed not in known], workers):
            kept.write(json.dumps([result.seed, result.digest, result.wrong, result.fired]) + "\n")
            kept.flush()
            yield result._replace(events=())


def table(done: Sequence[Result]) -> str:
    """The report of these runs."""
    share = Counter(fault for result in done for fault, count in result.fired.items() if count)
    total = sum((Counter(result.fired) for result in done), Counter[str]())
    failed = [result for result in done if result.wrong]
    lines = [f"runs {len(done):,}, failed {len(failed):,}"]
    lines += [f"seed {result.seed}: {result.wrong[0].splitlines()[0][:160]}" for result in failed]
    lines += ["", f"{'fault':<24}{'fired':>9}{'of runs':>9}"]
    lines += [f"{fault:<24}{total[fault]:>9,}{share[fault] / len(done):>9.0%}" for fault in (*FAULTS, *OUTCOMES)]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, help="print the history of this seed alone")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        result = simulate(given.seed)
        print(*result.events, *result.wrong, sep="\n")
        return bool(result.wrong)
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: expected at least 1")
    seeds = range(given.first, given.first + given.seeds)
    runs = kept_results(seeds, given.workers)
    done = list(track(runs, "histories", total=given.seeds, console=Console(stderr=True)))
    print(table(done))
    return any(result.wrong for result in done)


if __name__ == "__main__":
    sys.exit(main())
