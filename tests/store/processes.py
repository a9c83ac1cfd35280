"""Python processes that are let go at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_together(program: str, arguments: Sequence[Sequence[object]], *, timeout_seconds: float = 600.0) -> list[str]:
    """What a process for each list of arguments prints: it says "ready", and all get the line they wait for at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, given)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for given in arguments
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        ended = [(process.communicate(timeout=timeout_seconds), process.returncode) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.communicate()
    assert [(errors, code) for (_, errors), code in ended] == [("", 0)] * len(started)
    return [printed for (printed, _), _ in ended]
