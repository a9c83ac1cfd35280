"""Flow runs tell where `CTXSTEWARD_TELEMETRY` says, once a process, and send what waits at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys

CODE = """
import sys
from ctxsteward.flows.night import export
PREPARE
export()
export()
from ctxsteward.steward.night.history import NightReport
from ctxsteward.steward.night.telemetry import tell_night
tell_night(NightReport(tenant="t", profile="p", night="2026-11-22", outcome="promoted"))
"""


def told(prepare: str = "", code: str = CODE, **variables: str) -> list[str]:
    """Lines on stderr of a process that exports and ends."""
    env = {name: value for name, value in os.environ.items() if name != "CTXSTEWARD_TELEMETRY"} | variables
    done = subprocess.run(
        [sys.executable, "-c", code.replace("PREPARE", prepare)], env=env, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    return done.stderr.splitlines()


def test_what_was_told_is_sent_at_the_end_of_the_process() -> None:
    (line,) = told(CTXSTEWARD_TELEMETRY="console")
    metrics = {
        metric["name"]: metric["data"]["data_points"]
        for resource in json.loads(line)["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }

    runs = {point["attributes"]["outcome"]: point["value"] for point in metrics["meta_steward.run.count"]}
    assert runs["promoted"] == 1
    assert runs["held"] == 0


def test_the_flow_of_eval_suites_tells_as_well() -> None:
    """Even where it ends at once."""
    code = """
from contextlib import suppress
from ctxsteward.flows.suites import eval_suite
from ctxsteward.schemas import InputError
from ctxsteward.steward.settings import NightSettings
with suppress(InputError):
    eval_suite.fn("none of them", NightSettings())
"""
    (line,) = told(code=code, CTXSTEWARD_TELEMETRY="console")
    assert "meta_steward.run.count" in line


def test_without_the_variable_nothing_is_set_up() -> None:
    assert told() == []


def test_an_sdk_that_is_there_is_left_alone() -> None:
    assert told("import opentelemetry.sdk.metrics", CTXSTEWARD_TELEMETRY="console") == []
