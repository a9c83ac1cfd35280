"""Where tasks run: threads of this process, a local Dask cluster, or one that is there already.

Dask is imported only where it is asked for; a local cluster is a `clusters.QuietCluster`.
"""

from __future__ import annotations

from typing import Any

from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from ctxsteward.steward.settings import NightSettings


def task_runner(settings: NightSettings) -> TaskRunner[Any]:
    """The runner that these settings name."""
    if settings.runner == "threads":
        return ThreadPoolTaskRunner(max_workers=settings.workers)
    from prefect_dask.task_runners import DaskTaskRunner

    if settings.dask_address is not None:
        return DaskTaskRunner(address=settings.dask_address)
    from .clusters import QuietCluster

    return DaskTaskRunner(cluster_class=QuietCluster, cluster_kwargs={"n_workers": settings.workers})
