"""--telemetry and --linger: a long command tells what it does, to whom it was told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MAIN = "from ctxsteward.console.cli import main; main()"


@contextmanager
def lingering(*arguments: str, env: dict[str, str] | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A command that is done and stays: where its metrics are."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    with process:
        assert process.stderr is not None
        try:
            where = process.stderr.readline().split()[-1]
            assert any("staying for" in line for line in process.stderr), "it ended"
            yield where, process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def scraped(url: str) -> dict[str, float]:
    """Series by name and labels."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_the_demo_can_be_scraped_while_it_lingers() -> None:
    with lingering("demo", "--telemetry", "prometheus=0", "--linger", "300") as (url, _):
        found = scraped(url)

    assert url.startswith("http://127.0.0.1:")
    assert found['context_build_duration_seconds_count{outcome="compacted"}'] >= 15
    assert found['context_section_budget{section="dynamic"}'] == 2_000
    assert found['context_cache_miss_total{reason="record"}'] == 0
    assert found['meta_steward_run_count_total{outcome="promoted"}'] == 0


def test_the_environment_says_the_same(tmp_path: Path) -> None:
    env = {"CTXSTEWARD_TELEMETRY": "prometheus=127.0.0.1:0", "OTEL_SERVICE_NAME": "night"}
    command = ("steward", "run", "--store", f"file:{tmp_path}", "--linger", "300")
    with lingering(*command, env=env) as (url, _):
        found = scraped(url)

    assert found['meta_steward_run_count_total{outcome="promoted"}'] == 1
    assert [name for name in found if name.startswith("target_info") and 'service_name="night"' in name]


def test_a_run_of_a_suite_tells_its_figures() -> None:
    command = ("evals", "run", "verbatim", "--gate", "--scenarios", "1", "--workers", "1")
    with lingering(*command, "--telemetry", "prometheus=0", "--linger", "300") as (url, _):
        found = scraped(url)

    # One scenario keeps every promise, and leaves the gates that hold an interval undecided.
    assert found['eval_run_count_total{outcome="undecided",suite="verbatim"}'] == 1
    assert {value for name, value in found.items() if name.startswith("eval_gate{")} == {1.0}


def test_the_console_gets_json_lines() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--json", "--telemetry", "console"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    note, *rest = done.stderr.splitlines()
    lines = [json.loads(line) for line in rest]
    spans = [line for line in lines if line.get("name") == "context.build"]
    logs = [line for line in lines if "message" in line]
    (metrics,) = [line for line in lines if "resource_metrics" in line]

    assert "telemetry goes to the console" in note
    assert len(json.loads(done.stdout)["checks"]) > 5
    assert len(spans) == len(logs) == json.loads(done.stdout)["calls"]
    assert "context.compress.count" in json.dumps(metrics)


@pytest.mark.parametrize("kind", ["prometheus=0", "otlp", "console"])
def test_a_missing_package_is_named_with_its_extra(kind: str) -> None:
    """A module that is None in `sys.modules` is one that cannot be imported."""
    gone = "('opentelemetry.sdk.metrics.export', 'opentelemetry.exporter.prometheus', 'opentelemetry.exporter.otlp')"
    code = f"import sys; sys.modules.update(dict.fromkeys({gone})); {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--telemetry", kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "pip install 'ctxsteward[telemetry]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_it_nothing_is_loaded() -> None:
    code = (
        "import sys; from ctxsteward.console.cli import cli; "
        "cli(['build', '-', '--store', 'memory:', '--json'], standalone_mode=False); "
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    chat = '{"role": "user", "content": "Hello."}'
    subprocess.run([sys.executable, "-c", code], input=chat, text=True, capture_output=True, timeout=60, check=True)


def test_a_collector_that_is_down_spoils_nothing_and_no_attempt_is_told_of(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--telemetry", "otlp=http://127.0.0.1:9"],
        cwd=tmp_path,
        env=os.environ | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    told = {re.split(r" due to | code: ", line)[0] for line in done.stderr.splitlines()[1:]}
    assert told == {"Failed to export spans batch", "Failed to export metrics batch"}
