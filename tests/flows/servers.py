"""Processes that talk to the tests' Prefect server, such as a worker; each ends with its group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from ctxsteward.flows import QUIET

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a child process is given: Prefect to itself, in this home folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    paths = os.pathsep.join([str(ROOT), *(str(ROOT / source) for source in SOURCES)])
    return {**kept, **QUIET, "PREFECT_HOME": str(home), "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", **more}


@contextmanager
def process(*arguments: str, env: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child process in a group of its own, which is killed at the end with all that it has started."""
    with log.open("wb") as stream:
        child = subprocess.Popen(
            [sys.executable, *arguments],
            env=dict(env),
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield child
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def ask(url: str, wanted: Mapping[str, Any]) -> Any:
    """A request of the server's API, whose database may be busy with runs for a while: a minute, as its own client.

    As that does, it asks again where the server says that it is too busy to begin (503).
    """
    for _ in range(30):
        answer = httpx.post(url, json=dict(wanted), timeout=60)
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
        time.sleep(2)
    answer.raise_for_status()
    return answer.json()


def deployed_runs(url: str) -> list[dict[str, Any]]:
    """Flow runs of deployments that the server knows."""
    found: list[dict[str, Any]] = ask(f"{url}/flow_runs/filter", {"flow_runs": {"deployment_id": {"is_null_": False}}})
    return found


def wait_for(true: Callable[[], object], seconds: float, log: Path) -> None:
    """Ask until it holds; the log is shown where it does not."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, log.read_text(errors="replace")[-4_000:]
        time.sleep(0.25)
