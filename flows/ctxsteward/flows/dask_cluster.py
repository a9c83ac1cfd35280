"""Run a night on a Dask cluster of this machine, with a Prefect server for its workers.

Both listen on the loopback only and end with the night. Dask's scheduler always starts an HTTP server, by default on
port 8787 of the cluster's interface, and its client calls it a dashboard. Here it uses a free port and has neither a
dashboard nor a link. Each worker process would start a Prefect server of its own if it had no address, so the
environment holds this one. If `PREFECT_API_URL` is set, no server is started.
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
    """A cluster of processes with one thread each and no dashboard."""

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
    """Yield the address of the Prefect API, starting a server if none is configured."""
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
    """Run a night as a Prefect flow with its batches as tasks; return the report even of a failed night."""
    with local_api():
        try:
            return meta_steward_nightly(settings)
        except NightFailed as failed:
            return failed.report
