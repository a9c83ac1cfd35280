"""Many clients at once against a service of its own process: errors, how long a turn takes, and memory.

    python -m tests.load --clients 50 --seconds 120 --store file:/var/tmp/load      # or postgresql://…

Each client has sessions of its own, talks in them one turn after another (append what was said, build the request), and
begins a new one after `--turns` of them. Times are of one request, in milliseconds, as a client sees them; the first
tenth of the time warms up and counts for errors alone. Memory is the service's resident set, in MB: behind the warm-up,
half-way, and at the end. Late turns are those of the last third of a session, middle ones those of the second, early
ones those of the first. The first turns of a session have nothing to compact or recall and cost half as much as those
behind: whether a build grows dearer with its session is what late and middle turns say.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-c", "from ctxsteward.console.cli import main; main()", "serve", "--port", "0", "--json"]
SAID = "Order {n} of customer {c} is late again; it waits in depot {d}, and they want {m} euros back by Friday, please."
ANSWER = "I have looked at order {n}: it left depot {d} this morning, and {m} euros are on their way. Anything else?"
WARM_FRACTION = 0.1
MAX_ERRORS_SHOWN = 5


class LoadReport(NamedTuple):
    """What a run came to."""

    clients: int
    seconds: float
    requests: int
    per_second: float
    errors: int
    first_errors: tuple[str, ...]
    append_p50_ms: float
    append_p99_ms: float
    build_p50_ms: float
    build_p99_ms: float
    early_build_p50_ms: float
    middle_build_p50_ms: float
    late_build_p50_ms: float
    start_cpu_seconds: float
    """Of the service until it listened: what clients wait for after a restart."""
    memory_start_mb: float
    memory_middle_mb: float
    memory_end_mb: float
    exit_code: int


@dataclass(slots=True)
class LoadSample:
    """What all clients have measured."""

    appends: list[float] = field(default_factory=list)
    builds: list[tuple[int, float]] = field(default_factory=list)
    """Turn of its session, and milliseconds."""
    errors: list[str] = field(default_factory=list)
    requests: int = 0


class Client(threading.Thread):
    """One client: a connection that it keeps, a session at a time."""

    def __init__(self, number: int, port: int, turns: int, warm_at: float, end_at: float) -> None:
        super().__init__(daemon=True)
        self.number, self.turns, self.warm_at, self.end_at = number, turns, warm_at, end_at
        self.sample = LoadSample()
        self._port = port
        self._connect()

    def run(self) -> None:
        session = turn = 0
        while time.monotonic() < self.end_at:
            self._turn(f"load-{self.number}-{session}", turn)
            turn += 1
            if turn == self.turns:
                session, turn = session + 1, 0
        self._connection.close()

    def _connect(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        self._connection.connect()
        # Head and body go out as two packets; without this the second waits for the kernel to acknowledge the first.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _turn(self, session: str, turn: int) -> None:
        words = {"n": 1000 + turn, "c": self.number, "d": turn % 17, "m": 20 + turn % 300}
        said: dict[str, Any] = {
            "messages": [
                {"message": {"role": "assistant", "content": ANSWER.format(**words)}, "id": f"a{turn}"},
                {"message": {"role": "user", "content": SAID.format(**words)}, "id": f"u{turn}"},
            ]
        }
        appended = self._ask(f"/api/sessions/{session}/messages", said)
        built = self._ask(f"/api/sessions/{session}/build", {"provider": "openai-chat", "envelope": False})
        if time.monotonic() >= self.warm_at:
            self.sample.appends.append(appended)
            self.sample.builds.append((turn, built))

    def _ask(self, path: str, body: object) -> float:
        started = time.perf_counter()
        try:
            self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            answer = self._connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.sample.errors.append(f"{answer.status} {text[:200].decode()}")
        except (OSError, http.client.HTTPException) as error:
            self.sample.errors.append(f"{type(error).__name__}: {error}")
            self._connection.close()
            self._connect()
        self.sample.requests += 1
        return (time.perf_counter() - started) * 1000


def memory_mb(pid: int) -> float:
    """Resident set of a process; 0 where the system does not say."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    except OSError:
        return 0.0
    return round(int(found[1]) / 1024, 1) if found else 0.0


def cpu_seconds(pid: int) -> float:
    """That a process has used; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values: Sequence[float], fraction: float) -> float:
    """Of at least one value; 0 where there is none."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(fraction * len(ordered)))], 2) if ordered else 0.0


def load(clients: int, seconds: float, store: str, *, turns: int = 200, log: Path | None = None) -> LoadReport:
    """Start a service over this store, load it, and stop it."""
    with open(log or os.devnull, "w", encoding="utf-8") as err:
        process = subprocess.Popen(
            [*COMMAND, "--store", store, "--rate", "0"], stdout=subprocess.PIPE, stderr=err, text=True
        )
        try:
            assert process.stdout is not None
            port = int(json.loads(process.stdout.readline())["url"].rstrip("/").rpartition(":")[2])
            return _loaded(process, port, clients, seconds, turns)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def _loaded(process: subprocess.Popen[str], port: int, clients: int, seconds: float, turns: int) -> LoadReport:
    start_cpu = round(cpu_seconds(process.pid), 2)
    began = time.monotonic()
    warm_at, end_at = began + seconds * WARM_FRACTION, began + seconds
    threads = [Client(number, port, turns, warm_at, end_at) for number in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, warm_at - time.monotonic()))
    memory_start = memory_mb(process.pid)
    time.sleep(max(0.0, (warm_at + end_at) / 2 - time.monotonic()))
    memory_middle = memory_mb(process.pid)
    for thread in threads:
        thread.join()
    took, memory_end = time.monotonic() - began, memory_mb(process.pid)
    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=60)
    samples = [thread.sample for thread in threads]
    requests, errors = sum(one.requests for one in samples), [text for one in samples for text in one.errors]
    appends = [ms for one in samples for ms in one.appends]
    builds = [row for one in samples for row in one.builds]
    last = max((turn for turn, _ in builds), default=0)
    times = [ms for _, ms in builds]
    return LoadReport(
        clients=clients,
        seconds=round(took, 1),
        requests=requests,
        per_second=round(requests / took, 1),
        errors=len(errors),
        first_errors=tuple(errors[:MAX_ERRORS_SHOWN]),
        append_p50_ms=percentile(appends, 0.5),
        append_p99_ms=percentile(appends, 0.99),
        build_p50_ms=percentile(times, 0.5),
        build_p99_ms=percentile(times, 0.99),
        early_build_p50_ms=_median(ms for turn, ms in builds if turn * 3 < last),
        middle_build_p50_ms=_median(ms for turn, ms in builds if last <= turn * 3 < 2 * last),
        late_build_p50_ms=_median(ms for turn, ms in builds if turn * 3 >= 2 * last),
        start_cpu_seconds=start_cpu,
        memory_start_mb=memory_start,
        memory_middle_mb=memory_middle,
        memory_end_mb=memory_end,
        exit_code=code,
    )


def _median(values: Any) -> float:
    kept = list(values)
    return round(statistics.median(kept), 2) if kept else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--turns", type=int, default=200, help="of a session")
    parser.add_argument("--store", help="default: a folder that is gone afterwards")
    parser.add_argument("--log", type=Path, help="where the service's own log goes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = load(
            asked.clients, asked.seconds, asked.store or f"file:{folder}/store", turns=asked.turns, log=asked.log
        )
    print(json.dumps(report._asdict(), indent=1))
    return int(report.errors > 0 or report.exit_code != 0)


if __name__ == "__main__":
    sys.exit(main())
