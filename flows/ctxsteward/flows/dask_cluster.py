"""A night on a Dask cluster of this machine, and the Prefect server that its workers report to.

Both are on the loopback and gone after the night. Dask's scheduler starts an HTTP server in any case, by default on
port 8787 of the cluster's interface, and its client calls that a dashboard. Here it is on a free port, holds no
dashboard, and has no link. Workers are processes of their own, and each would start a Prefect server if it found none:
they find this one in the environment. Where `PREFECT_API_URL` is set already, nothing is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import LocalCluster
from prefect.settings import PREFECT_API_URL, temporary_settings

from ctxsteward.steward import NightReport, NightSettings

from .night import NightFailed, meta_steward_nightly

LOOPBACK = "127.0.0.1"
START_SECONDS = 120
VARIABLE = "PREFECT_API_URL"


class QuietCluster(LocalCluster):
    """Processes of one thread each."""

    def __init__(self, **more: Any) -> None:
        scheduler = {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}
        super().__init__(  # type: ignore[no-untyped-call]  # distributed has no types here
            host=LOOPBACK, threads_per_worker=1, dashboard_address=None, scheduler_kwargs=scheduler, **more
        )

    @property
    def dashboard_link(self) -> str:
        return ""


@contextmanager
def local_api() -> Iterator[str]:
    """The API's address, while it is there."""
    configured = PREFECT_API_URL.value()
    if configured:
        yield configured
        return
    from prefect.server.api.server import SubprocessASGIServer  # brings the whole server with it

    server = SubprocessASGIServer()
    server.start(timeout=START_SECONDS)
    try:
        os.environ[VARIABLE] = server.api_url
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            yield server.api_url
    finally:
        os.environ.pop(VARIABLE, None)
        server.stop()


def night_on_dask(settings: NightSettings) -> NightReport:
    """A night as a Prefect flow, its batches tasks; the report also of one that is no success."""
    with local_api():
        try:
            return meta_steward_nightly(settings)
        except NightFailed as failed:
            return failed.report
