"""Prefect flows, in the only room that imports Prefect: the nightly steward, missed nights run later, eval suites.

    night       meta_steward_nightly(settings)
    replay      replay_nights(settings, first, last)
    suites      eval_suite(suite, settings)

They decide nothing: a flow runs `ctxsteward.steward` with batches as tasks. Importing this package does not import
Prefect. `QUIET` holds environment variables; set them before you import one of the modules above, as `run_on_dask`
does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxsteward.steward import NightReport, NightSettings

QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
}
"""Environment variables that keep Prefect to itself."""
SILENT = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DASK_LOGGING__DISTRIBUTED": "error"}
"""Those that keep Prefect and Dask from telling a terminal about themselves."""


def run_on_dask(settings: NightSettings) -> NightReport:
    """Run a night on Dask from a terminal; what is set in the environment already stays."""
    for name, value in {**QUIET, **SILENT}.items():
        os.environ.setdefault(name, value)
    from .dask_cluster import night_on_dask

    return night_on_dask(settings)
