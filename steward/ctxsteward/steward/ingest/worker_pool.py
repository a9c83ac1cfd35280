"""One function run on many items, where one bad item stops no other.

A night harvests its items with it. Two ways give the same answers: `WorkerPool` in processes of its own, under limits
of time and memory; `InProcess` right here, without limits, for tests and small runs. Both take items lazily and hand on
each answer as it comes, so memory does not grow with the number of items; the order of answers says nothing.

Limits hold for one item. `wall_seconds` is kept by the caller, who kills the worker and everything it started;
`cpu_seconds` and `memory_bytes` by the kernel (RLIMIT_CPU; RLIMIT_AS, on top of what an idle worker has mapped). An
item whose worker died is tried once more in a new one, so that what is said of it depends on it alone. Leaving `run` in
whatever way, an interrupt included, ends all workers.

Workers are started with `subprocess` and talked to over `multiprocessing.connection`, so it makes no difference whether
the caller is a main thread, a thread of a flow's runner or a daemonic process, and nothing is forked with its threads.
A worker runs this module's `serve` with a socket and lives no longer than its caller: when the connection ends, a
thread ends the process. The function is sent by name, so it must be importable (`functools.partial` of one is fine).
Messages to a worker: ``(function, memory_bytes)``, then ``(item, cpu_seconds)`` each. From it: ``("ready", None)``,
then ``("result", value)`` or ``("failed", (reason, detail))`` each. Exit codes: 0 the other end is gone,
`OUT_OF_MEMORY` a limit was reached, `UNREADABLE` a message cannot be unpickled; SIGXCPU is the CPU limit.

Raises whatever the iterable of items raises. What goes wrong in a worker is an answer; where a worker cannot be
started, `RuntimeError`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import PurePath
from typing import Any, Generic, Protocol, TypeVar

from ctxsteward.schemas import ContextError

from .items import LoadedItem, QuarantinedItem, Reason

Result = TypeVar("Result")
Given = TypeVar("Given", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLimits:
    """What one item may take."""

    wall_seconds: float = 30.0
    cpu_seconds: float = 30.0
    """The kernel counts whole seconds: it is rounded up."""
    memory_bytes: int = 1 << 30


class Isolation(Protocol[Given]):
    """Runs one function on many items; `WorkerPool` and `InProcess` are the two ways."""

    def run(self, items: Iterable[LoadedItem]) -> Iterator[tuple[LoadedItem, Given | QuarantinedItem]]:
        """Each item with what became of it, in any order."""

    def close(self) -> None: ...


class InProcess(Generic[Result]):
    """`Isolation` in this process: an exception is caught, but nothing ends an endless loop."""

    def __init__(self, function: Callable[[LoadedItem], Result]) -> None:
        self._function = function

    def run(self, items: Iterable[LoadedItem]) -> Iterator[tuple[LoadedItem, Result | QuarantinedItem]]:
        for item in items:
            try:
                yield item, self._function(item)
            except Exception as error:
                yield item, quarantined(item, *reason_of(error))

    def close(self) -> None:
        """Nothing to release."""


def quarantined(item: LoadedItem, reason: Reason, detail: str) -> QuarantinedItem:
    return QuarantinedItem(source=item.source, name=item.name, reason=reason, detail=detail)


def reason_of(error: Exception) -> tuple[Reason, str]:
    """Why an item failed: the kind of error and where it was raised; its words only where it is this product's own."""
    if isinstance(error, MemoryError):
        return "memory_limit", "it needs more memory than there is"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    words = f": {' '.join(str(error).split())[:200]}" if isinstance(error, ContextError) else ""
    return "failed", f"{type(error).__name__}{where}{words}"


OUT_OF_MEMORY = 86
UNREADABLE = 87


def serve(descriptor: int) -> None:
    """Answer until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us decides when it is over
    _set_soft(resource.RLIMIT_CORE, 0)
    with Connection(descriptor) as channel:
        requests: deque[Any] = deque()
        arrived = threading.Semaphore(0)
        threading.Thread(target=_listen, args=(channel, requests, arrived), daemon=True).start()
        arrived.acquire()
        function, memory_bytes = requests.popleft()
        _limit_memory(memory_bytes)
        channel.send(("ready", None))
        while True:
            arrived.acquire()
            item, cpu_seconds = requests.popleft()
            _limit_cpu(cpu_seconds)
            try:
                channel.send(("result", function(item)))
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            except Exception as error:
                channel.send(("failed", reason_of(error)))
            del item


def _listen(channel: Connection[Any, Any], requests: deque[Any], arrived: threading.Semaphore) -> None:
    """Take requests, and end the process where there will be none any more."""
    try:
        while True:
            requests.append(channel.recv())
            arrived.release()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # what was sent cannot be unpickled here: its code is not to be found
        os._exit(UNREADABLE)


def _limit_memory(memory_bytes: int) -> None:
    """On top of what is mapped; where the system does not tell (no ``/proc``), memory is not limited."""
    gc.collect()
    gc.freeze()  # what was imported stays: no later collection passes over it
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            mapped_bytes = int(stream.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return
    _set_soft(resource.RLIMIT_AS, mapped_bytes + memory_bytes)


def _limit_cpu(cpu_seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_soft(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu_seconds))


def _set_soft(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


START_SECONDS = 60.0
EXIT_SECONDS = 5.0
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from ctxsteward.steward.ingest.worker_pool import serve
serve(int(sys.argv[1]))
"""


