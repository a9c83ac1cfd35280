"""One Prefect server for all tests of flows that need no server of their own, in a home folder of its own.

Prefect reads its environment when it is imported, so the home folder is named here, and its analytics are off.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest

from ctxsteward.flows import QUIET

HOME = tempfile.mkdtemp(prefix="prefect")
os.environ.update(QUIET, PREFECT_HOME=HOME)


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="package")
def prefect() -> Iterator[None]:
    """The harness: a server process on a free port, and settings that lead there.

    It ends with the folder's tests: a server that nobody asks anything still works all the time.
    """
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    # Each run waits at its end for the thread of its heartbeats, which looks once a second whether it may end.
    with (
        prefect_test_harness(server_startup_timeout=90),
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield


@pytest.fixture(scope="module", autouse=True)
def no_events_afterwards() -> Iterator[None]:
    """Prefect's thread that sends events draws from `random` at any time, which tests of other files would notice."""
    yield
    if (sending := sys.modules.get("prefect.events.worker")) is not None:
        sending.EventsWorker.drain_all(timeout=30)
