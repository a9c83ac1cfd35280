"""The guide to observability tells the truth: its Python prints what it says, its commands and options exist.

Its Python sets up an SDK, which a process does once, so it runs in one of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope.telemetry.sdk import Destination

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide-observability.md"
TEXT = GUIDE.read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fences(kind: str) -> list[str]:
    return [body for found, body in FENCE.findall(TEXT) if found == kind]


def test_the_python_prints_what_it_says(tmp_path: Path) -> None:
    (code,), (printed,) = fences("python"), fences("text")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout, done.stderr) == (printed, "")


@pytest.mark.parametrize("command", re.findall(r"ctxsteward (replay|steward run)", "\n".join(fences("sh"))))
def test_the_commands_take_the_options_of_the_guide(command: str) -> None:
    said = CliRunner().invoke(cli, [*command.split(), "--help"], prog_name="ctxsteward").stdout

    assert "--telemetry" in said
    assert "--linger" in said


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("console", Destination("console")),
        ("prometheus", Destination("prometheus", "127.0.0.1", 9464)),
        ("otlp", Destination("otlp", url="http://127.0.0.1:4318")),
    ],
)
def test_destinations_are_what_the_guide_says(told: str, expected: Destination) -> None:
    assert Destination.parse(told) == expected
    assert f"    {told}" in TEXT
    assert told != "prometheus" or "127.0.0.1:9464" in TEXT
