"""Flow runs tell where `CTXSTEWARD_TELEMETRY` says, once a process, and send what waits at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

CODE = """
import sys
from ctxsteward.flows.night import export
PREPARE
export()
export()
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.night.telemetry import tell_night
tell_night(NightReport(tenant="t", profile="p", night="2026-11-22", outcome="promoted"))
"""


IMPORTED = """
import json, os, sys
import ctxsteward.flows.night, ctxsteward.flows.suites

for line in sys.stdin:
    code, variables, errors = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.environ.update(variables)
        exec(code, {})
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks a process for each code: what it imports takes longer than all that they do."""
Told = Callable[..., list[str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Lines on stderr of a process that runs a code, which exports, and ends."""
    env = {name: value for name, value in os.environ.items() if name != "CTXSTEWARD_TELEMETRY"}
    errors = tmp_path_factory.mktemp("told") / "errors"
    with subprocess.Popen(
        [sys.executable, "-c", IMPORTED], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def told(prepare: str = "", code: str = CODE, **variables: str) -> list[str]:
            errors.unlink(missing_ok=True)
            stdin.write(json.dumps([code.replace("PREPARE", prepare), variables, str(errors)]) + "\n")
            stdin.flush()
            assert stdout.readline() == "0\n", errors.read_text()
            return errors.read_text().splitlines()

        yield told


def test_what_was_told_is_sent_at_the_end_of_the_process(told: Told) -> None:
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


def test_the_flow_of_eval_suites_tells_as_well(told: Told) -> None:
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


def test_without_the_variable_nothing_is_set_up(told: Told) -> None:
    assert told() == []


def test_an_sdk_that_is_there_is_left_alone(told: Told) -> None:
    assert told("import opentelemetry.sdk.metrics", CTXSTEWARD_TELEMETRY="console") == []
