"""A deadline for work that may take long and writes nothing; what talks to a store is never cut off.

    with Deadline(15.0) as deadline:
        with deadline.bounding():       # pure work: choosing what to compact, ranking what to recall
            …                           # raises `DeadlinePassed` here, in this thread, once 15 s have passed

Work between two such blocks (writing an event, laying out) is not cut off. A block is cut off between two steps of the
interpreter, wherever it is: nobody's code has to ask for the time. So it must write nothing, and what it keeps in
memory must be dropped, or set again, where it did not end. What takes something that it must give back, such as a
connection, does so under `uncut`, and is cut off behind it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Deadline:
        if self.seconds is not None:
            self._timer = threading.Timer(self.seconds, self._pass)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def reason(self) -> str:
        """What a finding says where it has passed."""
        return f"the deadline of {self.seconds:g} s had passed"

    @contextmanager
    def bounding(self) -> Iterator[None]:
        """Raise `DeadlinePassed` out of this block once the time has passed; at once, where it has passed before."""
        if self._timer is None:
            yield
            return
        outer = getattr(_here, "deadline", None)
        self._begin()
        _here.deadline = self
        try:
            yield
        finally:
            self._end()
            _here.deadline = outer

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Within `bounding`: raise nothing in this block, and behind it if the time has passed meanwhile."""
        self._end()
        try:
            yield
        finally:
            with self._lock:
                self._is_bounding = True
        if self._has_passed:
            raise DeadlinePassed

    def _begin(self) -> None:
        with self._lock:
            if self._has_passed:
                raise DeadlinePassed
            self._is_bounding = True

    def _end(self) -> None:
        with self._lock:
            self._is_bounding = False
            if self._is_raised:  # it may not have arrived yet, and must not arrive later
                self._is_raised = False
                _raise_in(self._thread, None)

    def _pass(self) -> None:
        with self._lock:
            self._has_passed = True
            if self._is_bounding:
                self._is_raised = True
                _raise_in(self._thread, DeadlinePassed)


_here = threading.local()


@contextmanager
def uncut() -> Iterator[None]:
    """Not to be cut off by a deadline of this thread: something is taken that must be given back."""
    deadline: Deadline | None = getattr(_here, "deadline", None)
    if deadline is None:
        yield
    else:
        with deadline.pausing():
            yield


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have this thread raise at its next step; None: not to raise what it has not raised yet."""
    kept = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kept)
