"""A deadline for work that may take long and writes nothing; what talks to a store is never cut off.

    with Deadline(15.0) as deadline:
        with deadline.bounding():       # pure work: choosing what to compact, ranking what to recall
            …                           # raises `DeadlinePassed` here, in this thread, once 15 s have passed

Work between two such blocks (writing an event, laying out) is not cut off. A block is cut off between two steps of the
interpreter, wherever it is: nobody's code has to ask for the time. So it must write nothing, and what it keeps in
memory must be dropped, or set again, where it did not end. What takes something that it must give back, such as a
connection, does so under `uncut`, and is cut off behind it; a call that waits for another machine is uncut as a whole
and waits no longer than `seconds_left`. What such a block needs is imported before it: an import that is cut off could
leave a module's lock taken.

One thread of the process watches all deadlines; it starts with the first and sleeps while there are none. It may get
its turn late, so the clock is asked as well where a block begins and where an uncut one
ends. For CPython, which can raise an exception in another thread; elsewhere only these two places are cut off.
"""

from __future__ import annotations

import ctypes
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from itertools import count

from .process_forks import renew_in_child


class DeadlinePassed(BaseException):
    """The time has passed. No `Exception`: summarizers and selectors must not take it for an error of theirs."""


class Deadline:
    """So many seconds for what this thread does; None: any time. For one thread, and one `with`."""

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
            with uncut():  # within the block of another deadline: the watch's lock must be given back
                _watch.add(self, self._until)
        return self

    def __exit__(self, *_: object) -> None:
        if self.seconds is not None:
            with uncut():
                _watch.remove(self)

    @property
    def reason(self) -> str:
        """What a finding says where it has passed."""
        return f"the deadline of {self.seconds:g} s had passed"

    @contextmanager
    def bounding(self) -> Iterator[None]:
        """Raise `DeadlinePassed` out of this block once the time has passed; at once, where it has passed before."""
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
            finally:  # cut off within `_end` too: else a later task of this thread would find a deadline of this one
                _here.deadline = outer

    @property
    def seconds_left(self) -> float:
        """Seconds until it passes; 0 once it has."""
        return max(0.0, self._until - time.monotonic())

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Within `bounding`: raise nothing in this block, and behind it if the time has passed meanwhile."""
        if not self._is_bounding:  # within another such block, which has not ended yet
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
            if self._is_raised:  # it may not have arrived yet, and must not arrive later
                self._is_raised = False
                _withdraw(self._thread)

    def _pass(self) -> None:
        with self._lock:
            self._has_passed = True
            if self._is_bounding:
                self._is_raised = True
                _raise_in(self._thread, DeadlinePassed)


class _Watch:
    """Watches all deadlines of this process in one thread."""

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        """Begin anew: in a child there is neither the thread nor a deadline of the parent's other threads."""
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


@contextmanager
def uncut() -> Iterator[None]:
    """Not to be cut off by a deadline of this thread: something is taken that must be given back."""
    deadline: Deadline | None = getattr(_here, "deadline", None)
    if deadline is None:
        yield
    else:
        with deadline.pausing():
            yield


def seconds_left() -> float | None:
    """How long work of this thread that is bounded just now may go on; None: any time."""
    deadline: Deadline | None = getattr(_here, "deadline", None)
    return None if deadline is None else deadline.seconds_left


class _Withdrawn(BaseException):
    """Takes the place of an exception that must not arrive any more."""


def _withdraw(thread: int) -> None:
    """Have this thread not raise what it has not raised yet.

    Something is raised in its place and caught here: CPython remembers that an exception waits until one has arrived,
    looks for it at each call, and in 3.11 never ends a call that is profiled or traced.
    """
    if thread != threading.get_ident():  # a block that another thread closes
        _raise_in(thread, None)
    elif platform.python_implementation() == "CPython":
        try:
            _raise_in(thread, _Withdrawn)
            while True:  # it arrives at the next step
                pass
        except _Withdrawn:
            pass


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have this thread raise at its next step; None: not to raise what it has not raised yet."""
    if platform.python_implementation() != "CPython":
        return
    kept = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kept)
