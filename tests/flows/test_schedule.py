"""The shipped deployments on the tests' Prefect server with a real worker: they fire, fail loudly, outlive a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import PREFECT_API_URL
from prefect.workers.process import ProcessWorker

from ctxsteward.envelope.store import open_store
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.settings import NightSettings

from .servers import ROOT, ask, deployed_runs, environment, process, wait_for
from .transcripts import founded, write

A_MINUTE_SECONDS = 60.0


class Deployed(NamedTuple):
    """A server that has the shipped deployments."""

    url: str
    home: Path
    env: dict[str, str]
    by_name: dict[str, dict[str, Any]]

    def worker(self, name: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        env = self.env | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
        arguments = ("-m", "prefect", "worker", "start", "--pool", "steward", "--name", name)
        return process(*arguments, env=env, log=self.home / f"{name}.log")

    def start(self, settings: NightSettings) -> str:
        """Begin a run of the nightly deployment, as its schedule does; its id."""
        parameters = {"settings": settings.model_dump(mode="json", exclude_unset=True)}
        path = f"{self.url}/deployments/{self.by_name['nightly']['id']}/create_flow_run"
        run: str = ask(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})["id"]
        return run

    def run(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in deployed_runs(self.url) if one["id"] == id)
        return found


@pytest.fixture(scope="module")
def deployed(prefect: None, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    home = tmp_path_factory.mktemp("prefect")
    (home / "prefect.yaml").write_text((ROOT / "prefect.yaml").read_text())
    url = str(PREFECT_API_URL.value())
    pool = {"name": "steward", "type": "process", "base_job_template": ProcessWorker.get_default_base_job_template()}
    ask(f"{url}/work_pools/", pool)
    told = {"CTXSTEWARD_STORE": f"file:{home / 'store'}", "CTXSTEWARD_PROFILE": "support"}
    env = environment(home, PREFECT_API_URL=url, **told)
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = ask(f"{url}/deployments/filter", {})
    return Deployed(url, home, env, {one["name"]: one for one in found})


def settings_of(root: Path, transcripts: int, **more: Any) -> NightSettings:
    write(root / "in", transcripts)
    return founded(
        NightSettings(
            store=f"file:{root / 'store'}", sources=(str(root / "in"),), profile="support", night="2026-11-22", **more
        )
    )


def test_the_three_flows_are_deployed(deployed: Deployed) -> None:
    told = {
        name: (load_flow_from_entrypoint(one["entrypoint"]).name, [s["schedule"]["cron"] for s in one["schedules"]])
        for name, one in deployed.by_name.items()
    }
    assert told == {
        "nightly": ("meta_steward_nightly", ["0 3 * * *"]),
        "replay": ("replay_nights", []),
        "suite": ("eval_suite", ["0 5 * * *"]),
    }
    for name, one in deployed.by_name.items():
        assert set(one["tags"]) == {"ctxsteward", name}
        settings = NightSettings.model_validate(one["parameters"]["settings"])
        assert (settings.sources, settings.profile, settings.store) == (
            ("store",),
            "support",
            deployed.env["CTXSTEWARD_STORE"],
        )
        assert settings.lease_seconds < A_MINUTE_SECONDS, "a killed night is taken over when its lease has run out"
        assert one["global_concurrency_limit"] is None, "its slot would outlive a killed run by five minutes"


def test_a_killed_worker_is_taken_over_by_the_next_run(deployed: Deployed, tmp_path: Path) -> None:
    settings = settings_of(tmp_path, 24, batch_transcripts=4, workers=1)
    relative = settings.model_copy(update={"store": "file:store"})
    with deployed.worker("first") as worker:
        killed = deployed.start(settings)
        batches = tmp_path / "store" / "objects" / "steward"
        log = deployed.home / "first.log"
        wait_for(lambda: list(batches.glob("*/*/batches/*/*.json")), 120, log)
        owner = deployed.run(killed)["labels"]["ctxsteward.owner"]
        os.killpg(worker.pid, signal.SIGSTOP)  # so that neither of them has time to say anything of the other
        os.kill(int(owner.rpartition(":")[2]), signal.SIGKILL)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    assert deployed.run(killed)["state_name"] == "Running"
    with deployed.worker("second"):
        after, failing = deployed.start(settings), deployed.start(relative)
        log = deployed.home / "second.log"
        wait_for(lambda: deployed.run(killed)["state_name"] == "Crashed", 120, log)
        wait_for(lambda: deployed.run(after)["state_name"] == "Completed", 120, log)
        wait_for(lambda: deployed.run(failing)["state_name"] == "Failed", 120, log)
    done, crashed = deployed.run(after), deployed.run(killed)
    assert (done["name"], set(done["tags"])) == (
        "support 2026-11-22",
        {"ctxsteward", "nightly", "tenant:default", "profile:support"},
    )
    assert crashed["state_name"] == "Crashed"
    assert crashed["state"]["message"] == f"its process, {owner}, is gone; run support 2026-11-22 takes over"
    assert {one["state_name"] for one in deployed_runs(deployed.url)} <= {"Completed", "Crashed", "Failed", "Scheduled"}
    assert "'store' is relative" in deployed.run(failing)["state"]["message"]
    with open_store(settings.store) as store:
        (night,) = NightChain(store, "default", "support").history()
    assert (night.outcome, night.counts["harvested"]) == ("promoted", 24)
