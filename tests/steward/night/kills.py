"""Processes that end in the middle of a night."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

from ...store.crashes.points import KILLED

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([f"{__package__}.{name}" for name in ("test_kills", "test_nights", "test_poison")])


def killed(die: Callable[..., None], *args: str) -> None:
    """Call it in a process of its own, where it must end by ``os._exit(KILLED)``."""
    process = _PROCESSES.Process(target=die, args=args)
    process.start()
    process.join(120)
    assert process.exitcode == KILLED, args
    process.close()
