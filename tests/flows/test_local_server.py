"""A server for one night: used where one is configured, else started, and gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxsteward.flows.dask_cluster import local_api

from .servers import environment

SCRIPT = """
import os
from urllib.error import URLError
from urllib.request import urlopen
from ctxsteward.flows.dask_cluster import local_api

with local_api() as url:
    assert os.environ["PREFECT_API_URL"] == url
    assert urlopen(f"{url}/health", timeout=60).status == 200
assert "PREFECT_API_URL" not in os.environ
try:
    urlopen(f"{url}/health", timeout=60)
except URLError:
    print("gone")
"""


@pytest.mark.usefixtures("prefect")
def test_a_server_that_is_configured_is_used() -> None:
    from prefect.settings import PREFECT_API_URL

    configured = PREFECT_API_URL.value()
    with local_api() as url:
        assert url == configured
    assert PREFECT_API_URL.value() == configured


def test_a_server_is_started_for_its_night_and_ended_with_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout.split() == ["gone"], done.stderr[-2_000:]
