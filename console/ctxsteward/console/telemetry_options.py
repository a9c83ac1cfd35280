"""--telemetry and --linger: where a long command tells what it does, and how long it stays to be asked.

`CTXSTEWARD_TELEMETRY` in the environment says the same as --telemetry; `OTEL_RESOURCE_ATTRIBUTES` and
`OTEL_SERVICE_NAME`, which the SDK reads, name the process. Without either nothing of it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .output import note

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "CTXSTEWARD_TELEMETRY"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def telemetry(command: _Command) -> _Command:
    """Give a command both options; what it does is told while it runs."""

    @click.option("--telemetry", "destination", envvar=VARIABLE, metavar="WHERE",
                  help="Tell metrics and spans: console, prometheus[=HOST:PORT] or otlp[=URL].")  # fmt: skip
    @click.option("--linger", "linger_seconds", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS",
                  help="With --telemetry, stay so long after the work, to be scraped.")  # fmt: skip
    @wraps(command)
    def told(*args: Any, destination: str | None, linger_seconds: float, **options: Any) -> Any:
        if not destination:
            if linger_seconds:
                raise click.UsageError("--linger goes with --telemetry; give both")
            return command(*args, **options)
        with _exported(destination):
            try:
                return command(*args, **options)
            finally:
                if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
                    _linger(linger_seconds)

    return told  # type: ignore[return-value]


@contextmanager
def _exported(destination: str) -> Iterator[None]:
    import logging

    from ctxsteward.envelope.exporters import exported
    from ctxsteward.evals import telemetry as evals
    from ctxsteward.steward import telemetry as steward

    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)  # not each attempt: that it failed in the end
    with exported(destination, stream=sys.stderr, boards=(steward.board(), evals.board())) as where:
        note(f"telemetry goes to {where}")
        yield


def _linger(seconds: float) -> None:
    if seconds:
        import time

        note(f"staying for {seconds:g} s; interrupt to leave earlier")
        time.sleep(seconds)
