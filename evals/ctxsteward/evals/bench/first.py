"""A service that has just started: 200 threads open their first session at once, each of its own, in a fresh process.

Wall time until each has had its first message acknowledged by a journal in a file, and the most memory that the process
has held. The tokenizer's encoding is nearly all of both, and is built once (`tests/envelope/test_tokens.py`).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from . import BenchmarkRow, row

NAME = "first"
THREADS = 200
ROUNDS = 3
_PROBE = f"""
import json, resource, sys, tempfile, threading, time
from ctxsteward.envelope import open_store

def first(number):
    gate.wait()
    store.session(f"s{{number}}").append({{"role": "user", "content": "Where is order FH-2044?"}})

with tempfile.TemporaryDirectory() as folder, open_store(f"file:{{folder}}") as store:
    gate = threading.Barrier({THREADS} + 1)
    threads = [threading.Thread(target=first, args=(number,)) for number in range({THREADS})]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    assert len(store.sessions()) == {THREADS}
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, most / (1 << 20 if sys.platform == "darwin" else 1 << 10)]))
"""


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    rounds = [json.loads(subprocess.check_output([sys.executable, "-c", _PROBE])) for _ in range(ROUNDS)]
    seconds, megabytes = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    yield row(NAME, f"{THREADS} threads open their first session at once", seconds, "s", at_most=3)
    yield row(NAME, "  the most memory of that process", megabytes, "MB", at_most=250)