class WorkerPool(Generic[Result]):
    """`Isolation` in processes. One `run` at a time; several pools may run in several threads."""

    def __init__(
        self,
        function: Callable[[LoadedItem], Result],
        count: int,
        limits: ItemLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is started before `run`. `clock` is for deadlines alone; no answer depends on what it says."""
        self._function, self._count, self._limits = function, count, limits or ItemLimits()
        self._clock = clock
        self._workers: list[_Worker] = []

    def run(self, items: Iterable[LoadedItem]) -> Iterator[tuple[LoadedItem, Result | QuarantinedItem]]:
        waiting, again = iter(items), deque[LoadedItem]()
        busy: dict[_Worker, LoadedItem] = {}
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
                        yield item, result
        except BaseException:  # an interrupt, or the caller wants no more
            self.close()
            raise

    def close(self) -> None:
        """End every worker. Safe to call again; a later `run` starts new ones."""
        while self._workers:
            self._workers.pop().kill()

    def __enter__(self) -> WorkerPool[Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, busy: dict[_Worker, LoadedItem], waiting: Iterator[LoadedItem], again: deque[LoadedItem]) -> None:
        """Keep every worker busy while there are items; what is tried again gets a new one."""
        while len(busy) < self._count:
            is_again = bool(again)
            item = again.popleft() if again else next(waiting, None)
            if item is None:
                return
            worker = next((one for one in self._workers if one not in busy and not is_again), None)
            if worker is None:
                worker = _Worker(self._function, self._limits)
                self._workers.append(worker)
            busy[worker] = item
            worker.give(item, self._clock() + self._limits.wall_seconds)

    def _finished(self, busy: dict[_Worker, LoadedItem]) -> list[_Worker]:
        """Wait until workers have answered, died, or are out of time."""
        until = min(worker.deadline for worker in busy)
        ready = wait([worker.channel for worker in busy], max(0.0, until - self._clock()))
        now = self._clock()
        return [worker for worker in busy if worker.channel in ready or worker.deadline <= now]

    def _result(self, worker: _Worker, item: LoadedItem) -> Result | QuarantinedItem | None:
        """What a worker says; one that is late, dead or unclear is ended. None: ask another."""
        if worker.channel.poll():
            try:
                kind, value = worker.channel.recv()
            except (EOFError, OSError):  # dead, or it stalls in the middle
                return self._ended(worker, item)
            if kind == "result":
                result: Result = value
                return result
            return quarantined(item, *value)
        self._workers.remove(worker)
        worker.kill()
        return quarantined(item, "time_limit", f"it took more than {self._limits.wall_seconds:g} s")

    def _ended(self, worker: _Worker, item: LoadedItem) -> QuarantinedItem | None:
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


class _Worker:
    """One process, as the pool sees it."""

    def __init__(self, function: object, limits: ItemLimits) -> None:
        self.deadline = 0.0
        self.given = 0
        """Items so far."""
        self._limits = limits
        ours, theirs = socket.socketpair()
        microseconds = max(1, round(limits.wall_seconds * 1_000_000))
        patience = struct.pack("@ll", *divmod(microseconds, 1_000_000))  # of one read or write: a worker may stall
        for timeout in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, timeout, patience)
        self.channel: Connection[Any, Any] = Connection(ours.detach())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        try:
            self._start(function)
        except BaseException:
            self.kill()
            raise

    def _start(self, function: object) -> None:
        try:
            self.channel.send((function, self._limits.memory_bytes))
            if not self.channel.poll(START_SECONDS):
                raise TimeoutError
            self.channel.recv()
        except (EOFError, OSError) as error:
            code = self.ended()
            what = f"a worker ended with code {code} before it began"
            raise RuntimeError(f"{what}; can its function be imported by name?") from error

    def give(self, item: LoadedItem, deadline: float) -> None:
        """Send an item. One that cannot be sent shows when the answer is asked for."""
        self.deadline = deadline
        self.given += 1
        with contextlib.suppress(OSError):
            self.channel.send((item, self._limits.cpu_seconds))

    def ended(self) -> int:
        """The exit code of a worker that has closed its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        return self.kill()

    def kill(self) -> int:
        """End it and all it started, at once; its exit code."""
        self.channel.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()
