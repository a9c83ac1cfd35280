"""A warm process that forks a child for every run: hundreds of crashes without starting an interpreter each.

    python -m tests.store.crashes.forkserver        # one JSON request a line in, one JSON answer a line out

A child runs a scenario and tells what it has been acknowledged, line by line over a pipe, which outlives it. It ends
at a crash point, by SIGKILL after `kill_seconds` (behind the `kill_build`-th build that it has begun, or its start), or
at the end of the scenario. The process has no threads when it
forks.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 60.0


class Ran(NamedTuple):
    """How a child has ended."""

    status: int
    """0, 137 at a crash point, -9 by SIGKILL."""
    told: list[list[Any]]
    """What it had been acknowledged, in order."""
    labels: list[str]
    """Points that were passed; of a child that came to its end."""
    error: str


class ForkServer:
    """The client's side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, scenario: str, place: tuple[str, ...], **more: Any) -> Ran:
        """`stop`: a label; `kill_seconds`, `kill_build`: when to kill; `given`: what the scenario is told."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"scenario": scenario, "place": place} | more) + "\n")
        stdin.flush()
        return Ran(**json.loads(stdout.readline()))

    def finished(self, scenario: str, place: tuple[str, ...], **more: Any) -> Ran:
        """Run to the end."""
        ran = self.run(scenario, place, **more)
        assert ran.status == 0, ran.error
        return ran


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    process = subprocess.Popen(
        [sys.executable, "-m", __name__ if __name__ != "__main__" else "tests.store.crashes.forkserver"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield ForkServer(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


# -- the process itself ------------------------------------------------------------------------------------------


def warm() -> None:
    """Run every scenario once: what is imported, and made at its first use, is there in all children."""
    from . import writer  # noqa: F401  # what others run
    from .places import Place
    from .scenarios import SCENARIOS

    for scenario in SCENARIOS.values():
        with tempfile.TemporaryDirectory() as folder, Place(scenario.places[0], folder).open() as machines:
            scenario.prepare(machines, lambda *_: None)
            scenario.run(machines, lambda *_: None)


def serve() -> None:
    from .buckets import bucket

    warm()
    for line in sys.stdin:
        request = json.loads(line)
        if request["scenario"] != "writer" and request["place"][2]:
            bucket(request["place"][2])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _child(writing, **{name: request[name] for name in request if not name.startswith("kill_")})
        os.close(writing)
        print(
            json.dumps(_watched(child, reading, request.get("kill_seconds"), request.get("kill_build", 0))), flush=True
        )


def _child(writing: int, scenario: str, place: list[str], stop: str | None = None, given: Any = None) -> None:
    from .places import Place
    from .points import Points
    from .scenarios import SCENARIOS
    from .writer import write_for_ever

    def tell(*what: Any) -> None:
        os.write(writing, json.dumps(["told", what]).encode() + b"\n")

    try:
        if scenario == "writer":
            write_for_ever(Path(place[1]), place[0], given, tell)
        points = Points(stop)
        with Place(*place).open(points) as machines:
            getattr(SCENARIOS[scenario], "prepare" if given == "prepare" else "run")(machines, tell)
        for start in range(0, len(points.labels), 100):
            os.write(writing, json.dumps(["labels", points.labels[start : start + 100]]).encode() + b"\n")
    except BaseException:
        os.write(writing, json.dumps(["error", traceback.format_exc()]).encode() + b"\n")
        os._exit(1)
    os._exit(0)


def _watched(child: int, reading: int, kill_seconds: float | None, kill_build: int) -> dict[str, Any]:
    until = time.monotonic() + (LIMIT_SECONDS if kill_seconds is None or kill_build else kill_seconds)
    data, killed = b"", False
    while True:
        if kill_build and data.count(b'["building"]') >= kill_build:
            until, kill_build = time.monotonic() + (kill_seconds or 0.0), 0
        left = max(0.0, until - time.monotonic())
        if not killed and not select.select([reading], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)  # ours: it was forked here and is not waited for yet
            killed = True
        more = os.read(reading, 1 << 16)
        if not more:
            break
        data += more
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    return {
        "status": status,
        "told": [what for kind, what in lines if kind == "told"],
        "labels": [label for kind, what in lines if kind == "labels" for label in what],
        "error": "".join(what for kind, what in lines if kind == "error"),
    }


if __name__ == "__main__":
    serve()
