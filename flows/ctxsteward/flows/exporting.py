"""Telemetry of flow runs: it goes where `CTXSTEWARD_TELEMETRY` says, as ``ctxsteward … --telemetry`` has it.

A served flow runs in a process of its own that ends with it, so `otlp=URL` is what fits; what waits is sent at the end
of the process. Where the process has an SDK already (the command line's, or a framework's), that one is told.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import ExitStack
from functools import cache

VARIABLE = "CTXSTEWARD_TELEMETRY"


@cache
def export() -> None:
    """Set it up, once a process."""
    destination = os.environ.get(VARIABLE)
    if not destination or "opentelemetry.sdk.metrics" in sys.modules:
        return
    from ctxsteward.envelope.exporters import exported
    from ctxsteward.evals import telemetry as evals
    from ctxsteward.steward import telemetry as steward

    stack = ExitStack()
    stack.enter_context(exported(destination, stream=sys.stderr, boards=(steward.board(), evals.board())))
    atexit.register(stack.close)
