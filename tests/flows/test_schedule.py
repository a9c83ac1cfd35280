"""A deployment on a schedule, on a real Prefect server: it fires, and the night it runs is in the chain of nights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
from prefect.flows import load_flow_from_entrypoint

from ctxsteward.envelope.store import open_store
from ctxsteward.steward.nights import Nights
from ctxsteward.steward.settings import NightSettings

from .servers import ROOT, environment, flow_runs, process, server, wait_for
from .transcripts import write

EVERY_20_SECONDS = "* * * * * */20"
SERVE = """
import sys
from prefect.flows import EntrypointType
from ctxsteward.flows.nightly import meta_steward_nightly

cron, settings = sys.argv[1:]
meta_steward_nightly.serve(
    name="nightly", cron=cron, parameters={"settings": __import__("json").loads(settings)},
    entrypoint_type=EntrypointType.MODULE_PATH, print_starting_message=False,
)
"""


def test_the_shipped_deployment_can_be_deployed(tmp_path: Path) -> None:
    (tmp_path / "prefect.yaml").write_text((ROOT / "prefect.yaml").read_text())
    with server(tmp_path) as url:
        env = environment(tmp_path, PREFECT_API_URL=url)
        for arguments in (["work-pool", "create", "steward", "--type", "process"], ["--no-prompt", "deploy", "--all"]):
            done = subprocess.run(
                [sys.executable, "-m", "prefect", *arguments], env=env, cwd=tmp_path, capture_output=True, text=True,
                timeout=120, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        (found,) = httpx.post(f"{url}/deployments/filter", json={}, timeout=10).json()
    assert (found["name"], found["schedules"][0]["schedule"]["cron"]) == ("nightly", "0 3 * * *")
    assert NightSettings.model_validate(found["parameters"]["settings"]).sources == ("store",)
    assert load_flow_from_entrypoint(found["entrypoint"]).name == "meta_steward_nightly"


def test_a_cron_deployment_fires_and_its_night_ends(tmp_path: Path) -> None:
    write(tmp_path / "in", 12)
    settings = NightSettings(
        store=f"file:{tmp_path / 'store'}", sources=(str(tmp_path / "in"),), profile="support", night="2026-11-22"
    )
    log = tmp_path / "serve.log"
    with server(tmp_path) as url:
        env = environment(tmp_path, PREFECT_API_URL=url)
        with process("-c", SERVE, EVERY_20_SECONDS, settings.model_dump_json(), env=env, log=log):
            wait_for(lambda: any(run["deployment_id"] for run in flow_runs(url, "COMPLETED")), 120, log)
        done = [run for run in flow_runs(url, "COMPLETED") if run["deployment_id"]]
    assert done[0]["auto_scheduled"] is True
    with open_store(settings.store) as store:
        ((number, night), *_) = Nights(store, "default", "support").history()
        version = store.profiles("support").newest()
    assert (number, night.outcome, night.counts["harvested"]) == (1, "promoted", 12)
    assert {record.text for record in version.profile.meta} == {
        "No, the baggage allowance is 23 kg, not 20 kg.",
        "No, the cancellation fee is 50 EUR, not 30 EUR.",
    }
