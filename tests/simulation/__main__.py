"""Run seeds and print what came of them: `python -m tests.simulation --seeds 200 --first 0 --workers 2`.

Prints runs, each failed seed with its reason, and in which share of the runs each fault fired. `--seed N` prints the
history of one seed. Exit code 1 if a run failed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from .simulation import Result, simulate
from .world import FAULTS, OUTCOMES


def results(seeds: Sequence[int], workers: int = 1) -> Iterable[Result]:
    if workers == 1:
        yield from map(simulate, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(simulate, seeds, chunksize=10)


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
    done = list(results(range(given.first, given.first + given.seeds), given.workers))
    print(table(done))
    return any(result.wrong for result in done)


if __name__ == "__main__":
    sys.exit(main())
