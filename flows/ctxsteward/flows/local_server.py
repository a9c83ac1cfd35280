"""A Prefect server for one night, where none is configured: on the loopback, ended with the night.

Dask workers are processes of their own and need an API to report to; without a server each would start one. They find
this one in the environment. Where `PREFECT_API_URL` is set already, that one is used and nothing is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import PREFECT_API_URL, temporary_settings

START_SECONDS = 120
VARIABLE = "PREFECT_API_URL"


@contextmanager
def local_api() -> Iterator[str]:
    """The API's address, while it is there."""
    configured = PREFECT_API_URL.value()
    if configured:
        yield configured
        return
    server = SubprocessASGIServer()
    server.start(timeout=START_SECONDS)
    try:
        os.environ[VARIABLE] = server.api_url
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            yield server.api_url
    finally:
        os.environ.pop(VARIABLE, None)
        server.stop()
