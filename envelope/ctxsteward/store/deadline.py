"""A deadline for long computations that write nothing. Calls to a store are never interrupted.

    with Deadline(15.0) as deadline:
        with deadline.bounding():       # pure computation: choose groups to compact, rank originals to recall
            …                           # raises `DeadlinePassed` here, in this thread, once 15 s have passed

Work between two `bounding` blocks (writing an event, laying out) is not interrupted. The exception arrives between any
two bytecodes of a block, so the block need not poll the clock. It must write nothing, and the caller must drop or reset
the state in memory of an interrupted block. Code that acquires a resource and must release it, such as a connection,
runs under `uncut` and is interrupted only after it. A call that waits for another machine runs under `uncut` as a whole
and waits at most `seconds_left`. Import the modules of a block before it: an interrupted import could leave a module's
lock taken.

One thread of the process watches all deadlines. It starts with the first and sleeps while there is none. It may be
scheduled late, so the start of a block and the end of an `uncut` block check the clock as well. Only CPython can raise
an exception in another thread; on other interpreters those two checks are all.
"""

from __future__ import annotations

import ctypes
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from heapq import heapify, heappop, heappush
from itertools import count

from .process_forks import renew_in_child


class DeadlinePassed(BaseException):
    """The deadline has passed. Not an `Exception`, so that summarizers and selectors do not catch it as their own."""


class Deadline:
    """A limit of `seconds` for work of this thread, or no limit if None. Use it in one thread and one `with`."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds: float | None = seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._is_bounding = False
        self._is_raised = False
        self._has_passed = False
        self._until = float("inf")

    def __enter__(self) -> Deadline:
        if self.seconds is not None:
            self._until = time.monotonic() + self.seconds
            with uncut():  # an enclosing deadline must not interrupt the thread while it has the watch's lock
                _watch.add(self, self._until)
        return self

    def __exit__(self, *_: object) -> None:
        if self.seconds is not None:
            with uncut():
                _watch.remove(self)

    @property
    def reason(self) -> str:
        """The text for a finding after the deadline has passed."""
        return f"the deadline of {self.seconds:g} s had passed"

    @contextmanager
    def bounding(self) -> Iterator[None]:
        """Raise `DeadlinePassed` in this block when the deadline passes, or at its start if it has passed already."""
        if self.seconds is None:
            yield
            return
        outer = getattr(_here, "deadline", None)
        try:
            self._begin()
            _here.deadline = self
            yield
        finally:
            try:
                self._end()
            finally:  # also if `_end` is interrupted: a later task of this thread must not see this deadline
                _here.deadline = outer

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(0.0, self._until - time.monotonic())

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Within `bounding`: raise nothing in this block; raise after it if the deadline passed meanwhile."""
        if not self._is_bounding:  # nested in another `pausing` block
            yield
            return
        self._end()
        try:
            yield
        finally:
            with self._lock:
                self._is_bounding = True
        if self._has_passed or not self.seconds_left:
            raise DeadlinePassed

    def _begin(self) -> None:
        with self._lock:
            if self._has_passed or not self.seconds_left:
                raise DeadlinePassed
            self._is_bounding = True

    def _end(self) -> None:
        with self._lock:
            self._is_bounding = False
            if self._is_raised:  # the exception may still be pending, and must not arrive after the block
                self._is_raised = False
                _withdraw(self._thread)

    def _pass(self) -> None:
        with self._lock:
            self._has_passed = True
            if self._is_bounding:
                self._is_raised = True
                _raise_in(self._thread, DeadlinePassed)


class _Watch:
    """The thread that watches all deadlines of this process."""

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        """Reset: a child process has neither the watching thread nor the threads whose deadlines it watched."""
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Deadline]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def add(self, deadline: Deadline, until: float) -> None:
        with self._changed:
            heappush(self._waiting, (until, next(self._numbers), deadline))
            if self._thread is None:
                renew_in_child(self)
                self._thread = threading.Thread(target=self._run, name="ctxsteward deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, deadline: Deadline) -> None:
        with self._changed:
            self._waiting = [one for one in self._waiting if one[2] is not deadline]
            heapify(self._waiting)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._changed.wait()
                    continue
                seconds = self._waiting[0][0] - time.monotonic()
                if seconds > 0:
                    self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
                    continue
                deadline = heappop(self._waiting)[2]
            deadline._pass()


_here = threading.local()
_watch = _Watch()


def uncut() -> AbstractContextManager[None]:
    """Let no deadline of this thread interrupt the block, because it acquires something that it must release."""
    deadline: Deadline | None = getattr(_here, "deadline", None)
    return nullcontext() if deadline is None else deadline.pausing()


def seconds_left() -> float | None:
    """Return the seconds left to this thread's current `bounding` block, or None if it is in none."""
    deadline: Deadline | None = getattr(_here, "deadline", None)
    return None if deadline is None else deadline.seconds_left


class _Withdrawn(BaseException):
    """Replacement for a pending exception that must not arrive any more."""


def _withdraw(thread: int) -> None:
    """Withdraw the pending exception of this thread.

    Another exception is raised in its place and caught here. If none arrived, CPython would keep its flag for a pending
    exception set and check it at each call; CPython 3.11 would then never end a call that is profiled or traced.
    """
    if thread != threading.get_ident():  # another thread closes the block
        _raise_in(thread, None)
    elif platform.python_implementation() == "CPython":
        try:
            _raise_in(thread, _Withdrawn)
            while True:  # the exception arrives at the next bytecode
                pass
        except _Withdrawn:
            pass


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Make this thread raise `kind` at its next bytecode; None clears its pending exception."""
    if platform.python_implementation() != "CPython":
        return
    kept = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kept)
