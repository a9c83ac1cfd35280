"""The same flow with its batches on a Dask cluster of two processes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsteward.flows.night import meta_steward_nightly
from ctxsteward.steward.night.environment import of_this_process
from ctxsteward.steward.night.run import run_night
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import home_of, open_night

from .transcripts import founded, write

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture(scope="module", autouse=True)
def the_environment_of_workers_is_taken_back() -> Iterator[None]:
    """`distributed` sets variables for its workers (threads of BLAS, hash seed) in this process, and leaves them there.

    Workers are processes, and what is set before they start is the only way to give them these.
    """
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def test_a_local_cluster_listens_on_the_loopback_and_has_no_dashboard() -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    from distributed import Client

    from ctxsteward.flows.dask_cluster import LOOPBACK, QuietCluster

    with QuietCluster(n_workers=1) as cluster, Client(cluster) as client:
        assert client.dashboard_link == ""
        addresses = [cluster.scheduler_address, *client.scheduler_info()["workers"]]
        assert all(address.startswith(f"tcp://{LOOPBACK}:") for address in addresses)
        port = client.scheduler_info()["services"]["dashboard"]
        assert port != 8787
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://{LOOPBACK}:{port}/status", timeout=60)


def test_two_dask_workers_do_the_batches_and_the_night_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "in", 12)
    settings = NightSettings(
        store=f"file:{tmp_path / 'store'}",
        sources=(str(tmp_path / "in"),),
        profile="support",
        night="2026-11-22",
        batch_transcripts=2,
        runner="dask",
        workers=2,
    )
    settings = founded(settings)
    shutil.copytree(tmp_path / "store", tmp_path / "alone")
    alone = settings.model_copy(update={"store": f"file:{tmp_path / 'alone'}", "runner": "threads", "workers": 1})
    with open_night(alone, of_this_process()) as opening:
        by_one = run_night(opening)
    report = meta_steward_nightly(settings)
    assert (report.outcome, report.stages["harvested"], report.failed_batches) == ("promoted", 12, 0)
    assert (report.final, report.statuses, report.stages) == (by_one.final, by_one.statuses, by_one.stages)
    assert report.cpu_seconds > 0
    results = [json.loads(path.read_text())["result"] for path in (home_of(settings) / "results").iterdir()]
    workers = {json.loads(result)["by"] for result in results}
    assert of_this_process().owner not in workers
    assert len(workers) == 2
