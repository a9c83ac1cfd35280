"""Prefect flows, the only room that imports Prefect: the nightly steward, nights made up for, eval suites.

    night       meta_steward_nightly(settings)
    replay      replay_nights(settings, first, last)
    suites      eval_suite(suite, settings)

They hold no logic: a flow runs `ctxsteward.steward` with batches as tasks. Importing this package imports nothing;
`QUIET` is what a shell puts into the environment before it imports one of the modules above.
"""

from __future__ import annotations

QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
}
"""Environment variables that keep Prefect to itself."""
