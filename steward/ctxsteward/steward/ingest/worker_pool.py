"""Run one function on many items, so that one bad item stops no other.

A night harvests its items with it. Two classes give the same results: `WorkerPool` runs in its own processes, under
limits of time and memory; `InProcess` runs in this process without limits, for tests and small runs. Both take items
lazily and yield each result when it is ready, in any order, so memory does not grow with the number of items.

Limits hold for one item. The caller enforces `wall_seconds` and kills the worker with all its children; the kernel
enforces `cpu_seconds` (RLIMIT_CPU) and `memory_bytes` (RLIMIT_AS, on top of the memory of an idle worker). An item
whose worker died is tried once more in a new worker, so that its result does not depend on earlier items. Leaving `run`
in any way, an interrupt included, ends all workers.

Workers are started with `subprocess` and use `multiprocessing.connection`, so the caller may be a main thread, a thread
of a flow's runner or a daemonic process, and threads are never forked. A worker runs this module's `serve` with a
socket; when the connection ends, a thread ends the worker, so that it does not outlive its caller. The function is sent
by name, so it (or the function of a `functools.partial`) must be importable. Messages to a worker: ``(function,
memory_bytes)``, then ``(item, cpu_seconds)`` each. Messages from it: ``("ready", None)``, then ``("result", value)`` or
``("failed", (reason, detail))`` each. Exit codes: 0 if the connection ended, `OUT_OF_MEMORY` at the memory limit,
`UNREADABLE` if a message cannot be unpickled; SIGXCPU at the CPU limit.

Errors of the iterable of items pass through; `RuntimeError` if a worker cannot be started. Errors in a worker are
results.
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
    """Limits for one item."""

    wall_seconds: float = 30.0
    cpu_seconds: float = 30.0
    """Rounded up, because the kernel counts whole seconds."""
    memory_bytes: int = 1 << 30


class Isolation(Protocol[Given]):
    """Run one function on many items (`WorkerPool`, `InProcess`)."""

    def run(self, items: Iterable[LoadedItem]) -> Iterator[tuple[LoadedItem, Given | QuarantinedItem]]:
        """Yield each item with its result, in any order."""

    def close(self) -> None: ...


class InProcess(Generic[Result]):
    """`Isolation` in this process: exceptions are caught, but an endless loop is not ended."""

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
    """Return why an item failed: class and place of the error, and its words only if it is an error of this product."""
    if isinstance(error, MemoryError):
        return "memory_limit", "it needs more memory than there is"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    words = f": {' '.join(str(error).split())[:200]}" if isinstance(error, ContextError) else ""
    return "failed", f"{type(error).__name__}{where}{words}"


OUT_OF_MEMORY = 86
UNREADABLE = 87


def serve(descriptor: int) -> None:
    """Answer requests until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends its workers
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
    """Receive requests, and end the process when the connection ends."""
    try:
        while True:
            requests.append(channel.recv())
            arrived.release()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # a message cannot be unpickled, because its code cannot be imported
        os._exit(UNREADABLE)


def _limit_memory(memory_bytes: int) -> None:
    """Limit memory on top of what is mapped; without ``/proc`` it is not limited."""
    gc.collect()
    gc.freeze()  # keeps later collections from scanning imported objects
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

    def __init__(self, function: Callable[[LoadedItem], Result], count: int, limits: ItemLimits | None = None) -> None:
        """Workers start in `run`, at most `count` of them."""
        self._function, self._count, self._limits = function, count, limits or ItemLimits()
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
                    self._fill(busy, waiting, again)  # workers go on while the caller handles the result
                    if result is not None:
                        yield item, result
        except BaseException:  # an interrupt, or the caller stopped iterating
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
        """Give items to idle workers; an item that is tried again gets a new worker."""
        while len(busy) < self._count:
            worker = None if again else next((each for each in self._workers if each not in busy), None)
            item = again.popleft() if again else next(waiting, None)
            if item is None:
                return
            if worker is None:
                worker = _Worker(self._function, self._limits)
                self._workers.append(worker)
            busy[worker] = item
            worker.give(item, time.monotonic() + self._limits.wall_seconds)

    def _finished(self, busy: dict[_Worker, LoadedItem]) -> list[_Worker]:
        """Wait until a worker has answered, died, or exceeded its deadline; return these workers."""
        until = min(worker.deadline for worker in busy)
        ready = wait([worker.channel for worker in busy], max(0.0, until - time.monotonic()))
        now = time.monotonic()
        return [worker for worker in busy if worker.channel in ready or worker.deadline <= now]

    def _result(self, worker: _Worker, item: LoadedItem) -> Result | QuarantinedItem | None:
        """Return a worker's result, or None to try the item again; end a late or dead worker."""
        if worker.channel.poll():
            try:
                kind, value = worker.channel.recv()
            except (EOFError, OSError):  # the worker died, or stalls within a message
                return self._death(worker, item)
            if kind == "result":
                result: Result = value
                return result
            return quarantined(item, *value)
        self._workers.remove(worker)
        worker.kill()
        return quarantined(item, "time_limit", f"it took more than {self._limits.wall_seconds:g} s")

    def _death(self, worker: _Worker, item: LoadedItem) -> QuarantinedItem | None:
        """Return why a worker died, or None if it had earlier items, because these may have caused the death."""
        self._workers.remove(worker)
        code = worker.exit_code()
        if code == -signal.SIGXCPU:
            return quarantined(item, "cpu_limit", f"it took more than {self._limits.cpu_seconds:g} s of CPU")
        if worker.given > 1:
            return None
        if code == OUT_OF_MEMORY:
            return quarantined(item, "memory_limit", f"it needs more than {self._limits.memory_bytes:,} bytes")
        return quarantined(item, "worker_died", f"its worker ended with code {code}")


class _Worker:
    """One worker process of a pool."""

    def __init__(self, function: object, limits: ItemLimits) -> None:
        self.deadline = 0.0
        self.given = 0
        """Number of items given to it."""
        self._limits = limits
        ours, theirs = socket.socketpair()
        microseconds = max(1, round(limits.wall_seconds * 1_000_000))
        patience = struct.pack("@ll", *divmod(microseconds, 1_000_000))  # limits one read or write: a worker may stall
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
            raise RuntimeError(
                f"a worker ended with code {self.exit_code()} before it began; can its function be imported by name?"
            ) from error

    def give(self, item: LoadedItem, deadline: float) -> None:
        """Send an item; a failure to send shows when the result is received."""
        self.deadline = deadline
        self.given += 1
        with contextlib.suppress(OSError):
            self.channel.send((item, self._limits.cpu_seconds))

    def exit_code(self) -> int:
        """Wait for a worker that has closed its connection, and return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        return self.kill()

    def kill(self) -> int:
        """Kill the process and its children, and return its exit code."""
        self.channel.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()
