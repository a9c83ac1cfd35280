"""A local Dask cluster that tells nobody of itself: on the loopback, on free ports, without a dashboard.

Dask's scheduler starts an HTTP server in any case, by default on port 8787 of the cluster's interface, and its client
calls that a dashboard. Here it is on a free port of the loopback, holds no dashboard, and has no link.
"""

from __future__ import annotations

from typing import Any

from distributed import LocalCluster

LOOPBACK = "127.0.0.1"


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
