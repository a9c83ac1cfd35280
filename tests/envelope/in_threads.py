"""The same work in many threads at once, which switch often."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run `work(n)` in so many threads that begin together; what they raised."""
    raised: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(n: int) -> None:
        try:
            gate.wait(30)
            work(n)
        except BaseException as error:
            raised.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=run, args=(n,)) for n in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
        assert not any(worker.is_alive() for worker in workers)
    finally:
        sys.setswitchinterval(interval)
    return raised
