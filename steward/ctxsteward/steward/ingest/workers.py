"""A pool of worker processes, each busy with one item at a time, each replaced when it dies or is killed.

Workers are started with `subprocess`, so it makes no difference whether the caller is a main thread, a thread of a
flow's runner or a daemonic process, and nothing is forked with its threads. They are long-lived: what a worker costs
to start is paid once. A worker whose item broke a limit is killed, with everything it started, and another takes its
place. An item whose worker died is tried once more in a new one, so that what is said of it depends on it alone.
Leaving `run` before its end, in whatever way, an interrupt included, ends all of them.

The function is sent by name, so it must be importable (`functools.partial` of one is fine).

Raises whatever the iterable of items raises. What goes wrong in a worker is an answer; where a worker cannot be
started, `RuntimeError`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic

from .isolation import Answer, Limits, Result, quarantined
from .items import Loaded, Quarantined
from .worker import OUT_OF_MEMORY, Channel

START_SECONDS = 60.0
EXIT_SECONDS = 5.0
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from ctxsteward.steward.ingest.worker import serve
serve(int(sys.argv[1]))
"""


class Workers(Generic[Result]):
    """`Isolation` in processes. One `run` at a time; several pools may run in several threads."""

    def __init__(
        self,
        function: Callable[[Loaded], Result],
        count: int,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is started before `run`. `clock` is for deadlines alone; no answer depends on what it says."""
        self._function, self._count, self._limits = function, count, limits or Limits()
        self._clock = clock
        self._workers: list[_Worker] = []

    def run(self, items: Iterable[Loaded]) -> Iterator[Answer[Result]]:
        waiting, again = iter(items), deque[Loaded]()
        busy: dict[_Worker, Loaded] = {}
        try:
            self._fill(busy, waiting, again)
            while busy:
                for worker in self._finished(busy):
                    item = busy.pop(worker)
                    result = self._result(worker, item)
                    if result is None:
                        again.append(item)
                    self._fill(busy, waiting, again)  # they work on while the caller looks at the answer
                    if result is not None:
                        yield Answer(item, result)
        except BaseException:  # an interrupt, or the caller wants no more
            self.close()
            raise

    def close(self) -> None:
        """End every worker. Safe to call again; a later `run` starts new ones."""
        while self._workers:
            self._workers.pop().kill()

    def __enter__(self) -> Workers[Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, busy: dict[_Worker, Loaded], waiting: Iterator[Loaded], again: deque[Loaded]) -> None:
        """Keep every worker busy while there are items; what is tried again gets a new one."""
        while len(busy) < self._count:
            is_again = bool(again)
            item = again.popleft() if again else next(waiting, None)
            if item is None:
                return
            worker = next((one for one in self._workers if one not in busy and not is_again), None)
            if worker is None:
                worker = _Worker(self._function, self._limits, self._clock)
                self._workers.append(worker)
            busy[worker] = item
            worker.give(item, self._clock() + self._limits.wall_seconds)

    def _finished(self, busy: dict[_Worker, Loaded]) -> list[_Worker]:
        """Wait until workers have answered, died, or are out of time."""
        until = min(worker.deadline for worker in busy)
        ready = _readable(busy, until - self._clock())
        now = self._clock()
        return [worker for worker in busy if worker in ready or worker.deadline <= now]

    def _result(self, worker: _Worker, item: Loaded) -> Result | Quarantined | None:
        """What a worker says; one that is late, dead or unclear is ended. None: ask another."""
        if _readable((worker,), 0.0):
            try:
                kind, value = worker.receive()
            except (EOFError, OSError):
                return self._ended(worker, item)
            if kind == "result":
                result: Result = value
                return result
            return quarantined(item, *value)
        self._workers.remove(worker)
        worker.kill()
        return quarantined(item, "time_limit", f"it took more than {self._limits.wall_seconds:g} s")

    def _ended(self, worker: _Worker, item: Loaded) -> Quarantined | None:
        """Why a worker died. One that had other items before proves nothing: they may have left it in a bad state."""
        self._workers.remove(worker)
        code = worker.ended()
        if code == -signal.SIGXCPU:
            return quarantined(item, "cpu_limit", f"it took more than {self._limits.cpu_seconds:g} s of CPU")
        if worker.given > 1:
            return None
        if code == OUT_OF_MEMORY:
            return quarantined(item, "memory_limit", f"it needs more than {self._limits.memory_bytes:,} bytes")
        return quarantined(item, "worker_died", f"its worker ended with code {code}")


def _readable(workers: Iterable[_Worker], wait_seconds: float) -> set[_Worker]:
    """Those that have answered or died."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.socket, selectors.EVENT_READ, worker)
        return {key.data for key, _ in selector.select(max(0.0, wait_seconds))}


class _Worker:
    """One process, as the pool sees it."""

    def __init__(self, function: object, limits: Limits, clock: Callable[[], float]) -> None:
        self.deadline = 0.0
        self.given = 0
        """Items so far."""
        self._limits, self._clock = limits, clock
        self.socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._channel = Channel(self.socket)
        try:
            self._start(function)
        except BaseException:
            self.kill()
            raise

    def _start(self, function: object) -> None:
        self.socket.settimeout(START_SECONDS)
        try:
            self._channel.send((function, self._limits.memory_bytes))
            self._channel.receive()
        except (EOFError, OSError) as error:
            code = self.ended()
            what = f"a worker ended with code {code} before it began"
            raise RuntimeError(f"{what}; can its function be imported by name?") from error

    def give(self, item: Loaded, deadline: float) -> None:
        """Send an item. One that cannot be sent shows when the answer is asked for."""
        self.deadline = deadline
        self.given += 1
        self.socket.settimeout(self._limits.wall_seconds)
        with contextlib.suppress(OSError):
            self._channel.send((item, self._limits.cpu_seconds))

    def receive(self) -> tuple[str, Any]:
        """Its answer, which it has begun to send; one that stalls counts as a dead worker's."""
        self.socket.settimeout(self._limits.wall_seconds)
        kind, value = self._channel.receive()
        return kind, value

    def ended(self) -> int:
        """The exit code of a worker that has closed its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        return self.kill()

    def kill(self) -> int:
        """End it and all it started, at once; its exit code."""
        self.socket.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()
