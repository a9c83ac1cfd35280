"""Forks of this process: what must not go through one, and what a child has to make anew.

`os.fork` (gunicorn with `--preload`, `multiprocessing`, a daemon) copies memory and descriptors and nothing else:

- What the kernel ties to a process is let go of before the fork and taken up again behind it, in the parent as in the
  child, at its next use: `pause_at_fork`, for open SQLite files. A fork waits for what is under way,
  `PAUSE_SECONDS` at most; a file that is not let go by then stays the parent's, and the child is refused it.
- Threads stay behind, and locks that they held would stay locked: `lock` and `rlock` are free in a child, and
  `renew_in_child` is for objects that count threads, wait for them, or hold a socket.
- A module that another thread is importing, or a model that it is completing, would be locked and half there in a child
  for ever: a fork waits for these, too.

A fork that Python is not told of (by a C library) is noticed at the next use of such a file: `notice`. Nothing is
registered with the interpreter before there is something to see to.

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
"""That the others are waited for while one is paused already: whoever holds two of them at once is not blocked long."""

_IMPORT_POLL_SECONDS = 0.001

T = TypeVar("T")


class Pausable(Protocol):
    """Something in use that lets go of what a child must not inherit."""

    def pause(self, timeout_seconds: float) -> bool:
        """Stop its use and let go; where that cannot be done in time, change nothing and return False."""

    def resume(self) -> None:
        """Let it be used again; by the thread that paused it, in the parent and in the child."""


class Renewable(Protocol):
    """Something that depends on threads or sockets of its process."""

    def forked(self) -> None:
        """This is a child: begin anew what belongs to the parent. No other thread runs."""


class _Registry(Generic[T]):
    """Keeps nothing alive; each operation is one step to other threads."""

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Any]] = {}
        self._numbers = count()

    def add(self, thing: T) -> None:
        number, references = next(self._numbers), self._references
        references[number] = weakref.ref(thing, lambda _: references.pop(number, None))

    def all(self) -> list[T]:
        """In the order of registration."""
        return [thing for one in tuple(self._references.values()) if (thing := one()) is not None]


_pausable: _Registry[Pausable] = _Registry()
_renewable: _Registry[Renewable] = _Registry()
_locks: _Registry[Any] = _Registry()
_forking = threading.Lock()
"""Held by the thread that forks, from before the fork until behind it."""
_paused: list[Pausable] = []
_process: int | None = None
"""The process whose hooks are registered, or a child that has noticed its fork; None: there are no hooks yet."""


def pause_at_fork(thing: Pausable) -> None:
    """Have it paused while the process forks."""
    _register()
    _pausable.add(thing)


def renew_in_child(thing: Renewable) -> None:
    """Have it told in a child."""
    _register()
    _renewable.add(thing)


def lock() -> Lock:
    """A lock that is free in a child, whoever held it."""
    made = threading.Lock()
    _register()
    _locks.add(made)
    return made


def rlock() -> RLock:
    """The same, re-entrant; the thread that forks keeps what it holds."""
    made = threading.RLock()
    _register()
    _locks.add(made)
    return made


def is_held(held: Any) -> bool:
    """Whether the thread that asks holds this `rlock`; conditions of the standard library ask the same way."""
    return bool(held._is_owned())


def notice() -> None:
    """Do what is due in a child that was forked behind Python's back."""
    if _process is not None and _process != os.getpid():
        _in_child()


class _Imports:
    """What other threads are importing, and models that they are completing.

    The interpreter's own lock keeps them from beginning another import; pydantic has one lock for all models whose
    schema is built at first use.
    """

    def pause(self, timeout_seconds: float) -> bool:
        until = time.monotonic() + timeout_seconds
        while True:
            # both or none: who imports may wait to complete a model, and the other way round
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
        # one lock a module, which a lock of its own guards while it is taken; they have no public name
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
    until = time.monotonic() + PAUSE_SECONDS  # a fork of another thread that is waited for counts, too
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
    with ExitStack() as every:  # the last one first, and each of them, whatever another one raises
        for thing in reversed(_renewable.all()):
            every.callback(thing.forked)
        every.callback(_resume, _paused)
        for each in _locks.all():
            every.callback(_freed, each)


def _resume(paused: list[Pausable]) -> None:
    """The last one first."""
    while paused:
        paused.pop().resume()


def _freed(held: Any) -> None:
    """Free a lock in a child, whose holder stayed behind; the standard library's modules do the same with theirs."""
    if held.acquire(blocking=False):
        held.release()
    else:
        held._at_fork_reinit()


def _pause(things: Sequence[Pausable], until: float) -> list[Pausable]:
    """Pause all, or as many as will until then, by the monotonic clock.

    A user of one of them may be waiting for another one, so none is waited for long while others are paused: where one
    does not let go, all are resumed, and that one is paused first in the next attempt.
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
    """Pause one after the other; the first that does not let go while there is time for another attempt."""
    for thing in things:
        left = until - time.monotonic()
        if thing.pause(max(0.0, min(left, _GRACE_SECONDS) if paused else left)):
            paused.append(thing)
        elif left > 0:
            return thing
    return None
