"""Environment variables that keep Prefect to itself; a shell sets them before it starts a server or imports Prefect."""

from __future__ import annotations

QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
}
