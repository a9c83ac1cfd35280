"""One Prefect server for all tests of flows that need no server of their own, in a home folder of its own.

Prefect reads its environment when it is imported, so the home folder is named here, and its analytics are off.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack

import pytest

from ctxsteward.flows import QUIET

HOME = tempfile.mkdtemp(prefix="prefect")
os.environ.update(QUIET, PREFECT_HOME=HOME)


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


SERVED = ExitStack()
"""The server and the settings that lead there, while there are."""


@pytest.fixture(scope="session")
def prefect() -> Iterator[None]:
    """The harness: a server process on a free port, and settings that lead there."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    with SERVED:
        SERVED.enter_context(prefect_test_harness(server_startup_timeout=90))
        # Each run waits at its end for the thread of its heartbeats, which looks once a second whether it may end.
        SERVED.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """The server ends with the folder's last test: one that nobody asks anything still works all the time."""
    try:
        return (yield)
    finally:
        if nextitem is None or not nextitem.nodeid.startswith("tests/flows/"):
            SERVED.close()


@pytest.fixture(scope="module", autouse=True)
def no_events_afterwards() -> Iterator[None]:
    """Prefect's thread that sends events draws from `random` at any time, which tests of other files would notice."""
    yield
    if (sending := sys.modules.get("prefect.events.worker")) is not None:
        sending.EventsWorker.drain_all(timeout=30)
