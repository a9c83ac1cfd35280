"""Prefect flows for the nightly steward, missed nights, and eval suites; only this package imports Prefect.

    night       meta_steward_nightly(settings)
    replay      replay_nights(settings, first, last)
    suites      eval_suite(suite, settings)

Flows hold no logic of their own: a flow runs `ctxsteward.steward` with batches as tasks. Importing this package does
not import Prefect. Set the environment variables in `QUIET` before you import one of the modules above, as
`run_on_dask` does.
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
"""Environment variables that disable Prefect's telemetry."""
SILENT = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DASK_LOGGING__DISTRIBUTED": "error"}
"""Environment variables that silence Prefect and Dask in a terminal."""


def run_on_dask(settings: NightSettings) -> NightReport:
    """Run a night on Dask from a terminal; variables already set in the environment stay."""
    for name, value in {**QUIET, **SILENT}.items():
        os.environ.setdefault(name, value)
    from .dask_cluster import night_on_dask

    return night_on_dask(settings)
