"""Process forks: close what a child must not inherit, and renew what a child cannot use.

`os.fork` (gunicorn with `--preload`, `multiprocessing`, a daemon) copies only memory and descriptors:

- Resources that the kernel ties to a process (locks of open SQLite files) are released before the fork and acquired
  again at their next use, in the parent and in the child: `pause_at_fork`. A fork waits at most `PAUSE_SECONDS` for
  running transactions. A file that is not released by then stays with the parent, and the child cannot open it.
- A child has none of the parent's other threads, so their locks would stay locked: `lock` and `rlock` are free in a
  child, and `renew_in_child` is for objects that count threads, wait for threads, or have a socket.
- A module that another thread is importing, or a model that it is completing, would stay locked and incomplete in the
  child: a fork waits for these, too.

`notice` detects a fork that bypassed Python (by a C library) at the next use of such a file. Hooks are registered with
the interpreter only at the first use of this module.

Source: POSIX `fork(2)`, `fcntl(2)` (locks are not inherited); SQLite documentation, "How To Corrupt An SQLite Database
File", 2.6; Python documentation, `os.register_at_fork`.
"""

from __future__ import annotations

import _imp
import importlib
import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from threading import Lock, RLock
from typing import Any, Generic, Protocol, TypeVar

import pydantic.main

PAUSE_SECONDS = 10.0
_GRACE_SECONDS = 0.05
"""Longest wait for each further object after the first, so that a user of two objects is not blocked for long."""

_IMPORT_POLL_SECONDS = 0.001

T = TypeVar("T")


class Pausable(Protocol):
    """An object that can release, for a fork, a resource that a child must not inherit."""

    def pause(self, timeout_seconds: float) -> bool:
        """Stop all use and release the resource; if that takes too long, change nothing and return False."""

    def resume(self) -> None:
        """Allow use again. The thread that paused the object calls it, in the parent and in the child."""


class Renewable(Protocol):
    """An object that depends on threads or sockets of its process."""

    def forked(self) -> None:
        """Renew, in a child, everything that belongs to the parent. No other thread runs."""


class _Registry(Generic[T]):
    """A registry of weak references; each operation is atomic for other threads."""

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Any]] = {}
        self._numbers = count()

    def add(self, thing: T) -> None:
        number, references = next(self._numbers), self._references
        references[number] = weakref.ref(thing, lambda _: references.pop(number, None))

    def all(self) -> list[T]:
        """Return the living objects in the order of registration."""
        return [thing for one in tuple(self._references.values()) if (thing := one()) is not None]


_pausable: _Registry[Pausable] = _Registry()
_renewable: _Registry[Renewable] = _Registry()
_locks: _Registry[Any] = _Registry()
_forking = threading.Lock()
"""Lock of the forking thread, from before the fork until after it."""
_paused: list[Pausable] = []
_process: int | None = None
"""Id of the process that registered the hooks, or of a child that has noticed its fork; None before the hooks."""


def pause_at_fork(thing: Pausable) -> None:
    """Pause this object while the process forks."""
    _register()
    _pausable.add(thing)


def renew_in_child(thing: Renewable) -> None:
    """Call `forked` of this object in a child."""
    _register()
    _renewable.add(thing)


def lock() -> Lock:
    """Return a lock that is free in a child, even if a thread of the parent held it."""
    made = threading.Lock()
    _register()
    _locks.add(made)
    return made


def rlock() -> RLock:
    """Return a re-entrant `lock`. The forking thread keeps the locks that it holds."""
    made = threading.RLock()
    _register()
    _locks.add(made)
    return made


def is_held(held: Any) -> bool:
    """Return whether the calling thread holds this `rlock`, with the private method that `Condition` uses, too."""
    return bool(held._is_owned())


def notice() -> None:
    """Run the child's hooks if this process was forked without Python's hooks."""
    if _process is not None and _process != os.getpid():
        _in_child()


class _Imports:
    """Imports of other threads, and the pydantic models that they are completing.

    While it is paused, the interpreter's import lock prevents new imports. Pydantic has one lock for all models whose
    schema is built at first use.
    """

    def pause(self, timeout_seconds: float) -> bool:
        until = time.monotonic() + timeout_seconds
        while True:
            # take both locks or neither: an import may wait for a model to be completed, and the reverse
            if _completing.acquire(timeout=max(0.0, until - time.monotonic())):
                _imp.acquire_lock()
                if not self._under_way():
                    return True
                self.resume()
            if time.monotonic() >= until:
                return False
            time.sleep(_IMPORT_POLL_SECONDS)

    def resume(self) -> None:
        _imp.release_lock()
        _completing.release()

    @staticmethod
    def _under_way() -> bool:
        # importlib has a lock per module, guarded by an inner lock while it is acquired; neither has a public name
        modules = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
        for module_lock in [reference() for reference in tuple(modules.values())]:
            if getattr(module_lock, "owner", None) not in (None, threading.get_ident()):
                return True
            guard = getattr(module_lock, "lock", None)
            if guard is not None:
                if not guard.acquire(blocking=False):
                    return True
                guard.release()
        return False


_completing: RLock = getattr(pydantic.main, "_rebuild_lock", None) or threading.RLock()
_imports = _Imports()


def _register() -> None:
    global _process
    if _process is None:
        _process = os.getpid()
        _pausable.add(_imports)
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    until = time.monotonic() + PAUSE_SECONDS  # includes the wait for a fork of another thread
    _forking.acquire()
    _paused.extend(_pause(_pausable.all(), until))


def _in_parent() -> None:
    _resume(_paused)
    _forking.release()


def _in_child() -> None:
    global _process, _forking
    if _process == os.getpid():
        return
    _process, _forking = os.getpid(), threading.Lock()
    with ExitStack() as every:  # runs the callbacks in reverse order, all of them even if one raises
        for thing in reversed(_renewable.all()):
            every.callback(thing.forked)
        every.callback(_resume, _paused)
        for each in _locks.all():
            every.callback(_freed, each)


def _resume(paused: list[Pausable]) -> None:
    """Resume all, the last paused first."""
    while paused:
        paused.pop().resume()


def _freed(held: Any) -> None:
    """Free a lock whose holder does not exist in the child, as the standard library does with its own locks."""
    if held.acquire(blocking=False):
        held.release()
    else:
        held._at_fork_reinit()


def _pause(things: Sequence[Pausable], until: float) -> list[Pausable]:
    """Pause all of `things`, or as many as possible until `until` (monotonic clock); return the paused ones.

    A user of one thing may wait for another thing. So no wait is long while others are paused: if one thing cannot be
    paused, all are resumed, and the next attempt pauses that one first.
    """
    waiting = list(things)
    while True:
        paused: list[Pausable] = []
        try:
            stubborn = _first_stubborn(waiting, paused, until)
        except BaseException:
            _resume(paused)
            raise
        if stubborn is None:
            return paused
        _resume(paused)
        waiting.remove(stubborn)
        waiting.insert(0, stubborn)


def _first_stubborn(things: Sequence[Pausable], paused: list[Pausable], until: float) -> Pausable | None:
    """Pause the things in order; return the first that cannot be paused while time for another attempt is left."""
    for thing in things:
        left = until - time.monotonic()
        if thing.pause(max(0.0, min(left, _GRACE_SECONDS) if paused else left)):
            paused.append(thing)
        elif left > 0:
            return thing
    return None
